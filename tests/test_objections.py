# SPDX-License-Identifier: Apache-2.0
"""Defects put into sound rows are found, and sound rows are left in peace.

The figures of the rows are computed from values, then rounded as printed.
"""

import math
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from doubt_cases import assert_brief
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from rtproof.judge.doubts.registry import doubts_about_rows
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, Span, exact_span
from rtproof.judge.doubts.row_statements import shell_fault
from rtproof.summary.counts import Counts
from rtproof.summary.summary_model import Doubt, Severity

US, MS, MINUTE = 1_000, 1_000_000, 60_000_000_000


def held(count: int) -> Counts:
    """A histogram of one bin that holds whatever the ends are."""
    some = max(count, 0)
    wide = np.array([1 << 60] if some else [], np.int64)
    return Counts(-wide, wide, np.array([some] if some else [], np.int64))


def figures_of(name: str, kind: RowKind, values: Sequence[int], period_ns: int, step: int) -> Figures:
    """min, mean, max and deviation of the values, each rounded to the step."""
    n, mean = len(values), sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None

    def printed(value: float) -> float:
        return round(value / step) * step

    return Figures(
        name,
        kind,
        period_ns,
        n,
        printed(min(values)),
        printed(mean),
        printed(max(values)),
        None if deviation is None else printed(deviation),
        step,
        counts=held(n),
    )


