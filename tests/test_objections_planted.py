# SPDX-License-Identifier: Apache-2.0
"""Rows computed from simulated samples and printed as articles print them get no objection; planted errors do.

Each row goes through an article's file. So the file's keys are tried as well.
"""

import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubt_cases import assert_brief
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rtproof import articles
from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.judge.doubts.result_row import ResultClaim
from rtproof.judge.doubts.row_statements import load_length_ns

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
UNITS = {"ns": 1, "us": US, "ms": MS}
Samples = NDArray[np.float64]
Table = dict[str, Any]


def printed(ns: float, unit: str = "us", digits: int = 0, *, cut: bool = False) -> str:
    """A time as articles print it: rounded, or cut after its last digit."""
    scaled = ns / UNITS[unit] * 10**digits
    return f"{(math.trunc(scaled) if cut else round(scaled)) / 10**digits:.{digits}f} {unit}"


def toml_value(told: Any) -> str:
    if isinstance(told, bool):
        return str(told).lower()
    if isinstance(told, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_value(each)}" for key, each in told.items()) + " }"
    if isinstance(told, list | tuple):
        return f"[{', '.join(map(toml_value, told))}]"
    return json.dumps(told) if isinstance(told, str) else str(told)


def row(numbers: Any = (), **told: Any) -> Table:
    several = [numbers] if isinstance(numbers, Mapping) else list(numbers)
    return {"key": "a", "label": "a", "section": "s", "board": "b", "kernel": "k", **told, "numbers": several}


def found(*rows: Table) -> list[tuple[str, str]]:
    """The codes and sentences of the objections to an article with these rows."""
    lines = ['title = "t"', 'source = "s"', 'about = "a"']
    for at, told in enumerate(rows):
        named = {**told, "key": f"row-{at}", "label": f"row {at}"}
        lines += ["[[row]]", *(f"{key} = {toml_value(value)}" for key, value in named.items())]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.toml"
        path.write_text("\n".join(lines))
        doubts = doubts_about_rows(articles.claims(articles.read(path)))
        assert_brief(doubts)
        return [(each.code, each.whole) for each in doubts]


# Sound rows, made from samples.


def drawn(random: np.random.Generator, n: int) -> Samples:
    """Latencies in whole ns: a body of one of several shapes, and often a tail."""
    low = float(random.integers(1_000, 60_000))
    kind = random.integers(0, 5)
    if kind == 0:
        body = low + random.gamma(2.0, low / 10, n)
    elif kind == 1:
        body = low + random.lognormal(0.0, 1.0, n) * low / 20
    elif kind == 2:
        body = np.where(random.random(n) < 0.9, low, 3 * low) + random.exponential(low / 30, n)
    elif kind == 3:
        body = low + random.pareto(2.5, n) * low / 5
    else:
        body = random.normal(low, low / 4, n)
    body = np.clip(body, 0, 900_000)
    return np.rint(body)


def summary(values: Samples, random: np.random.Generator, **told: Any) -> Table:
    """The figures of these values, each with its own unit and number of digits."""
    unit = str(random.choice(["us", "us", "ns", "ms"]))
    digits = {"ns": 0, "us": int(random.integers(0, 4)), "ms": int(random.integers(3, 6))}[unit]
    cut = bool(random.random() < 0.4)
    figures: Table = {"name": "latency", **told, "count": len(values)}
    for key, value in (("min", values.min()), ("mean", values.mean()), ("max", values.max())):
        more = int(random.random() < 0.2) if key == "mean" and unit == "us" and digits < 3 else 0
        figures[key] = printed(float(value), unit, digits + more, cut=cut)
    if len(values) > 1 and random.random() < 0.6:
        figures["deviation"] = printed(float(values.std(ddof=int(random.integers(0, 2)))), unit, digits, cut=cut)
    _with_percentiles(figures, values, random, (unit, digits, cut))
    _with_bins(figures, values, random)
    if random.random() < 0.5 and figures.get("kind") != "latency":
        low, high = sorted(float(each) for each in random.choice(values, 2))
        low, high = math.floor(low / US) * US, (math.ceil(high / US) + 1) * US
        if low > 0:
            figures |= {"low": printed(low), "high": printed(high)}
            figures |= {"below": int((values < low).sum()), "above": int((values > high).sum())}
    return figures


METHODS = ("linear", "lower", "higher", "nearest", "inverted_cdf", "weibull", "hazen", "median_unbiased")


