# SPDX-License-Identifier: Apache-2.0
"""The verdict once more, slowly and from its description alone: nothing of the program's own test is used.

Late activations become episodes second by second; both mixtures are integrated over the rates; every quarter
of a second is looked at, and the first in which a bet is won decides.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

SECOND_NS = 1_000_000_000
TICK_NS = SECOND_NS // 4
MIXING = 0.3
LOG_RATES = np.linspace(-80.0, 8.0, 12_001)
"""ln of x, where the bets are on e^x and e^-x times the claimed rate: so both ends vanish."""


@dataclass(frozen=True)
class Asked:
    """One limit with its share of the probability of error."""

    limit_ns: int
    at_most_ns: int
    gap_ns: int
    alpha: float


def late_seconds(late: Iterable[tuple[int, int]], limit_ns: int) -> set[int]:
    """Every second in which somebody waits longer than the limit, from pairs of due time and latency."""
    found: set[int] = set()
    for due_ns, value_ns in late:
        if value_ns > limit_ns:
            begun = due_ns // SECOND_NS
            found.update(range(begun, begun + (value_ns - limit_ns) // SECOND_NS + 1))
    return found


def episodes(seconds: set[int], gap_ns: int) -> list[tuple[int, int]]:
    """First and last second of each."""
    found: list[tuple[int, int]] = []
    for second in sorted(seconds):
        if found and (second - found[-1][1]) * SECOND_NS <= gap_ns:
            found[-1] = (found[-1][0], second)
        else:
            found.append((second, second))
    return found


def log_bet(count: int, tau: float, side: int) -> float:
    """ln of the mean of b^N e^(tau (1 - b)) over b = e^(side x), whose density in x is a e^(-a x)."""
    x = np.minimum(np.exp(LOG_RATES), 600.0)
    with np.errstate(over="ignore"):
        exponent = math.log(MIXING) - MIXING * x + count * side * x - tau * np.expm1(side * x) + LOG_RATES
    top = float(exponent.max())
    return top + math.log(float(np.exp(exponent - top).sum()) * float(LOG_RATES[1] - LOG_RATES[0]))


@cache
def winning(count: int, alpha: float, side: int) -> float:
    """The tau from which on the bet on seldom (-1) has won, or up to which that on often (1) has, by bisection."""
    low, high = 1e-9, 1e3
    while high - low > 1e-9 * high:
        tau = math.sqrt(low * high)
        won = log_bet(count, tau, side) >= -math.log(alpha)
        low, high = (low, tau) if won == (side < 0) else (tau, high)
    return high if side < 0 else low


def decided(
    found: Sequence[tuple[int, int]], first_due_ns: int, measured_ns: int, asked: Asked, *, whole: bool
) -> tuple[str, int | None, int]:
    """State, the tick by whose end it was reached, and the episodes by then. Times count from the first due time."""
    begun = [max(first * SECOND_NS - first_due_ns, 0) for first, _ in found]
    length = [(last - first + 1) * SECOND_NS if last > first else 0 for first, last in found]
    looked = [*range(TICK_NS, measured_ns, TICK_NS), measured_ns]
    for now in looked:
        past = sum(start < now for start in begun)
        free = now - sum(length[:past])
        if whole and free / asked.at_most_ns >= winning(past, asked.alpha, -1):
            return "PROVEN", now, past
        known = sum(min(start + SECOND_NS, measured_ns) <= now for start in begun)
        if known and now / asked.at_most_ns <= winning(known, asked.alpha, 1):
            return "REFUTED", now, known
    return "UNDECIDED", None, len(found)
