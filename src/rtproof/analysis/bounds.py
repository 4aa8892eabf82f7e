# SPDX-License-Identifier: Apache-2.0
"""One-sided exact bounds for a fixed horizon: the length of the run was decided before it began.

They do not hold for a run that is watched and stopped at will: looked at all the time they give 28 % false proofs at
5 % (analysis.sequential has those that do).
"""

import math

from rtproof.analysis.special import beta_inverse, gamma_inverse


def mean_upper(events: int, confidence: float) -> float:
    """Largest mean of a Poisson count compatible with this many events (Garwood 1936): 3.00 for none at 95 %."""
    if events == 0:
        return -math.log1p(-confidence)
    return gamma_inverse(confidence, events + 1)


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
