# SPDX-License-Identifier: Apache-2.0
"""Runs that were not taken by turns have no winner, however sure the test looks."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import BEGIN, SERIES, block, fact, file, record
from comparison_cases import DAY_NS, FIRST_DAY, VALUES, latencies, run_of, side
from numpy.typing import NDArray

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison, ComparisonFinding, DifferenceWeight
from rtproof.compare.likeness import (
    OTHER_QUANTITY,
    SAME_BOOT_NS,
    SeenRuns,
    comparison_refusal,
    distinct_boots,
    drawn_order,
    fact_differences,
    is_interleaved,
    measuring_conditions,
    ranked_facts,
    repeated_part,
    run_turns,
)
from rtproof.compare.run_metrics import RunFigures, facts_of, figures_of_histogram
from rtproof.record.contents import Fact, Moment, Seconds, SystemFile
from rtproof.summary.counts import counts_of_values

UNTIMED = [RunFigures("run", {}, side(1, 1)[0].counts)] * 5


def ordered(order: str) -> tuple[list[RunFigures], list[RunFigures]]:
    """B is later by a factor of 2; the runs started in this order, an hour apart."""
    sides = {"A": side(1, order.count("A"), scatter=0.05), "B": side(2, order.count("B"), factor=2, scatter=0.05)}
    places = {name: [at for at, one in enumerate(order) if one == name] for name in sides}
    a, b = (
        [
            replace(run, started_ns=FIRST_DAY * DAY_NS + at * DAY_NS // 24, run_id=f"{at}")
            for run, at in zip(sides[name], places[name], strict=True)
        ]
        for name in ("A", "B")
    )
    return a, b


ORDERS = {
    ComparisonFinding.A_BETTER: "ABBAABBAAB ABABABABAB BBAABABABAB AABBAABBABAB ABBAABBAABBAABBAABBA ABBAABBAABBA",
    ComparisonFinding.NOT_INTERLEAVED: "AAAAABBBBB BBBBBAAAAA AABBBBBAAA AABBAAABBB AAAABABBBB ABABABAAAAAAABBBBBBB",
    ComparisonFinding.NOT_JUDGED: "ABBA ABBAAB ABABAB ABBAABBA",
}
"""By what is found in runs that took turns, that did not, and in a few that did."""


@pytest.mark.parametrize(("finding", "order"), [(each, order) for each in ORDERS for order in ORDERS[each].split()])
def test_only_enough_turns_have_a_winner(finding: ComparisonFinding, order: str) -> None:
    said, even = compare_sides(*ordered(order)), finding is not ComparisonFinding.NOT_INTERLEAVED
    assert (said.finding, said.turns.interleaved, said.turns.order, said.turns.why == "") == (
        finding,
        even,
        order,
        even,
    )
    assert even or {effect.finding for effect in said.effects} <= {finding, ComparisonFinding.NO_DIFFERENCE}


@pytest.mark.parametrize("order", ["AB", "AABB", "AAABBB", "ABBBAA"])
def test_a_few_runs_without_turns_are_no_turns(order: str) -> None:
    assert compare_sides(*ordered(order)).turns.interleaved is False


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ("BBBBBAAAAA", "5 runs of stock came first, then 5 of rt"),
        ("AABBBBBAAA", "2 runs of rt came first, then 5 of stock, then 3 of rt"),
        ("A" * 9 + "B" * 9 + "AB" * 5, "9 of stock, " + "then 1 of rt, then 1 of stock, " * 4 + "then 2 more"),
    ],
)
def test_the_order_is_said_with_the_names_of_the_sides(order: str, sentence: str) -> None:
    why = compare_sides(*ordered(order), names=("rt", "stock")).turns.why
    assert sentence in why
    assert why.endswith(", then 2 more changes of side") == (len(order) > 20)


def test_without_times_the_order_is_not_known() -> None:
    a, b = ordered("ABBAABBAAB")
    said = compare_sides([*a[:4], replace(a[4], started_ns=None)], b)
    assert said.finding is ComparisonFinding.UNKNOWN_ORDER
    assert run_turns(UNTIMED, UNTIMED).interleaved is None


def test_runs_that_start_at_the_same_time_have_no_order() -> None:
    same = [replace(run, started_ns=FIRST_DAY * DAY_NS) for run in ordered("ABBAABBAAB")[0]]
    assert run_turns(same, same).why == "runs of both sides have the same start time"


USUAL = {"probe": "timer", "load": "sched", "period": "1ms", "policy": "fifo", "CPUs": "0-3", "view": "observed"}
NAMES = ("old", "new")


def run(**facts: str) -> RunFigures:
    return RunFigures("r", USUAL | facts, counts_of_values(np.array([1])))


def side_alike(n: int = 3, /, **facts: str) -> list[RunFigures]:
    return [run(**facts) for _ in range(n)]


@pytest.mark.parametrize("key", OTHER_QUANTITY)
def test_two_quantities_are_never_compared(key: str) -> None:
    said = comparison_refusal(side_alike(**{key: "one"}), side_alike(**{key: "another"}), NAMES, {key})
    assert said is not None


@pytest.mark.parametrize("key", ["load", "period", "policy", "method", "CPUs"])
def test_what_must_agree_is_refused_unless_the_user_says_so(key: str) -> None:
    a, b = side_alike(**{key: "one"}), side_alike(**{key: "another"})
    said = comparison_refusal(a, b, NAMES)
    assert said is not None
    assert f"--although '{key}'" in said
    assert comparison_refusal(a, b, NAMES, {key}) is None
    (found,) = fact_differences(a, b, {key})
    assert (found.weight, found.said) == (DifferenceWeight.UNLIKE, True)


def test_differences_are_ranked() -> None:
    a = side_alike(**{"governor": "performance", "preemption model": "rt", "config SND": "y", "cmdline quiet": "set"})
    b = side_alike(**{"governor": "powersave", "preemption model": "none", "config USB": "y", "cmdline isolcpus": "1"})
    found = fact_differences(a, b)
    assert [one.key for one in found] == [
        "preemption model",
        "governor",
        "cmdline isolcpus",
        "cmdline quiet",
        "config SND",
        "config USB",
    ]
    assert (found[2].a, found[2].b) == ("not there", "1")
    assert found[4].b == "not set"
    assert all(one.why and one.source for one in found[:3])


def test_runs_of_a_side_that_vary() -> None:
    a = [*side_alike(2, governor="performance"), *side_alike(1, governor="powersave")]
    (told,) = fact_differences(a, side_alike(governor="performance"))
    assert (told.key, told.a, told.b) == ("governor", "performance (2 runs); powersave (1 run)", "performance")
    assert comparison_refusal(a, side_alike(governor="performance"), NAMES) is None


# What the runs' own clocks say of how a comparison came about.


def said(a: list[RunFigures], b: list[RunFigures]) -> str:
    return "\n".join(measuring_conditions((("new", a), ("old", b))))


def at_boot(runs: list[RunFigures], *times: int | None) -> list[RunFigures]:
    return [replace(run, booted_ns=time) for run, time in zip(runs, times, strict=True)]


def test_boots_are_counted_by_the_clocks() -> None:
    some = side(1, 3)
    assert distinct_boots(at_boot(some, 0, 1, SAME_BOOT_NS)) == 1
    assert distinct_boots(at_boot(some, 0, 10**15, 2 * 10**15)) == 3
    assert distinct_boots(at_boot(some, 0, None, 1)) is None
    assert distinct_boots([]) is None


def test_the_schedule_has_the_missed_ones() -> None:
    missed = [replace(run, missed=2_000) for run in side(1, 2)]
    assert "4,000 activations of new never ran (9.1 %" in said(missed, side(2, 2))
    charged = [replace(run, facts={**run.facts, "view": "schedule"}) for run in missed]
    assert "never ran" not in said(charged, side(2, 2))


def test_what_files_do_not_tell_is_said() -> None:
    """A histogram counts nothing that never ran, and one that was cut off not what lay beyond its scale."""
    counts = side(1, 1)[0].counts
    cut, whole = (figures_of_histogram(name, counts, {}, overflow) for name, overflow in (("c", None), ("w", 0)))
    assert (cut.missed, cut.lost, cut.n, whole.unclear) == (None, None, counts.total, ())


START = Moment.START


def of(facts: tuple[Fact, ...] = (), files: tuple[SystemFile, ...] = ()) -> dict[str, str]:
    return facts_of(record([block([1_000] * 10)], facts=facts, files=files))


def test_the_measurement() -> None:
    facts = (fact("loads", "sched"), fact("policy", "fifo"), fact("priority", "80"), fact("duration_ns", "60000000000"))
    found = of((*facts, fact("policy", "other", START, 0), fact("timer_slack_ns", "50000", START, 0)))
    expected = {
        "probe": "timer",
        "method": "clock_nanosleep",
        "period": "1ms",
        "load": "sched",
        "CPUs": "2",
        "threads": "1",
        "policy": "other",
        "priority": "80",
        "timer slack": "50 us",
        "virtual time": "no",
        "length asked": "1min",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert of((fact("loads", ""),))["load"] == "none of ours"
    assert "load" not in of()


@pytest.mark.parametrize(
    ("probe", "period_ns", "said"),
    [("foreign", 10_000_004, "10ms"), ("foreign", 9_999_996, "10ms"), ("timer", 1_004_000, "1004us")],
)
def test_a_period_that_was_learned_is_told_to_three_digits(probe: str, period_ns: int, said: str) -> None:
    series = replace(SERIES, probe=probe, period_ns=period_ns)
    assert facts_of(record([block([1_000] * 10)], [series]))["period"] == said


@pytest.mark.parametrize(
    ("online", "told", "said"),
    [
        ("0", {}, "none"),
        ("0-1", {"turn_us": "4", "soakers": "2"}, "2 processors, at most 4 us, with soakers"),
        ("0-3", {"turn_us": "1"}, "4 processors, at most 1 us, without soakers"),
        ("0", {"turn_us": "4"}, "1 processor, at most 4 us, without soakers"),
        ("0-1", {}, "2 processors, no pacer, without soakers"),
    ],
)
def test_how_processors_of_a_guest_take_turns(online: str, told: dict[str, str], said: str) -> None:
    files = (file("/sys/devices/system/cpu/online", f"{online}\n"),)
    facts = tuple(fact(key, text, START) for key, text in told.items())
    assert "processor turns" not in of(facts, files), "a clock that shows time has no turns"
    assert of((*facts, fact("virtual_time", "QEMU", START)), files)["processor turns"] == said


def test_the_system() -> None:
    begin = replace(BEGIN, kernel_release="6.1.0-rt7", machine="armv7l")
    files = (
        file("/proc/cpuinfo", "processor: 0\nmodel name\t: A chip\nprocessor: 1\nmodel name\t: A chip\n"),
        file("frequencies", "cpu0 performance 800 1800 1200\ncpu1 performance 800 1800 900\n"),
        file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
        file("/proc/modules", "e1000 28672 1 - Live 0xffff\nloop 1 0 - Live 0x0\n"),
        file("/proc/loadavg", "0.1 0.2 0.3"),
        file("/proc/sys/vm/overcommit_memory", "0\n"),
        file("/sys/kernel/realtime", "1", Moment.END),
    )
    found = facts_of(record([block([1])], begin=begin, files=files))
    expected = {
        "kernel release": "6.1.0-rt7",
        "machine": "armv7l",
        "preemption model": "rt",
        "CPU model": "A chip",
        "governor": "performance",
        "frequencies": "800 to 1800 kHz",
        "clock source": "tsc",
        "module e1000": "loaded",
        "module loop": "loaded",
        "/proc/sys/vm/overcommit_memory": "0",
    }
    assert {key: found.get(key) for key in expected} == expected
    assert not {"/proc/loadavg", "/proc/modules", "/sys/kernel/realtime"} & set(found)


def test_words_of_the_command_line() -> None:
    found = of(files=(file("/proc/cmdline", 'quiet isolcpus=1 console=a console=b X="one, two" -- init=3\n'),))
    words = {key: said for key, said in found.items() if key.startswith("cmdline ")}
    assert words == {
        "cmdline quiet": "set",
        "cmdline isolcpus": "1",
        "cmdline console": "a b",
        "cmdline X": '"one, two"',
    }


def test_what_is_known_to_matter_comes_first() -> None:
    known = ["preemption model", "kernel release", "kernel version", "something new", "cmdline quiet"]
    ranked = [ranked_facts(key) for key in (*known, "/proc/sys/vm/overcommit_memory", "config SND", "module snd")]
    assert ranked == sorted(set(ranked))
    assert ranked_facts("governor") < ranked_facts("agent version")
    assert ranked_facts("config PROVE_LOCKING") < ranked_facts("config HZ")
    assert ranked_facts("cmdline isolcpus") < ranked_facts("cmdline quiet")


# A disturbance that comes every few runs makes no winner, and neither do copies of a run.


@pytest.mark.parametrize("times", [2, 3, 5, 12])
def test_a_seed_draws_one_order_by_turns_that_does_not_repeat(times: int) -> None:
    orders = [drawn_order(times, seed) for seed in range(40)]
    assert orders == [drawn_order(times, seed) for seed in range(40)]
    assert all(is_interleaved(order) and not repeated_part(order) for order in orders)
    assert all(order.count("A") == order.count("B") == times for order in orders)
    assert len(set(orders)) >= (2 if times == 2 else 4)


@pytest.mark.parametrize(
    ("order", "part"), [("ABABAB", "AB"), ("ABBAABBAAB", "ABBA"), ("ABBA", ""), ("ABBABAAB", ""), ("AB", "")]
)
def test_the_part_that_an_order_repeats(order: str, part: str) -> None:
    assert repeated_part(order) == part


def measured(order: str, period: int, factor: float, b: float = 1.0, seed: int | None = None) -> Comparison:
    """Runs of B are slower by b, and every ``period``-th run of the series, from the first on, by a factor."""
    random = np.random.default_rng(5)
    sides: dict[str, list[RunFigures]] = {"A": [], "B": []}
    for at, name in enumerate(order):
        own = (b if name == "B" else 1) * (factor if at % period == 0 else 1) * np.exp(random.normal(0, 0.1))
        run = run_of(latencies(random, VALUES, own), f"run {at}")
        sides[name].append(replace(run, started_ns=(FIRST_DAY + at) * DAY_NS, order_seed=seed))
    return compare_sides(sides["A"], sides["B"])


def texts(said: Comparison) -> str:
    return "\n".join(text for _, text in said.sentences)


def test_a_rhythm_that_meets_one_side_alone_leaves_an_undrawn_order_open() -> None:
    said = measured("ABBA" * 7, 4, 3.0)
    assert said.finding is ComparisonFinding.OPEN
    assert all(effect.finding is not ComparisonFinding.B_BETTER for effect in said.effects)
    assert "open: every 4th run, from run 1 on, is slower than the other runs of its side, by a factor of" in texts(
        said
    )
    assert said.turns.rhythm.endswith(" 2.99 (50 %)")
    assert "measure again (rtproof run --abba draws the order)" in texts(said)


def test_a_rhythm_is_a_doubt_if_chance_drew_the_order() -> None:
    """The same runs: only the seed says that chance, and no rule, put the disturbed ones on one side."""
    said = measured("ABBA" * 7, 4, 3.0, seed=1)
    assert said.finding is ComparisonFinding.B_BETTER
    assert "\nevery 4th run, from run 1 on, is slower than the other runs of its side" in texts(said)
    assert "open:" not in texts(said)
    assert "in an order drawn from seed 1;" in texts(said)


def test_a_difference_that_no_rhythm_makes_stays() -> None:
    said = measured("ABBA" * 5, 4, 1.0, b=2.0)
    assert said.finding is ComparisonFinding.A_BETTER
    assert (said.turns.rhythm, said.turns.unseen) == ("", "")


def test_an_order_that_hides_a_rhythm_is_told() -> None:
    """In A B A B, a disturbance of every second run meets B alone, and no test can see that."""
    said = measured("AB" * 10, 4, 1.0, b=2.0)
    assert said.finding is ComparisonFinding.A_BETTER
    assert "the order A B repeats, and these runs cannot tell a disturbance of every 2nd run from" in texts(said)
    assert measured("AB" * 10, 4, 1.0, b=2.0, seed=3).turns.unseen == ""


def copied(runs: list[RunFigures]) -> list[RunFigures]:
    """As many runs as are given, each with the values of the first."""
    return [replace(run, counts=runs[0].counts, largest=runs[0].largest, seconds=runs[0].seconds) for run in runs]


def test_copies_of_a_run_are_one_run() -> None:
    said = compare_sides(copied(side(1, 5)), side(2, 5, factor=3))
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert (len(said.a.runs), len(said.b.runs), len(said.left_out)) == (1, 5, 4)
    assert "4 runs left out: the values are those of another run" in texts(said)
    assert "run 1.4 of A: it has the same values as run 1.0, so it is no further run" in texts(said)


def test_a_copy_on_the_other_side_is_told() -> None:
    a, b = side(1, 5), side(2, 5, factor=3)
    said = compare_sides(a, [*b, replace(copied([a[2], b[0]])[1], name="b copy")])
    assert [(one.side, one.run, one.why) for one in said.left_out] == [
        ("B", "b copy", "it has the same values as run 1.2, so it is no further run")
    ]


def seconds_of(values: NDArray[np.int64]) -> Seconds:
    each = np.full_like(values, 1_000)
    return Seconds(np.arange(values.size), each, np.zeros_like(each), values)


@pytest.mark.parametrize(("levels", "n", "per_s"), [(2, 3_000, 100), (4, 10_000, 100), (2, 1_000, 1_000)])
def test_short_runs_of_a_coarse_clock_are_no_copies(levels: int, n: int, per_s: int) -> None:
    """Of 20 independent runs of whole microseconds, up to 16 were left out."""
    rng = np.random.default_rng(n)
    every = list(rng.binomial(levels, 0.05 if per_s < n else 0.3, (20, n)) * 1_000 + 3_000)
    runs = [
        replace(each, counts=counts_of_values(values), seconds=seconds_of(values.reshape(-1, per_s).max(1)))
        for each, values in zip(side(1, 20), every, strict=True)
    ]
    assert [one.why for one in compare_sides(runs[:10], runs[10:]).left_out] == []


def test_runs_in_virtual_time_are_alike_by_design() -> None:
    virtual = [replace(run, facts={**run.facts, "virtual time": "QEMU"}) for run in (*side(1, 5), *side(2, 5))]
    said = compare_sides(copied(virtual[:5]), copied(virtual[5:]))
    assert (len(said.a.runs), len(said.b.runs), said.left_out) == (5, 5, ())
    assert "not judged: the runs are deterministic" in texts(said)


def test_runs_without_any_scatter_are_not_judged() -> None:
    """They are no copies, as each has some more values. Yet every figure is the same in all runs of a side."""
    sides = []
    for seed, value in enumerate((10_000, 30_000)):
        every = [np.repeat([value, 2 * value], [980 + more, 20]) for more in range(5)]
        runs = [figures_of_histogram(f"{value} {at}", counts_of_values(one), {}) for at, one in enumerate(every)]
        sides.append([replace(run, started_ns=(FIRST_DAY + at) * DAY_NS + seed) for at, run in enumerate(runs)])
    said = compare_sides(sides[0], sides[1])
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert "not judged: the runs of each side do not differ at all" in texts(said)


@pytest.mark.filterwarnings("error")
def test_runs_beyond_the_end_of_their_histogram_are_no_copies() -> None:
    """They have no counts that could differ."""
    none = counts_of_values(np.zeros(0, np.int64))
    beyond = [replace(each, counts=none, overflow=100, largest=None, seconds=None) for each in side(1, 2)]
    known = SeenRuns()
    assert [known.copied_by(run) for run in beyond] == ["", ""]
