# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from rtproof.tail.forecast import MOST_PEAKS, density_peaks


def around(*middles: float, each: int = 2_000, spread: float = 0.03) -> np.ndarray:
    generator = np.random.default_rng(4)
    drawn = [generator.normal(middle, spread * middle, each) for middle in middles]
    return np.concatenate(drawn).astype(np.int64)


def near(found: tuple[int, ...], *middles: float) -> None:
    assert found == pytest.approx(middles, rel=0.1)


def test_each_gathering_is_a_peak() -> None:
    near(density_peaks(around(20_000, 8e6, 16.7e6)), 20_000, 8e6, 16.7e6)


def test_a_small_gathering_far_out_counts_and_chance_does_not() -> None:
    values = np.concatenate((around(20_000, spread=0.3), around(9e6, each=40)))
    near(density_peaks(values), 20_000, 9e6)
    near(density_peaks(np.concatenate((around(20_000, spread=0.05), np.array([5_000_000, 7_000_000])))), 20_000)


def test_no_more_are_told_than_one_can_read() -> None:
    found = density_peaks(around(*(1_000 * 4.0**at for at in range(9))))
    assert len(found) == MOST_PEAKS
    assert list(found) == sorted(found)


@pytest.mark.parametrize("values", [[], [-5, -3], [0, 0]])
def test_where_nothing_is_late_there_is_no_peak(values: list[int]) -> None:
    assert density_peaks(np.array(values, np.int64)) == ()
