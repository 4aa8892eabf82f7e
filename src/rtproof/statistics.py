# SPDX-License-Identifier: Apache-2.0
"""Statistics that need no record: exact bounds, the sequential test, and tests whether two means differ.

All functions take plain numbers and return plain numbers. They know nothing of latencies, limits or runs.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Tails = tuple[float, float]
"""The probability below a value and above it. The smaller one of the two has its full relative precision."""

_TINY = 1e-300
_CLOSE = 1e-16
_STEPS = 200
_SMALL = 16
"""From this argument on, six terms of Stirling's series are exact to the last bit."""
_LEAP = 5
"""If a step of Newton's method in ln x is longer than this, bisection is tried instead."""
_HALF = 0.5


def stirling_error(x: float) -> float:
    """ln Gamma(x) minus Stirling's (x - 1/2) ln x - x + ln(2 pi) / 2, for x > 0."""
    if x < _SMALL:
        return math.lgamma(x) - (x - 0.5) * math.log(x) + x - 0.5 * math.log(2 * math.pi)
    y = 1 / (x * x)
    return (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * (1 / 1188 - y * 691 / 360360))))) / x


def deviance(x: float, mean: float) -> float:
    """x ln(x / mean) + mean - x, without cancellation if x and mean are close."""
    if abs(x - mean) > 0.1 * (x + mean):
        return x * math.log(x / mean) + mean - x
    v = (x - mean) / (x + mean)
    total, power = (x - mean) * v, 2 * x * v
    for k in itertools.count(3, 2):
        power *= v * v
        if abs(power) <= _CLOSE * abs(total):
            return total
        total += power / k
    raise AssertionError


def gamma_tails(a: float, x: float) -> Tails:
    """P(a, x) and Q(a, x), the regularised incomplete gamma functions, for a > 0."""
    if x <= 0:
        return 0.0, 1.0
    if x < a + 1:
        lower = _gamma_front(a, x) * gamma_series(a, x)
        return lower, 1 - lower
    upper = _gamma_front(a, x) / gamma_fraction(a, x)
    return 1 - upper, upper


def beta_tails(x: float, a: float, b: float) -> Tails:
    """I_x(a, b) and I_(1-x)(b, a), the regularised incomplete beta functions, for a, b > 0."""
    if x <= 0 or x >= 1:
        return (0.0, 1.0) if x <= 0 else (1.0, 0.0)
    if x * (a + b + 2) < a + 1:
        lower = beta_front(x, 1 - x, a, b) / _beta_fraction(x, 1 - x, a, b)
        return lower, 1 - lower
    upper = beta_front(x, 1 - x, a, b) / _beta_fraction(1 - x, x, b, a)
    return 1 - upper, upper


def gamma_inverse(p: float, a: float) -> float:
    """The x with P(a, x) = p, for 0 < p < 1."""
    return _solve(lambda x: gamma_tails(a, x), lambda x: _gamma_front(a, x), p, a)