@st.composite
def _latencies(draw: st.DrawFn, name: str, length: int) -> Figures:
    """Of a thread: low latencies near each other, and sometimes one that is so late that others come due behind it, of
    which some never run and the rest one after the other, each late by a period less."""
    period = draw(st.sampled_from([500, 1_000, 1_500, 10_000])) * US
    least = draw(st.integers(-5_000, 200_000))
    low = least + draw(st.floats(0, 50_000))
    late = draw(st.one_of(st.just(60_000), st.integers(60_000, 200_000_000)))
    due = length // period
    first, *behind = [least + late - at * period for at in range(late // period + 1)]
    gone = min(draw(st.integers(0, 20)), due // 2_000, len(behind))
    ran = [first, *(behind[gone:] if draw(st.booleans()) else behind[: len(behind) - gone])]
    count = due - gone
    mean = (least + sum(ran) + (count - 1 - len(ran)) * low) / count
    return Figures(name, RowKind.LATENCY, period, count, least, mean, least + late, counts=held(count))


def with_count(each: Figures, count: int) -> Figures:
    """The same with fewer values, whose mean is that of the rest, or with more, all at the minimum."""
    assert each.count
    assert each.mean_ns is not None
    assert each.min_ns is not None
    assert each.max_ns is not None
    excess = (each.mean_ns - each.min_ns) * min(each.count / count, 1)
    mean = each.min_ns + max(excess, (each.max_ns - each.min_ns) / count)
    return replace(each, count=count, counts=held(count), mean_ns=mean)


@st.composite
def runs(draw: st.DrawFn, name: str = "row") -> ResultClaim:
    """A run of some minutes whose length is printed in whole ones, cut off or rounded, of one to four threads."""
    length = draw(st.integers(4, 60 * 60)) * MINUTE + draw(st.integers(0, MINUTE - 1))
    cut = draw(st.booleans())
    told = length // MINUTE * MINUTE if cut else (length + MINUTE // 2) // MINUTE * MINUTE
    threads = []
    for number in range(draw(st.integers(1, 4))):
        threads.append(draw(_latencies(f"thread {number}", length)))
    return ResultClaim(
        name,
        tuple(threads),
        span=Span(told, told - MINUTE // 2, told + MINUTE),
        loadavg=(4.2, 4.1, 4.0),
        load_line="while true; do ./load 65; done &",
    )


@st.composite
def apps(draw: st.DrawFn) -> ResultClaim:
    """An absolute-time loop: loop i ends how late top i + 1 is; the first top may be left out of what is told."""
    period, step = 5 * MS, draw(st.sampled_from([1, 100, 1_000]))
    tops = draw(st.lists(st.integers(1, 3 * MS), min_size=12, max_size=60))
    tops[0] = min(tops)
    loops = [period + after - before for before, after in pairwise(tops)]
    told = tops[1:] if draw(st.booleans()) else tops
    return ResultClaim(
        "app",
        (
            replace(figures_of("loop", RowKind.LOOP, loops, period, step), counts=None),
            replace(figures_of("top", RowKind.TOP, told, period, step), counts=None),
        ),
    )


UNLIKE = ("period", "length")
"""The rows that hypothesis makes differ in these."""
Change = Callable[[ResultClaim, Figures], ResultClaim]


def codes(*claims: ResultClaim) -> set[str]:
    found = doubts_about_rows(claims)
    assert_brief(found)
    return {each.code for each in found}


def first(**parts: Any) -> Change:
    """The first thread's figures with some replaced."""
    return lambda claim, each: changed(claim, figures=(replace(each, **parts), *claim.figures[1:]))


@given(runs(), runs("other"))
def test_sound_rows_are_not_objected_to(one: ResultClaim, other: ResultClaim) -> None:
    assert doubts_about_rows([changed(run, group="g", varies=UNLIKE) for run in (one, other)]) == ()


@given(apps())
def test_a_sound_loop_is_not_objected_to(app: ResultClaim) -> None:
    assert doubts_about_rows([app]) == ()


@given(runs(), st.floats(0.005, 0.9))
def test_missing_samples_are_found(run: ResultClaim, gone: float) -> None:
    """Gone of what the length had room for at least, not of what ran."""
    assert run.span is not None
    (each, *others) = run.figures
    least = run.span.shortest_ns // (each.period_ns or 1)
    count = int(least * (1 - gone)) - 2
    assert codes(changed(run, figures=(with_count(each, count), *others))) == {"samples-missing"}


@given(runs(), st.floats(0.001, 3))
def test_samples_too_many_are_found(run: ResultClaim, more: float) -> None:
    assert run.span is not None
    (each, *others) = run.figures
    most = -(-run.span.longest_ns // (each.period_ns or 1))
    count = int(most * (1 + more)) + 3
    found = codes(changed(run, figures=(with_count(each, count), *others)))
    assert "samples-surplus" in found
    assert found <= {"samples-surplus", "backlog"}, "no sample is missing any more, so none behind a late one is"


@pytest.mark.parametrize(
    ("averages", "found"),
    [((1.0, 2.0), False), ((9.0, 10.5), False), ((0.2, 0.9), False), ((1.0, 2.5), True), ((2.0, 3.9), True)],
)
def test_load_averages_differ_by_a_task_and_by_a_factor(averages: tuple[float, float], found: bool) -> None:
    runs = [
        ResultClaim(str(load), (), loadavg=(load, load, load), group="g", span=exact_span(3 * MINUTE))
        for load in averages
    ]
    told = doubts_about_rows(runs)
    assert bool(told) is found


@pytest.mark.parametrize(
    ("due", "fewest", "most"),
    [(100_000, 99_900, 100_051), (500, 499, 501), (1_999, 1_998, 2_000), (3_999, 3_996, 4_001)],
)
def test_a_thousandth_may_be_missing_and_two_clocks_may_differ(due: int, fewest: int, most: int) -> None:
    """One sample at the least either way; 500 parts in a million too many, so one more of 2,000."""
    span = exact_span(due * MS)

    def found(count: int) -> set[str]:
        return codes(ResultClaim("row", (Figures("thread", RowKind.LATENCY, MS, count, 0, 0, 0),), span=span))

    assert [found(count) for count in (fewest - 1, fewest, most, most + 1)] == [
        {"samples-missing"},
        set(),
        set(),
        {"samples-surplus"},
    ]


@given(runs(), st.integers(1_100, 50_000), st.floats(0.35, 0.65), st.integers(-100, 300))
def test_a_tick_longer_than_the_period_is_found(run: ResultClaim, tick_us: int, mean: float, least_us: int) -> None:
    (each, *others) = run.figures
    tick, least = tick_us * (each.period_ns or 0) // 1_000, least_us * US
    coarse = replace(each, min_ns=least, mean_ns=least + mean * tick, max_ns=least + tick)
    assert codes(changed(run, figures=(coarse, *others))) == {"granularity"}


@given(runs(), st.integers(10_000, 10**8))
def test_a_lattice_is_found(run: ResultClaim, lattice_ns: int) -> None:
    (each, *others) = run.figures
    assert codes(changed(run, figures=(replace(each, lattice_ns=lattice_ns), *others))) == {"granularity"}


@given(runs(), runs("b"), st.floats(0, 3), st.floats(1.01, 40))
def test_unequal_load_averages_are_found(one: ResultClaim, other: ResultClaim, low: float, more: float) -> None:
    high = max(low, 0) * 1.5 + more + 0.01
    busy = changed(one, group="g", varies=UNLIKE, loadavg=(high,) * 3)
    idle = changed(other, group="g", varies=UNLIKE, loadavg=(low,) * 3)
    assert codes(busy, idle) == {"unequal-load"}
    assert codes(changed(busy, group="h"), idle) == set(), "rows that nobody compares may differ"
    assert codes(changed(busy, group=""), changed(idle, group="")) == set(), "nor are rows of no group compared"


@given(runs(), runs("b"), st.floats(0.1, 1e6), st.floats(2.1, 100))
def test_unequal_work_is_found(one: ResultClaim, other: ResultClaim, rate: float, factor: float) -> None:
    much, little = (changed(run, group="g", varies=UNLIKE) for run in (one, other))
    assert codes(changed(much, loads={"cpu": rate * factor}), changed(little, loads={"cpu": rate})) == {"unequal-load"}
    assert codes(changed(much, loads={"cpu": rate * 1.9}), changed(little, loads={"cpu": rate})) == set()


@pytest.mark.parametrize(
    ("minutes", "found"), [(0.5, set()), (14, set()), (15, {"unequal-load"}), (60, {"unequal-load"})]
)
def test_an_average_of_a_time_before_the_run_does_not_count(minutes: float, found: set[str]) -> None:
    """Averages of 1 min agree and the longer ones do not: in a short run these are of what was before."""
    span = exact_span(int(minutes * MINUTE))
    averages = (("a", (4.0, 4.0, 4.0)), ("b", (4.0, 0.1, 0.1)))
    assert codes(*(ResultClaim(name, group="g", span=span, loadavg=loadavg) for name, loadavg in averages)) == found


@given(apps(), st.integers(4 * MS, 100 * MS), st.sampled_from(["min_ns", "max_ns"]))
def test_a_loop_that_no_lateness_explains_is_found(app: ResultClaim, off: int, which: str) -> None:
    loop, top = app.figures
    sign = 1 if which == "max_ns" else -1
    wrong = replace(loop, **{which: (loop.period_ns or 0) + sign * off}, deviation_ns=None)  # type: ignore[arg-type]
    assert codes(changed(app, figures=(wrong, top))) == {"sums"}


@given(apps(), st.integers(2, 100), st.booleans())
def test_loops_that_do_not_add_up_are_found(app: ResultClaim, times: int, more: bool) -> None:
    """Shifted as a whole, so that the mean is further off than one late top per run and the rounding explain."""
    loop, top = app.figures
    off = (1 if more else -1) * (times * (top.max_ns or 0) / (loop.count or 1) + 2 * (loop.step_ns + top.step_ns) + 1)
    shift = (loop.period_ns or 0) + off - (loop.mean_ns or 0)
    parts = {key: getattr(loop, key) + shift for key in ("min_ns", "mean_ns", "max_ns")}
    assert "sums" in codes(changed(app, figures=(replace(loop, **parts), top)))


@given(apps(), st.floats(2.5, 100))
def test_a_deviation_that_cannot_be_is_found(app: ResultClaim, factor: float) -> None:
    loop, top = app.figures
    width = (top.max_ns or 0) - (top.min_ns or 0) + 10 * top.step_ns
    wrong = replace(top, deviation_ns=factor * width)
    assert codes(changed(app, figures=(loop, wrong))) == {"sums"}


@given(runs(), st.integers(-1_000, 1_000).filter(bool))
def test_a_histogram_that_does_not_add_up_is_found(run: ResultClaim, off: int) -> None:
    (each, *others) = run.figures
    wrong = replace(each, counts=held((each.count or 0) + off))
    assert codes(changed(run, figures=(wrong, *others))) == {"distribution"}


@pytest.mark.parametrize("parts", [{"mean_ns": 9}, {"mean_ns": -9}, {"max_ns": 300}, {"count": 5, "out_of_band": 6}])
def test_figures_against_each_other_are_found(parts: dict[str, Any]) -> None:
    sound = Figures("latency", count=10, min_ns=1, mean_ns=2, max_ns=3)
    assert codes(ResultClaim("a", (sound,))) == set()
    assert codes(ResultClaim("a", (replace(sound, **parts),))) == {"sums"}


@given(st.integers(1, 10**9))
def test_zero_seen_is_only_objected_to_where_it_was_taken_for_good(n: int) -> None:
    zero = Figures("cycle", RowKind.LENGTH, 10 * MS, n, out_of_band=0)
    assert codes(ResultClaim("a", (zero,), judged=True)) == {"zero-is-no-bound"}
    assert (
        codes(ResultClaim("a", (zero,)))
        == codes(ResultClaim("a", (replace(zero, out_of_band=1),), judged=True))
        == set()
    )


def test_a_doubt_about_the_run_stands_for_the_rule_that_says_the_same() -> None:
    """The figures alone would give a doubt too."""
    gone = Figures("latency", RowKind.LATENCY, MS, 10, counts=held(10))
    doubt = Doubt("samples-missing", Severity.INVALID, "thread 0: 10 of 1,000 left a trace", "measure again")
    claim = ResultClaim("mine", (gone,), measured=True, span=Span(1_000 * MS, 1_000 * MS, 1_000 * MS), doubts=(doubt,))
    assert doubts_about_rows([claim]) == (replace(doubt, rows=("mine",)),)
    assert [each.code for each in doubts_about_rows([changed(claim, doubts=())])] == ["samples-missing"]


def test_loops_are_held_to_their_periods_by_their_number() -> None:
    """Each lies within the lateness of a top, and all together are a tenth of it too long on average."""
    top = Figures("top", RowKind.TOP, 5 * MS, 1_000, 0, 10 * US, 100 * US)
    loop = Figures("loop", RowKind.LOOP, 5 * MS, 1_000, 5 * MS - 90 * US, 5 * MS, 5 * MS + 90 * US)
    assert codes(ResultClaim("a", (loop, top))) == set()
    assert codes(ResultClaim("a", (replace(loop, mean_ns=5 * MS + 10 * US), top))) == {"sums"}


@pytest.mark.parametrize(
    ("below", "above", "least", "most", "found"),
    [
        (0, 0, 9, 11, set()),
        (2, 3, 1, 30, set()),
        (0, 3, 1, 30, {"distribution"}),
        (2, 0, 1, 30, {"distribution"}),
        (2, 3, 9, 30, {"distribution"}),
        (2, 3, 1, 11, {"distribution"}),
    ],
)
def test_counts_out_of_the_band_agree_with_the_ends(
    below: int, above: int, least: int, most: int, found: set[str]
) -> None:
    told = Figures("cycle", RowKind.LENGTH, 10 * MS, 1_000, least * MS, None, most * MS, below=below, above=above)
    assert codes(ResultClaim("a", (replace(told, low_ns=8 * MS, high_ns=12 * MS),))) == found
    assert codes(ResultClaim("a", (told,))) == set(), "no band is told"


@pytest.mark.parametrize(("share", "found"), [(1.0, set()), (0.5, {"backlog"})])
def test_the_mean_knows_of_what_came_due_behind_a_late_one(share: float, found: set[str]) -> None:
    """200 periods late, and all behind it ran, one after the other: together they were late by 200 * 201 / 2."""
    mean = share * MS * 200 * 201 / 2 / 60_000
    late = Figures("latency", RowKind.LATENCY, MS, 60_000, 0, mean, 200 * MS)
    assert codes(ResultClaim("a", (late,), span=exact_span(MINUTE))) == found
    gone = replace(late, count=59_800)
    told = Span(MINUTE, MINUTE, MINUTE)
    assert "backlog" not in codes(ResultClaim("a", (gone,), span=told)), "they are missing, which has its own rule"


BASH = shutil.which("bash")
WORDS = "a b do done while until if then else fi for in { } ( ) ; & | && || \n ! > 2>&1 'x;' $(c) $x echo true case #c"


@pytest.mark.parametrize(
    "line",
    ["while true; do ./doload.sh 65 & ; done & latency", "; a", "a &&", "a | | b", "while true; do ; done", "echo 'x"],
)
def test_a_fault_is_told(line: str) -> None:
    assert shell_fault(line) is not None


@pytest.mark.parametrize(
    "line",
    [
        "./prepare_gpio.sh ; chrt -f 99 ./rttest_gpio & while true; do ./doload.sh 65 ; done",
        "x='a;;b' y; echo ${a#b} # it's",
        "case $1 in a) b & ;; esac",
        "f() { a; }; f",
        "find . \\; -print",
    ],
)
def test_a_valid_line_is_left_alone(line: str) -> None:
    assert shell_fault(line) is None


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=200)
@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=9))
def test_what_bash_accepts_is_never_called_faulty(words: list[str]) -> None:
    line = " ".join(words)
    accepts = subprocess.run([str(BASH), "-n", "-c", line], capture_output=True, check=False).returncode == 0
    if accepts:
        assert shell_fault(line) is None
