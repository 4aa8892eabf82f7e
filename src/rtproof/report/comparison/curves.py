# SPDX-License-Identifier: Apache-2.0
"""The tails of both sides over each other: each side's runs together, and its single runs thin behind them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.model import Comparison
from rtproof.analysis.counts import Counts, merge
from rtproof.analysis.phrases import quantity, value
from rtproof.record import Int64Array
from rtproof.report import binning
from rtproof.report.blocks import Block, Curve, Marker, Plot, Section, Text
from rtproof.report.figures import Unit, unit_for

MOST = 24
"""Single runs of a side that are drawn: more of them are a smear."""
NOTHING = "There are not two different latencies above zero, so there is no curve to draw."

Sides = Sequence[tuple[str, Sequence[RunFigures]]]


@dataclass(frozen=True)
class Line:
    """One curve before it is drawn. beyond: values above every value of the counts."""

    name: str
    counts: Counts
    beyond: int
    group: int
    role: str = "whole"


def pooled(runs: Sequence[RunFigures]) -> Counts:
    """All values of the runs together."""
    return merge(run.counts for run in runs)


def unit_of(sides: Sides) -> Unit:
    """One unit for all latencies of a comparison."""
    filled = [run.counts for _, runs in sides for run in runs if run.counts.total]
    return unit_for([counts.value_at_rank((counts.total + 1) // 2)[1] for counts in filled])


def section(found: Comparison) -> Section:
    """With the crossings as lines."""
    sides = [(side.name, side.runs) for side in (found.a, found.b)]
    unit = unit_of(sides)
    crossings = tuple(Marker("they cross", "x", unit.scale(one.value)) for one in found.order.crossings)
    return Section("curves", "Tails", tuple(blocks(sides, unit, crossings)))


def alone(runs: Sequence[RunFigures]) -> Section:
    """Of one thing, without a name."""
    sides = [("all", runs)]
    return Section("curves", "Tails", tuple(blocks(sides, unit_of(sides))))


def blocks(sides: Sides, unit: Unit, markers: tuple[Marker, ...] = ()) -> list[Block]:
    """The plot, or a sentence where there is nothing to draw. sides: names and runs; markers: such as crossings."""
    whole = [Line(name, pooled(runs), beyond(runs), group) for group, (name, runs) in enumerate(sides)]
    filled = [line for line in whole if line.counts.total]
    grid = binning.survival_grid([line.counts for line in filled]) if filled else np.empty(0, np.int64)
    if grid.size < 2:
        return [Text((NOTHING,))]
    thin = [line for group, (_, runs) in enumerate(sides) for line in _single(runs, group)]
    plot = Plot(
        "Share of activations later than a latency",
        " ".join([*(_says(line, runs) for line, (_, runs) in zip(whole, sides, strict=True)), *_left_out(sides)]),
        f"latency [{unit.name}]",
        "share that was later",
        tuple(_curve(line, grid, unit) for line in (*thin, *filled)),
        markers,
        log_x=True,
        log_y=True,
        style="step",
    )
    return [plot]


def beyond(runs: Sequence[RunFigures]) -> int:
    """Values of unknown size above the scales of their histograms."""
    return sum(run.overflow for run in runs)


def _single(runs: Sequence[RunFigures], group: int) -> Iterator[Line]:
    if len(runs) > 1:
        for run in runs[:MOST]:
            if run.counts.total:
                yield Line(run.name, run.counts, run.overflow, group, "part")


def _curve(line: Line, grid: Int64Array, unit: Unit) -> Curve:
    """With what lies beyond the scale, which is above every value on it."""
    values, shares = binning.survival(line.counts, grid)
    total = line.counts.total
    ys = (shares * total + line.beyond) / (total + line.beyond)
    return Curve(line.name, tuple(map(unit.scale, values.tolist())), tuple(ys.tolist()), line.role, line.group)


def _says(line: Line, runs: Sequence[RunFigures]) -> str:
    counts = line.counts
    if not counts.total:
        return f"{line.name}: no values."
    half = value(counts.value_at_rank((counts.total + 1) // 2)[1])
    largest = max((run.largest for run in runs if run.largest is not None), default=int(counts.hi[-1]))
    end = f"{quantity(line.beyond, 'value')} beyond the scale" if line.beyond else f"all at most {value(largest)}"
    n = f"{quantity(counts.total + line.beyond, 'activation')} of {quantity(len(runs), 'run')}"
    return f"{line.name}: of {n} half are at most {half}, {end}."


def _left_out(sides: Sides) -> Iterator[str]:
    for name, runs in sides:
        if len(runs) > MOST:
            yield f"Of {len(runs)} single runs of {name} the first {MOST} are drawn."