def beta_inverse(p: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = p, for 0 < p < 1."""
    return _solve(lambda x: beta_tails(x, a, b), lambda x: beta_front(x, 1 - x, a, b) / (1 - x), p, a / (a + b), 1.0)


def binomial_probability(k: int, n: int, p: float) -> float:
    """P(X = k) for X successes in n trials, 0 < p < 1."""
    if k in (0, n):
        return math.exp(n * (math.log(p) if k else math.log1p(-p)))
    return beta_front(p, 1 - p, k, n - k) * (n / k / (n - k))


def beta_front(x: float, rest: float, a: float, b: float) -> float:
    """x^a rest^b / B(a, b), where rest = 1 - x."""
    n = a + b
    error = stirling_error(n) - stirling_error(a) - stirling_error(b)
    return math.sqrt(a / n * b / (2 * math.pi)) * math.exp(error - deviance(a, n * x) - deviance(b, n * rest))


def log_gamma_front(a: float, x: float) -> float:
    """ln of x^a e^-x / Gamma(a), for a, x > 0."""
    return 0.5 * math.log(a / (2 * math.pi)) - deviance(a, x) - stirling_error(a)


def _gamma_front(a: float, x: float) -> float:
    return math.sqrt(a / (2 * math.pi)) * math.exp(-deviance(a, x) - stirling_error(a))


def gamma_fraction(a: float, x: float) -> float:
    """x^a e^-x / upper Gamma(a, x) by a continued fraction, for x > 0, fast for x >= a + 1. a may be 0 or less."""
    return _fraction(x + 1 - a, ((-k * (k - a), x + 1 - a + 2 * k) for k in itertools.count(1)))


def gamma_series(a: float, x: float) -> float:
    """The lower incomplete gamma(a, x) divided by x^a e^-x, which is 1F1(1; a + 1; x) / a. For a > 0 and x < a + 1."""
    total = term = 1 / a
    for k in itertools.count(1):
        term *= x / (a + k)
        total += term
        if term < total * _CLOSE:
            break
    return total


def _beta_fraction(x: float, rest: float, a: float, b: float) -> float:
    """The even part of the continued fraction (Didonato and Morris 1992), which has no 1 - x and so loses no digits."""
    excess = a * rest - b * x + 1

    def terms() -> Iterator[tuple[float, float]]:
        for m in itertools.count(1):
            c = a + 2 * m
            numerator = (a + m - 1) / (c - 1) * ((a + b + m - 1) / (c - 1)) * m * (b - m) * x * x
            yield numerator, m + m * (b - m) / (c - 1) * x + (a + m) / (c + 1) * (excess + m * (1 + rest))

    return _fraction(a / (a + 1) * excess, terms())


def _fraction(b0: float, terms: Iterator[tuple[float, float]]) -> float:
    """b0 + a1 / (b1 + a2 / (b2 + ...)) by the modified method of Lentz."""
    value = c = b0 or _TINY
    d = 0.0
    for a, b in terms:
        d = 1 / ((b + a * d) or _TINY)
        c = (b + a / c) or _TINY
        value *= c * d
        if abs(c * d - 1) < _CLOSE * 4:
            break
    return value


def _solve(
    tails: Callable[[float], Tails], slope: Callable[[float], float], p: float, start: float, end: float = math.inf
) -> float:
    """The x with tails(x)[0] = p by Newton's method in ln x inside a bracket. slope: of tails(x)[0] to ln x."""
    low, high, x = 0.0, end, start
    for _ in range(_STEPS):
        lower, upper = tails(x)
        excess = lower - p if p <= _HALF else (1 - p) - upper
        low, high = (x, high) if excess < 0 else (low, x)
        step = excess / max(slope(x), _TINY)
        better = x * math.exp(-step) if abs(step) < _LEAP else 0.0
        if not low < better < high:
            better = (math.sqrt(low * high) or high / 32) if high < math.inf else 2 * x
        if abs(better - x) <= 4e-16 * x:
            return better
        x = better
    return x


# One-sided exact bounds for a run whose length was decided before it began.
#
# Do not use these bounds for a run that is watched and stopped at will. Looked at all the time, they give 28 % false
# proofs at a level of 5 %. The sequential test below is valid for such a run.


def mean_upper(events: int, confidence: float) -> float:
    """The largest mean of a Poisson count that fits this many events (Garwood 1936): 3.00 of none at 95 %."""
    if events == 0:
        return -math.log1p(-confidence)
    return gamma_inverse(confidence, events + 1)


def share_upper(events: int, n: int, confidence: float) -> float:
    """The largest probability per trial that fits ``events`` in n independent trials (Clopper and Pearson 1934)."""
    if events >= n:
        return 1.0
    if events == 0:
        return -math.expm1(math.log1p(-confidence) / n)
    return beta_inverse(confidence, events + 1, n - events)


def share_lower(events: int, n: int, confidence: float) -> float:
    """The smallest probability per trial that fits ``events`` in n independent trials (Clopper and Pearson 1934)."""
    return beta_inverse(1 - confidence, events, n - events + 1) if events else 0.0


def student_two_sided(t: float, freedom: float) -> float:
    """P(|T| >= |t|) of Student's t distribution. freedom: its degrees of freedom."""
    if math.isinf(t):
        return 0.0
    square = t * t
    if square < freedom:
        return beta_tails(square / (freedom + square), 0.5, freedom / 2)[1]
    return beta_tails(freedom / (freedom + square), freedom / 2, 0.5)[0]


@lru_cache(maxsize=4096)
def student_quantile(p: float, freedom: float) -> float:
    """The t with P(T <= t) = p of Student's t distribution, for 0 < p < 1. freedom: its degrees of freedom."""
    if p == 0.5:
        return 0.0
    tail = 2 * min(p, 1 - p)
    # The beta function is inverted from the side on which its argument has all its digits.
    x = beta_inverse(tail, freedom / 2, 0.5)
    rest = beta_inverse(1 - tail, 0.5, freedom / 2) if x > 0.5 else 1 - x
    t = math.sqrt(freedom * rest / x)
    return t if p > 0.5 else -t


EXACT = 7
"""Up to this many numbers on each side, all splits of the numbers are counted: 3,432 splits at most."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """The difference of two means, a minus b, and the ends of its interval.

    The ends are infinite if the numbers are too few for an interval.
    """

    difference: float
    low: float
    high: float


def is_exact(n: int, m: int) -> bool:
    """Whether two sides of n and m numbers are compared by all splits of their numbers."""
    return max(n, m) <= EXACT


def permutation_p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p of a difference of means: of few numbers by all splits, of more by Welch's t test."""
    if not is_exact(len(a), len(b)):
        return welch_p_value(a, b)
    steps: Floats = permuted_means(len(a), len(b)) @ np.array([*a, *b], float)
    # Sums that differ only by rounding are equal.
    rounding = 1e-12 * max(1.0, *(abs(x) for x in (*a, *b)))
    tails = [1 + int(np.count_nonzero(side <= rounding)) for side in (steps, -steps)]
    return min(1.0, 2 * min(tails) / (steps.size + 1))


def difference_interval(a: Sequence[float], b: Sequence[float], alpha: float) -> Interval:
    """The difference of the means and its interval by Welch's t, infinite if a side has one number only."""
    error, freedom = _welch(a, b)
    half = student_quantile(1 - alpha / 2, freedom) * error if freedom else math.inf
    return Interval(_difference(a, b), _difference(a, b) - half, _difference(a, b) + half)


def welch_p_value(a: Sequence[float], b: Sequence[float]) -> float:
    """The two-sided p-value of Welch's t test. It is 1 if the means are equal, or if a side has one number only."""
    error, freedom = _welch(a, b)
    difference = _difference(a, b)
    if not freedom or difference == 0:
        return 1.0
    return student_two_sided(difference / error if error else math.inf, freedom)


def rejected_splits(n: int, m: int, alpha: float) -> int:
    """The largest number of splits, the observed one included, that may be as far to one side for a p of alpha."""
    return math.floor(math.comb(n + m, n) * alpha / 2 + 1e-9)


@lru_cache(maxsize=64)
def permuted_means(n: int, m: int) -> Floats:
    """One row for each split of n + m numbers except the observed one.

    A row times the numbers of both sides is a difference: the mean of the numbers that leave side a, minus the mean of
    those that replace them. A split lies at least as far up as the observed one if this difference is at most 0. It
    lies at least as far down if the difference is at least 0.
    """
    rows = []
    for side in map(set, combinations(range(n + m), n)):
        gone, come = set(range(n)) - side, side - set(range(n))
        if gone:
            rows.append([(i in gone) / len(gone) - (i in come) / len(gone) for i in range(n + m)])
    return np.array(rows, float).reshape(-1, n + m)


def _difference(a: Sequence[float], b: Sequence[float]) -> float:
    return math.fsum(a) / len(a) - math.fsum(b) / len(b)


def _welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The standard error of the difference and its degrees of freedom; inf and 0 if a side has one number only."""
    if min(len(a), len(b)) < 2:
        return math.inf, 0.0
    parts: list[float] = [float(np.var(each, ddof=1)) / len(each) for each in (a, b)]
    if not sum(parts):
        return 0.0, float(len(a) + len(b) - 2)
    each = parts[0] ** 2 / (len(a) - 1) + parts[1] ** 2 / (len(b) - 1)
    return math.sqrt(sum(parts)), float(sum(parts) ** 2 / each)


def holm_adjusted(p_values: Sequence[float]) -> list[float]:
    """The p-values adjusted by Holm's method: those below alpha reject any true hypothesis with at most alpha."""
    order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    found, largest = [0.0] * len(p_values), 0.0
    for done, at in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - done) * p_values[at]))
        found[at] = largest
    return found


