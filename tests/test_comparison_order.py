# SPDX-License-Identifier: Apache-2.0
"""Crossing distributions, with crossings that are known, and none where there is none."""

import numpy as np
import pytest
from comparison_cases import run_of, side

from rtproof.compare.distributions import BY_RUNS, BY_VALUES, side_order


def test_a_crossing_is_found_where_it_is() -> None:
    """A is 60 % later as a rule; 2 % of B are ten times as late, from about 60 us on."""
    found = side_order(side(1, 6, factor=1.6, scatter=0.05), side(2, 6, scatter=0.05, tail=0.02))
    assert (found.lower, found.method) == (None, BY_RUNS)
    (crossing,) = found.crossings
    assert not crossing.a_lower_below
    assert crossing.between[0] <= crossing.value <= crossing.between[1]
    assert 50_000 < crossing.value < 110_000
    assert 0.005 < crossing.share < 0.06
    (other,) = side_order(side(2, 6, scatter=0.05, tail=0.02), side(1, 6, factor=1.6, scatter=0.05)).crossings
    assert (other.value, other.a_lower_below) == (crossing.value, True)


def test_an_exact_crossing() -> None:
    """Every run of A has 500 values at 10 us and 500 at 20 us, of B 900 at 5 us and 100 at 100 us."""
    a = [run_of(np.repeat(np.array([10_000, 20_000]), 500)) for _ in range(4)]
    b = [run_of(np.repeat(np.array([5_000, 100_000]), (900, 100))) for _ in range(4)]
    (crossing,) = side_order(a, b).crossings
    assert 10_000 <= crossing.value <= 20_100
    assert not crossing.a_lower_below


@pytest.mark.parametrize(("factor", "lower"), [(0.5, "A"), (2.0, "B")])
def test_one_that_is_lower_throughout(factor: float, lower: str) -> None:
    found = side_order(side(1, 5, factor=factor), side(2, 5))
    assert (found.lower, found.crossings) == (lower, ())
    assert found.surely is not None
    assert found.surely[0] < 20_000 < found.surely[1]


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_noise_does_not_cross(runs: int) -> None:
    """Of 40 pairs of the same at 95 %, two are expected to differ anywhere, and none to cross."""
    found = [
        side_order(side(2 * seed, runs, 1, 0.3, 0.01), side(2 * seed + 1, runs, 1, 0.3, 0.01)) for seed in range(40)
    ]
    assert sum(one.lower is not None or bool(one.crossings) for one in found) <= 6
    assert not any(one.crossings for one in found)


@pytest.mark.parametrize(("above", "lower"), [(10_100, None), (11_000, "B")])
def test_a_difference_that_is_sure_and_small_is_none(above: int, lower: str | None) -> None:
    """Runs without any scatter: 2 % more odds of 20 us are sure and nothing, 22 % more are something."""
    more = run_of(np.repeat(np.array([10_000, 20_000]), (20_000 - above, above)))
    usual = run_of(np.repeat(np.array([10_000, 20_000]), 10_000))
    assert side_order([more] * 5, [usual] * 5).lower == lower


def test_one_each_says_that_it_speaks_of_values() -> None:
    found = side_order(side(1, 1, factor=1.6, scatter=0), side(2, 1, scatter=0, tail=0.02))
    assert found.method == BY_VALUES
    (crossing,) = found.crossings
    assert 50_000 < crossing.value < 110_000
    assert not crossing.a_lower_below
    assert side_order(side(1, 2), side(2, 2)).method == BY_VALUES
    assert side_order(side(1, 1, scatter=0), side(1, 1, scatter=0)).lower is None
    assert side_order(side(1, 1, factor=3), side(2, 1)).lower == "B"


def test_too_few_values_to_say_anything() -> None:
    few = [run_of(np.array([1, 2, 3])) for _ in range(4)]
    found = side_order(few, few)
    assert (found.lower, found.surely, found.crossings) == (None, None, ())
