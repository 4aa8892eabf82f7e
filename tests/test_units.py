# SPDX-License-Identifier: Apache-2.0

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.core import units
from rtproof.core.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected_ns"),
    [
        ("0ns", 0),
        ("500us", 500_000),
        ("500µs", 500_000),
        ("1.5ms", 1_500_000),
        ("20 s", 20_000_000_000),
        ("2min", 120_000_000_000),
        ("2h", 7_200_000_000_000),
        ("1day", 86_400_000_000_000),
        ("0.000000001s", 1),
    ],
)
def test_a_duration_is_read_exactly(text: str, expected_ns: int) -> None:
    assert units.parse_duration(text) == expected_ns


def test_a_bare_number_is_refused_with_the_units() -> None:
    with pytest.raises(UserError, match="has no unit: write one of ns, us, ms, s, min, h or d"):
        units.parse_duration("500")


@pytest.mark.parametrize(
    "text", ["", "us", "-1ms", "1m", "1e3us", "1 2ms", "1ms2", "0.5ns", "1,5ms", "300000000h", "٣ms", "²us"]
)
def test_nonsense_is_no_duration(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_duration(text)


@given(st.integers(min_value=0, max_value=2**63 - 1))
def test_a_formatted_duration_reads_back(duration_ns: int) -> None:
    assert units.parse_duration(units.format_duration(duration_ns)) == duration_ns


def test_the_largest_exact_unit_is_written() -> None:
    assert [units.format_duration(n) for n in (1_000_000, 1_500, 0, 86_400 * 10**9)] == ["1ms", "1500ns", "0ns", "1d"]


@pytest.mark.parametrize(
    ("text", "expected_s"), [("1/h", 3600), ("1/day", 86_400), ("1/12h", 43_200), ("1 / 30min", 1800), ("1/s", 1)]
)
def test_a_rate_is_once_per_time(text: str, expected_s: int) -> None:
    assert units.parse_at_most(text) == expected_s * 1_000_000_000


@pytest.mark.parametrize("text", ["", "h", "1", "2/h", "1/", "1/0s", "1/fortnight", "0/h", "1/h/h"])
def test_other_rates_are_refused(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_at_most(text)


def test_a_cpu_list_is_sorted_and_unique() -> None:
    assert units.parse_cpus("7, 0,2-4,3") == (0, 2, 3, 4, 7)


@pytest.mark.parametrize("text", ["", "a", "1-", "3-1", "0,,1", "-1", "99999999", "65536", "0-3:2"])
def test_nonsense_is_no_cpu_list(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_cpus(text)


@given(st.sets(st.integers(min_value=0, max_value=300), min_size=1))
def test_a_formatted_cpu_list_reads_back(cpus: set[int]) -> None:
    assert units.parse_cpus(units.format_cpus(tuple(cpus))) == tuple(sorted(cpus))


def test_a_percentage_is_exact() -> None:
    assert units.parse_percentage("99.999%") == Fraction(99_999, 100_000)
    assert units.parse_percentage("50") == Fraction(1, 2)


@pytest.mark.parametrize("text", ["0", "100", "101", "-5", "half", "", "99,9", "nan"])
def test_nonsense_is_no_percentage(text: str) -> None:
    with pytest.raises(UserError):
        units.parse_percentage(text)


def test_a_length_is_longer_than_nothing() -> None:
    assert units.parse_length("1ms") == 1_000_000
    with pytest.raises(UserError, match="'0us' must be longer than 0"):
        units.parse_length("0us")


@pytest.mark.parametrize("text", ["9" * 5_000 + "us", "0." + "0" * 5_000 + "1s", "1" * 61 + "ns"])
def test_a_duration_of_thousands_of_digits_is_a_short_sentence(text: str) -> None:
    for parse in (units.parse_duration, units.parse_length, lambda words: units.parse_at_most(f"1/{words}")):
        with pytest.raises(UserError) as refused:
            parse(text)
        assert len(str(refused.value)) < 200


def test_a_percentage_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(UserError, match="is not a percentage"):
        units.parse_percentage("9" * 5_000)
