# SPDX-License-Identifier: Apache-2.0
"""The figures of a comparison: both tails in one plot, and the table of metrics."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from rtproof.compare.comparison_model import (
    Comparison,
    MetricEffect,
    deterministic_comparison,
    named_finding,
)
from rtproof.compare.comparison_sentences import interval_text
from rtproof.compare.effects import pooled_counts
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.phrases import capitalised, quantity, value
from rtproof.report import plot_data
from rtproof.report.blocks import Block, Curve, Marker, Plot, Section, Table, Text
from rtproof.report.cumulative_curves import NamedCounts, tail_plot
from rtproof.report.number_format import PrintedUnit, number_text, table_of, unit_for


def outcome_sentence(text: str, names: Sequence[str] = ()) -> str:
    """Return the text as a sentence, with a capital (except for the names of sides, and of figures such as p99)."""
    first = text.partition(" ")[0]
    named = any(map(str.isdigit, first)) or any(text.startswith(name) for name in names)
    return (text if named else capitalised(text)) + ("" if text.endswith(".") else ".")


MOST = 24
"""The largest number of single runs of a side that are drawn: more curves are a smear."""
NOTHING = "No curve: there are not two different latencies above zero."

DrawnSides = Sequence[tuple[str, Sequence[RunFigures]]]


def curve_unit(sides: DrawnSides) -> PrintedUnit:
    """Return one unit for all latencies of a comparison."""
    filled = [run.counts for _, runs in sides for run in runs if run.counts.total]
    return unit_for([counts.value_at_rank((counts.total + 1) // 2)[1] for counts in filled])


def curve_blocks(sides: DrawnSides, unit: PrintedUnit, markers: tuple[Marker, ...] = ()) -> list[Block]:
    """Return the plot, or a sentence where there is nothing to draw. sides: names and runs. markers: e.g. crossings."""
    whole = [
        NamedCounts(name, pooled_counts(runs), "whole", sum(run.overflow for run in runs), group)
        for group, (name, runs) in enumerate(sides)
    ]
    filled = [line for line in whole if line.counts.total]
    grid = plot_data.survival_grid([line.counts for line in filled]) if filled else np.empty(0, np.int64)
    if grid.size < 2:
        return [Text((NOTHING,))]
    thin = [
        NamedCounts(run.name, run.counts, "part", run.overflow, group)
        for group, (_, runs) in enumerate(sides)
        for run in runs[:MOST]
        if len(runs) > 1 and run.counts.total
    ]
    says = [_says(line, runs) for line, (_, runs) in zip(whole, sides, strict=True)]
    says += [
        f"Of {len(runs)} single runs of {name} the first {MOST} are drawn." for name, runs in sides if len(runs) > MOST
    ]
    plot = tail_plot("Share of activations later than a latency", " ".join(says), (*thin, *filled), grid, unit)
    return [replace(plot, markers=markers, foremost=True)]


def _says(line: NamedCounts, runs: Sequence[RunFigures]) -> str:
    counts = line.counts
    if not counts.total:
        return f"{line.name}: no values."
    half = value(counts.value_at_rank((counts.total + 1) // 2)[1])
    largest = max((run.largest for run in runs if run.largest is not None), default=int(counts.hi[-1]))
    end = f"{quantity(line.beyond, 'value')} beyond the scale" if line.beyond else f"all at most {value(largest)}"
    n = f"{quantity(counts.total + line.beyond, 'activation')}, {quantity(len(runs), 'run')}"
    return f"{line.name}: half are at most {half}, {end} ({n})."


NONE = "none"
IF_ALIKE = (
    "The runs are not known to be taken by turns: interval and p hold only if nothing else changed from run to run."
)
DETECTABLE = "Would notice: 4 of 5 comparisons with this number of runs show a difference of the size given."


def metrics_section(found: Comparison) -> Section:
    blocks: list[Block] = []
    if found.effects:
        blocks.append(_table(found))
    lines = [f"{one.label}: {note}" for one in found.effects for note in one.notes]
    lines += [f"Not compared: {one.label}, because {one.why}." for one in found.impossible]
    blocks += [Text(tuple(dict.fromkeys(lines)))] if lines else []
    return Section("metrics", "Metrics", tuple(blocks))


def notes_section(found: Comparison) -> Section:
    """Return how the figures of the metrics were computed."""
    if not found.effects:
        return Section("notes", "How this was judged", ())
    means = f"{quantity(len(found.a.runs), 'run')} and {quantity(len(found.b.runs), 'run')}"
    told = [f"The figures are geometric means of {means}."]
    if deterministic_comparison(found):
        told.append("In virtual time a ratio has no interval, and no difference is more or less than chance.")
    else:
        told.append(f"Interval: {', '.join(dict.fromkeys(one.method for one in found.effects))}.")
        told += [DETECTABLE] if any(one.detectable is not None for one in found.effects) else []
        several = min(len(found.a.runs), len(found.b.runs)) > 1
        told += [IF_ALIKE] if found.turns.interleaved is not True and several else []
    return Section("notes", "How this was judged", (Text((" ".join(told),)),))


def _table(found: Comparison) -> Table:
    """Return the table. The finding is in the first columns, because a narrow screen shows only these.

    A column in which no row has a figure is left out.
    """
    names = found.a.name, found.b.name
    columns: list[tuple[str, Callable[[MetricEffect], str]]] = [
        ("metric", lambda one: one.label),
        ("finding", lambda one: named_finding(one.finding, names)),
        ("ratio", lambda one: metric_ratio(one.ratio)),
        ("95 % interval", lambda one: interval_text(one, metric_ratio)),
        ("p (Holm)", lambda one: "" if (p := one.p_holm) is None else f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"),
        ("would notice", lambda one: "" if one.detectable is None else f"x {metric_ratio(one.detectable)}"),
        (names[0], lambda one: _figure(one, one.a)),
        (names[1], lambda one: _figure(one, one.b)),
    ]
    kept = [(heading, read) for heading, read in columns if any(read(one) not in ("", NONE) for one in found.effects)]
    caption = f"Ratio: {names[0]} to {names[1]}; below 1, {names[0]} is faster"
    return table_of(caption, found.effects, *kept, words=2)


def _figure(one: MetricEffect, size: float) -> str:
    if one.unit == "ns":
        return value(round(size))
    return f"{size:.3g}" if one.unit == "share" else f"{size:,.4g} {one.unit}"


def metric_ratio(size: float | None) -> str:
    """Return the ratio with two digits after the point near 1, with three digits elsewhere."""
    if size is None:
        return NONE
    return f"{size:.2f}" if 0.1 <= size < 10 else number_text(size, 3)


def in_own_colours(blocks: Iterable[Block], names: Sequence[str]) -> Iterator[Block]:
    """The blocks, with one colour for each name in all plots: its place in ``names``. The page's script marks the cells
    of tables that hold such a name with its colour.
    """
    places = {name: at for at, name in enumerate(dict.fromkeys(names))}
    for block in blocks:
        yield replace(block, curves=_in_own_colours(block.curves, places)) if isinstance(block, Plot) else block


def _in_own_colours(curves: Sequence[Curve], places: Mapping[str, int]) -> tuple[Curve, ...]:
    """Single runs, which are thin, get the colour of the curve that stands for all of their group."""
    groups = {each.group: places[each.name] for each in curves if each.name in places and not each.thin}
    return tuple(
        replace(each, group=groups.get(each.group, each.group))
        if each.thin
        else replace(each, group=places[each.name], role="whole")
        if each.name in places
        else each
        for each in curves
    )


def on_one_scale(blocks: Sequence[Block]) -> Iterator[Block]:
    """The blocks, with the same two axes for all plots, because a reader compares plots that stand side by side."""
    curves = [curve for block in blocks if isinstance(block, Plot) for curve in block.curves]
    x_ends = _ends(curve.x for curve in curves)
    y_ends = _ends(curve.y for curve in curves)
    for block in blocks:
        yield replace(block, x_ends=x_ends, y_ends=y_ends) if isinstance(block, Plot) else block


def _ends(axes: Iterable[Sequence[float]]) -> tuple[float, float] | None:
    """The smallest and the largest value above 0, which is all that a logarithmic axis shows; None if they are one."""
    shown = {value for values in axes for value in values if value > 0}
    return (min(shown), max(shown)) if len(shown) > 1 else None
