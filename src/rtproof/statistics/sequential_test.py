# SPDX-License-Identifier: Apache-2.0
"""A verdict that may be looked at, and stopped at, whenever one likes: "episodes come at most at the rate r0".

Both hypotheses are bet against (Ville 1939; Robbins 1970; Howard, Ramdas, McAuliffe and Sekhon 2021). With N episodes
in a time T and tau = r0 T, the bets on all rates b r0 are mixed:

    E+ = mean of b^N e^(tau (1 - b)) over b in (0, 1) with density a b^(a-1)   = a/(N+a) 1F1(1; N+a+1; tau)
    E- = the same over b > 1 with density a b^(-a-1)                           = a e^tau tau^(a-N) Gamma(N-a, tau)

If the rate is r0 or more, E+ ever reaches 1/alpha with a probability of at most alpha: then "less often" is PROVEN.
If it is r0 or less, the same holds for E-: REFUTED. E+ grows between episodes and falls at each, E- the other way
round; so E+ peaks just before an episode or at the end, and E- at an episode. Everything is in logs: multiplied out,
N = 1e5 at tau = 1e3 gives ln E+ = +360,821 by underflow where -12.7 is right, which would be a proof.
"""

import math
from collections.abc import Callable
from functools import lru_cache

from rtproof.statistics.exact_bounds import gamma_fraction, gamma_series, gamma_tails, log_gamma_front

MIXING = 0.3
"""Exponent a of both mixtures: 0.1 proves sooner without episodes (3.16 for 3.48), later with one (7.58 for 6.80)."""


def log_e_proven(episodes: int, tau: float) -> float:
    """ln E+ for tau = r0 T >= 0; relative error of E+ at most 1e-9 for counts and tau up to 1e6."""
    shape = episodes + MIXING
    if tau <= episodes + 1:
        return math.log(MIXING * gamma_series(shape, max(tau, 0.0)))
    return math.log(MIXING * gamma_tails(shape, tau)[0]) - log_gamma_front(shape, tau)


def log_e_refuted(episodes: int, tau: float) -> float:
    """ln E- for tau = r0 T >= 0; infinite where an episode came at tau = 0. Errors as of log_e_proven."""
    if tau <= 0:
        return math.inf if episodes else 0.0
    shape = episodes - MIXING
    if tau >= max(shape + 1, 1):
        return math.log(MIXING / gamma_fraction(shape, tau))
    if not episodes:
        return _log_e_refuted_without(tau)
    return math.log(MIXING * gamma_tails(shape, tau)[1]) - log_gamma_front(shape, tau)


def _log_e_refuted_without(tau: float) -> float:
    """By Gamma(-a, x) = (x^-a e^-x - Gamma(1 - a, x)) / a, which loses no digits for x < 1."""
    upper = math.gamma(1 - MIXING) * gamma_tails(1 - MIXING, tau)[1]
    return math.log1p(-math.exp(tau) * tau**MIXING * upper)


@lru_cache(maxsize=4096)
def tau_needed(episodes: int, alpha: float) -> float:
    """The r0 T from which on so many episodes prove the claim."""
    return _crossing(lambda tau: log_e_proven(episodes, tau) + math.log(alpha))


@lru_cache(maxsize=4096)
def tau_refuted(episodes: int, alpha: float) -> float:
    """The r0 T up to which so many episodes refute the claim; 0 if there are none."""
    return _crossing(lambda tau: -math.log(alpha) - log_e_refuted(episodes, tau)) if episodes else 0.0


def rate_upper(episodes: int, measured_ns: int, alpha: float) -> float:
    """Upper confidence limit for the rate per nanosecond, valid whenever one looks; infinite if T is 0."""
    return tau_needed(episodes, alpha) / measured_ns if measured_ns > 0 else math.inf


def rate_lower(episodes: int, measured_ns: int, alpha: float) -> float:
    """Lower confidence limit for the rate per nanosecond, valid whenever one looks."""
    return tau_refuted(episodes, alpha) / measured_ns if measured_ns > 0 else 0.0


def needed_ns(episodes: int, at_most_ns: int, alpha: float) -> int:
    """The measured time, in all, that proves "at most once per at_most_ns" with so many episodes."""
    return math.ceil(tau_needed(episodes, alpha) * at_most_ns)


def refuted_until_ns(episodes: int, at_most_ns: int, alpha: float) -> int:
    """So many episodes refute "at most once per at_most_ns" if the last of them begins no later than this."""
    return math.floor(tau_refuted(episodes, alpha) * at_most_ns)


def chance_of_none(episodes: int, measured_ns: int, more_ns: int) -> float:
    """Of no episode in the time more_ns to come, if so many came in measured_ns > 0.

    The rate is taken for Gamma distributed with N + 1/2 and T, as of Jeffreys' prior: a forecast, not a bound.
    """
    return math.exp(-(episodes + 0.5) * math.log1p(more_ns / measured_ns))


def chance_of_one(episodes: int, measured_ns: int, within_ns: int, more_ns: int) -> float:
    """Of exactly one episode in the time more_ns to come, within its first part within_ns."""
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
