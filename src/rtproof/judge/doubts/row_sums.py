# SPDX-License-Identifier: Apache-2.0
"""Rules that hold the ends, the mean, the deviation and the counts of a row against each other and its length."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rtproof.core.phrases import duration, percent, value
from rtproof.judge.doubts.case import INVALID, WARNING
from rtproof.judge.doubts.result_row import Figures, ResultBins, ResultClaim, RowKind, contradictions, of_parts, shown
from rtproof.judge.doubts.row_counts import CLOCKS
from rtproof.summary.summary_model import Doubt

ROUNDING_NS = 1
"""Means and deviations of exact values are rounded too, and may lie on their bounds. This is the possible error."""
CYCLES = 50
"""An overloaded loop may run several times slower than asked. A factor above this shows a wrong unit."""


def sums(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Figures that contradict each other by arithmetic. Each printed figure may be off by a unit of its last digit."""
    for claim in claims:
        units = () if claim.measured else claim.figures
        alone = [(each, says) for each in claim.figures for says in _of_one(each)]
        alone += [(each, says) for each in units for says in _unit(each)]
        yield from of_parts(Doubt("sums", INVALID, "", "use none of them"), claim, alone)
        together = (*_fields(claim.figures), *_loops(claim.figures), *_parts(claim.figures))
        uncounted = () if together else _uncounted_tops(claim.figures)
        yield from (
            Doubt("sums", INVALID, contradictions(1), "use none of them", says, (claim.name,)) for says in together
        )
        yield from (Doubt("sums", WARNING, UNCOUNTED, "use none of them", says, (claim.name,)) for says in uncounted)


def _of_one(each: Figures) -> Iterator[str]:
    if each.out_of_band is not None and each.count is not None and each.out_of_band > each.count:
        yield f"{each.out_of_band:,} of {each.count:,} values are out of band"
    if each.count == 0 and each.max_ns and (each.counts is None or each.beyond == 0):
        yield f"it counts no value, and its maximum is {shown(each.max_ns)}"
    if not each.count and each.count is not None:
        return
    if each.min_ns is None or each.mean_ns is None or each.max_ns is None or each.at_least:
        return
    least, most = _means(each, each.min_ns, each.max_ns)
    step = max(each.step("min"), each.step("mean"), each.step("max"), ROUNDING_NS)
    if each.count == 1 and least > most + step:
        yield f"its only value has a minimum of {shown(each.min_ns)} and a maximum of {shown(each.max_ns)}"
        return
    if not least - step <= each.mean_ns <= most + step:
        of = f" of {each.count:,} values" if each.count else ""
        yield f"its mean {shown(each.mean_ns)} is not between {shown(least)} and {shown(most)}, as it has to be{of}"
        return
    yield from _deviation(each, each.min_ns, each.mean_ns, each.max_ns)


def _means(each: Figures, least: float, most: float) -> tuple[float, float]:
    """The smallest and the largest possible mean of values with these ends.

    One value is the smallest, one is the largest, and all others lie between them. Each end may be wrong by one step.
    This error weighs no more than one value in the mean.
    """
    if not each.count:
        return least, most
    part = max(most - least - each.step("min") - each.step("max"), 0) / each.count
    return least + part, most - part


def _unit(each: Figures) -> Iterator[str]:
    """Lengths that are no cycles of this period. rtproof mistakes no unit: a loop of its own may be so overloaded."""
    period = each.period_ns if each.kind is RowKind.LENGTH else None
    if period and each.min_ns is not None and each.min_ns > CYCLES * period:
        yield f"its shortest cycle is {shown(each.min_ns)}, where the period is {shown(period)}: a unit is wrong"
    if period and each.max_ns is not None and each.max_ns < period / CYCLES:
        yield f"its longest cycle is {shown(each.max_ns)}, where the period is {shown(period)}: a unit is wrong"


def _deviation(each: Figures, least: float, mean: float, most: float) -> Iterator[str]:
    """A standard deviation that is impossible with these ends, mean and count.

    It is largest if all values lie at the ends (Bhatia and Davis 2000), and smallest if only one value lies at each.
    """
    if each.deviation_ns is None or each.count is None or each.count < 2:
        return
    n, step = each.count, max(each.step("deviation"), ROUNDING_NS)
    rooms = [max(each.step("mean"), ROUNDING_NS) + max(each.step(end), ROUNDING_NS) for end in ("min", "max")]
    largest = math.sqrt((mean - least + rooms[0]) * (most - mean + rooms[1]) * n / (n - 1))
    ends = [max(abs(end - mean) - room, 0) for end, room in zip((least, most), rooms, strict=True)]
    smallest = math.hypot(*ends) / math.sqrt(n) if least < most else 0
    if not smallest - step <= each.deviation_ns <= largest + step:
        yield (
            f"a standard deviation of {shown(each.deviation_ns)} cannot be: with this minimum, mean, maximum and "
            f"count it lies between {shown(smallest)} and {shown(largest)}"
        )


