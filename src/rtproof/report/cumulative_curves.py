# SPDX-License-Identifier: Apache-2.0
"""Curves of the cumulative percentage, whole and the top of them enlarged, as article 5 draws them.

At each latency a curve has the percentage of the values that are not later. It rises in steps, each where a value, or
the upper end of a bin, lies; a curve of many values is drawn with a part of its steps, all of them exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import duration, percent, quantity
from rtproof.record.contents import Int64Array
from rtproof.report import number_format
from rtproof.report.blocks import Curve, Marker, Plot, Table
from rtproof.report.number_format import US, PrintedUnit
from rtproof.summary.counts import Counts
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Summary

ZOOMS = (0.2, 0.03, 0.02)
"""Article 5's: the top 20 % and 3 % of its preemption latencies, the top 2 % of its interrupt latencies."""
FEWEST = 10
"""Fewer values in the part shown make no curve."""
POINTS = 150
"""Of a curve, at most twice as many."""
FAR = 10
"""From so many times the smallest latency on the scale is logarithmic."""


@dataclass(frozen=True)
class NamedCounts:
    """Values with the name of their curve. role: as of ``blocks.Curve``."""

    name: str
    counts: Counts
    role: str = "part"


def cumulative_plots(
    named: Sequence[NamedCounts],
    zooms: Sequence[float] = ZOOMS,
    unit: PrintedUnit = US,
    what: str = "latency",
    markers: tuple[Marker, ...] = (),
) -> list[Plot]:
    """The whole curves and each zoom, largest first; what has too few values is left out, also a whole plot.

    zooms: shares of the values at the top. what: is on the x axis.
    """
    parts = (1.0, *sorted(zooms, reverse=True))
    found = (_plot([each for each in named if _has(each.counts, part)], part, unit, what, markers) for part in parts)
    return [plot for plot in found if plot is not None]


def left_out_of_plot(named: Sequence[NamedCounts], zooms: Sequence[float] = ZOOMS) -> str:
    """Which curves are in no plot of which part, for want of values; "" where all are."""
    told = [
        f"the top {percent(zoom)} of {', '.join(short)}"
        for zoom in sorted(zooms, reverse=True)
        if (short := [f"{each.name} (n = {each.counts.total:,})" for each in named if not _has(each.counts, zoom)])
    ]
    return f"Fewer than {FEWEST} values are in {'; in '.join(told)}: not drawn." if told else ""


def _has(counts: Counts, part: float) -> bool:
    return counts.total > 0 and (part == 1 or counts.total * part >= FEWEST)


def _plot(
    named: Sequence[NamedCounts], part: float, unit: PrintedUnit, what: str, markers: tuple[Marker, ...]
) -> Plot | None:
    curves = tuple(_curve(each, part, unit) for each in named)
    xs = [x for curve in curves for x in curve.x]
    if len(set(xs)) < 2:
        return None
    top = percent(part)
    return Plot(
        "Cumulative percentage" if part == 1 else f"Cumulative percentage, the top {top}",
        " ".join(_says(named, part, unit)),
        f"{what} [{unit.name}]",
        "not later [%]",
        curves,
        tuple(marker for marker in markers if marker.axis == "x" and marker.at <= 2 * max(xs)),
        log_x=min(xs) > 0 and max(xs) > FAR * min(xs),
        style="step",
        y_ends=(100 * (1 - part), 100 + 3 * part),
    )


def _curve(each: NamedCounts, part: float, unit: PrintedUnit) -> Curve:
    shares = np.cumsum(each.counts.n) / each.counts.total
    at = _chosen(each.counts.hi, shares, part)
    return Curve(
        each.name,
        tuple(unit.scale(int(value)) for value in each.counts.hi[at]),
        tuple(float(100 * share) for share in shares[at]),
        each.role,
    )


def _chosen(values: Int64Array, shares: NDArray[np.float64], part: float) -> Int64Array:
    """Places of the steps that are drawn: even over the values and over the shares, with the first and the last."""
    first = int(np.searchsorted(shares, 1 - part)) if part < 1 else 0
    last = values.size - 1
    if last - first <= 2 * POINTS:
        return np.arange(first, last + 1)
    over_values = np.searchsorted(values, np.linspace(values[first], values[last], POINTS))
    over_shares = np.searchsorted(shares, np.linspace(shares[first], 1, POINTS))
    return np.unique(np.clip(np.concatenate((over_values, over_shares, [first, last])), first, last))


def _says(named: Sequence[NamedCounts], part: float, unit: PrintedUnit) -> Iterator[str]:
    """Where each curve enters the part that is shown, and where it ends."""
    for each in named:
        shares = np.cumsum(each.counts.n) / each.counts.total
        enters = each.counts.hi[int(np.searchsorted(shares, 0.5 if part == 1 else 1 - part))]
        share = "half" if part == 1 else percent(round(1 - part, 6))
        yield (
            f"{each.name}: {share} of {quantity(each.counts.total, 'value')} are at most {unit(int(enters))}, "
            f"all at most {unit(int(each.counts.hi[-1]))}."
        )


# Article 5's summary of a latency: the maximum, and the threshold that 99.999 % do not exceed.


SHARE = 0.99999
CARRIES = round(1 / (1 - SHARE))
"""So many values let one be expected above the threshold; fewer do not carry it."""
DEFINITION = (
    f"The {percent(SHARE)} threshold is the latency that {percent(SHARE)} of the values do not exceed: one of "
    f"{CARRIES:,} does, which at 100 values a second is one every 17 min. Fewer values have no such threshold."
)


def threshold_table(caption: str, named: Sequence[tuple[str, Summary]]) -> Table:
    """A row per summary. An exceedance is expected every 1 / (1 - share) values, so once per as many periods."""
    rows = tuple(
        (name, number_format.count_text(each.observed.count), _maximum(each), _threshold(each), _often(each))
        for name, each in named
    )
    header = ("latency", "n", "maximum [us]", f"{percent(SHARE)} threshold [us]", "one value exceeds it every")
    return Table(caption, header, rows, (1, 2, 3, 4))


def _maximum(summary: Summary) -> str:
    return number_format.US.show(summary.observed.max if summary.observed.count else None)


def _threshold(summary: Summary) -> str:
    found = quantile(summary.observed_counts, SHARE, ends=summary.observed)
    return f"unknown: n below {CARRIES:,}" if found.value is None else number_format.US.show(found.value)


def _often(summary: Summary) -> str:
    """Of one thread; several threads together have as many more chances."""
    period = summary.series.period_ns
    return duration(CARRIES * period / max(len(summary.threads), 1)) if period else number_format.UNKNOWN
