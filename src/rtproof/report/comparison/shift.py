# SPDX-License-Identifier: Apache-2.0
"""The shift function: by how much a side is later at each share of its activations, and where the two sides cross."""

from rtproof.analysis.comparison.model import Comparison, ShiftPoint
from rtproof.analysis.phrases import percent
from rtproof.report.blocks import Block, Curve, Marker, Plot, Section, Text
from rtproof.report.comparison.curves import unit_of
from rtproof.report.comparison.outcome import lines, sentence
from rtproof.report.figures import Unit


def section(found: Comparison) -> Section:
    """Without a plot where there are fewer than two points."""
    blocks: list[Block] = [Text(tuple(map(sentence, lines(found, "CURVES"))))]
    points = [point for point in found.shift.points if point.share < 1]
    if len(points) > 1:
        unit = unit_of([(side.name, side.runs) for side in (found.a, found.b)])
        blocks.append(_plot(found, points, unit))
        why_not = found.shift.why_no_band
        blocks.append(
            Text((sentence(f"there is no band: {why_not}" if why_not else f"the band: {found.shift.method}"),))
        )
    return Section("shift", "Where they differ", tuple(blocks))


def _plot(found: Comparison, points: list[ShiftPoint], unit: Unit) -> Plot:
    xs = tuple(1 / (1 - point.share) for point in points)
    curves = [Curve("difference", xs, tuple(unit.scale(point.difference) for point in points), "whole", 0)]
    banded = [(x, point.low, point.high) for x, point in zip(xs, points, strict=True) if point.low is not None]
    if banded:
        at = tuple(x for x, _, _ in banded)
        ends = [[unit.scale(end or 0) for end in side] for side in list(zip(*banded, strict=True))[1:]]
        curves += [
            Curve(f"band, {name}", at, tuple(end), "other", 0) for name, end in zip(("low", "high"), ends, strict=True)
        ]
    return Plot(
        f"{found.a.name} minus {found.b.name} at each share of the activations",
        _says(found, points, unit),
        "one activation in so many is later",
        f"difference [{unit.name}]",
        tuple(curves),
        (Marker("no difference", "y", 0.0),),
        log_x=True,
        style="line",
    )


def _says(found: Comparison, points: list[ShiftPoint], unit: Unit) -> str:
    some = points[:: max(1, len(points) // 3)]
    names = found.a.name, found.b.name
    steps = "; ".join(
        f"{percent(round(one.share, 9))} are not later than {unit(one.a)} in {names[0]} and {unit(one.b)} in {names[1]}"
        for one in some
    )
    return f"Above the line {found.a.name} is later. {steps}."
