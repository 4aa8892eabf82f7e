# SPDX-License-Identifier: Apache-2.0
"""Offset and jitter told apart: a constant lateness can be compensated for, a spread cannot.

On a board whose timer has no high resolution every activation may be 360 us late with a jitter of 40 us (article 3).
"""

from dataclasses import dataclass

from rtproof.analysis.model import Summary
from rtproof.analysis.quantiles import quantile


@dataclass(frozen=True)
class Spread:
    """offset: median. jitter: 99th minus 1st percentile. peak_to_peak: largest minus smallest. In the series' unit.

    drift_ppm: how much longer the mean cycle is than the period, off the grid, where lateness adds up; None on it.
    """

    offset: int | None
    jitter: int | None
    peak_to_peak: int | None
    deviation: float | None
    drift_ppm: float | None


def spread(summary: Summary) -> Spread:
    """Offset and jitter of the activations that ran."""
    median, low, high = (quantile(summary.observed_counts, p, ends=summary.observed).value for p in (0.5, 0.01, 0.99))
    observed = summary.observed
    return Spread(
        offset=median,
        jitter=None if low is None or high is None else high - low,
        peak_to_peak=observed.max - observed.min if observed.count else None,
        deviation=observed.deviation,
        drift_ppm=_drift_ppm(summary),
    )


def _drift_ppm(summary: Summary) -> float | None:
    period, cycles = summary.series.period_ns, summary.expected - len(summary.threads)
    counts = not summary.series.on_grid and not summary.series.external and len(summary.threads) == 1
    if not counts or cycles < 1 or not period:
        return None
    return ((summary.span_ns - period) / (cycles * period) - 1) * 1e6
