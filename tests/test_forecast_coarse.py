# SPDX-License-Identifier: Apache-2.0
"""COARSE: tails of too few different values, by the clock's steps or of themselves."""

import numpy as np
import pytest
from forecast_cases import codes, forecast_of, message, smooth

from rtproof.record.contents import Int64Array


def coarse(values: Int64Array) -> str:
    found = forecast_of(values)
    assert codes(found) == ["COARSE"]
    return message(found, "COARSE")


def test_a_coarse_clock() -> None:
    largest = smooth()
    several, one = np.count_nonzero(largest >= 100_000), np.count_nonzero(largest >= 200_000)
    assert one < 200 < several
    assert coarse(largest // 100_000 * 100_000) == (
        f"the highest {several:,} of 28,800 one-second maxima have only 2 different values, 5 are needed; "
        "all values lie 100 us or more apart"
    )


def test_a_tail_narrower_than_the_clocks_steps() -> None:
    steps = np.repeat([21, 24, 30, 40, 60, 90], [390, 1, 1, 1, 1, 1])
    body = 16 + np.arange(9_000 - steps.size) % 5
    told = coarse(1_000 * np.random.default_rng(1).permutation(np.concatenate((body, steps))))
    assert told.startswith("the steps of 1 us between the values are too coarse for a tail with a spread of ")
    assert 1 < float(told.partition(" spread of ")[2].split()[0]) < 500


@pytest.mark.parametrize(("above", "says"), [(0, "none lies"), (84, "only 84 lie")])
def test_one_value_that_is_too_frequent_is_no_coarse_clock(above: int, says: str) -> None:
    values = np.full(5_000, 20_000)
    values[:above] += 41 * np.arange(1, above + 1)
    assert coarse(np.random.default_rng(1).permutation(values)) == (
        f"{5_000 - above:,} of 5,000 one-second maxima have the same value of 20 us and {says} above it; "
        "a tail of 200 is needed"
    )


def test_two_values() -> None:
    values = np.where(np.arange(5_000) % 20 == 3, 40_000, 20_000)
    assert coarse(values).startswith("the highest 250 of 5,000 one-second maxima have only 1 different value, ")


def test_a_clock_of_microseconds_is_fine_enough_for_a_tail_of_tens() -> None:
    found = forecast_of(smooth() // 1_000 * 1_000)
    assert found.step_ns == 1_000
    assert codes(found) == []
