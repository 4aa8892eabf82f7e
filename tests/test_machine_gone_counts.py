# SPDX-License-Identifier: Apache-2.0
"""Stolen time and SMIs beside the gaps of a trace: told where they were put in, and hardly ever where they were not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import pytest
from analysis_records import record
from explain_cases import HOG
from hypothesis import given
from hypothesis import strategies as st

from rtproof.explain.budget import BudgetPart, LateActivation, Phase, TimeBudget
from rtproof.explain.causes import FIRMWARE, HOST, Cause, NamedCause
from rtproof.explain.machine_gone_counts import SELDOM, STEAL_STEP_NS, Counted, MachineCounts, read_counts, with_counts
from rtproof.record.contents import Counter
from rtproof.report.sections.explained import counted_sentences

MS, SECOND = 1_000_000, 1_000_000_000
OR_GONE = NamedCause(Cause.IRQ_OFF_OR_GONE, "hog", HOG)


@dataclass(frozen=True)
class Gap:
    """A gap of CPU 0, and how much of it the host took."""

    from_ns: int
    length_ns: int
    stolen_ns: int = 0


def counters(name: str, seconds: int, events: Sequence[tuple[int, int]], step: int) -> tuple[Counter, Counter]:
    """A count that grows by an amount at each time, read once a second and rounded down, and the clock of all ticks.

    As the agent writes it: only readings that differ from the one before.
    """
    ticks = np.arange(seconds + 1) * SECOND + 3 * MS
    grown = [12_345 * step + sum(amount for at_ns, amount in events if at_ns <= tick) for tick in ticks.tolist()]
    values = np.array([each // step for each in grown], np.int64)
    news = np.concatenate([[True], values[1:] != values[:-1]])
    clock = Counter(0, False, "clock.raw", "ns", ticks, np.zeros(ticks.size, np.int64))
    return clock, Counter(1, True, name, "", ticks[news], values[news])


def steal(seconds: int, gaps: Sequence[Gap], background: Sequence[tuple[int, int]] = ()) -> tuple[Counter, ...]:
    """The kernel adds what was stolen at the next tick, within 10 ms."""
    events = [(gap.from_ns + gap.length_ns + 7 * MS, gap.stolen_ns) for gap in gaps]
    return counters("steal.cpu0", seconds, [*events, *background], STEAL_STEP_NS)


def budget(index: int, gap: Gap, cause: NamedCause = OR_GONE) -> TimeBudget:
    """A late activation: the gap, and 20 us behind it."""
    end_ns = gap.from_ns + gap.length_ns
    activation = LateActivation(0, 0, 100, index, gap.from_ns, gap.length_ns + 20_000)
    parts = (
        BudgetPart(gap.from_ns, end_ns, Phase.A, cause, 0),
        BudgetPart(end_ns, end_ns + 20_000, Phase.C, NamedCause(Cause.RETURN), 0),
    )
    return TimeBudget(activation, parts, end_ns, end_ns + 10_000)


def told(
    gaps: Sequence[Gap], some: Sequence[Counter], cause: NamedCause = OR_GONE
) -> tuple[tuple[TimeBudget, ...], MachineCounts]:
    of = record([], counters=tuple(some))
    return with_counts(of, read_counts(of), [budget(at, gap, cause) for at, gap in enumerate(gaps)])


def verdicts(found: MachineCounts) -> list[Counted]:
    return [found.gaps[0, at].counted for at in range(len(found.gaps))]


def test_a_line_says_how_many_gaps_the_host_took_and_what_is_not_excluded() -> None:
    host = Gap(30 * SECOND + 400 * MS, 20 * MS, 20 * MS)
    _, found = told([host, Gap(40 * SECOND + 400 * MS, 20 * MS, 0)], steal(60, [host]))
    (sentence,) = counted_sentences(found)
    assert sentence.startswith(
        "In 2 late activations the host or an SMI may have stopped the CPU. In 1 the host took the CPU. "
        "In 1 what was counted did not rise, but a host or an SMI may still be the cause."
    )
    assert counted_sentences(replace(found, gaps={})) == []


def test_a_gap_that_the_host_took_is_the_hosts() -> None:
    gap = Gap(30 * SECOND + 400 * MS, 20 * MS, 20 * MS)
    (of,), found = told([gap], steal(60, [gap]))
    assert of.first == NamedCause(Cause.MACHINE, HOST)
    assert of.first.words() == "the host took the CPU (stolen time)"
    assert [part.length_ns for part in of.parts] == [20 * MS, 20_000]
    assert verdicts(found) == [Counted.HOST]
    assert (found.gaps[0, 0].stolen_least_ns, found.gaps[0, 0].stolen_most_ns) == (10 * MS, 30 * MS)


def test_a_count_that_did_not_rise_excludes_nothing() -> None:
    gap = Gap(30 * SECOND, 20 * MS)
    (of,), found = told([gap], steal(60, [gap]))
    assert of.first == OR_GONE
    assert verdicts(found) == [Counted.NOT_RISEN]
    assert found.gaps[0, 0].stolen_most_ns == 10 * MS, "the kernel drops what is less"


@pytest.mark.parametrize(
    ("gap", "background", "why"),
    [
        (Gap(30 * SECOND, 3 * MS, 0), [(30 * SECOND, 10 * MS)], "too short for a count in steps of 10 ms"),
        (Gap(30 * SECOND, 20 * MS, 0), [(at * SECOND, 15 * MS) for at in range(60)], "it rises in every second"),
        (Gap(30 * SECOND, 6 * MS, 0), [(30 * SECOND, 90 * MS)], "far more was stolen than the gap"),
        (Gap(30 * SECOND, 40 * MS, 0), [(30 * SECOND, 12 * MS)], "far less was stolen than the gap"),
    ],
)
def test_stolen_time_of_another_size_or_of_every_second_tells_nothing(
    gap: Gap, background: list[tuple[int, int]], why: str
) -> None:
    (of,), found = told([gap], steal(60, [gap], background))
    assert (of.first, verdicts(found)) == (OR_GONE, [Counted.ROSE]), why


def test_of_two_gaps_in_a_second_the_shorter_one_may_not_have_been_stolen() -> None:
    gaps = [Gap(30 * SECOND + 200 * MS, 12 * MS, 12 * MS), Gap(30 * SECOND + 600 * MS, 6 * MS)]
    assert verdicts(told(gaps, steal(60, gaps))[1]) == [Counted.HOST, Counted.ROSE]


def test_without_readings_on_both_sides_nothing_is_told() -> None:
    for gap in (Gap(10 * MS, 30 * MS, 30 * MS), Gap(60 * SECOND - 5 * MS, 30 * MS, 30 * MS)):
        assert verdicts(told([gap], steal(60, [gap]))[1]) == [Counted.NOT_READ]
    assert verdicts(told([Gap(SECOND, MS)], ())[1]) == [Counted.NOT_READ]


def test_an_smi_is_the_firmwares_unless_they_come_all_the_time() -> None:
    gaps = [Gap(30 * SECOND + 400 * MS, 300_000)]
    seldom = counters("smi.cpu0", 60, [(30 * SECOND + 400 * MS, 1)], 1)
    (of,), found = told(gaps, seldom)
    assert of.first == NamedCause(Cause.MACHINE, FIRMWARE)
    assert of.first.words() == "the firmware took the CPU (SMI)"
    assert (verdicts(found), found.gaps[0, 0].smis) == ([Counted.FIRMWARE], 1)
    always = counters("smi.cpu0", 60, [(at * SECOND + 500 * MS, 1) for at in range(60)], 1)
    assert verdicts(told(gaps, always)[1]) == [Counted.ROSE]
    two = [*gaps, Gap(30 * SECOND + 700 * MS, 200_000)]
    assert verdicts(told(two, seldom)[1]) == [Counted.ROSE, Counted.ROSE], "one SMI cannot be both"


def test_interrupts_off_is_not_said_alone_where_a_count_rose() -> None:
    gap = Gap(30 * SECOND, 300_000)
    smi = counters("smi.cpu0", 60, [(at * SECOND + 500 * MS, 1) for at in range(60)], 1)
    for cause in (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY):
        (of,), _ = told([gap], smi, NamedCause(cause, "hog", HOG, "holds"))
        assert of.first == NamedCause(Cause.IRQ_OFF_OR_GONE, "hog", HOG, "holds")
        quiet = counters("smi.cpu0", 60, [], 1)
        (of,), _ = told([gap], quiet, NamedCause(cause, "hog", HOG, "holds"))
        assert of.first.cause is cause


def busy(random: np.random.Generator, seconds: int) -> list[tuple[int, int]]:
    """A host that takes time now and then: how often and for how long differs from run to run."""
    rate, mean_ms = random.choice([0.01, 0.1, 1, 5]), random.choice([0.5, 5, 20])
    times = np.sort(random.uniform(0, seconds, random.poisson(rate * seconds)))
    return [
        (int(at * SECOND), int(ms * MS)) for at, ms in zip(times, random.exponential(mean_ms, times.size), strict=True)
    ]


def test_interrupts_off_beside_a_busy_host_are_seldom_called_the_hosts() -> None:
    """The gaps have nothing to do with what the host takes."""
    wrong = every = 0
    for seed in range(250):
        random = np.random.default_rng(seed)
        gaps = [Gap(int(at), int(random.uniform(1, 40) * MS)) for at in random.uniform(2, 115, 4) * SECOND]
        found = verdicts(told(gaps, steal(120, gaps, busy(random, 120)))[1])
        wrong, every = wrong + found.count(Counted.HOST), every + len(found)
    assert every == 1_000
    assert wrong / every <= SELDOM + 3 * sqrt(SELDOM * (1 - SELDOM) / every)


def test_stops_that_were_counted_as_stolen_are_told_on_a_quiet_host() -> None:
    """From 10 ms on always, because the count rises then; between 5 and 10 ms more often than not; below never."""
    found: dict[str, list[Counted]] = {"long": [], "middle": [], "short": []}
    for seed in range(60):
        random = np.random.default_rng(seed)
        for kind, least, most in (("long", 10, 60), ("middle", 5, 10), ("short", 0.1, 4.9)):
            gap = Gap(int(random.uniform(2, 58) * SECOND), int(random.uniform(least, most) * MS))
            gap = replace(gap, stolen_ns=gap.length_ns)
            offset = [(0, int(random.uniform(0, STEAL_STEP_NS)))]
            found[kind] += verdicts(told([gap], steal(60, [gap], offset))[1])
    assert set(found["long"]) == {Counted.HOST}
    assert found["middle"].count(Counted.HOST) > 30
    assert Counted.HOST not in found["short"]
    assert found["middle"].count(Counted.HOST) + found["middle"].count(Counted.NOT_RISEN) == 60


GAPS = st.builds(Gap, st.integers(0, 20 * SECOND), st.integers(1, 60 * MS), st.integers(0, 60 * MS))


@given(
    st.lists(GAPS, min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 20 * SECOND), st.integers(0, 60 * MS)), max_size=8),
    st.sampled_from(list(Cause)),
)
def test_whatever_was_counted_the_parts_keep_their_lengths(
    gaps: list[Gap], background: list[tuple[int, int]], cause: Cause
) -> None:
    named = NamedCause(cause, "hog", HOG)
    before = [budget(at, gap, named) for at, gap in enumerate(gaps)]
    after, found = told(gaps, steal(20, gaps, background), named)
    for one, other in zip(before, after, strict=True):
        assert [replace(part, cause=named) for part in one.parts] == [
            replace(part, cause=named) for part in other.parts
        ]
    for gap in found.gaps.values():
        if gap.stolen_least_ns is not None and gap.stolen_most_ns is not None:
            assert 0 <= gap.stolen_least_ns < gap.stolen_most_ns
            assert gap.counted is not Counted.HOST or gap.length_ns < gap.stolen_most_ns


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("steal.cpu0", (50, 10, 52)),
        ("steal.cpu0", (-(1 << 63), (1 << 63) - 1)),
        ("smi.cpu0", (0, (1 << 63) - 1)),
        ("smi.cpu0", ((1 << 32) - 1, 0)),
        ("steal.cpu" + "9" * 5000, (5, 7)),
    ],
)
def test_a_count_that_cannot_be_one_is_not_read(name: str, values: tuple[int, ...]) -> None:
    gap = Gap(30 * SECOND + 400 * MS, 20 * MS)
    clock, _ = counters(name, 60, (), 1)
    times = np.array([10, 20, 31][-len(values) :], np.int64) * SECOND + 3 * MS
    (of,), found = told([gap], (clock, Counter(1, True, name, "", times, np.array(values, np.int64))))
    assert (of.first, verdicts(found)) == (OR_GONE, [Counted.NOT_READ])


def test_a_rise_over_missing_seconds_is_held_against_times_as_long() -> None:
    """A host that takes time each 40 seconds does so in many of all 16 seconds."""
    gap = Gap(30 * SECOND + 400 * MS, 15 * MS)
    every = counters("steal.cpu0", 400, [(at * SECOND, 15 * MS) for at in range(0, 400, 40)], STEAL_STEP_NS)
    clock, count = (
        replace(each, time_ns=each.time_ns[kept], value=each.value[kept])
        for each in every
        for kept in [(each.time_ns < 25 * SECOND) | (each.time_ns > 40 * SECOND)]
    )
    (of,), found = told([gap], (clock, count))
    assert (of.first, verdicts(found)) == (OR_GONE, [Counted.ROSE])
