# SPDX-License-Identifier: Apache-2.0
"""The verdict once more, slowly and from its description alone: nothing of the program's own test is used.

Late activations become episodes one by one; both mixtures are integrated over the rates; quiet time is added up
stretch by stretch, and every stretch is looked at.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

SECOND_NS = 1_000_000_000
TICK_NS = SECOND_NS // 4
MIXING = 0.3
LOG_RATES = np.linspace(-80.0, 8.0, 12_001)
"""ln of x, where the bets are on e^x and e^-x times the claimed rate: so both ends vanish."""
CRITICAL = {
    3: (2.72, 1.361),
    4: (2.85, 1.278),
    5: (2.88, 1.233),
    6: (2.92, 1.198),
    8: (2.96, 1.129),
    10: (2.91, 1.070),
    15: (2.87, 0.985),
    20: (2.83, 0.932),
    30: (2.71, 0.875),
    60: (2.53, 0.790),
    100: (2.42, 0.735),
    400: (2.21, 0.656),
}

Span = tuple[int, int]


@dataclass(frozen=True)
class Asked:
    """One limit with its share of the probability of error. longest_ns: of an episode; bunches: their mean size."""

    limit_ns: int
    at_most_ns: int
    gap_ns: int
    longest_ns: int
    bunches: float
    alpha: float


@dataclass(frozen=True)
class Found:
    """State, when it was reached and with how many episodes; why: rate or duration. proven_ns: of an earlier proof."""

    state: str
    at_ns: float | None
    episodes: int
    why: str = ""
    proven_ns: float | None = None


def late_spans(late: Iterable[tuple[int, int]], limit_ns: int) -> list[Span]:
    """First and last late due time of each activation that waits longer than the limit, from due time and latency."""
    return sorted((due, due + value - limit_ns) for due, value in late if value > limit_ns)


def episodes(spans: Sequence[Span], gap_ns: int) -> list[list[Span]]:
    """The spans of each."""
    found: list[list[Span]] = []
    for span in spans:
        if found and span[0] - max(end for _, end in found[-1]) <= gap_ns:
            found[-1].append(span)
        else:
            found.append([span])
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
    while high - low > 1e-11 * high:
        tau = math.sqrt(low * high)
        won = log_bet(count, tau, side) >= -math.log(alpha)
        low, high = (low, tau) if won == (side < 0) else (tau, high)
    return high if side < 0 else low


def bunched(starts: Sequence[float], now: float) -> bool:
    """Whether the spacings of at least three episodes are too uneven."""
    n = len(starts)
    if n < 3:
        return False
    edges = [0.0, *starts, now]
    shares = [(after - before) / now for before, after in pairwise(edges)]
    sizes = sorted(CRITICAL)
    low = max(size for size in sizes if size <= n)
    high = min(size for size in sizes if size >= n)
    part = (math.log(n) - math.log(low)) / (math.log(high) - math.log(low)) if high > low else 0.0
    limits = [a + part * (b - a) for a, b in zip(CRITICAL[low], CRITICAL[high], strict=True)]
    moran = (n + 1) * sum(share**2 for share in shares)
    darling = -sum(math.log((n + 1) * max(share, 1e-9)) for share in shares) / (n + 1)
    return moran > limits[0] or darling > limits[1]


def decided(spans: Sequence[Span], measured_ns: int, asked: Asked, *, whole: bool) -> Found:
    """The verdict. Times count from the first due time."""
    groups = episodes(spans, asked.gap_ns)
    ends: list[tuple[float, str, int]] = []
    for number, group in enumerate(groups, 1):
        begun = group[0][0]
        if begun == 0 or begun / asked.at_most_ns <= winning(number, asked.alpha, 1):
            ends.append((begun, "rate", number))
        for at, (first, _) in enumerate(group):
            if max(end for _, end in group[: at + 1]) - begun > asked.longest_ns:
                begun_by = sum(other[0][0] <= max(first, begun + asked.longest_ns) for other in groups)
                ends.append((max(first, begun + asked.longest_ns), "duration", begun_by))
                break
    proof = proven(groups, measured_ns, asked) if whole else None
    if ends:
        at_ns, why, count = min(ends, key=lambda end: (end[0], end[1] != "rate"))
        return Found("REFUTED", at_ns, count, why, proof[0] if proof and proof[0] < at_ns else None)
    if proof:
        return Found("PROVEN", *proof, proven_ns=proof[0])
    return Found("UNDECIDED", None, len(groups))


def proven(groups: Sequence[Sequence[Span]], measured_ns: int, asked: Asked) -> tuple[float, int] | None:
    """When and with how many episodes: stretch of quiet time by stretch."""
    begin = live = 0
    starts: list[float] = []
    for group in [*groups, None]:
        end = min(group[0][0], measured_ns) if group else measured_ns
        length = max(end - begin, 0)
        needed = winning(len(starts), asked.alpha, -1) * asked.at_most_ns * asked.bunches
        if live + length >= needed:
            for look in (needed, live + length):
                if look >= live and not bunched(starts, look):
                    return begin + look - live, len(starts)
        live += length
        starts.append(live)
        if group:
            begin = min(max(last for _, last in group) + asked.gap_ns, measured_ns)
    return None
