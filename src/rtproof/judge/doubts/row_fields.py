# SPDX-License-Identifier: Apache-2.0
"""Rules on the fields of one row: the work, the loop and the top of an application, an interrupt and its task."""

import math
from collections.abc import Iterator, Sequence

from rtproof.core.phrases import duration, percent
from rtproof.judge.doubts.result_row import Figures, ResultBins, ResultClaim, RowKind, shown

ROUNDING_NS = 1
"""Means and deviations of exact values are rounded too, and may lie on their bounds."""
CYCLES = 50
"""An overloaded loop may run several times slower than asked. A factor above this shows a wrong unit."""
LEFT_OUT = 0.5
"""Loops at the beginning may be left out. If more than this part of the run is in no loop, most were not counted."""


def wrong_unit(each: Figures) -> Iterator[str]:
    """Lengths that are no cycles of this period. rtproof mistakes no unit: a loop of its own may be so overloaded."""
    period = each.period_ns if each.kind is RowKind.LENGTH else None
    if period and each.min_ns is not None and each.min_ns > CYCLES * period:
        yield f"its shortest cycle is {shown(each.min_ns)}, where the period is {shown(period)}: a unit is wrong"
    if period and each.max_ns is not None and each.max_ns < period / CYCLES:
        yield f"its longest cycle is {shown(each.max_ns)}, where the period is {shown(period)}: a unit is wrong"


def unlike_fields(several: Sequence[Figures]) -> Iterator[str]:
    """Fields of an application that are not of the same activations. Only the first or the last may lack a field."""
    if not any(each.kind is RowKind.LOOP for each in several):
        return
    counts = {each.name: each.count for each in several if each.count is not None}
    periods = {each.name: each.period_ns for each in several if each.period_ns is not None}
    if counts and max(counts.values()) - min(counts.values()) > 1:
        told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        yield f"its fields are of the same activations and do not have as many values ({told})"
    if len(set(periods.values())) > 1:
        yield f"its fields have different periods ({', '.join(f'{name} {shown(ns)}' for name, ns in periods.items())})"


def spread_of_loops(loop: Figures, top: Figures) -> Iterator[str]:
    """A deviation that loops cannot have, because each is a period and the difference of two tops."""
    count = loop.count or 0
    if loop.deviation_ns is None or top.deviation_ns is None or top.max_ns is None or count < 2:
        return
    uncounted = (top.max_ns - min(top.min_ns or 0, 0)) ** 2 / (count - 1)
    of_tops = 2 * (top.deviation_ns + max(top.step("deviation"), ROUNDING_NS))
    most = math.sqrt(of_tops**2 * (count + 1) / (count - 1) + uncounted)
    if loop.deviation_ns > most + max(loop.step("deviation"), ROUNDING_NS):
        yield (
            f"a standard deviation of {shown(loop.deviation_ns)} is too large for loops between tops that have one of "
            f"{shown(top.deviation_ns)}: it is {shown(most)} at most"
        )


def larger_parts(several: Sequence[Figures]) -> Iterator[str]:
    """Ends, means and percentiles of the interrupt that are larger than those of the task that it wakes."""
    fields = {each.name: each for each in several}
    part, whole = fields.get("interrupt"), fields.get("preemption")
    if part is None or whole is None:
        return
    pairs: list[tuple[str, float | None, float | None, float]] = [
        ("minimum", part.min_ns, whole.min_ns, part.step("min") + whole.step("min")),
        ("mean", part.mean_ns, whole.mean_ns, part.step("mean") + whole.step("mean")),
        ("maximum", part.max_ns, None if whole.at_least else whole.max_ns, part.step("max") + whole.step("max")),
    ]
    pairs += [
        (percent(own.share), own.value_ns, other.value_ns, own.value_step_ns + other.value_step_ns)
        for own in part.percentiles
        for other in whole.percentiles
        if own.share == other.share
    ]
    first, second = part.bins or ResultBins(), whole.bins or ResultBins()
    if (first.full_share or 0) + (second.full_share or 0) > 1:  # so some activation is in both
        pairs.append(("fullest bin", first.full_from_ns, second.full_to_ns, 0.0))
    for which, of_part, of_whole, step in pairs:
        if of_part is not None and of_whole is not None and of_part > of_whole + step + ROUNDING_NS:
            yield f"the {which} of its interrupt is {shown(of_part)}, longer than {shown(of_whole)} of its preemption"


def longer_than_loop(claim: ResultClaim, work: Figures) -> Iterator[str]:
    """Work that lasts longer than the loop that it is in. Only the first or the last loop may lack one of the two."""
    loops = [each for each in claim.figures if each.kind is RowKind.LOOP]
    if len(loops) != 1 or work.kind is not RowKind.LENGTH or work.period_ns:
        return
    loop, more = loops[0], (work.count or 0) - (loops[0].count or 0)
    pairs = (
        ("shortest", "min", work.min_ns, loop.min_ns, more >= 0),
        ("longest", "max", work.max_ns, loop.max_ns, more <= 0 and not loop.at_least),
        ("mean", "mean", work.mean_ns, loop.mean_ns, more == 0),
    )
    for which, name, of_work, of_loop, paired in pairs:
        step = work.step(name) + loop.step(name) + ROUNDING_NS
        if paired and of_work is not None and of_loop is not None and of_work > of_loop + step:
            yield f"the {which} work of {shown(of_work)} is longer than the {which} loop of {shown(of_loop)}"


def small_part_of_run(claim: ResultClaim, each: Figures) -> Iterator[str]:
    """Cycles or loops that together last less than half of the run."""
    covers = each.kind is RowKind.LOOP or (each.kind is RowKind.LENGTH and each.period_ns)
    most = None if each.at_least else each.max_ns
    end, word = (most, "at most") if each.mean_ns is None else (each.mean_ns, "on average")
    if claim.span is None or claim.measured or not covers or not each.count or end is None:
        return
    step = max(each.step("min" if each.mean_ns is None else "mean"), ROUNDING_NS)
    if each.count * (end + step) < LEFT_OUT * claim.span.shortest_ns:
        lasts, of = duration(round(each.count * end)), duration(claim.span.told_ns)
        yield f"{each.count:,} lengths of {shown(end)} {word} last {lasts} together, of {of}"