def _fields(several: Sequence[Figures]) -> Iterator[str]:
    """Contradictions between the fields of an application.

    All fields have the same activations. Only the first or the last loop may lack a field.
    """
    if not any(each.kind is RowKind.LOOP for each in several):
        return
    counts = {each.name: each.count for each in several if each.count is not None}
    periods = {each.name: each.period_ns for each in several if each.period_ns is not None}
    if counts and max(counts.values()) - min(counts.values()) > 1:
        told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        yield f"its fields are of the same activations and do not have as many values ({told})"
    if len(set(periods.values())) > 1:
        yield f"its fields have different periods ({', '.join(f'{name} {shown(ns)}' for name, ns in periods.items())})"


def _loop_and_top(several: Sequence[Figures]) -> tuple[Figures, Figures]:
    """The loops of an application and their tops; figures that say nothing unless there is one of each."""
    loops, tops = ([each for each in several if each.kind is kind] for kind in (RowKind.LOOP, RowKind.TOP))
    return (loops[0], tops[0]) if len(loops) == len(tops) == 1 else (Figures(""), Figures(""))


def _loops(several: Sequence[Figures]) -> Iterator[str]:
    """Contradictions between the lengths of loops and the latencies of their tops, with absolute due times.

    Loop i lasts a period, plus how late its end was, minus how late its top was. So all loops together differ from
    their periods only by the latencies at both ends. No loop differs from the period by more than the largest latency.
    This holds even if the first top was not counted: no timer woke it, and it is not early.
    """
    loop, top = _loop_and_top(several)
    if not loop.period_ns or top.max_ns is None:
        return
    period, step = loop.period_ns, loop.step_ns + top.step_ns
    reach = top.max_ns - min(top.min_ns or 0, 0)
    if loop.mean_ns is not None and loop.count and abs(loop.mean_ns - period) > reach / loop.count + step:
        whole = shown(abs(loop.mean_ns - period) * loop.count)
        yield (
            f"{loop.count:,} loops of {shown(loop.mean_ns)} on average do not add up to as many periods of "
            f"{value(period)}: {whole} are missing or too many, and no top of a loop was later than {shown(reach)}"
        )
    for end, which in ((loop.max_ns, "longest"), (loop.min_ns, "shortest")):
        if end is not None and abs(end - period) > reach + step:
            yield (
                f"the {which} loop of {shown(end)} differs from the period of {value(period)} by more than any top of "
                f"a loop was late ({shown(reach)})"
            )


UNCOUNTED = "a loop is off by more than its tops vary"
FEWEST_LOOPS = 500
"""Of so many tops in any order, one that was not counted lies outside of all others with a probability below 1 %."""


def _uncounted_tops(several: Sequence[Figures]) -> Iterator[str]:
    """Loops that no two of the counted tops can be the ends of.

    A loop from one counted top to the next differs from the period by no more than the tops vary, and a difference of
    two tops has at most twice their deviation. With fewer tops than ends of loops, the first or the last loop may have
    an end that was not counted.
    """
    loop, top = _loop_and_top(several)
    period, count = loop.period_ns, loop.count or 0
    all_counted = 1 < count < (top.count or 0)
    if not period or top.max_ns is None or top.min_ns is None or top.at_least:
        return
    if not all_counted and count < FEWEST_LOOPS:
        return
    spread = top.max_ns - top.min_ns
    for end, which, name in ((loop.max_ns, "longest", "max"), (loop.min_ns, "shortest", "min")):
        step = loop.step(name) + top.step("min") + top.step("max")
        if end is not None and abs(end - period) > spread + step:
            way_out = "" if all_counted else ": it began or ended at a top that was not counted, or a figure is wrong"
            yield (
                f"the {which} loop of {shown(end)} differs from the period of {value(period)} by "
                f"{shown(abs(end - period))}, and the tops vary by {shown(spread)}{way_out}"
            )
    yield from _deviation_of_loops(loop, top, count)


def _deviation_of_loops(loop: Figures, top: Figures, count: int) -> Iterator[str]:
    """A deviation that loops cannot have, because each is a period and the difference of two tops."""
    if loop.deviation_ns is None or top.deviation_ns is None or top.max_ns is None:
        return
    uncounted = (top.max_ns - min(top.min_ns or 0, 0)) ** 2 / (count - 1)
    of_tops = 2 * (top.deviation_ns + max(top.step("deviation"), ROUNDING_NS))
    most = math.sqrt(of_tops**2 * (count + 1) / (count - 1) + uncounted)
    if loop.deviation_ns > most + max(loop.step("deviation"), ROUNDING_NS):
        yield (
            f"a standard deviation of {shown(loop.deviation_ns)} is too large for loops between tops that have one of "
            f"{shown(top.deviation_ns)}: it is {shown(most)} at most"
        )


PARTS = (("interrupt", "preemption"),)
"""Names of fields of the same activations. The first is a part of the second in each of them."""


def _parts(several: Sequence[Figures]) -> Iterator[str]:
    """Ends, means and percentiles of a part that are larger than those of the whole."""
    fields = {each.name: each for each in several}
    for part, whole in ((fields[a], fields[b]) for a, b in PARTS if a in fields and b in fields):
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
                yield (
                    f"the {which} of its {part.name} is {shown(of_part)}, longer than {shown(of_whole)} of its "
                    f"{whole.name}, which it is a part of"
                )


