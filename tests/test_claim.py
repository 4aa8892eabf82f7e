# SPDX-License-Identifier: Apache-2.0
"""The claim's rules, on late times as they are given: which rule decides, when, and by how much."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from analysis_records import MS, block, record
from claim_processes import Floats
from claim_rules import Claim, Rounded, Told, reference

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement, State
from rtproof.judge.claim import (
    NOTHING_LATE,
    LateStretches,
    RefutingRule,
    decide,
    episode_course,
    episode_spacing,
    look_bunched,
    wider_gap,
)
from rtproof.judge.verdict import AFTER_THE_DATA, chosen_after_the_data
from rtproof.summary.per_second import SECOND_NS

SECOND = 10**9
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
ALPHA = 0.05
HOURLY = Requirement(500_000, HOUR)
MINUTELY = Requirement(500_000, MINUTE)


def at(*times_s: float) -> LateStretches:
    """Single late activations."""
    times = np.array([round(each * SECOND) for each in times_s], np.int64)
    return LateStretches.exact(times, times)


def between(*pairs_s: tuple[float, float]) -> LateStretches:
    return LateStretches.exact(*(np.array([round(pair[end] * SECOND) for pair in pairs_s], np.int64) for end in (0, 1)))


def test_the_usual_gap_and_longest_length() -> None:
    assert (MINUTELY.gap_ns, MINUTELY.longest_ns) == (3 * SECOND, 15 * SECOND)
    assert (HOURLY.gap_ns, HOURLY.longest_ns) == (MINUTE, 10 * MINUTE)
    twenty = Requirement(1, 20 * MINUTE)
    assert (twenty.gap_ns, twenty.longest_ns) == (MINUTE, 5 * MINUTE)
    assert Requirement(1, HOUR, gap_ns=SECOND).longest_ns == 10 * SECOND


def test_without_a_late_time_proven_after_348_hundredths_of_t() -> None:
    decision = decide(HOURLY, NOTHING_LATE, 4 * HOUR, ALPHA)
    assert (decision.state, decision.episodes, decision.kind) == (State.PROVEN, 0, None)
    assert decision.at_ns is not None
    assert decision.at_ns / HOUR == pytest.approx(3.482, abs=1e-3)
    assert decide(HOURLY, NOTHING_LATE, decision.at_ns - 1, ALPHA).state is State.UNDECIDED


@pytest.mark.parametrize(("bunches", "needed"), [(2.0, 6.96), (5.0, 17.41)])
def test_the_factor_of_bunches_multiplies_the_time(bunches: float, needed: float) -> None:
    decision = decide(replace(HOURLY, bunches=bunches), NOTHING_LATE, 20 * HOUR, ALPHA)
    assert decision.at_ns is not None
    assert decision.at_ns / HOUR == pytest.approx(needed, abs=0.01)


def test_time_within_an_episode_and_the_gap_behind_it_proves_nothing() -> None:
    late = between((1000, 1100))
    found = episode_course(late, 2 * HOUR, HOURLY.gap_ns)
    assert found.live_ns == 2 * HOUR - 160 * SECOND
    assert found.live_at(1120 * SECOND) == 1000 * SECOND
    assert found.missing_quiet_ns == 0
    assert episode_course(late, 1130 * SECOND, MINUTE).missing_quiet_ns == 30 * SECOND


def test_late_times_as_far_apart_as_the_gap_are_one_episode() -> None:
    assert episode_course(at(10, 13, 16), MINUTE, 3 * SECOND).episodes == 1
    assert episode_course(at(10, 13.000_000_001), MINUTE, 3 * SECOND).episodes == 2


def test_above_from_the_start_is_refuted_by_rate_at_once_and_later_by_duration() -> None:
    """Always late from s on: at most s + D, whatever came before."""
    begun = decide(HOURLY, between((0, 50)), 50 * SECOND, ALPHA)
    assert (begun.state, begun.kind, begun.at_ns) == (State.REFUTED, RefutingRule.RATE, 0)
    later = decide(HOURLY, between((1800, 3000)), 3000 * SECOND, ALPHA)
    assert (later.state, later.kind, later.at_ns) == (State.REFUTED, RefutingRule.DURATION, 2400 * SECOND)
    short = decide(HOURLY, between((1800, 2400)), 3000 * SECOND, ALPHA)
    assert short.state is State.UNDECIDED


def test_a_refutation_prevails_over_a_proof_and_both_times_are_kept() -> None:
    decision = decide(MINUTELY, between((300, 400)), 400 * SECOND, ALPHA)
    assert (decision.state, decision.kind, decision.first) == (State.REFUTED, RefutingRule.DURATION, State.PROVEN)
    assert decision.proven_at_ns is not None
    assert decision.proven_at_ns / SECOND == pytest.approx(208.9, abs=0.1)
    assert (decision.proven_with, decision.refuted_at_ns) == (0, 315 * SECOND)


def test_the_storm_of_the_issue_is_refuted() -> None:
    """4,384 exceedances in 24 h against once per minute, which the gap of a minute made few episodes of."""
    times = np.sort(np.random.default_rng(1).integers(0, 24 * HOUR, 4384))
    decision = decide(MINUTELY, LateStretches.exact(times, times), 24 * HOUR, ALPHA)
    assert decision.state is State.REFUTED
    assert decision.first is State.REFUTED


def test_where_only_seconds_are_known_each_rule_takes_the_bound_that_cannot_help_it() -> None:
    seconds = LateStretches.of_seconds(np.array([100, 103]) * SECOND)
    found = episode_course(seconds, MINUTE * 5, 3 * SECOND)
    assert found.episodes == 2
    assert found.refuting_begins_ns.tolist() == [101 * SECOND]
    assert found.live_ns == 300 * SECOND - 7 * SECOND
    storm = LateStretches.of_seconds(np.arange(100, 118) * SECOND)
    assert episode_course(storm, 5 * MINUTE, 3 * SECOND).longest_ns == 16 * SECOND
    assert episode_course(storm, 5 * MINUTE, 3 * SECOND).too_long_at(15 * SECOND) == 118 * SECOND


def test_an_episode_that_may_go_on() -> None:
    found = episode_course(between((10, 12), (20, 25)), 26 * SECOND, 3 * SECOND)
    assert (found.open_for_ns, found.missing_quiet_ns, found.open_since_ns) == (5 * SECOND, 2 * SECOND, 20 * SECOND)
    assert episode_course(between((10, 12)), 26 * SECOND, 3 * SECOND).open_since_ns is None


def test_lost_values_end_proofs_but_no_refutation() -> None:
    assert decide(HOURLY, NOTHING_LATE, 10 * HOUR, ALPHA, 0).state is State.UNDECIDED
    assert decide(HOURLY, NOTHING_LATE, 10 * HOUR, ALPHA, 4 * HOUR).state is State.PROVEN
    assert decide(HOURLY, at(0), 10 * HOUR, ALPHA, 0).state is State.REFUTED
    assert decide(HOURLY, between((1800, 3000)), HOUR, ALPHA, 0).kind is RefutingRule.DURATION


def test_with_a_gap_below_a_second_seconds_prove_nothing() -> None:
    often = Requirement(1, 10 * SECOND)
    late = LateStretches.of_seconds([5 * SECOND])
    assert often.gap_ns < SECOND
    assert decide(often, late, HOUR, ALPHA).state is State.UNDECIDED
    assert decide(often, at(5.2), HOUR, ALPHA).state is State.PROVEN


def test_episodes_in_bunches_withhold_a_proof_and_a_wider_gap_is_named() -> None:
    """Three bunches of three episodes, two minutes apart, in 30 h: few enough for once per hour, were they alone."""
    starts = [3600 * hour + 120.0 * part for hour in (2, 10, 16) for part in range(3)]
    decision = decide(HOURLY, at(*starts), 30 * HOUR, ALPHA)
    assert (decision.state, decision.withheld, decision.episodes) == (State.UNDECIDED, True, 9)
    assert wider_gap(HOURLY, episode_course(at(*starts), 30 * HOUR, HOURLY.gap_ns)) == (2 * MINUTE, 3)
    apart = [3600.0 * hour for hour in (1, 2, 3, 7, 10, 13, 16, 17, 19)]
    assert decide(HOURLY, at(*apart), 30 * HOUR, ALPHA).state is State.PROVEN


@pytest.mark.parametrize("n", [3, 4, 7, 12, 50, 400, 1500])
def test_the_level_of_the_bunch_test(n: int) -> None:
    """At most 6 % of runs with independent episodes are called bunched; it is a test, so some are."""
    rng = np.random.default_rng(n)
    runs = 4000 if n < 100 else 1500
    rejected = sum(look_bunched(np.sort(rng.random(n)), 1.0) for _ in range(runs)) / runs
    assert 0.02 <= rejected <= 0.06


def test_too_few_episodes_are_never_called_bunched() -> None:
    assert episode_spacing([1.0, 2.0], 1000.0) is None
    assert not look_bunched([1.0, 1.1], 1000.0)
    assert look_bunched([1.0, 1.1, 1.2, 1.3], 1000.0)


@pytest.mark.parametrize("rate", [1.0, 3.0])
@pytest.mark.parametrize("asked", [MINUTELY, HOURLY])
def test_errors_at_the_rate_of_the_claim_and_power_above_it(asked: Requirement, rate: float) -> None:
    rng = np.random.default_rng(7)
    runs, length_ns, states = 300, 40 * asked.at_most_ns, []
    for _ in range(runs):
        times = rng.integers(0, length_ns, rng.poisson(40 * rate))
        states.append(decide(asked, LateStretches.exact(times, times), length_ns, ALPHA).first)
    proven, refuted = (states.count(state) / runs for state in (State.PROVEN, State.REFUTED))
    assert (proven <= 0.1 and refuted <= 0.08) if rate == 1 else (proven <= 0.02 and refuted >= 0.97)


PROVEN = Requirement(limit_ns=MS, at_most_ns=MS)
REFUTED = Requirement(limit_ns=5_000)
UNDECIDED = Requirement(limit_ns=MS)


def analysed(requirement: Requirement | None) -> Analysis:
    return analyse(record([block([10_000] * 1000)]), requirement, 1)


@pytest.mark.parametrize(
    ("requirement", "state"), [(PROVEN, State.PROVEN), (REFUTED, State.REFUTED), (UNDECIDED, State.UNDECIDED)]
)
def test_nothing_is_decided(requirement: Requirement, state: State) -> None:
    before = analysed(requirement)
    assert before.verdict.state is state
    after = chosen_after_the_data(before)
    assert after.verdict.state is State.UNDECIDED
    assert any(AFTER_THE_DATA in reason for reason in after.verdict.reasons)
    assert after.doubts[-1].code == "limit-after-data"
    assert after.verdict.chosen_after


def test_nothing_is_left_of_the_test_but_the_order_statistic() -> None:
    before = analysed(PROVEN).verdict
    after = chosen_after_the_data(analysed(PROVEN)).verdict
    assert (after.rate_high, after.rate_low, after.log_e_proven, after.needed_ns, after.alpha) == (None,) * 5
    assert after.rate_high_fixed == before.rate_high_fixed is not None
    said = " ".join(text for _, text in after.sentences)
    assert "PROVEN" not in said
    assert "any stopping time" not in said


def test_a_limit_that_was_fixed_beside_one_that_was_not_keeps_its_verdict() -> None:
    found = analyse(record([block([10_000] * 1000)]), (PROVEN, REFUTED), 1)
    after = chosen_after_the_data(found, (PROVEN,))
    assert [verdict.state for verdict in after.verdicts] == [State.PROVEN, State.UNDECIDED]
    assert (after.verdict.state, after.verdicts[0]) == (State.UNDECIDED, found.verdicts[0])


def test_an_invalid_run_stays_invalid() -> None:
    after = chosen_after_the_data(analyse(record([]), PROVEN, 1))
    assert after.verdict.state is State.INVALID


# The product and a judge of the claim that was written apart from it say the same, at the same nanosecond.


EACH = 400


@dataclass(frozen=True)
class Case:
    """Nanoseconds throughout; the reference takes them as its unit, so that nothing is rounded."""

    late: LateStretches
    length_ns: int
    requirement: Requirement


def drawn(generator: np.random.Generator) -> Case:
    """Anything from nothing to a storm without end, with exact and rounded times of several threads, in any order."""
    at_most_ns = int(np.exp(generator.uniform(np.log(20), np.log(20_000))) * SECOND_NS)
    usual = Requirement(0, at_most_ns)
    gap_ns = int(usual.gap_ns * np.exp(generator.normal(0, 0.5))) if generator.random() < 0.3 else usual.gap_ns
    gap_ns = max(gap_ns, SECOND_NS)
    longest_ns = int(gap_ns * np.exp(generator.uniform(0, np.log(200))))
    length_ns = int(at_most_ns * np.exp(generator.uniform(np.log(0.01), np.log(60))))
    waits = _waits(generator, gap_ns, at_most_ns, length_ns)
    if waits.sum() > 10 * at_most_ns:
        length_ns = int(waits.sum() * generator.uniform(0.7, 1.5))
    count = waits.size
    begin = np.cumsum(waits).astype(np.int64)
    begin -= begin[0] if count and generator.random() < 0.2 else 0
    begin = np.sort(begin[begin <= length_ns])
    lengths = generator.exponential(generator.choice([1, gap_ns / 3, longest_ns]), begin.size)
    lengths *= generator.random(begin.size) < generator.random()
    end = np.minimum(begin + lengths.astype(np.int64), length_ns)
    kind = generator.integers(3)
    coarse = generator.random(begin.size) < (0, 1, 0.5)[kind]
    order = generator.permutation(begin.size)
    begin, end, coarse = begin[order], end[order], coarse[order]
    first, last = begin // SECOND_NS * SECOND_NS, end // SECOND_NS * SECOND_NS
    late = LateStretches(
        np.where(coarse, first, begin),
        np.where(coarse, np.minimum(first + SECOND_NS, length_ns), begin),
        np.where(coarse, last, end),
        np.where(coarse, last + SECOND_NS, end),
    )
    m = float(generator.choice([1.0, 1.5, 4.0]))
    return Case(late, length_ns, Requirement(0, at_most_ns, gap_ns=gap_ns, longest_ns=longest_ns, bunches=m))


def _waits(generator: np.random.Generator, gap_ns: int, at_most_ns: int, length_ns: int) -> Floats:
    """Of any spread; or about as long as the gap, where rounding decides; or those of bunches in a long run."""
    count = int(np.exp(generator.uniform(0, np.log(100)))) - 1
    kind = generator.integers(3)
    if kind == 0:
        middle = generator.uniform(-1, 1) + np.log(generator.choice([gap_ns, at_most_ns, length_ns / (count + 1)]))
        return generator.lognormal(middle, generator.uniform(0.1, 3), count)
    if kind == 1:
        waits = gap_ns + SECOND_NS * generator.uniform(-2.5, 2.5, count)
        return np.where(generator.random(count) < 0.3, generator.exponential(at_most_ns, count), waits)
    return generator.uniform(0.9 * gap_ns, 4 * gap_ns, count)


def in_bunches(generator: np.random.Generator) -> Case:
    """A few bunches in a long run, for which the bunch test withholds a proof, with exact times or seconds."""
    asked = Requirement(0, int(generator.uniform(0.3, 6) * 3600) * SECOND_NS)
    begins = np.cumsum(generator.uniform((0.7, 10, 10), (3, 60, 60))) * asked.at_most_ns
    members = np.repeat(begins, generator.integers(1, 6, 3))
    begin = np.sort(members + generator.uniform(0, 1, members.size) * asked.at_most_ns * generator.uniform(0.03, 1))
    length_ns = int(generator.uniform(10, 130) * asked.at_most_ns)
    due = begin[begin < length_ns].astype(np.int64)
    late = (
        LateStretches.exact(due, due)
        if generator.random() < 0.5
        else LateStretches.of_seconds(due // SECOND_NS * SECOND_NS)
    )
    return Case(late, length_ns, asked)


def by_the_reference(case: Case) -> Told:
    asked, late = case.requirement, case.late
    claim = Claim(asked.at_most_ns, asked.gap_ns, asked.longest_ns, asked.bunches)
    bounds = Rounded(*(each.astype(np.float64) for each in (late.begin_lo, late.begin_hi, late.end_lo, late.end_hi)))
    return reference(bounds, case.length_ns, claim)


def near(one: float | None, other: float | None) -> bool:
    """Critical times are rounded up to the nanosecond by one of the two."""
    if one is None or other is None:
        return one is other
    return abs(one - other) <= 2


EVERY = {"PROVEN", "REFUTED", ""}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("draw", "states"), [(drawn, {*EVERY, "by length"}), (in_bunches, {"PROVEN", "", "withheld"})])
def test_both_say_the_same_at_the_same_time(
    draw: Callable[[np.random.Generator], Case], states: set[str], seed: int
) -> None:
    generator = np.random.default_rng((11, seed))
    seen: set[str] = set()
    for number in range(EACH):
        case = draw(generator)
        told, found = by_the_reference(case), decide(case.requirement, case.late, case.length_ns, ALPHA)
        where = f"case {number}: {case}\n{told}\n{found}"
        assert near(found.refuted_at_ns, told.refuted_s), where
        first = told.proven_s if told.refuted_s is None or (told.proven_s or 0.0) < told.refuted_s else None
        assert near(found.proven_at_ns, first), where
        assert found.proven_at_ns is None or found.proven_with == told.episodes, where
        if found.kind is not None and told.refuted_s is not None:
            assert (found.kind is RefutingRule.DURATION) == told.by_length, where
        seen |= {told.state, "withheld" * told.withheld, "by length" * told.by_length}
    assert states <= seen
