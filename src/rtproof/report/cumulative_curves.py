# SPDX-License-Identifier: Apache-2.0
"""Plots of the cumulative percentage, whole and with the top enlarged, as article 5 draws them, and their table.

At each latency a curve shows the percentage of the values that are not larger. It rises in steps: one at each value, or
at the upper end of each bin. A curve of many values is drawn with only some of its steps, and those are exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import duration, percent, quantity
from rtproof.record.contents import Int64Array
from rtproof.report import plot_data
from rtproof.report.blocks import Curve, Marker, Plot, Table
from rtproof.report.number_format import US, PrintedUnit, in_unit, table_of
from rtproof.summary.counts import Counts
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Summary

ZOOMS = (0.2, 0.03, 0.02)
"""Article 5 enlarges the top 20 % and 3 % of its preemption latencies and the top 2 % of its interrupt latencies."""
FEWEST = 10
"""A curve is drawn only if the part shown holds at least this many of its values."""
POINTS = 150
"""A curve is drawn with at most about twice as many of its steps."""
FAR = 10
"""The scale is logarithmic if the largest latency is more than this many times the smallest."""


@dataclass(frozen=True)
class NamedCounts:
    """Values with the name of their curve. role: the role of the curve, as in ``blocks.Curve``.

    beyond: how many more values are larger than these, by an unknown amount. group: as in ``blocks.Curve``.
    """

    name: str
    counts: Counts
    role: str = "part"
    beyond: int = 0
    group: int | None = None

    @property
    def total(self) -> int:
        return self.counts.total + self.beyond

    @property
    def shares(self) -> NDArray[np.float64]:
        """Of all values, the share that is at most the upper end of each bin."""
        return np.cumsum(self.counts.n) / self.total


def cumulative_plots(
    named: Sequence[NamedCounts],
    zooms: Sequence[float] = ZOOMS,
    unit: PrintedUnit = US,
    what: str = "latency",
    markers: tuple[Marker, ...] = (),
) -> list[Plot]:
    """A plot of the whole curves and one for each zoom, largest share first.

    A curve with too few values is left out, and so is a plot without two different values. zooms: shares of the values,
    from the top. what: label of the x axis, without unit.
    """
    parts = (1.0, *sorted(zooms, reverse=True))
    found = (_plot([each for each in named if _has(each, part)], part, unit, what, markers) for part in parts)
    return [plot for plot in found if plot is not None]


def left_out_of_plot(named: Sequence[NamedCounts], zooms: Sequence[float] = ZOOMS) -> str:
    """A sentence on the curves that have too few values for a zoom; "" if there are none."""
    told = [
        f"the top {percent(zoom)} of {', '.join(short)}"
        for zoom in sorted(zooms, reverse=True)
        if (short := [f"{each.name} (n = {each.total:,})" for each in named if not _has(each, zoom)])
    ]
    return f"Fewer than {FEWEST} values are in {'; in '.join(told)}: not drawn." if told else ""


def _has(each: NamedCounts, part: float) -> bool:
    """Whether enough of the values in this part are known."""
    return each.counts.total > 0 and (part == 1 or each.total * part - each.beyond >= FEWEST)


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
    shares = each.shares
    at = _chosen(each.counts.hi, shares, part)
    return Curve(
        each.name,
        tuple(unit.scale(int(value)) for value in each.counts.hi[at]),
        tuple(float(100 * share) for share in shares[at]),
        each.role,
    )


def _chosen(values: Int64Array, shares: NDArray[np.float64], part: float) -> Int64Array:
    """Indices of the steps to draw: evenly spread over the values and over the shares, with the first and the last."""
    first = int(np.searchsorted(shares, 1 - part)) if part < 1 else 0
    last = values.size - 1
    if last - first <= 2 * POINTS:
        return np.arange(first, last + 1)
    over_values = np.searchsorted(values, np.linspace(values[first], values[last], POINTS))
    over_shares = np.searchsorted(shares, np.linspace(shares[first], 1, POINTS))
    return np.unique(np.clip(np.concatenate((over_values, over_shares, [first, last])), first, last))


def _says(named: Sequence[NamedCounts], part: float, unit: PrintedUnit) -> Iterator[str]:
    """For each curve a sentence: at which value it enters the part that is shown, and where it ends."""
    for each in named:
        enters = each.counts.hi[
            min(int(np.searchsorted(each.shares, 0.5 if part == 1 else 1 - part)), each.counts.n.size - 1)
        ]
        share = "half" if part == 1 else percent(round(1 - part, 6))
        last = unit(int(each.counts.hi[-1]))
        end = f"{quantity(each.beyond, 'value')} above {last}" if each.beyond else f"all at most {last}"
        yield f"{each.name}: {share} of {quantity(each.total, 'value')} are at most {unit(int(enters))}, {end}."


def tail_plot(title: str, says: str, lines: Sequence[NamedCounts], grid: Int64Array, unit: PrintedUnit) -> Plot:
    """Return the plot of the share above each latency. lines: with values. grid: latencies in ns, increasing.

    Values beyond the scale count as larger than every value on it.
    """
    curves = []
    for line in lines:
        values, shares = plot_data.survival_points(line.counts, grid)
        ys = (shares * line.counts.total + line.beyond) / line.total
        xs = tuple(map(unit.scale, values.tolist()))
        curves.append(Curve(line.name, xs, tuple(ys.tolist()), line.role, line.group))
    x_label, y_label = f"latency [{unit.name}]", "share that was later"
    return Plot(title, says, x_label, y_label, tuple(curves), log_x=True, log_y=True, style="step")


# The next functions make article 5's summary of a latency: the maximum, and the threshold that 99.999 % do not exceed.


SHARE = 0.99999


def threshold_definition(share: float, period_ns: int | None) -> str:
    """What the threshold of an article is, with the article's share and the period of its cells."""
    carries = round(1 / (1 - share))
    often = ""
    if period_ns:
        often = f", which with a period of {duration(period_ns)} is one every {duration(carries * period_ns)}"
    return (
        f"The {percent(share)} threshold is the latency that {percent(share)} of the values do not exceed: one of "
        f"{carries:,} does{often}. Fewer values have no such threshold."
    )


def threshold_table(caption: str, named: Sequence[tuple[str, Summary]], share: float = SHARE) -> Table:
    """A table with a row per summary.

    One value exceeds the threshold every 1 / (1 - share) values on average, so once per as many periods, of several
    threads that many times as often.
    """
    carries = round(1 / (1 - share))

    def threshold(row: tuple[str, Summary]) -> str:
        found = quantile(row[1].observed_counts, share, ends=row[1].observed).value
        return f"unknown: n below {carries:,}" if found is None else US.show(found)

    def often(row: tuple[str, Summary]) -> str | None:
        period_ns, threads = row[1].series.period_ns, max(len(row[1].threads), 1)
        return duration(carries * period_ns / threads) if period_ns else None

    return table_of(
        caption,
        named,
        ("latency", lambda row: row[0]),
        ("n", lambda row: row[1].observed.count),
        in_unit(US, "maximum", lambda row: row[1].observed.largest),
        (f"{percent(share)} threshold [us]", threshold),
        ("one value exceeds it every", often),
    )
