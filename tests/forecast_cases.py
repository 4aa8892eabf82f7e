# SPDX-License-Identifier: Apache-2.0
"""Runs long enough for a forecast: one activation per second, whose lateness is what that second's largest would be."""

from dataclasses import replace
from typing import Any

import numpy as np
from analysis_records import SECOND, SERIES, block, record
from simulated_seconds import second_maxima

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Int64Array, Record
from rtproof.record.requirement import Requirement
from rtproof.simulation.events import KnownTail
from rtproof.tail.forecast import Forecast

HOUR = 3_600
HOURS = 8
SLOW = replace(SERIES, period_ns=SECOND)


def smooth(hours: float = HOURS, seed: int = 1, tail: KnownTail | None = None, rate_per_s: float = 0.3) -> Int64Array:
    """One-second maxima with a smooth tail that comes singly."""
    return second_maxima("poisson", rate_per_s, int(hours * HOUR), tail or KnownTail(), np.random.default_rng(seed))


def long_run(largest: Int64Array, **parts: Any) -> Record:
    """A record of these one-second maxima."""
    made = record([block(largest.tolist(), series=SLOW)], (SLOW,))
    assert made.end is not None
    return replace(made, **{"end": replace(made.end, time_ns=largest.size * SECOND), **parts})


def analysed(largest: Int64Array, limit_ns: int | None = None, horizon: int | None = None, **parts: Any) -> Analysis:
    """All that is said of it."""
    return analyse(
        long_run(largest, **parts), Requirement(limit_ns, 3_600_000_000_000) if limit_ns else None, 1, horizon=horizon
    )


def forecast_of(largest: Int64Array, horizon: int | None = None, **parts: Any) -> Forecast:
    """What is forecast from it."""
    found = analysed(largest, None, horizon, **parts).forecast
    assert found is not None
    return found


def codes(found: Forecast) -> list[str]:
    """Of the refusals, in their order."""
    return [each.code for each in found.refusals]


def message(found: Forecast, code: str) -> str:
    """Of one refusal, which must be there."""
    (told,) = (each.message for each in found.refusals if each.code == code)
    return told
