# SPDX-License-Identifier: Apache-2.0

import pytest

from rtproof.core import phrases

SECOND, MINUTE, HOUR = 10**9, 60 * 10**9, 3600 * 10**9


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (12, "12 ns"),
        (1500, "1.5 us"),
        (350_000_000, "350 ms"),
        (999_600_000, "999 ms"),
        (1_999_999_999, "1.9 s"),
        (MINUTE - 1, "59.9 s"),
        (3.5 * SECOND * (1 - 1e-15), "3.5 s"),
        (SECOND, "1.0 s"),
        (20 * SECOND, "20.0 s"),
        (9 * MINUTE + 5 * SECOND, "9 min 05 s"),
        (HOUR - 1, "59 min 59 s"),
        (HOUR, "1 h"),
        (96 * HOUR + 12 * MINUTE + 59 * SECOND, "96 h 12 min"),
        (24_000 * HOUR, "24,000 h"),
    ],
)
def test_durations(ns: float, text: str) -> None:
    assert phrases.duration(ns) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (3 * HOUR - 1, "3 h"),
        (3 * HOUR, "3 h"),
        (3 * HOUR + 1, "3 h 01 min"),
        (MINUTE + 1, "1 min 01 s"),
        (MINUTE - 1, "1 min"),
        (999_600_000, "1.0 s"),
        (999_001, "1 ms"),
        (334_100_000, "335 ms"),
        (SECOND + 1, "1.1 s"),
    ],
)
def test_what_a_run_needs_is_rounded_up(ns: int, text: str) -> None:
    assert phrases.duration(ns, up=True) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (-3835, "-3.835 us"),
        (850, "850 ns"),
        (231_412, "231.412 us"),
        (200_000, "200 us"),
        (1_106_000, "1,106 us"),
        (402_666_123, "402.666 ms"),
        (30 * SECOND, "30 s"),
    ],
)
def test_values_are_exact_where_it_matters(ns: int, text: str) -> None:
    assert phrases.value(ns) == text


def test_quantities() -> None:
    assert phrases.quantity(1, "episode") == "1 episode"
    assert phrases.quantity(0, "episode") == "0 episodes"
    assert phrases.quantity(196_190_335, "activation") == "196,190,335 activations"


@pytest.mark.parametrize(("share", "text"), [(0.95, "95 %"), (0.999, "99.9 %"), (0.05, "5 %")])
def test_percentages(share: float, text: str) -> None:
    assert phrases.percent(share) == text


@pytest.mark.parametrize(
    ("confidence", "limits", "error", "sure"),
    [
        (0.95, 1, "5 %", "95 %"),
        (0.5, 1, "50 %", "50 %"),
        (0.95, 2, "2.5 %", "97.5 %"),
        (0.95, 3, "1.67 %", "98.33 %"),
        (0.95, 7, "0.715 %", "99.285 %"),
        (0.999999, 1, "0.0001 %", "99.9999 %"),
        (0.999999, 8, "0.0000125 %", "99.9999875 %"),
    ],
)
def test_a_probability_of_error_is_never_rounded_down(confidence: float, limits: int, error: str, sure: str) -> None:
    """That of 8 limits at 99.9999 % was called 0 % once."""
    alpha = (1 - confidence) / limits
    assert (phrases.error(alpha), phrases.sure(alpha)) == (error, sure)


def test_a_time_of_day() -> None:
    assert phrases.instant(1_700_000_000 * SECOND, 1_234_567_890) == "2023-11-14 22:13:21.234"
    assert phrases.instant(1_700_000_000 * SECOND, -50_000_000) == "2023-11-14 22:13:19.950"
    assert phrases.instant(2**63, 2**70) == "unknown"


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "< 1 %"), (0.004, "< 1 %"), (0.016, "2 %"), (0.45, "45 %"), (0.996, "> 99 %"), (1.0, "> 99 %")],
)
def test_a_forecast_is_never_certain(share: float, text: str) -> None:
    assert phrases.chance(share) == text
