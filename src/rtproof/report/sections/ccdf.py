# SPDX-License-Identifier: Apache-2.0
"""Which share of the activations was later than each latency, both logarithmic: the tail, with the limit."""

from dataclasses import dataclass

from rtproof.analysis.counts import Counts
from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import percent, quantity, value
from rtproof.analysis.quantiles import quantiles
from rtproof.record import Int64Array
from rtproof.report import binning, figures
from rtproof.report.blocks import Block, Curve, Plot, Text
from rtproof.report.streams import Stream, for_plots, latency_unit, left_out_at_the_end, limit_marker

THREADS = 8
NOTHING = "There are not two different latencies above zero, so there is no curve to draw."


@dataclass(frozen=True)
class Line:
    """One curve before it is drawn."""

    name: str
    role: str
    counts: Counts


def render(analysis: Analysis) -> list[Block]:
    drawn, left_out = for_plots(analysis, THREADS)
    lines = [line for line in _lines(analysis, drawn) if line.counts.total]
    if not lines:
        return []
    grid = binning.survival_grid([line.counts for line in lines])
    if grid.size < 2:
        return [Text((NOTHING,))]
    unit = latency_unit(analysis)
    plot = Plot(
        "Share of activations later than a latency",
        f"{_says(analysis)} {left_out}".strip(),
        f"latency [{unit.name}]",
        "share that was later",
        tuple(_curve(line, grid, unit) for line in lines),
        limit_marker(analysis, "x", unit),
        log_x=True,
        log_y=True,
        style="step",
    )
    return [*left_out_at_the_end(analysis), plot]


def _lines(analysis: Analysis, drawn: list[Stream]) -> list[Line]:
    observed = [Line(stream.name, stream.role, stream.summary.observed_counts) for stream in drawn]
    if not analysis.pooled.missed:
        return observed
    return [*observed, Line(f"{drawn[-1].name}, schedule", "other", analysis.pooled.schedule_counts)]


def _curve(line: Line, grid: Int64Array, unit: figures.Unit) -> Curve:
    values, shares = binning.survival(line.counts, grid)
    return Curve(line.name, tuple(unit.scale(int(x)) for x in values), tuple(map(float, shares)), line.role)


def _says(analysis: Analysis) -> str:
    known = [(q.p, q.value) for q in quantiles(analysis.pooled) if q.value is not None]
    steps = [
        f"at most {percent(round(1 - p, 9))} were later than {value(at)}" for p, at in known[:: max(len(known) - 1, 1)]
    ]
    observed = analysis.pooled.observed
    largest = f"the largest of {quantity(observed.count, 'activation')} is {value(observed.max)}"
    return f"Of those that ran, {'; '.join([*steps, largest])}.{_not_drawn(analysis)}"


def _not_drawn(analysis: Analysis) -> str:
    counts = analysis.pooled.observed_counts
    early = int(counts.n[counts.hi <= 0].sum())
    return f" {quantity(early, 'activation')} at or below zero lie left of the scale." if early else ""
