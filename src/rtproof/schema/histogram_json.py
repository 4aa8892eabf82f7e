# SPDX-License-Identifier: Apache-2.0
"""Turn the result of a histogram without order of time into plain data for JSON (docs/json-schema.md)."""

from rtproof.judge.histogram_only import HistogramOnly, JudgedHistogram, impossible_figures
from rtproof.summary.summary_model import Quantile

HISTOGRAM_SCHEMA = "rtproof.histogram"
HISTOGRAM_VERSION = 2


def histogram_dict(said: HistogramOnly) -> dict[str, object]:
    """Return the result as plain data. Keys name the unit of their number, as in the JSON of a run."""
    imported = said.imported
    return {
        "schema": HISTOGRAM_SCHEMA,
        "version": HISTOGRAM_VERSION,
        "tool": imported.tool,
        "title": imported.title,
        "state": said.state.value,
        "exit_code": said.state.exit_code,
        "limits": [_judged(one) for one in said.judged],
        "samples_count": imported.count,
        "min_ns": imported.min_ns,
        "mean_ns": imported.mean_ns,
        "max_ns": imported.max_ns,
        "resolution_ns": imported.resolution_ns,
        "beyond_scale_count": imported.overflow,
        "duration_ns": imported.duration_ns,
        "period_ns": imported.shortest_period_ns,
        "quantiles": [_quantile(each, said.beyond) for each in said.quantiles],
        "impossible": [{"statement": what, "why": why} for what, why in impossible_figures(said)],
        "doubts": list(said.doubts),
        "faults": list(imported.faults),
        "notes": list(imported.notes),
    }


def _judged(one: JudgedHistogram) -> dict[str, object]:
    asked, above = one.requirement, one.above
    return {
        "state": one.state.value,
        "reason": one.reason,
        "requirement": {
            "limit_ns": asked.limit_ns,
            "at_most_ns": asked.at_most_ns,
            "confidence_ratio": asked.confidence,
            "gap_ns": asked.gap_ns,
            "longest_ns": asked.longest_ns,
            "bunches_count": asked.bunches,
        },
        "above_least_count": above.least if above else None,
        "above_most_count": above.most if above else None,
        "share_low_ratio": above.share_low if above else None,
        "share_high_ratio": above.share_high if above else None,
    }


def _quantile(each: Quantile, beyond: float | None) -> dict[str, object]:
    return {
        "share_ratio": each.p,
        "values_count": each.n,
        "value_ns": each.value,
        "low_ns": each.low,
        "high_ns": each.high,
        "resolution_ns": each.resolution,
        "beyond_scale": beyond is not None and each.p > beyond,
        "confidence_ratio": each.confidence,
    }