def _with_percentiles(figures: Table, values: Samples, random: np.random.Generator, how: tuple[str, int, bool]) -> None:
    unit, digits, cut = how
    if random.random() < 0.7:
        method = str(random.choice(METHODS))
        shares = [each for each in (1, 50, 90, 99, 99.9, 99.99, 99.999) if random.random() < 0.7]
        shares = [each for each in shares if values.size * (100 - each) >= 100]
        figures["percentiles"] = [
            (f"{share} %", printed(float(np.percentile(values, share, method=method)), unit, digits, cut=cut))  # type: ignore[call-overload]
            for share in shares
        ]
    if random.random() < 0.5:
        at = np.linspace(max(values.min() - 5 * US, 0), values.max() + 5 * US, int(random.integers(2, 12)))
        at = np.unique(np.rint(at / US) * US)
        after = int(random.integers(0, 4))
        figures["curve"] = [(printed(x), f"{100 * (values <= x).mean():.{after}f} %") for x in at]


def _with_bins(figures: Table, values: Samples, random: np.random.Generator) -> None:
    if random.random() > 0.7:
        return
    width = int(random.choice([500, 1_000, 2_000, 5_000]))
    # Programs cut or round a value before they count it.
    place = (
        np.floor(values / width).astype(int) if random.random() < 0.8 else np.floor(np.rint(values) / width).astype(int)
    )
    number = int(place.max()) + 1 if random.random() < 0.5 else max(int(place.max() * random.random()), 1)
    counts = np.bincount(place, minlength=number)
    inside, beyond = counts[:number], int(counts[number:].sum())
    figures |= {"bin_width": printed(width, "ns"), "bins": number}
    if beyond:
        figures["overflow"] = beyond
    if random.random() < 0.6 and number < 3_000:
        figures["bin_counts"] = [int(each) for each in inside]
    fullest = int(inside.argmax())
    if inside[fullest]:
        share = 100 * inside[fullest] / len(values)
        after = int(random.integers(0, 3))
        shown = math.floor(share * 10**after) / 10**after if random.random() < 0.5 else round(share, after)
        figures |= {"bin_from": printed(fullest * width, "ns"), "bin_to": printed((fullest + 1) * width, "ns")}
        figures["bin_share"] = f"{shown:.{after}f} %"


def sound_row(seed: int) -> Table:
    """A row of one of three kinds: latencies of cyclictest or latency, cycles, or an application's loop."""
    random = np.random.default_rng(seed)
    kind = seed % 3
    if kind == 0:
        return _sound_latencies(random)
    n = int(random.integers(3, 20_000))
    if kind == 1:
        lateness = drawn(random, n + 1)
        period = 10 * MS
        cycles = period + np.diff(lateness)
        told = summary(cycles, random, name="cycle", kind="length", period="10 ms")
        return row(told, duration=_length(float(cycles.sum()) * random.uniform(1, 1.8), random))
    return _sound_app(random, min(n, 3_000))


def _length(ns: float, random: np.random.Generator) -> str:
    seconds = ns / SECOND
    if seconds < 10:
        return printed(ns, "ms")
    whole = max(int(seconds) if random.random() < 0.5 else round(seconds), 1)
    return f"{whole} s" if whole < 7_200 else f"{whole // 3600} h {whole % 3600 // 60} min"


def _sound_latencies(random: np.random.Generator) -> Table:
    period = int(random.choice([200, 500, 1_000, 2_000])) * US
    seconds = int(random.integers(2, 30))
    n = seconds * SECOND // period - int(random.integers(0, 2))
    values = drawn(random, n)
    values = np.minimum(values, period * 0.9)
    told = summary(values, random, name="thread 0", period=printed(period))
    program = int(random.integers(0, 3))
    priority = int(random.integers(1, 99))
    words: Table = {"policy": "fifo", "priority": priority}
    if program == 0:
        words["command"] = f"cyclictest -m -n -p{priority} -i {period // US} -D {seconds} -h 400 -q"
        words["method"] = "clock_nanosleep"
    elif program == 1:
        words["command"] = f"taskset -c 1 ./cyclictest --prio={priority} --interval={period // US} -l {n} -t1 -a"
    else:
        words["command"] = f"latency -p {period // US} -T{seconds} -P{priority} -t{random.integers(0, 3)} -h -H1000 -q"
    words["load"] = "stress-ng --cpu 4"
    words["load_line"] = f"stress-ng --cpu 4 --timeout {seconds + int(random.integers(0, 60))}s &"
    return row(told, asked=f"{seconds} s", loadavg="0.30 0.20 0.10", **words)


