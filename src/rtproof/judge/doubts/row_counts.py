# SPDX-License-Identifier: Apache-2.0
"""Rules that hold the number of values in a row against the length of the run, and against the ends."""

from collections.abc import Iterable, Iterator, Sequence

from rtproof.core.phrases import duration, value
from rtproof.judge.doubts.case import INVALID, TOLERANCE, WARNING
from rtproof.judge.doubts.result_row import Figures, ResultClaim, RowKind, counted, of_parts
from rtproof.summary.summary_model import Doubt

NOWHERE = "the others are in no minimum, mean or maximum"
CHARGED = "only the schedule view counts the others"


def samples_missing(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """Fewer samples than the stated length has room for. Activations that never ran are in no minimum, mean or maximum.

    The rule takes the shortest length that the printed digits allow. "11 h 09 min" may have been half a minute less,
    and "-D30m" is exact. A further thousandth may be missing, as in a measured run, because programs start their
    threads one by one and end by a signal.
    """
    for claim in claims:
        found = list(_short(claim))
        gone, due = (sum(numbers[side] for _, _, numbers in found) for side in (0, 1))
        told = (f"{gone:,} of {due:,} samples are missing", "find what stops them")
        if claim.measured:
            told = (f"{gone:,} of {due:,} activations never ran", "find what blocks them")
        doubt = Doubt("samples-missing", WARNING, *told)
        yield from of_parts(doubt, claim, ((each, detail) for each, detail, _ in found))


def _short(claim: ResultClaim) -> Iterator[tuple[Figures, str, tuple[int, int]]]:
    """Figures with too few samples; how many are missing, and how many were due."""
    for each, count, (told, least, _) in counted(claim):
        if claim.span and count < least - max(1, int(TOLERANCE * least)):
            of = f"{told:,} were due in {duration(claim.span.told_ns)}"
            detail = f"{count:,} samples where {of} ({100 * count / told:.1f} %)"
            yield each, f"{detail}; {CHARGED if claim.measured else NOWHERE}", (told - count, told)


CLOCKS = 500e-6
WRONG = 0.01
"""No clock is off by this share."""


def samples_surplus(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """More samples than the stated length has room for: the clock of the period and the clock of the run differ.

    Two clocks of one board may differ by 500 parts in a million, because the kernel lets NTP slew one of them by so
    much. Crystals differ by less, and no clock is off by a hundredth. A measured run uses one clock for both and has no
    such excuse, so its doubt is stricter.
    """
    for claim in claims:
        found = list(_long(claim))
        surplus = sum(more for _, _, more in found)
        impossible = any(more > WRONG * (each.count or 0) for each, _, more in found)
        severity = INVALID if impossible and not claim.measured else WARNING
        yield from of_parts(
            Doubt("samples-surplus", severity, f"{surplus:,} samples too many", "check the clock"),
            claim,
            ((each, detail) for each, detail, _ in found),
        )


def _long(claim: ResultClaim) -> Iterator[tuple[Figures, str, int]]:
    for each, count, (_, _, most) in counted(claim):
        if claim.span and count > most + 1 + int(CLOCKS * most):
            room = f"{count - most:,} more than {duration(claim.span.longest_ns)} has room for"
            share = f" ({100 * count / most:.2f} %)" if most else ""
            yield each, f"{count:,} samples, {room}{share}: one of the two clocks is wrong", count - most


MIDDLE = (0.25, 0.75)
"""The part of the range in which the mean of an even spread may lie: its middle half."""
LATTICE_NS = 10_000
"""A finer lattice hides nothing: the smallest published latencies of a task are larger than its step."""


def granularity(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """A timer with coarse ticks: the row shows the tick and not how the system schedules.

    A timer that fires only at its own ticks is late by anything up to one tick, each value as likely. So the mean lies
    near the middle of the range. If the tick is longer than the period, the range is longer than the period too.
    Latencies from disturbance look different: their mean lies close to the minimum, and only the maximum is far away.
    Samples show coarse ticks if all values lie on a lattice. Of a measured run the
    check judges the median, which tells more than the ends of the range.
    """
    for claim in claims:
        doubt = Doubt("granularity", WARNING, "the values show the tick of a clock", "use a finer clock")
        ticks = ((each, _tick(each, measured=claim.measured)) for each in claim.figures)
        yield from of_parts(doubt, claim, ((each, says) for each, says in ticks if says))


def _tick(each: Figures, *, measured: bool) -> str:
    if each.lattice_ns is not None and each.lattice_ns >= LATTICE_NS:
        return f"all values are {value(each.lattice_ns)} apart or a multiple of that: the clock ticks no finer"
    period, least, mean, most = each.period_ns, each.min_ns, each.mean_ns, each.max_ns
    if measured or each.kind is not RowKind.LATENCY or each.at_least:
        return ""
    if not period or least is None or mean is None or most is None:
        return ""
    width = most - least
    if width < period or not MIDDLE[0] <= (mean - least) / width <= MIDDLE[1]:
        return ""
    return (
        f"at a period of {value(period)} the lateness ranges over {value(round(width))} with its mean "
        f"({value(round(mean))}) near the middle, as of a timer that ticks no finer than that"
    )


def backlog(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
    """A wake-up is late by many periods, but the row shows neither late nor missing activations behind it.

    While a wake-up is late by N periods, N more activations come due. Those that run afterwards are late too, the last
    of them least. So M of them are above the smallest latency by M/2 periods on average. Nothing is earlier than the
    smallest latency. Those that never ran are missing from the number that the length has room for.
    """
    for claim in claims:
        yield from of_parts(Doubt("backlog", WARNING, "", "measure again"), claim, _alone(claim))


def _alone(claim: ResultClaim) -> Iterator[tuple[Figures, str]]:
    for each, count, (_, _, most) in counted(claim):
        if each.max_ns is None or each.mean_ns is None or each.min_ns is None or not each.period_ns:
            continue
        above_ns = each.max_ns - each.min_ns - each.step("max") - each.step("min")
        behind = int(above_ns // each.period_ns) - max(most - count, 0) - 1
        least_ns = each.min_ns - each.step("min") + each.period_ns * behind**2 / 2 / max(count, 1)
        if behind > 0 and least_ns > each.mean_ns + each.step("mean"):
            yield (
                each,
                f"its largest value {value(round(each.max_ns))} spans {behind:,} periods, and no sample of these is "
                f"missing; they were late too, so the mean would be {value(round(least_ns))} or more",
            )
