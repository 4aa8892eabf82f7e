# SPDX-License-Identifier: Apache-2.0
"""The claim's rules, on late times as they are given: which rule decides, when, and by how much."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, block, record

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.claim import (
    NOTHING_LATE,
    LateStretches,
    RefutingRule,
    decide,
    episode_course,
    look_bunched,
    merge_late_stretches,
)
from rtproof.judge.verdict import AFTER_THE_DATA, chosen_after_the_data
from rtproof.record.requirement import Requirement

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
    assert found.missing_quiet_ns == 0
    assert episode_course(late, 1130 * SECOND, MINUTE).missing_quiet_ns == 30 * SECOND


def test_late_times_as_far_apart_as_the_gap_are_one_episode() -> None:
    assert episode_course(at(10, 13, 16), MINUTE, 3 * SECOND).episodes == 1
    assert episode_course(at(10, 13.000_000_001), MINUTE, 3 * SECOND).episodes == 2


def test_stretches_that_were_joined_before_make_the_same_episodes() -> None:
    """Also where a long one begins before a short one and ends after it."""
    late = between((50, 60), (0, 100), (1, 2), (160, 161), (170, 171))
    joined = LateStretches.exact(*merge_late_stretches(late.begin_lo, late.end_lo, MINUTE))
    alone, together = (episode_course(each, HOUR, MINUTE) for each in (late, joined))
    assert (joined.size, together.first_ns.tolist()) == (1, [0])
    for name in ("last_ns", "live_ns", "quiet_begin_ns", "quiet_end_ns", "refuting_begins_ns"):
        assert np.array_equal(getattr(alone, name), getattr(together, name)), name


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


def test_episodes_in_bunches_withhold_a_proof() -> None:
    """Three bunches of three episodes, two minutes apart, in 30 h: few enough for once per hour, were they alone."""
    starts = [3600 * hour + 120.0 * part for hour in (2, 10, 16) for part in range(3)]
    decision = decide(HOURLY, at(*starts), 30 * HOUR, ALPHA)
    assert (decision.state, decision.withheld, decision.episodes) == (State.UNDECIDED, True, 9)
    apart = [3600.0 * hour for hour in (1, 2, 3, 7, 10, 13, 16, 17, 19)]
    assert decide(HOURLY, at(*apart), 30 * HOUR, ALPHA).state is State.PROVEN


@pytest.mark.parametrize("n", [3, 4, 7, 12, 50, 400, 1500])
def test_the_level_of_the_bunch_test(n: int) -> None:
    """At most 6 % of runs with independent episodes are called bunched; it is a test, so some are."""
    rng = np.random.default_rng(n)
    runs = 4000 if n < 100 else 1500
    rejected = sum(look_bunched(np.sort(rng.random(n)), 1.0) for _ in range(runs)) / runs
    assert 0.02 <= rejected <= 0.06


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
REFUTED = Requirement(5_000, 3_600 * SECOND)
UNDECIDED = Requirement(MS, 3_600 * SECOND)


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
    assert "limit-after-data" in {doubt.code for doubt in after.doubts}
    assert after.verdict.chosen_after


def test_nothing_is_left_of_the_test_but_the_order_statistic() -> None:
    before = analysed(PROVEN).verdict
    after = chosen_after_the_data(analysed(PROVEN)).verdict
    assert (after.rate_high_per_s, after.rate_low_per_s, after.log_e_proven, after.needed_ns, after.alpha) == (
        None,
    ) * 5
    assert after.rate_high_fixed_per_s == before.rate_high_fixed_per_s is not None
    said = " ".join(text for _, text in after.sentences)
    assert "PROVEN" not in said
    assert "any stopping time" not in said


def test_a_limit_that_was_fixed_beside_one_that_was_not_keeps_its_verdict() -> None:
    found = analyse(record([block([10_000] * 1000)]), (PROVEN, REFUTED), 1)
    after = chosen_after_the_data(found, (PROVEN,))
    assert [verdict.state for verdict in after.verdicts] == [State.PROVEN, State.UNDECIDED]
    assert (after.verdict.state, after.verdicts[0]) == (State.UNDECIDED, found.verdicts[0])
