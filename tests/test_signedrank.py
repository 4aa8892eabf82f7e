# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from rtproof.summary.tracing_effect import MOST_EXACT_PAIRS, paired_difference

CONFIDENCE = 0.95


def test_few_pairs_carry_no_interval() -> None:
    """Five signs are all the same by chance in one of sixteen cases."""
    assert paired_difference([1.0] * 5, CONFIDENCE) is None
    assert paired_difference([], CONFIDENCE) is None
    assert paired_difference([1.0] * 6, CONFIDENCE) is not None


def test_a_known_example() -> None:
    """Hollander and Wolfe's depression scores. Nine pairs have a rank sum up to 5 with a chance below 2.5 %."""
    before = (1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30)
    after = (0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29)
    differences = [x - y for x, y in zip(before, after, strict=True)]
    averages = sorted((a + b) / 2 for i, a in enumerate(differences) for b in differences[i:])
    found = paired_difference(differences, CONFIDENCE)
    assert found is not None
    assert found.estimate == pytest.approx(0.46, abs=0.005)
    assert (found.low, found.high) == (averages[5], averages[-6])


def test_one_spoiled_pair_moves_it_little() -> None:
    values = list(np.random.default_rng(1).normal(10, 1, 30))
    clean, spoiled = paired_difference(values, CONFIDENCE), paired_difference([*values[:-1], 1e6], CONFIDENCE)
    assert clean is not None
    assert spoiled is not None
    assert spoiled.estimate == pytest.approx(clean.estimate, abs=0.2)


def test_the_normal_approximation_takes_over_without_a_step() -> None:
    values = list(np.random.default_rng(2).normal(0, 1, MOST_EXACT_PAIRS + 1))
    exact, approximate = paired_difference(values[:-1], CONFIDENCE), paired_difference(values, CONFIDENCE)
    assert exact is not None
    assert approximate is not None
    width = exact.high - exact.low
    assert approximate.high - approximate.low == pytest.approx(width, rel=0.05)


@pytest.mark.parametrize("pairs", [8, 20, 60])
def test_the_interval_covers_as_often_as_it_says(pairs: int) -> None:
    """Heavy tails on both sides, as the difference of two latencies has them; the shift is 3."""
    random = np.random.default_rng(pairs)
    runs = 1_000
    covered = 0
    for _ in range(runs):
        found = paired_difference(list(3 + random.standard_t(2, pairs)), CONFIDENCE)
        assert found is not None
        covered += found.low <= 3 <= found.high
    assert 0.935 <= covered / runs <= 0.985