# The sequential test of the claim "episodes come at most at the rate r0". You may look at its result at any time, and
# stop.
#
# The test bets against both hypotheses (Ville 1939; Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021). With N
# episodes in a time T and tau = r0 T, it mixes the bets on all rates b r0:
#
#     E+ = mean of b^N e^(tau (1 - b)) over b in (0, 1) with density a b^(a-1)   = a/(N+a) 1F1(1; N+a+1; tau)
#     E- = the same over b > 1 with density a b^(-a-1)                           = a e^tau tau^(a-N) Gamma(N-a, tau)
#
# If the rate is r0 or more, the probability that E+ ever reaches 1/alpha is at most alpha. So E+ >= 1/alpha means
# PROVEN. If the rate is r0 or less, the same holds for E-. So E- >= 1/alpha means REFUTED. E+ grows between episodes
# and falls at each episode, so it peaks just before an episode or at the end. E- falls between episodes and grows at
# each, so it peaks at an episode.
#
# The functions compute logarithms. Multiplied out, N = 1e5 at tau = 1e3 gives ln E+ = +360,821 by underflow instead of
# -12.7. That would be a false proof.


MIXING = 0.3
"""The exponent a of both mixtures. 0.1 would prove sooner without episodes (tau of 3.16, not 3.48), later with one."""


