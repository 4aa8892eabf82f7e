# SPDX-License-Identifier: Apache-2.0

import pytest

from rtproof.report import number_format
from rtproof.report.number_format import MS, NS, US, S


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([], NS),
        ([None, 0], NS),
        ([-999], NS),
        ([1_000], US),
        ([3_000, 5_000, 400_000_000], US),
        ([2_000_000], MS),
        ([-2_000_000, 5_000_000], MS),
        ([3_000_000_000], S),
    ],
)
def test_the_unit_is_that_of_the_middle_value(values: list[float | None], unit: number_format.PrintedUnit) -> None:
    assert number_format.unit_for(values) == unit


def test_a_number_has_its_unit_and_no_number_is_unknown() -> None:
    assert (US(-3_835), US.show(1_234_567), US(None), NS(7), MS.scale(500_000)) == (
        "-3.835 us",
        "1,234.567",
        "unknown",
        "7 ns",
        0.5,
    )
    assert number_format.unit_headings(US, "min", "max") == ("min [us]", "max [us]")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1234567, "1,234,567"), (0.12345, "0.1235"), (-5.5, "-5.500"), (1e-6, "1.000e-06"), (2e12, "2.000e+12")],
)
def test_few_digits(value: float, text: str) -> None:
    assert number_format.number_text(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "unknown"),
        (0, 5, "0 %"),
        (5, 5, "100 %"),
        (1, 3, "33.33 %"),
        (10**9 - 1, 10**9, "above 99.99 %"),
        (1, 10**9, "1e-07 %"),
    ],
)
def test_a_share_is_never_rounded_to_all_or_nothing(part: int, whole: int, text: str) -> None:
    assert number_format.share_text(part, whole) == text


def test_counts_in_groups() -> None:
    assert (number_format.count_text(196_190_335), number_format.count_text(None)) == ("196,190,335", "unknown")
    assert (number_format.nice_steps([0, 1, 2]), number_format.nice_steps([0, 500])) == ("1 second", "500 seconds")


def test_the_time_of_a_run_is_in_seconds_minutes_or_hours() -> None:
    spans = (600, 601, 18_000, 18_001)
    assert [number_format.axis_unit(span * number_format.NS_PER_S).name for span in spans] == ["s", "min", "min", "h"]
