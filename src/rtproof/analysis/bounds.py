# SPDX-License-Identifier: Apache-2.0
"""One-sided exact bounds for a fixed horizon: the length of the run was decided before it began.

They do not hold for a run that is watched and stopped at will; checking at each event gives 24 % false proofs at 5 %.
"""

import math
from dataclasses import dataclass

from rtproof.analysis.model import Requirement
from rtproof.analysis.special import beta_inverse, gamma_inverse


@dataclass(frozen=True)
class Rate:
    """Bounds of a rate of episodes, per nanosecond, and how long a run must be to be PROVEN, in all."""

    low: float
    high: float
    needed_ns: int
    needed_with_one_more_ns: int


def rate_of(episodes: int, measured_ns: int, requirement: Requirement) -> Rate | None:
    """The bounds that judge; None if nothing was measured. A test that may be watched as it runs can replace it."""
    if measured_ns <= 0:
        return None
    confidence, at_most = requirement.confidence, requirement.at_most_ns
    return Rate(
        mean_lower(episodes, confidence) / measured_ns,
        mean_upper(episodes, confidence) / measured_ns,
        math.ceil(mean_upper(episodes, confidence) * at_most),
        math.ceil(mean_upper(episodes + 1, confidence) * at_most),
    )


def mean_upper(events: int, confidence: float) -> float:
    """Largest mean of a Poisson count compatible with this many events (Garwood 1936): 3.00 for none at 95 %."""
    if events == 0:
        return -math.log1p(-confidence)
    return gamma_inverse(confidence, events + 1)


def mean_lower(events: int, confidence: float) -> float:
    """Smallest mean of a Poisson count compatible with this many events (Garwood 1936)."""
    return gamma_inverse(1 - confidence, events) if events else 0.0


def share_upper(events: int, n: int, confidence: float) -> float:
    """Largest probability per trial compatible with events in n independent trials (Clopper and Pearson 1934)."""
    if events >= n:
        return 1.0
    if events == 0:
        return -math.expm1(math.log1p(-confidence) / n)
    return beta_inverse(confidence, events + 1, n - events)


def share_lower(events: int, n: int, confidence: float) -> float:
    """Smallest probability per trial compatible with events in n independent trials (Clopper and Pearson 1934)."""
    return beta_inverse(1 - confidence, events, n - events + 1) if events else 0.0
