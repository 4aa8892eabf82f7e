# SPDX-License-Identifier: Apache-2.0
"""Rules that hold ends, mean, deviation and number of values of a row against each other, and against its length."""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from rtproof.core.phrases import duration, value
from rtproof.judge.doubts import row_fields
from rtproof.judge.doubts.case import INVALID, TOLERANCE, WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, contradictions, counted, of_parts, shown
from rtproof.summary.summary_model import Doubt

NOWHERE = "the others are in no minimum, mean or maximum"
CHARGED = "only the schedule view counts the others"


def samples_missing(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Fewer samples than the stated length has room for. Activations that never ran are in no minimum, mean or maximum.

    The rule takes the shortest length that the printed digits allow. A further thousandth may be missing, because
    programs start their threads one by one and end by a signal.
    """
    for claim in claims:
        found, gone, all_due, length = [], 0, 0, duration(claim.span.told_ns) if claim.span else ""
        for each, count, (due, least, _) in counted(claim):
            if count < least - max(1, int(TOLERANCE * least)):
                gone, all_due = gone + due - count, all_due + due
                of = f"{count:,} samples where {due:,} were due in {length} ({100 * count / due:.1f} %)"
                found.append((each, f"{of}; {CHARGED if claim.measured else NOWHERE}"))
        told = (f"{gone:,} of {all_due:,} samples are missing", "find what stops them")
        if claim.measured:
            told = (f"{gone:,} of {all_due:,} activations never ran", "find what blocks them")
        yield from of_parts(Doubt("samples-missing", WARNING, *told), claim, found)


CLOCKS = 500e-6
WRONG = 0.01
"""No clock is off by this share."""


def samples_surplus(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """More samples than the stated length has room for: the clock of the period and the clock of the run differ.

    Two clocks of one board may differ by 500 parts in a million, as NTP may slew one of them. Crystals differ by less.
    """
    for claim in claims:
        found, surplus, impossible = [], 0, False
        for each, count, (_, _, most) in counted(claim):
            more, room = count - most, duration(claim.span.longest_ns) if claim.span else ""
            if more > 1 + int(CLOCKS * most):
                surplus, impossible = surplus + more, impossible or more > WRONG * count
                found.append((each, f"{count:,} samples, {more:,} more than {room} has room for: a clock is wrong"))
        severity = INVALID if impossible and not claim.measured else WARNING
        doubt = Doubt("samples-surplus", severity, f"{surplus:,} samples too many", "check the clock")
        yield from of_parts(doubt, claim, found)


MIDDLE = (0.25, 0.75)
"""The part of the range in which the mean of an even spread may lie: its middle half."""
LATTICE_NS = 10_000
"""A finer lattice hides nothing: the smallest published latencies of a task are larger than its step."""


def tick(claim: ResultClaim, each: Figures) -> Iterator[str]:
    """A timer with coarse ticks: the row shows the tick and not how the system schedules.

    A timer that fires only at its own ticks is late by anything up to one tick, so the mean lies near the middle of the
    range. Latencies from disturbance have a mean close to the minimum. Samples show coarse ticks if all values lie on a
    lattice. Of a measured run a check judges the median, which tells more than the ends of the range.
    """
    period, least, mean, most = each.period_ns, each.min_ns, each.mean_ns, each.max_ns
    if each.lattice_ns is not None and each.lattice_ns >= LATTICE_NS:
        yield f"all values are {value(each.lattice_ns)} apart or a multiple of that: the clock ticks no finer"
    elif claim.measured or each.kind is not RowKind.LATENCY or each.at_least:
        return
    elif period and least is not None and mean is not None and most is not None:
        width = most - least
        if width >= period and MIDDLE[0] <= (mean - least) / width <= MIDDLE[1]:
            yield (
                f"at a period of {value(period)} the lateness ranges over {shown(width)} with its mean ({shown(mean)}) "
                "near the middle, as of a timer that ticks no finer than that"
            )


def backlog(claim: ResultClaim, figures: Figures) -> Iterator[str]:
    """A wake-up is late by many periods, but the row shows neither late nor missing activations behind it.

    While a wake-up is late by N periods, N more activations come due. Those that run afterwards are late too, the last
    of them least. So M of them are above the smallest latency by M/2 periods on average. Nothing is earlier than the
    smallest latency. Those that never ran are missing from the number that the length has room for.
    """
    for each, count, (_, _, most) in counted(claim):
        if each is not figures or each.max_ns is None or each.mean_ns is None or each.min_ns is None:
            continue
        period_ns = each.period_ns or 1
        above_ns = each.max_ns - each.min_ns - each.step("max") - each.step("min")
        behind = int(above_ns // period_ns) - max(most - count, 0) - 1
        least_ns = each.min_ns - each.step("min") + period_ns * behind**2 / 2 / max(count, 1)
        if behind > 0 and least_ns > each.mean_ns + each.step("mean"):
            yield (
                f"its largest value {shown(each.max_ns)} spans {behind:,} periods, and no sample of these is missing; "
                f"they were late too, so the mean would be {shown(least_ns)} or more"
            )


ROUNDING_NS = 1
"""Means and deviations of exact values are rounded too, and may lie on their bounds. This is the possible error."""
FOLLOW = (RowKind.LENGTH, RowKind.LOOP)
"""Kinds whose values follow one another in a thread."""
FEWEST_LOOPS = 500
"""Of so many tops in any order, one that was not counted lies outside of all others with a probability below 1 %."""


def sums(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Figures that contradict each other by arithmetic. Each printed figure may be off by a unit of its last digit."""
    for claim in claims:
        alone = [(each, says) for each in claim.figures for says in _of_one(each)]
        units = () if claim.measured else claim.figures
        alone += [(each, says) for each in units for says in row_fields.wrong_unit(each)]
        yield from of_parts(Doubt("sums", INVALID, "", "use none of them"), claim, alone)
        fields = [*row_fields.unlike_fields(claim.figures), *row_fields.larger_parts(claim.figures)]
        for impossible, says in (*((True, each) for each in fields), *_loops(claim.figures)):
            what = contradictions(1) if impossible else "a loop is off by more than its tops vary"
            yield Doubt("sums", INVALID if impossible else WARNING, what, "use none of them", says, (claim.name,))


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
    elif not least - step <= each.mean_ns <= most + step:
        of = f" of {each.count:,} values" if each.count else ""
        yield f"its mean {shown(each.mean_ns)} is not between {shown(least)} and {shown(most)}, as it has to be{of}"
    else:
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


def _deviation(each: Figures, least: float, mean: float, most: float) -> Iterator[str]:
    """A standard deviation that is impossible with these ends, mean and count (Bhatia and Davis 2000)."""
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


def _loops(several: Sequence[Figures]) -> Iterator[tuple[bool, str]]:
    """Lengths of loops that the latencies of their tops do not allow, with absolute due times; True: impossible.

    Loop i lasts a period, plus how late its end was, minus how late its top was. So all loops together differ from
    their periods only by the latencies at both ends, and no loop by more than the largest latency, even if the first
    top was not counted: no timer woke it, and it is not early. A loop between two counted tops differs by no more than
    the tops vary. With fewer tops than ends of loops, the first or the last loop may have an end that was not counted.
    """
    loops, tops = ([each for each in several if each.kind is kind] for kind in (RowKind.LOOP, RowKind.TOP))
    if len(loops) != 1 or len(tops) != 1 or not loops[0].period_ns or tops[0].max_ns is None:
        return
    loop, top, period, count = loops[0], tops[0], loops[0].period_ns, loops[0].count or 0
    reach, step = tops[0].max_ns - min(top.min_ns or 0, 0), loop.step_ns + top.step_ns
    if loop.mean_ns is not None and count and abs(loop.mean_ns - period) > reach / count + step:
        whole = shown(abs(loop.mean_ns - period) * count)
        yield (
            True,
            f"{count:,} loops of {shown(loop.mean_ns)} on average do not add up to as many periods of "
            f"{value(period)}: {whole} are missing or too many, and no top of a loop was later than {shown(reach)}",
        )
    all_counted = 1 < count < (top.count or 0)
    known = top.min_ns is not None and not top.at_least and (all_counted or count >= FEWEST_LOOPS)
    spread = top.max_ns - (top.min_ns or 0) if known and top.max_ns is not None else math.inf
    for end, which, name in ((loop.max_ns, "longest", "max"), (loop.min_ns, "shortest", "min")):
        off = 0 if end is None else abs(end - period)
        says = f"the {which} loop of {shown(end or 0)} differs from the period of {value(period)} by {shown(off)}"
        if off > reach + step:
            yield True, f"{says}, and no top of a loop was later than {shown(reach)}"
        elif off > spread + loop.step(name) + top.step("min") + top.step("max"):
            way_out = "" if all_counted else ": it began or ended at a top that was not counted, or a figure is wrong"
            yield False, f"{says}, and the tops vary by {shown(spread)}{way_out}"
    for says in row_fields.spread_of_loops(loop, top) if known else ():
        yield False, says


def lengths(claim: ResultClaim, each: Figures) -> Iterator[str]:
    """Cycles or works that together last longer than the run, or one value that does; work longer than its loop.

    Cycles, loops and the works in them follow one another in a thread. So n times their mean fits into the length of
    the run. Latencies do not follow one another: one thread may be late for several activations at once. A run of
    rtproof waits for the last latency.
    """
    yield from row_fields.longer_than_loop(claim, each)
    latency = each.kind is RowKind.LATENCY
    if claim.span is None or (claim.measured if latency else not each.count or each.kind not in FOLLOW):
        return
    longest, most = claim.span.longest_ns * (1 + CLOCKS), each.max_ns or 0
    step = max(each.step("min" if each.mean_ns is None else "mean"), ROUNDING_NS)
    typical, word = (each.min_ns, "or more") if each.mean_ns is None else (each.mean_ns, "on average")
    in_bins = 0.0 if each.counts is None else float(np.maximum(each.counts.lo, 0).astype(np.float64) @ each.counts.n)
    into = f"not fit into {duration(claim.span.longest_ns)}"
    if not latency and (each.count or 0) * ((typical or 0) - step) > each.loops * (longest + most + step):
        yield f"{each.count:,} lengths of {shown(typical or 0)} {word} do {into}"
    elif not latency and in_bins > longest + most:
        yield f"the values of its bins last {duration(round(in_bins))} together, of {duration(claim.span.told_ns)}"
    elif most - each.step("max") > longest:
        yield f"its largest value {shown(most)} does {into}"
    else:
        yield from row_fields.small_part_of_run(claim, each)