FARTHEST = 1e6
"""Counts and times T beyond it are divided alike: so much evidence is enough, and more would take hours to compute."""


def _within_reach(episodes: int, tau: float) -> tuple[int, float]:
    share = max(episodes, tau) / FARTHEST
    return (int(episodes / share), tau / share) if share > 1 else (episodes, tau)


def log_e_proven(episodes: int, tau: float) -> float:
    """ln E+ for tau = r0 T >= 0. The relative error of E+ is at most 1e-9 for counts and tau up to 1e6."""
    episodes, tau = _within_reach(episodes, tau)
    shape = episodes + MIXING
    if tau <= episodes + 1:
        return math.log(MIXING * gamma_series(shape, max(tau, 0.0)))
    return math.log(MIXING * gamma_tails(shape, tau)[0]) - log_gamma_front(shape, tau)


def log_e_refuted(episodes: int, tau: float) -> float:
    """ln E- for tau = r0 T >= 0, with the errors of ``log_e_proven``. It is infinite if an episode came at tau = 0."""
    if tau <= 0:
        return math.inf if episodes else 0.0
    episodes, tau = _within_reach(episodes, tau)
    shape = episodes - MIXING
    if tau >= max(shape + 1, 1):
        return math.log(MIXING / gamma_fraction(shape, tau))
    if not episodes:
        # Gamma(-a, x) = (x^-a e^-x - Gamma(1 - a, x)) / a loses no digits for x < 1.
        upper = math.gamma(1 - MIXING) * gamma_tails(1 - MIXING, tau)[1]
        return math.log1p(-math.exp(tau) * tau**MIXING * upper)
    return math.log(MIXING * gamma_tails(shape, tau)[1]) - log_gamma_front(shape, tau)


@lru_cache(maxsize=4096)
def tau_needed(episodes: int, alpha: float) -> float:
    """The smallest r0 T at which this many episodes prove the claim."""
    return _crossing(lambda tau: log_e_proven(episodes, tau) + math.log(alpha))


@lru_cache(maxsize=4096)
def tau_refuted(episodes: int, alpha: float) -> float:
    """The largest r0 T at which this many episodes refute the claim; 0 without episodes."""
    return _crossing(lambda tau: -math.log(alpha) - log_e_refuted(episodes, tau)) if episodes else 0.0


def rate_upper(episodes: int, measured_ns: int, alpha: float) -> float:
    """The upper confidence limit for the rate per nanosecond, valid at any time; infinite if nothing was measured."""
    return tau_needed(episodes, alpha) / measured_ns if measured_ns > 0 else math.inf


def rate_lower(episodes: int, measured_ns: int, alpha: float) -> float:
    """The lower confidence limit for the rate per nanosecond, valid at any time."""
    return tau_refuted(episodes, alpha) / measured_ns if measured_ns > 0 else 0.0


def needed_ns(episodes: int, at_most_ns: int, alpha: float) -> int:
    """The measured time, in all, that proves "at most once per at_most_ns" with this many episodes."""
    return math.ceil(tau_needed(episodes, alpha) * at_most_ns)


def refuted_until_ns(episodes: int, at_most_ns: int, alpha: float) -> int:
    """The latest begin of the last episode with which this many refute "at most once per at_most_ns"."""
    return math.floor(tau_refuted(episodes, alpha) * at_most_ns)


def chance_of_none(episodes: int, measured_ns: int, more_ns: int) -> float:
    """The probability of no episode in the next ``more_ns``, if this many came in ``measured_ns`` > 0.

    The rate is taken as Gamma distributed with shape N + 1/2 and time T, as Jeffreys' prior gives it. It is a forecast,
    not a bound.
    """
    return math.exp(-(episodes + 0.5) * math.log1p(more_ns / measured_ns))


def chance_of_one(episodes: int, measured_ns: int, within_ns: int, more_ns: int) -> float:
    """The chance of exactly one episode in ``more_ns``, in their first ``within_ns``, as in ``chance_of_none``."""
    shape = episodes + 0.5
    return shape * within_ns / measured_ns * math.exp(-(shape + 1) * math.log1p(more_ns / measured_ns))


def _crossing(rising: Callable[[float], float]) -> float:
    """The tau > 0 at which a rising function passes zero, by bisection in ln tau to the last digits."""
    low = high = 1.0
    while rising(high) < 0:
        low, high = high, 2 * high
    while rising(low) >= 0:
        low, high = low / 2, low
    while (middle := math.sqrt(low * high)) not in (low, high) and high - low > 1e-15 * high:
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return high