def _sound_app(random: np.random.Generator, n: int) -> Table:
    """Loops from top to top, and the work in each, which is shorter. The last top has no loop."""
    period = 5 * MS
    tops = drawn(random, n + 1)
    loops = period + np.diff(tops)
    works = np.rint(loops * random.uniform(0.05, 0.9) * random.uniform(0.5, 1, n))
    numbers = [
        summary(works, random, name="work", kind="length"),
        summary(loops, random, name="loop", kind="loop", period="5 ms"),
        summary(tops[:n] if random.random() < 0.5 else tops, random, name="top", kind="top", period="5 ms"),
    ]
    return row(numbers, duration=_length(float(loops.sum()) * random.uniform(1, 1.8), random))


@settings(max_examples=120, deadline=None)
@given(st.integers(100, 2**32))
@example(62802)  # four values of exactly 14 us, where the scale ends
def test_no_row_that_was_computed_from_samples_is_objected_to(seed: int) -> None:
    assert found(sound_row(seed)) == []


@settings(max_examples=120, deadline=None)
@given(st.lists(st.integers(1_000, 400_000), min_size=1, max_size=60), st.integers(0, 2**32))
def test_nor_are_the_figures_of_a_few_odd_values(values: list[int], seed: int) -> None:
    random = np.random.default_rng(seed)
    assert found(row(summary(np.array(values, float), random))) == []


# Planted errors: a sound row with one thing changed.


LATENCY = {"name": "thread 0", "period": "1000 us", "count": 600_000, "min": "4 us", "mean": "11 us", "max": "83 us"}
LOOPS = (
    {"name": "work", "kind": "length", "count": 900, "min": "410 us", "mean": "700 us", "max": "1300 us"},
    {
        "name": "loop",
        "kind": "loop",
        "period": "4 ms",
        "count": 900,
        "min": "3.71 ms",
        "mean": "4.00 ms",
        "max": "4.32 ms",
    },
    {"name": "top", "kind": "top", "period": "4 ms", "count": 900, "min": "11 us", "mean": "50 us", "max": "350 us"},
)
CYCLES = {
    "name": "cycle",
    "kind": "length",
    "period": "20 ms",
    "low": "18 ms",
    "high": "22 ms",
    "count": 9_000,
    "below": 40,
    "above": 60,
    "min": "11.2 ms",
    "mean": "20.0 ms",
    "max": "31.0 ms",
}
RUN = {"asked": "10 min", "policy": "fifo", "priority": 80, "command": "cyclictest -m -n -p80 -i1000 -D10m -q"}
PAIR = {
    "group": "g",
    "load": "hackbench",
    "policy": "fifo",
    "priority": 80,
    "method": "clock_nanosleep",
    "asked": "10 min",
}
BINS = {"bin_width": "2 us", "bins": 50}


def latency(**changes: Any) -> Table:
    return {key: value for key, value in {**LATENCY, **changes}.items() if value is not None}


def full(low: int, high: int, share: str, **changes: Any) -> Table:
    width = {"bin_width": f"{high - low} us", "bin_from": f"{low} us", "bin_to": f"{high} us", "bin_share": share}
    return row(latency(**width, **changes))


def bins(*counts: int, **changes: Any) -> Table:
    """A hundred values, counted in bins of 20 us."""
    return row(latency(count=100, bin_width="20 us", bin_counts=list(counts), **changes))


def app(place: int, **changes: Any) -> Table:
    numbers = [dict(each) for each in LOOPS]
    numbers[place] |= changes
    return row(numbers)


def pair(**changes: Any) -> tuple[Table, Table]:
    return row(latency(), **PAIR), row(latency(), **{**PAIR, **changes})


def run(**changes: Any) -> Table:
    return row(latency(), **{**RUN, **changes})


def _few(**top: Any) -> list[Table]:
    """Thirty loops, of which one is 344 us short. The tops vary by 339 us."""
    work, loop, last = ({**each, "count": 30} for each in LOOPS)
    return [work, {**loop, "min": "3.656 ms"}, {**last, **top}]


