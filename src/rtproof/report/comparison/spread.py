# SPDX-License-Identifier: Apache-2.0
"""How much runs of the same thing differ from each other."""

import math
from collections.abc import Callable, Sequence
from statistics import stdev

from rtproof.analysis.comparison.figures import Reading, RunFigures
from rtproof.analysis.phrases import quantity, value
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.comparison import runs
from rtproof.report.comparison.told import Told

METRICS: tuple[tuple[str, Callable[[RunFigures], Reading]], ...] = (
    ("50 %", lambda run: run.quantile(0.5)),
    ("99 %", lambda run: run.quantile(0.99)),
    ("99.9 %", lambda run: run.quantile(0.999)),
    ("1-s maxima", lambda run: run.second_maxima),
)
MEANS = (
    "One run to the next: the factor by which runs of the same thing typically differ (exp of the standard deviation "
    "of the logarithms). A difference between two single runs that is not much larger says nothing."
)


def section(found: Sequence[RunFigures], told: Told) -> Section:
    """Needs at least one run. Those that did not measure what was asked are in the table of runs only."""
    good = [run for run in found if not run.invalid]
    rows = tuple(row for name, read in METRICS if (row := _row(name, [read(run).ln for run in good])))
    blocks: list[Block] = runs.beside_a_core(found)
    blocks += [Text((quantity(len(found), "run") + " of the same.",), "normal", _headline(good))]
    if rows:
        header = ("metric", "geometric mean", "least", "most", "one run to the next")
        blocks += [Table("From run to run", header, rows, (1, 2, 3, 4)), Text((MEANS,))]
    blocks.append(runs.table([("", found)]))
    blocks += runs.left_out([("", run.name, "; ".join(run.invalid)) for run in found if run.invalid], told.complaints)
    return Section("verdict", "Runs of the same", tuple(blocks))


def _headline(good: Sequence[RunFigures]) -> str:
    largest = [run.largest for run in good if run.largest is not None]
    if not largest:
        return "No run measured what was asked."
    some = f"{value(min(largest))} in one and {value(max(largest))} in another"
    return f"{quantity(len(good), 'run')}: the largest latency is {some if len(largest) > 1 else value(largest[0])}."


def _row(name: str, lns: Sequence[float | None]) -> tuple[str, ...] | None:
    known = [ln for ln in lns if ln is not None]
    if not known:
        return None
    factor = f"x {math.exp(stdev(known)):.2f}" if len(known) > 1 else "unknown: one run"
    sizes = (sum(known) / len(known), min(known), max(known))
    return (name, *(value(round(math.exp(ln))) for ln in sizes), factor)
