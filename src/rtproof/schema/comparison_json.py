# SPDX-License-Identifier: Apache-2.0
"""Turn a Comparison into plain data for JSON.

docs/json-schema.md describes the keys. A change of a key's meaning there raises VERSION.
"""

import math
from dataclasses import asdict
from typing import Any

from rtproof.compare.comparison_model import (
    Comparison,
    ComparisonSide,
    FactDifference,
    FactVariation,
    MetricEffect,
    QuantileShift,
    SideCrossing,
    SideOrder,
)
from rtproof.compare.effects import SHARE
from rtproof.compare.run_metrics import QUANTILES, FigureReading, RunFigures

COMPARISON_SCHEMA = "rtproof.comparison"
COMPARISON_VERSION = 2
MANY = ("config ", "module ")

Json = dict[str, Any]


def comparison_dict(said: Comparison) -> Json:
    """Return the comparison as plain data. Keys name the unit of a number; a number the runs do not allow is None."""
    return {
        "schema": COMPARISON_SCHEMA,
        "version": COMPARISON_VERSION,
        "finding": said.finding.value,
        "turns": {
            "interleaved": said.turns.interleaved,
            "order": said.turns.order or None,
            "why_not": said.turns.why or None,
        },
        "sentences": [{"label": label, "text": text} for label, text in said.sentences],
        "sides": [_side(side) for side in (said.a, said.b)],
        "metrics": [_effect(effect) for effect in said.effects],
        "impossible": [asdict(one) for one in said.impossible],
        f"levels_{said.unit}": list(said.levels),
        "shift": _shift(said.shift, said.unit),
        "order": _order(said.order, said.unit),
        "differences": [_difference(one) for one in said.differences],
        "left_out": [asdict(one) for one in said.left_out],
    }


def _side(side: ComparisonSide) -> Json:
    return {
        "name": side.name,
        "runs": [run_dict(run) for run in side.runs],
        "values_count": side.counts.total + side.overflow,
        "overflow_count": side.overflow,
        "varying": [_variation(one) for one in side.varying],
    }


def run_dict(run: RunFigures) -> Json:
    """Return the figures and the facts of one run, without the kernel's options and modules: they are thousands."""
    return {
        "name": run.name,
        "run_id": run.run_id or None,
        "core": run.core,
        "started_realtime_ns": run.started_ns,
        "booted_realtime_ns": run.booted_ns,
        "span_ns": run.span_ns,
        "values_count": run.n,
        "overflow_count": run.overflow,
        "missed_count": run.missed,
        "lost_count": run.lost,
        f"max_{run.unit}": run.largest,
        "quantiles": [{"share_ratio": p, f"value_{run.unit}": _size(run.quantile(p))} for p in QUANTILES],
        f"second_maxima_{run.unit}": _size(run.second_maxima),
        "facts": {key: text for key, text in run.facts.items() if not key.startswith(MANY)},
    }


def _size(reading: FigureReading) -> float | None:
    return None if reading.ln is None else math.exp(reading.ln)


def _effect(effect: MetricEffect) -> Json:
    unit = "ratio" if effect.unit == SHARE else effect.unit
    return {
        "metric": effect.metric,
        "label": effect.label,
        f"a_{unit}": effect.a,
        f"b_{unit}": effect.b,
        f"a_runs_{unit}": list(effect.a_runs),
        f"b_runs_{unit}": list(effect.b_runs),
        "a_to_b_ratio": effect.ratio,
        "low_ratio": effect.low,
        "high_ratio": effect.high,
        "p_ratio": effect.p,
        "p_holm_ratio": effect.p_holm,
        "method": effect.method,
        "margin_ratio": effect.margin,
        "run_factor_ratio": effect.run_factor,
        "detectable_ratio": effect.detectable,
        "runs_for": [{"ratio": size, "runs_count": runs} for size, runs in effect.runs_for],
        "finding": effect.finding.value,
        "notes": list(effect.notes),
    }


def _shift(shift: QuantileShift, unit: str) -> Json:
    points = [
        {
            "share_ratio": point.share,
            f"a_{unit}": point.a,
            f"b_{unit}": point.b,
            f"difference_{unit}": point.difference,
            f"low_{unit}": point.low,
            f"high_{unit}": point.high,
        }
        for point in shift.points
    ]
    return {"points": points, "method": shift.method or None, "why_no_band": shift.why_no_band or None}


def _order(order: SideOrder, unit: str) -> Json:
    return {
        "lower": order.lower,
        f"surely_from_{unit}": order.surely[0] if order.surely else None,
        f"surely_to_{unit}": order.surely[1] if order.surely else None,
        "crossings": [_crossing(one, unit) for one in order.crossings],
        "method": order.method,
    }


def _crossing(crossing: SideCrossing, unit: str) -> Json:
    return {
        f"value_{unit}": crossing.value,
        "share_above_ratio": crossing.share,
        f"after_{unit}": crossing.between[0],
        f"before_{unit}": crossing.between[1],
        "a_lower_below": crossing.a_lower_below,
    }


def _difference(one: FactDifference) -> Json:
    return {**asdict(one), "weight": one.weight.value, "why": one.why or None, "source": one.source or None}


def _variation(one: FactVariation) -> Json:
    return {"key": one.key, "texts": [{"text": text, "runs_count": n} for text, n in one.texts]}
