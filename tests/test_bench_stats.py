# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of ``make bench-stats`` in their short form, seeds fixed."""

from dataclasses import replace
from types import ModuleType

import pytest
from acceptance import Benchmark, benchmarks, claim_episodes_in_bunches, claim_errors, claim_seconds, claim_times
from claim_judges import product
from claim_rules import Claim, Rounded, Told

SHORT = [one for one in benchmarks() if one.in_tests]


@pytest.mark.slow
@pytest.mark.parametrize("one", SHORT, ids=lambda one: one.key)
def test_the_goal_holds(one: Benchmark) -> None:
    result = one.measure(True)
    assert result.holds, f"{one.title}: {result.value}, goal: {result.goal}"


def test_no_key_stands_twice() -> None:
    keys = [one.key for one in benchmarks()]
    assert len(keys) == len(set(keys))


def _gap_as_before(late: Rounded, length_s: float, claim: Claim) -> Told:
    gap_s = min(60.0, claim.at_most_s)
    return product(late, length_s, replace(claim, gap_s=gap_s, longest_s=max(claim.longest_s, gap_s)))


def _without_longest(late: Rounded, length_s: float, claim: Claim) -> Told:
    return product(late, length_s, replace(claim, longest_s=1e9))


def _without_bunches(late: Rounded, length_s: float, claim: Claim) -> Told:
    return product(late, length_s, replace(claim, bunches=1.0))


def _half_a_second_sooner(late: Rounded, length_s: float, claim: Claim) -> Told:
    """Takes the middle of each second for the time."""
    middle = (late.a_low + late.b_high) / 2
    return product(Rounded(middle, middle, middle, middle), length_s, claim)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "measure", "judge"),
    [
        (claim_errors, "errors", _gap_as_before),
        (claim_times, "refuting", _gap_as_before),
        (claim_times, "never_quiet", _without_longest),
        (claim_times, "proving", _without_bunches),
        (claim_episodes_in_bunches, "factor", _without_bunches),
        (claim_seconds, "roundings", _half_a_second_sooner),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_the_goal_is_missed_by_another_rule(
    module: ModuleType, measure: str, judge: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "product", judge)
    assert not getattr(module, measure)(True).holds
