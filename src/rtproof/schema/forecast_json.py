# SPDX-License-Identifier: Apache-2.0
"""Turn a forecast into plain data for JSON (docs/json-schema.md)."""

import math
from collections.abc import Sequence
from typing import Any

from rtproof.tail import forecast_sentences
from rtproof.tail.forecast_model import FORECAST_CONFIDENCE, Forecast
from rtproof.tail.stationarity import Stationarity
from rtproof.tail.thresholds import ThresholdFit, ThresholdLadder

Json = dict[str, Any]


def forecast_dict(found: Forecast, limits_ns: Sequence[int] = ()) -> Json:
    """Return a forecast as plain data.

    limits_ns: the user's limits. For a limit that no value exceeded, the data holds a forecast of the rate above it.
    """
    rates = ((level, found.rate_above(level)) for level in limits_ns)
    return {
        "limit_ns": found.limit_ns,
        "horizon_ns": found.horizon_ns,
        "confidence_ratio": FORECAST_CONFIDENCE,
        "refusals": [{"code": each.code, "message": each.message} for each in found.refusals],
        "warnings": list(found.warnings),
        "sentences": list(forecast_sentences.forecast_lines(found)),
        "measured_ns": found.measured_ns,
        "longest_rhythm_ns": found.longest_rhythm_ns,
        "units_count": found.units,
        "unit_ns": round(found.unit_ns),
        "resolution_ns": found.step_ns,
        "rates_above": [{"limit_ns": level, "rate_high_per_s": rate} for level, rate in rates if rate is not None],
        "stationarity": _stationarity(found.stationarity) if found.stationarity else None,
        "top": {"values_count": found.top.number, "p_ratio": found.top.p} if found.top else None,
        "ladder": _ladder(found, found.ladder) if found.ladder else [],
    }


def _stationarity(found: Stationarity) -> Json:
    return {
        "blocks_count": found.blocks,
        "block_ns": found.block_ns,
        "dispersion_p_ratio": found.dispersion_p,
        "trend_p_ratio": found.trend_p,
        "level_ns": found.level_ns,
        "lowest_count": found.lowest,
        "highest_count": found.highest,
        "slow_change_p_ratio": found.slow.p if found.slow else None,
    }


def _ladder(found: Forecast, ladder: ThresholdLadder) -> list[Json]:
    return [_rung(rung, rung in ladder.used, found.unit_ns / found.horizon_ns) for rung in ladder.rungs]


def _rung(rung: ThresholdFit, used: bool, share: float) -> Json:
    return {
        "values_count": rung.k,
        "threshold_ns": rung.excesses.threshold,
        "shape": rung.fit.xi,
        "scale_ns": rung.fit.sigma,
        "anderson_darling": _finite(rung.a2),
        "p_ratio": rung.p,
        "limit_ns": _finite(rung.limit(share)),
        "used": used,
    }


def _finite(value: float) -> float | None:
    """Return the value; None for infinity, which JSON does not have."""
    return value if math.isfinite(value) else None
