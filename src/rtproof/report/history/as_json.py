# SPDX-License-Identifier: Apache-2.0
"""The JSON form of a history (docs/history.md)."""

import json
import math

from rtproof.analysis.history.model import FEWEST, History, Metric, Place, Sequence
from rtproof.analysis.history.weekly import Weekly
from rtproof.report.comparison.told import Told

SCHEMA = "rtproof.history"
VERSION = 1


def encode(found: History, told: Told) -> bytes:
    """One object, UTF-8. Runs count from 0 within their sequence."""
    document = {
        "schema": SCHEMA,
        "version": VERSION,
        "command": told.command,
        "fewest_runs": FEWEST,
        "sequences": [_sequence(one) for one in found.sequences],
        "left_out": [{"run": one.run, "why": one.why} for one in found.left_out],
        "not_read": list(told.complaints),
    }
    return json.dumps(document, indent=2, allow_nan=False).encode() + b"\n"


def _sequence(sequence: Sequence) -> dict[str, object]:
    return {
        "name": sequence.name,
        "judged": sequence.judged,
        "runs": [
            {"name": run.name, "started_ns": run.started_ns, "values_count": run.n, "core": run.core}
            for run in sequence.runs
        ],
        "metrics": [_metric(metric) for metric in sequence.metrics],
        "changes": [_place(place) for place in sequence.places],
    }


def _metric(metric: Metric) -> dict[str, object]:
    return {
        "key": metric.key,
        "label": metric.label,
        "unit": metric.unit,
        "values": [None if ln is None else math.exp(ln) for ln in metric.values],
        "run_factor_ratio": metric.run_factor,
        "visible_ratio": metric.visible,
        "why_not": metric.why or None,
        "correlation_ratio": metric.correlation,
        "weekly": _weekly(metric.weekly),
    }


def _weekly(found: Weekly | None) -> dict[str, object] | None:
    """Monday first, each day against the mean of the week."""
    if found is None:
        return None
    return {"p": found.p, "days": [math.exp(one) for one in found.by_day]}


def _place(place: Place) -> dict[str, object]:
    metrics = [
        {
            "metric": found.metric,
            "run": found.at,
            "first_run": found.runs[0],
            "end_run": found.runs[1],
            "before": found.before,
            "after": found.after,
            "ratio": found.ratio,
            "p": found.p,
        }
        for found in place.found
    ]
    facts = [
        {
            "fact": fact.key,
            "before": fact.before,
            "after": fact.after,
            "run": fact.at,
            "on_both_sides": fact.steady,
            "why": fact.why or None,
            "source": fact.source or None,
        }
        for fact in place.facts
    ]
    return {"run": place.at, "metrics": metrics, "facts": facts}
