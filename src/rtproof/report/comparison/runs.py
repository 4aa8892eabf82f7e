# SPDX-License-Identifier: Apache-2.0
"""Every run by itself, and those that were left out with the reason."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from rtproof.analysis.cokernels import IN_BAND
from rtproof.analysis.comparison.figures import Reading, RunFigures
from rtproof.analysis.comparison.model import Comparison
from rtproof.analysis.phrases import duration, quantity
from rtproof.report import figures
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.comparison.curves import Sides, unit_of
from rtproof.report.comparison.told import Told
from rtproof.report.figures import Unit

BESIDE_LINUX = (
    "In-band: beside a co-kernel Linux's own threads were measured; the co-kernel's tasks are not delayed by Linux and "
    "were not measured."
)


def section(found: Comparison, told: Told, *, short: bool) -> Section:
    """short: only what was left out, since a terminal has no room for all runs."""
    sides = [(side.name, side.runs) for side in (found.a, found.b)]
    blocks: list[Block] = [] if short else [table(sides)]
    blocks += left_out([(one.side, one.run, one.why) for one in found.left_out], told.complaints)
    if told.command and not short:
        blocks.append(Text((f"Made by: {told.command}",)))
    return Section("runs", "The runs", tuple(blocks))


def left_out(some: Iterable[tuple[str, str, str]], complaints: Sequence[str]) -> list[Block]:
    """Side, run and reason of those that are in no figure, and sentences on those that could not be read."""
    lines = [f"Left out{f' of {side}' if side else ''}: {run}: {why}" for side, run, why in some]
    lines += [f"Not read: {sentence}" for sentence in complaints]
    return [Text(tuple(lines), "doubt")] if lines else []


def beside_a_core(some: Iterable[RunFigures]) -> list[Block]:
    """What a co-kernel beside Linux means for the figures; nothing where no run has one."""
    counts = Counter(run.core for run in some if run.core)
    words = tuple(f"{core}: {quantity(n, 'run')}." for core, n in counts.items())
    return [Text(words, "doubt", BESIDE_LINUX)] if words else []


def table(sides: Sides) -> Table:
    """A row for each run, the sides one after the other."""
    unit = unit_of(sides)
    heads = figures.headings(unit, "50 %", "99 %", "99.9 %", "max", "1-s maxima")
    rows = tuple(_row(name if at == 0 else "", run, unit) for name, runs in sides for at, run in enumerate(runs))
    several = len(sides) > 1
    header = (*(("side",) if several else ()), "run", "n", "length", *heads, "missed", "lost")
    caption = "1-s maxima: geometric mean of the largest latency of each second"
    rows = rows if several else tuple(row[1:] for row in rows)
    return Table(caption, header, rows, tuple(range(len(header) - 8, len(header))))


def _row(side: str, run: RunFigures, unit: Unit) -> tuple[str, ...]:
    readings = [*(run.quantile(p) for p in (0.5, 0.99, 0.999)), run.second_maxima]
    shown = [_read(one, unit) for one in readings]
    length = figures.UNKNOWN if run.span_ns is None else duration(run.span_ns)
    largest = unit.show(run.largest)
    return (
        side,
        f"{run.name} ({IN_BAND})" if run.core else run.name,
        figures.count(run.n),
        length,
        *shown[:3],
        largest,
        shown[3],
        figures.count(run.missed),
        figures.count(run.lost),
    )


def _read(one: Reading, unit: Unit) -> str:
    return unit.show(None if one.ln is None else math.exp(one.ln))
