# SPDX-License-Identifier: Apache-2.0
"""Curves of the cumulative percentage, whole and the top of them enlarged, as article 5 draws them.

At each latency a curve has the percentage of the values that are not later. It rises in steps, each where a value, or
the upper end of a bin, lies; a curve of many values is drawn with a part of its steps, all of them exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.analysis.counts import Counts
from rtproof.analysis.phrases import percent, quantity
from rtproof.record import Int64Array
from rtproof.report.blocks import Curve, Marker, Plot
from rtproof.report.figures import US, Unit

ZOOMS = (0.2, 0.03, 0.02)
"""Article 5's: the top 20 % and 3 % of its preemption latencies, the top 2 % of its interrupt latencies."""
FEWEST = 10
"""Fewer values in the part shown make no curve."""
POINTS = 150
"""Of a curve, at most twice as many."""
FAR = 10
"""From so many times the smallest latency on the scale is logarithmic."""


@dataclass(frozen=True)
class Named:
    """Values with the name of their curve. role: as of ``blocks.Curve``."""

    name: str
    counts: Counts
    role: str = "part"


def plots(
    named: Sequence[Named],
    zooms: Sequence[float] = ZOOMS,
    unit: Unit = US,
    what: str = "latency",
    markers: tuple[Marker, ...] = (),
) -> list[Plot]:
    """The whole curves and each zoom, largest first; what has too few values is left out, also a whole plot.

    zooms: shares of the values at the top. what: is on the x axis.
    """
    parts = (1.0, *sorted(zooms, reverse=True))
    found = (_plot([each for each in named if _has(each.counts, part)], part, unit, what, markers) for part in parts)
    return [plot for plot in found if plot is not None]


def left_out(named: Sequence[Named], zooms: Sequence[float] = ZOOMS) -> str:
    """Which curves are in no plot of which part, for want of values; "" where all are."""
    told = [
        f"the top {percent(zoom)} of {', '.join(short)}"
        for zoom in sorted(zooms, reverse=True)
        if (short := [f"{each.name} (n = {each.counts.total:,})" for each in named if not _has(each.counts, zoom)])
    ]
    return f"Fewer than {FEWEST} values are in {'; in '.join(told)}: not drawn." if told else ""


def _has(counts: Counts, part: float) -> bool:
    return counts.total > 0 and (part == 1 or counts.total * part >= FEWEST)


def _plot(named: Sequence[Named], part: float, unit: Unit, what: str, markers: tuple[Marker, ...]) -> Plot | None:
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


def _curve(each: Named, part: float, unit: Unit) -> Curve:
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


def _says(named: Sequence[Named], part: float, unit: Unit) -> Iterator[str]:
    """Where each curve enters the part that is shown, and where it ends."""
    for each in named:
        shares = np.cumsum(each.counts.n) / each.counts.total
        enters = each.counts.hi[int(np.searchsorted(shares, 0.5 if part == 1 else 1 - part))]
        share = "half" if part == 1 else percent(round(1 - part, 6))
        yield (
            f"{each.name}: {share} of {quantity(each.counts.total, 'value')} are at most {unit(int(enters))}, "
            f"all at most {unit(int(each.counts.hi[-1]))}."
        )