LEFT_OUT = 0.5
"""Loops at the beginning may be left out. If more than this part of the run is in no loop, most were not counted."""


def lengths(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Cycles or works that together last longer than the run, or work that lasts longer than the loop that it is in.

    Cycles, loops and the works in them follow one another in a thread. So n times their mean fits into the length of
    the run. Latencies do not follow one another: one thread may be late for several activations at once.
    """
    for claim in claims:
        wrong = (*_against_run(claim), *_later_than_the_run(claim), *_against_loop(claim))
        yield from of_parts(Doubt("lengths", INVALID, "", "use none of them"), claim, wrong)


def _against_run(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    for each in claim.figures:
        if claim.span is None or not each.count or each.kind not in (RowKind.LENGTH, RowKind.LOOP):
            continue
        step = max(each.step("min" if each.mean_ns is None else "mean"), ROUNDING_NS)
        longest, shortest = claim.span.longest_ns * (1 + CLOCKS), claim.span.shortest_ns
        number = f"{each.count:,} lengths"
        typical, word = (each.min_ns, "or more") if each.mean_ns is None else (each.mean_ns, "on average")
        whole = each.count * (typical - step) if typical is not None else 0
        in_bins = _least_in_bins(each)
        if typical is not None and whole > each.loops * (longest + (each.max_ns or 0) + step):
            yield each, f"{number} of {shown(typical)} {word} do not fit into {duration(claim.span.longest_ns)}"
        elif in_bins > longest + (each.max_ns or 0):
            lasts = duration(round(in_bins))
            yield each, f"the values of its bins last {lasts} together, of {duration(claim.span.told_ns)}"
        elif each.max_ns is not None and each.max_ns - each.step("max") > longest:
            yield each, f"the longest of {shown(each.max_ns)} does not fit into {duration(claim.span.longest_ns)}"
        else:
            covers = each.kind is RowKind.LOOP or each.period_ns
            most = None if each.at_least else each.max_ns
            end, word = (most, "at most") if each.mean_ns is None else (each.mean_ns, "on average")
            short = end is not None and each.count * (end + step) < LEFT_OUT * shortest
            if covers and short and end is not None and not claim.measured:
                lasts, of = duration(round(each.count * end)), duration(claim.span.told_ns)
                yield each, f"{number} of {shown(end)} {word} last {lasts} together, of {of}"


def _least_in_bins(each: Figures) -> float:
    """The shortest time that the values in the bins can last together."""
    return 0.0 if each.counts is None else float(np.maximum(each.counts.lo, 0).astype(np.float64) @ each.counts.n)


def _later_than_the_run(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    """A latency that a tool saw is over before the tool tells its length. A run of rtproof waits for the last one."""
    if claim.span is None or claim.measured:
        return
    longest = claim.span.longest_ns * (1 + CLOCKS)
    for each in claim.figures:
        if each.kind is RowKind.LATENCY and each.max_ns is not None and each.max_ns - each.step("max") > longest:
            length = duration(claim.span.longest_ns)
            yield each, f"its largest value {shown(each.max_ns)} does not fit into {length}"


def _against_loop(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    """Each work is a part of its loop. Only the first or the last loop may lack one of the two."""
    loops = [each for each in claim.figures if each.kind is RowKind.LOOP]
    works = [each for each in claim.figures if each.kind is RowKind.LENGTH and not each.period_ns]
    for work in works if len(loops) == 1 else ():
        loop = loops[0]
        more = (work.count or 0) - (loop.count or 0)
        pairs = (
            ("shortest", work.min_ns, loop.min_ns, more >= 0),
            ("longest", work.max_ns, loop.max_ns, more <= 0 and not loop.at_least),
            ("mean", *_paired_means(work, loop), True),
        )
        names = {"shortest": "min", "longest": "max", "mean": "mean"}
        for which, of_work, of_loop, paired in pairs:
            step = work.step(names[which]) + loop.step(names[which]) + ROUNDING_NS
            if paired and of_work is not None and of_loop is not None and of_work > of_loop + step:
                yield (
                    work,
                    f"the {which} work of {shown(of_work)} is longer than the {which} loop of {shown(of_loop)}",
                )


def _paired_means(work: Figures, loop: Figures) -> tuple[float | None, float | None]:
    """The smallest possible mean of the works that have a loop, and the largest of the loops that have a work.

    A work without a loop may have been the longest, and a loop without a work as well.
    """
    if work.mean_ns is None or loop.mean_ns is None:
        return None, None
    if not work.count or not loop.count or work.count == loop.count:
        return work.mean_ns, loop.mean_ns
    if work.count > loop.count:
        if work.max_ns is None:
            return None, None
        return (work.count * work.mean_ns - (work.count - loop.count) * work.max_ns) / loop.count, loop.mean_ns
    shortest = loop.min_ns or 0
    return work.mean_ns, (loop.count * loop.mean_ns - (loop.count - work.count) * shortest) / work.count
