# SPDX-License-Identifier: Apache-2.0
"""Each figure run by run, with the means of the stretches between changes."""

import math
from collections.abc import Iterator
from itertools import pairwise

from rtproof.analysis.history.model import Metric, Sequence
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Block, Curve, Marker, Plot
from rtproof.report.history.places import ratio, scale, shown

FEWEST = 2
"""Values that make a plot."""


def blocks(sequence: Sequence, order: str) -> Iterator[Block]:
    """order: of the runs, in words."""
    for metric in sequence.metrics:
        if len(metric.places) >= FEWEST:
            yield _plot(metric, order)


def _plot(metric: Metric, order: str) -> Plot:
    label, size = scale(metric)
    known = [(float(at + 1), math.exp(ln) / size) for at, ln in enumerate(metric.values) if ln is not None]
    curves = [Curve("each run", tuple(x for x, _ in known), tuple(y for _, y in known))]
    if metric.changes:
        curves.append(_means(metric, size))
    markers = tuple(
        Marker(f"change at run {metric.places[one.at] + 1}", "x", _between(metric, one.at)) for one in metric.changes
    )
    return Plot(
        f"{metric.label} of each run",
        _says(metric),
        f"run, {order}",
        label,
        tuple(curves),
        markers,
        log_y=True,
    )


def _between(metric: Metric, at: int) -> float:
    """Half way between the runs on both sides of a change; runs count from 1."""
    return (metric.places[at - 1] + metric.places[at]) / 2 + 1


def _means(metric: Metric, size: float) -> Curve:
    """Level from the first to the last run of each stretch."""
    ends = [0, *(change.at for change in metric.changes), len(metric.places)]
    means = [change.before for change in metric.changes] + [metric.changes[-1].after]
    points = [
        (float(metric.places[place] + 1), math.exp(mean) / size)
        for (start, stop), mean in zip(pairwise(ends), means, strict=True)
        for place in dict.fromkeys((start, stop - 1))
    ]
    return Curve("mean between changes", tuple(x for x, _ in points), tuple(y for _, y in points), "whole")


def _says(metric: Metric) -> str:
    known = [math.exp(ln) for ln in metric.values if ln is not None]
    ends = f"from {shown(min(known), metric.unit)} to {shown(max(known), metric.unit)}"
    changes = [
        f"at run {metric.places[change.at] + 1} by {ratio(math.exp(change.after - change.before))}"
        for change in metric.changes
    ]
    what = (
        f"it changes {', '.join(changes)}"
        if changes
        else ("no change was looked for" if metric.why else "no change is shown")
    )
    return f"{quantity(len(known), 'run')}, {ends}; {what}."
