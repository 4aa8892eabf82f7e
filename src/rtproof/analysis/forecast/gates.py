# SPDX-License-Identifier: Apache-2.0
"""Reasons to refuse that need no fit: what the record says of itself, how long it is and how even."""

from collections.abc import Iterator

import numpy as np

from rtproof.analysis.forecast import wording
from rtproof.analysis.forecast.model import Horizon, Refusal
from rtproof.analysis.forecast.stationarity import Stationarity
from rtproof.analysis.forecast.units import Units
from rtproof.analysis.model import Doubt, Severity, Summary
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.phrases import quantity

TAIL = 200
"""Units in the smallest tail that is fitted."""
TENTH = 10
"""A tail is at most this part of all units: further down it would be no tail."""
SHORTEST_NS = TAIL * TENTH * SECOND_NS
UNEVEN_P = 0.01
CAP = 10
"""Times the measured time: how far a forecast looks by itself."""
FAR_CAP = 100
"""... and how far it looks when asked to, with a warning."""
NOT_WHOLE = ("lost", "damage", "stalled", "totals", "clock-source")
"""Doubts that say that something of the tail is missing, or that the clock may have missed it."""
OUTSIDE = ("steal", "guest")
"""Doubts that say that something below the kernel takes part."""


def recorded(pooled: Summary, doubts: tuple[Doubt, ...]) -> Iterator[Refusal]:
    """DATA: is the tail what was asked for, and all there?"""
    found = [doubt.what for doubt in doubts if doubt.code in NOT_WHOLE or doubt.severity is Severity.INVALID]
    missed = _missed_in_tail(pooled)
    if missed:
        found.append(
            f"{quantity(missed, 'activation')} in the tail never ran, and what they would have met is not in it"
        )
    if found:
        yield wording.data(found)


def enough(units: Units) -> Iterator[Refusal]:
    """FEW: a question of time alone, so it can be answered without looking at a value."""
    have = units.count // TENTH
    if have < TAIL or units.measured_ns < SHORTEST_NS:
        lacks = max(TAIL * TENTH - units.count, 0) * units.unit_ns
        yield wording.few(have, TAIL, units.measured_ns, max(round(lacks), SHORTEST_NS - units.measured_ns))


def outside(doubts: tuple[Doubt, ...]) -> Iterator[Refusal]:
    """EXTERNAL: is there somebody below who may take any time?"""
    found = [doubt.what for doubt in doubts if doubt.code in OUTSIDE]
    if found:
        yield wording.external(found)


def near(horizon: Horizon, measured_ns: int) -> Iterator[Refusal]:
    """FAR: how far a run can see, which the user may stretch to FAR_CAP."""
    most = FAR_CAP if horizon.far else CAP
    if horizon.ns is not None and horizon.ns > most * measured_ns:
        yield wording.far(horizon.ns, measured_ns, most, -(-horizon.ns // most))


def even(found: Stationarity) -> Iterator[Refusal]:
    """DRIFT: is the run of one piece?"""
    if any(p is not None and p < UNEVEN_P for p in (found.dispersion_p, found.trend_p)):
        yield wording.drift(found)


def steady(found: Stationarity) -> Iterator[Refusal]:
    """SLOW: does anything vary of which the run shows too little?"""
    if found.slow and found.slow.p < UNEVEN_P:
        yield wording.slow(found.slow)


def told(found: Stationarity) -> Iterator[Refusal]:
    """DRIFT: is it known whether the run is of one piece? Of one refused for its shape that need not be told."""
    if not found.blocks or not found.slow:
        yield wording.untold(found)


def _missed_in_tail(pooled: Summary) -> int:
    """Activations that never ran, in seconds of the smallest tail or in seconds that have no maximum at all."""
    seconds = pooled.seconds
    ran = seconds.obtained > 0
    if not seconds.missed.any():
        return 0
    largest = np.sort(seconds.max[ran])
    level = int(largest[-min(TAIL, largest.size)]) if largest.size else 0
    return int(seconds.missed[~ran | (seconds.max >= level)].sum())
