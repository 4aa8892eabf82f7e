# SPDX-License-Identifier: Apache-2.0
"""The definition of the claim as the benchmarks state it by themselves, on patterns whose verdict is known."""

import numpy as np
import pytest
from claim_processes import PROCESSES, Process, Span, Stretches, episode_starts, rate_for, runs
from claim_rules import Claim, bunched, exact, old, reference, seconds

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0


def activations(since_s: float, until_s: float, period_s: float = 0.5) -> Stretches:
    """Every activation is late."""
    return Stretches.single(np.arange(since_s, until_s, period_s))


NOTHING = Stretches.single(np.empty(0))


@pytest.mark.parametrize(("at_most_s", "gap_s", "longest_s"), [(MINUTE_S, 3, 15), (1200, 60, 300), (HOUR_S, 60, 600)])
def test_usual_gap_and_longest_episode(at_most_s: float, gap_s: float, longest_s: float) -> None:
    claim = Claim.usual(at_most_s)
    assert (claim.gap_s, claim.longest_s) == (gap_s, longest_s)


@pytest.mark.parametrize(("m", "times"), [(1.0, 3.4819), (2.0, 6.9637), (5.0, 17.4093)])
def test_without_an_episode_it_is_proven_after_the_time_for_none(m: float, times: float) -> None:
    told = reference(exact(NOTHING), 100 * HOUR_S, Claim.usual(HOUR_S, m))
    assert told.state == "PROVEN"
    assert told.at_s == pytest.approx(times * HOUR_S, rel=1e-4)


@pytest.mark.parametrize(
    ("at_most_s", "since_s", "at_s"), [(MINUTE_S, 20, 35), (HOUR_S, 20, 620), (HOUR_S, 1800, 2400), (HOUR_S, 0, 0)]
)
def test_what_exceeds_always_is_refuted_after_the_longest_episode(
    at_most_s: float, since_s: float, at_s: float
) -> None:
    told = reference(exact(activations(since_s, since_s + 700)), since_s + 700, Claim.usual(at_most_s))
    assert told.state == "REFUTED"
    assert told.at_s == pytest.approx(at_s, abs=0.51)
    assert told.by_length == (at_s > 0)


def test_the_rule_before_never_refutes_what_exceeds_always() -> None:
    assert old(activations(20, 4 * HOUR_S), 4 * HOUR_S, HOUR_S) == ""
    assert old(activations(30 * MINUTE_S, HOUR_S), HOUR_S, MINUTE_S) == "PROVEN"


def test_a_storm_after_a_proof_is_refuted_later() -> None:
    told = reference(exact(activations(1800, 3600)), HOUR_S, Claim.usual(MINUTE_S))
    assert told.state == "PROVEN"
    assert told.proven_s == pytest.approx(208.9, abs=0.1)
    assert told.refuted_s == pytest.approx(1815, abs=0.51)


def test_time_within_an_episode_and_its_gap_proves_nothing() -> None:
    late = Stretches(np.array([HOUR_S]), np.array([HOUR_S + 300]))
    told = reference(exact(late), 100 * HOUR_S, Claim.usual(HOUR_S))
    assert told.at_s == pytest.approx(6.8 * HOUR_S + 300 + 60, abs=0.02 * HOUR_S)


def test_a_bunch_withholds_the_proof_until_it_is_one_of_several() -> None:
    late = Stretches.single(5 * HOUR_S + 90 * np.arange(4.0))
    claim = Claim.usual(HOUR_S, bunches=1.6)
    told = reference(exact(late), 100 * HOUR_S, claim)
    untested = reference(exact(late), 100 * HOUR_S, Claim.usual(HOUR_S, 1.6, tested=False))
    assert told.withheld
    assert told.proven_s is None
    assert untested.proven_s == pytest.approx(1.6 * 13.07 * HOUR_S, rel=0.01)


def test_the_bunch_test_sees_bunches_and_no_regular_starts() -> None:
    assert bunched(np.array([100.0, 101, 102, 103]), 1000.0)
    assert not bunched(np.arange(100.0, 1000, 100), 1000.0)
    assert not bunched(np.array([1.0, 2.0]), 1000.0)


def test_seconds_are_joined_for_a_proof_only_if_they_surely_are() -> None:
    """Pairs 60.2 s apart are two episodes; told by seconds they may be one, which delays a refutation."""
    late = Stretches.single(np.array([10.9, 71.1]))
    claim = Claim.usual(DAY_S)
    assert reference(exact(late), HOUR_S, claim).refuted_s == pytest.approx(10.9)
    assert reference(seconds(late), HOUR_S, claim).refuted_s == pytest.approx(11.0)
    later = Stretches.single(np.array([0.01 * DAY_S + 0.9, 0.01 * DAY_S + 61.1]))
    assert reference(exact(later), HOUR_S, claim).refuted_s == pytest.approx(0.01 * DAY_S + 61.1)
    assert reference(seconds(later), HOUR_S, claim).refuted_s is None


@pytest.mark.parametrize("process", PROCESSES, ids=lambda one: one.name)
def test_episodes_of_each_process_come_once_per_t(process: Process) -> None:
    span = Span(20_000 * HOUR_S, HOUR_S)
    rate = rate_for(process, 60.0, span, (1, 2))
    late = process.draw(rate, span, np.random.default_rng((1, 2)))
    assert episode_starts(late, 60.0).size == pytest.approx(20_000, rel=0.05)
    assert np.all(np.diff(late.begin_s) >= 0)


def test_runs_are_cut_from_one_path_without_loss() -> None:
    storms = PROCESSES[-1]
    cut = list(runs(storms, 1 / HOUR_S, Span(10 * HOUR_S, HOUR_S), 200, (3,)))
    assert all(np.all((each.begin_s >= 0) & (each.end_s <= 10 * HOUR_S)) for each in cut)
    assert sum(each.begin_s.size for each in cut) == pytest.approx(2000 * 1.006, rel=0.1)
    under_way = sum(bool(each.begin_s.size and each.begin_s[0] == 0) for each in cut)
    assert 0 < under_way < 20
