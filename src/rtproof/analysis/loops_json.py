# SPDX-License-Identifier: Apache-2.0
"""Loops as plain data for JSON: cycles of a periodic one, loops of an application, and the moments of any values."""

from dataclasses import asdict
from typing import Any

from rtproof.analysis.app import App, has_samples, is_app, of_threads, together
from rtproof.analysis.cycles import CONFIDENCE, most_out_of_band
from rtproof.analysis.model import Cycles, Moments
from rtproof.record import Record

Json = dict[str, Any]


def moments_dict(moments: Moments, unit: str) -> Json:
    """Of no value all are unknown."""
    return {
        "values_count": moments.count,
        f"min_{unit}": moments.min if moments.count else None,
        f"mean_{unit}": moments.mean,
        f"max_{unit}": moments.max if moments.count else None,
        f"deviation_{unit}": moments.deviation,
    }


def app_dict(record: Record) -> Json | None:
    """Of a periodic application, all loops together and those of each thread; None of any other and without samples."""
    if not is_app(record) or not has_samples(record):
        return None
    threads = of_threads(record)
    each = [{"thread": thread, **_loops(app)} for thread, app in threads.items()]
    return {**_loops(together(threads.values())), "threads": each}


def _loops(app: App) -> Json:
    parts = {"work": app.work, "loop": app.loop, "error": app.error, "slack": app.slack}
    return {
        **{name: moments_dict(moments, "ns") for name, moments in parts.items()},
        "no_sleep_count": app.no_sleep,
        "loops_sum_ns": app.loop.sum,
        "elapsed_ns": app.elapsed_ns,
        "holes_count": app.apart,
    }


def _band_ratio(cycles: Cycles) -> float | None:
    """How far the band goes to both sides of the period; None if it goes farther to one side."""
    above, below = cycles.high_ns - cycles.period_ns, cycles.period_ns - cycles.low_ns
    return above / cycles.period_ns if cycles.period_ns and above == below else None


def cycles_dict(cycles: Cycles) -> Json:
    """Of a periodic loop, its cycles against the band."""
    return {
        "loops_count": cycles.loops,
        "period_ns": cycles.period_ns,
        "band_ratio": _band_ratio(cycles),
        "low_ns": cycles.low_ns,
        "high_ns": cycles.high_ns,
        "ignored_count": cycles.ignored,
        "counted_count": cycles.counted,
        "short_count": cycles.short,
        "long_count": cycles.long,
        "min_ns": cycles.min_ns,
        "max_ns": cycles.max_ns,
        "catch_up_pairs_count": cycles.catch_up_pairs,
        "correlation_ratio": cycles.correlation,
        "most_out_of_band_ratio": most_out_of_band(cycles),
        "confidence_ratio": None if cycles.deterministic else CONFIDENCE,
        "stalls": [asdict(stall) for stall in cycles.stalls],
    }