PLANTED: tuple[tuple[str, str, tuple[Table, ...]], ...] = (
    ("distribution", "the fullest bin is above the maximum", (full(100, 102, "60 %"),)),
    ("distribution", "the fullest bin is below the minimum", (full(0, 2, "60 %"),)),
    ("distribution", "the fullest bin pulls the mean up", (full(40, 42, "70 %"),)),
    ("distribution", "the fullest bin pulls the mean down", (full(4, 5, "99.5 %"),)),
    ("distribution", "all values in a bin, and the maximum outside", (full(10, 12, "100.0000 %"),)),
    ("distribution", "the bins end below the maximum", (row(latency(bin_width="1 us", bins=64)),)),
    ("distribution", "values beyond bins that end above the maximum", (row(latency(**BINS, overflow=12)),)),
    (
        "distribution",
        "values beyond bins, and the maximum in the last one",
        (row(latency(**BINS, overflow=12, max="99 us")),),
    ),
    (
        "distribution",
        "more beyond the bins than the mean allows",
        (row(latency(**BINS, overflow=300_000, max="150 us")),),
    ),
    ("distribution", "the fullest bin has less than the average bin", (full(10, 14, "2.0 %"),)),
    ("distribution", "a percentile of too few values", (row(latency(percentiles=[("99.9999 %", "80 us")])),)),
    ("distribution", "the bins do not add up", (bins(60, 20, 10, 5, 4),)),
    ("distribution", "the minimum is in an empty bin", (bins(0, 90, 5, 3, 2),)),
    ("distribution", "the maximum is in an empty bin", (bins(90, 8, 2, 0, 0),)),
    ("distribution", "the counts give another mean", (bins(10, 10, 40, 30, 10),)),
    (
        "distribution",
        "the counts give another share",
        (bins(80, 10, 5, 3, 2, bin_from="0 us", bin_to="20 us", bin_share="95 %"),),
    ),
    ("distribution", "the percentile contradicts the counts", (bins(90, 5, 2, 2, 1, percentiles=[("50 %", "47 us")]),)),
    ("distribution", "percentiles fall", (row(latency(percentiles=[("99 %", "40 us"), ("99.9 %", "31 us")])),)),
    ("distribution", "a percentile above the maximum", (row(latency(percentiles=[("99.99 %", "97 us")])),)),
    ("distribution", "a percentile below the minimum", (row(latency(percentiles=[("10 %", "1 us")])),)),
    ("distribution", "the median is too high for the mean", (row(latency(percentiles=[("50 %", "30 us")])),)),
    ("distribution", "the percentile is too low for the mean", (row(latency(percentiles=[("99 %", "6 us")])),)),
    ("distribution", "the curve falls", (row(latency(curve=[("10 us", "70 %"), ("20 us", "60 %")])),)),
    ("distribution", "the curve is full before the maximum", (row(latency(curve=[("40 us", "100.0000000 %")])),)),
    ("distribution", "the curve begins before the minimum", (row(latency(curve=[("2 us", "20.0 %")])),)),
    ("distribution", "the curve allows no such mean", (row(latency(curve=[("8 us", "5.0 %"), ("30 us", "40.0 %")])),)),
    ("lengths", "cycles do not fit into the run", (row({**CYCLES, "count": 9_000}, duration="100 s"),)),
    (
        "lengths",
        "the shortest alone do not fit",
        (row({"name": "work", "kind": "length", "count": 5_000, "min": "40 ms", "max": "90 ms"}, duration="60 s"),),
    ),
    ("lengths", "loops are of a small part of the run", (row(LOOPS, duration="2 h"),)),
    ("lengths", "the longest work is longer than any loop", (app(0, max="6.10 ms"),)),
    ("lengths", "the mean work is longer than the mean loop", (app(0, mean="4.20 ms", max="4.30 ms"),)),
    ("sums", "a loop sticks out farther than the tops vary", (app(1, max="4.345 ms"),)),
    ("sums", "a short loop does, of a few whose tops are all counted", (row(_few(count=31)),)),
    ("distribution", "too few out of band for the mean", (row({**CYCLES, "mean": "23.4 ms"}),)),
    ("distribution", "too many late for the mean", (row({**CYCLES, "above": 4_000, "mean": "18.9 ms"}),)),
    (
        "backlog",
        "the mean is at a minimum that backlog leaves no room for",
        (row(latency(min="900 us", mean="910 us", max="300 ms"), asked="10 min"),),
    ),
    ("backlog", "backlog above a minimum", (row(latency(min="60 us", mean="65 us", max="101 ms"), asked="10 min"),)),
    ("unlike", "another load", pair(load="make -j8")),
    ("unlike", "another policy", pair(policy="rr")),
    ("unlike", "another method", pair(method="nanosleep")),
    ("unlike", "another priority", pair(priority=99)),
    (
        "unlike",
        "a tenth of the length",
        (row(latency(count=600_000), **PAIR), row(latency(count=60_000), **{**PAIR, "asked": "60 s"})),
    ),
    ("unlike", "another period", (row(latency(), **PAIR), row(latency(period="250 us", count=2_400_000), **PAIR))),
    ("priority", "a priority without a real-time policy", (row(latency(), policy="other", priority=99),)),
    ("command", "another method", (run(method="setitimer"),)),
    ("command", "another duration", (run(command="cyclictest -n -p 80 -D 1h"),)),
    ("command", "another length of latency", (run(command="latency -P80 -T60"),)),
    ("load-shorter", "stress ends before the run", (run(load_line="stress --cpu 4 --timeout 60s &"),)),
    ("load-shorter", "timeout ends it", (run(load_line="timeout 5m ./busy & sleep 10"),)),
    ("load-shorter", "one of two loads ends", (run(load_line="stress -c 4 -t 60 & while true; do ls; done"),)),
    ("load-shorter", "iperf3 ends", (run(load_line="iperf3 -c host -t 120 > /dev/null"),)),
)


