# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from tail_cases import excesses_of

from rtproof.tail.pareto_fit import Excesses
from rtproof.tail.thresholds import LARGEST, top_test


def with_strange(of: Excesses, *excess: float) -> Excesses:
    """Some more values beyond all others."""
    lo = np.append(of.lo, excess)
    return replace(of, lo=lo, width=np.append(of.width, np.ones(len(excess))), n=np.append(of.n, np.ones(len(excess))))


@pytest.mark.parametrize(("xi", "step"), [(-0.2, 1), (0.0, 1), (0.2, 1), (0.0, 1000)])
def test_values_that_belong_to_the_rest_seldom_look_strange(xi: float, step: int) -> None:
    ps = np.array([top_test(excesses_of(xi, 1200, 20_000, 400, seed=seed, step=step)).p for seed in range(40)])
    assert (ps < 0.01).sum() <= 2
    assert (ps > 0.1).sum() >= 30


def test_a_value_far_beyond_is_strange() -> None:
    of = excesses_of(0.0, 1e5, 100_000, k=1600)
    assert top_test(of).p > 0.05
    assert top_test(with_strange(of, 60e5)).p < 1e-5


def test_several_values_far_beyond_are_strange() -> None:
    of = excesses_of(0.0, 1e5, 100_000, k=1600)
    assert top_test(with_strange(of, *(15e5 + 1e5 * np.arange(4.0)))).p < 0.005


def test_ten_are_judged_where_bins_are_fine() -> None:
    of = excesses_of(0.0, 1e5, 100_000)
    found = top_test(of)
    assert found.number == LARGEST
    assert (np.repeat(of.lo, of.n.astype(int)) + of.threshold >= found.split).sum() == LARGEST


def test_whole_bins_are_judged() -> None:
    of = Excesses(0.0, np.arange(4.0), np.ones(4), np.array([150.0, 40, 9, 4]), 9000)
    assert top_test(of).number == 13


def test_the_fit_has_not_seen_what_it_judges() -> None:
    """Moving the largest outwards leaves the fit of the others alone, so that p falls and falls."""
    of = excesses_of(0.1, 1e5, 100_000)
    ps = [top_test(with_strange(of, factor * of.lo[-1])).p for factor in (1.5, 3.0, 10.0)]
    assert ps[0] > ps[1] > ps[2]