@pytest.mark.parametrize(("code", "rows"), [pytest.param(code, rows, id=name) for code, name, rows in PLANTED])
def test_a_planted_impossibility_is_found(code: str, rows: tuple[Table, ...]) -> None:
    assert {each for each, _ in found(*rows)} == {code}, found(*rows)


def test_the_rows_before_anything_was_planted_are_sound() -> None:
    sound = [
        row(latency()),
        row(LOOPS, duration="4 s"),
        row(_few()),
        row(CYCLES, duration="181 s"),
        run(),
        *pair(),
        full(10, 12, "60 %"),
    ]
    assert [found(each) for each in sound] == [[]] * len(sound)
    assert found(*pair()) == []


def test_what_the_article_varies_is_no_reason() -> None:
    assert found(*pair(policy="rr", varies=["policy"])) == []
    assert {code for code, _ in found(*pair(policy="rr", varies=["load"]))} == {"unlike"}


@pytest.mark.parametrize(
    "command",
    [
        "cyclictest --mlockall --smp --priority=80 --interval=1000 --distance=0 --duration=10m",
        "sudo nice -n -5 ./rt-tests/cyclictest -p80 | tee log",
        "ping -f host & cyclictest -p80 & stress -t 1",
        "latency -P80 -T600",
        "cyclictest -p80 -l 600000 -D 24h",
        "cyclictest -p80 -D 24h -b 200",
        "sudo timeout 600 cyclictest -p80 -D 24h",
        "cyclictest -p 50 -D 10; cyclictest -p80 -D 10m",
    ],
)
def test_a_command_that_agrees_with_its_row_is_left_alone(command: str) -> None:
    assert found(run(command=command, method="clock_nanosleep")) == []


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("policy", ("fifo", "SCHED_FIFO", "sched fifo")),
        ("method", ("clock_nanosleep", "clock nanosleep", "clock_nanosleep()")),
        ("method", ("timer_settime", "posix_timer")),
    ],
)
def test_one_condition_in_several_spellings_is_one_condition(name: str, spellings: tuple[str, ...]) -> None:
    claims = [ResultClaim(each, group="g", **{name: each}) for each in spellings]  # type: ignore[arg-type]
    assert doubts_about_rows(claims) == ()


@pytest.mark.parametrize(
    ("line", "seconds"),
    [
        ("stress -c 4 -t 60 &", 60),
        ("stress-ng --cpu 4 --timeout 1h", 3_600),
        ("timeout 90s a & iperf3 -c x -t30", 30),
        ("stress -t 10 & ./own", 10),
        ("while true; do stress -t 10; done", None),
        ("while true; do stress -t 60 & wait; done", None),
        ("(stress -t 60 & wait)", None),
        ("sleep 60; kill 1", None),
        ("stress-ng -t 0", None),
        ("stress-ng --taskset 1 --cpu 4", None),
        ("sudo watch -n 1 sleep 60", None),
        ("nice ./loop.sh timeout 5 a", None),
        (f"timeout {'9' * 400} a", None),
        ("", None),
    ],
)
def test_the_length_of_a_load_is_told_only_if_a_part_says_so(line: str, seconds: int | None) -> None:
    assert load_length_ns(line) == (None if seconds is None else seconds * SECOND)
