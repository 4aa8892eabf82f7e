# SPDX-License-Identifier: Apache-2.0
"""Check a run whose record was streamed: whether its own link disturbed it, and what the link did not bring away."""

from collections.abc import Iterator

from rtproof.core.phrases import instant, quantity
from rtproof.judge.doubts.case import WARNING, Check, CheckedRun
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.streaming import DroppedSamples, LinkShare, dropped_samples, link_share, times_away
from rtproof.summary.summary_model import Doubt

_SLIGHT = 0.01
"""From this share of one CPU on, the link matters wherever it ran: caches, memory and the bus are shared."""
_MOST = 1_000_000
"""Seconds of one stretch that are looked at: a damaged record may claim any length."""


def link_load(case: CheckedRun) -> Iterator[Doubt]:
    """The link worked on a measured CPU, or took much time on another one."""
    share = link_share(case.record)
    span_ns = max((summary.span_ns for summary in case.summaries), default=0)
    if share is None or not span_ns:
        return
    on = sorted(cpu for cpu in _measured(case, share) if cpu in _busy_cpus(share))
    of_a_cpu = share.cpu_ns / span_ns
    if on or of_a_cpu >= _SLIGHT:
        took = f"{100 * of_a_cpu:.2f} %"
        what = f"streaming took {took} of a CPU"
        if on:
            what = f"streaming used {quantity(len(on), 'measured CPU')} ({took})"
        where = f"on CPU {', '.join(map(str, on))}; " if on else ""
        detail = f"{where}{took} of a CPU, {_cost(share, span_ns)}"
        yield Doubt("link-load", WARNING, what, "compare without --stream", detail)


def _measured(case: CheckedRun, share: LinkShare) -> set[int]:
    """The CPUs of the measuring threads; a thread that is bound to none may have run on any."""
    cpus = {summary.series.cpu for summary in case.summaries}
    return _busy_cpus(share) if min(cpus, default=-1) < 0 else cpus


def _busy_cpus(share: LinkShare) -> set[int]:
    return set(share.cpus) | {cpu for cpu, count in (share.interrupts or {}).items() if count}


def _cost(share: LinkShare, span_ns: int) -> str:
    seconds = span_ns / SECOND_NS
    if share.interrupts is not None:
        came = quantity(sum(share.interrupts.values()), "interrupt")
        interrupts = f"{came} of {share.device} (whoever caused them)"
    elif share.device:
        interrupts = f"interrupts unknown: {share.device} has none of its own"
    else:
        interrupts = "interrupts unknown: the device is not known"
    return (
        f"{quantity(share.bytes, 'byte')} sent, {quantity(share.wakeups, 'wake-up')} "
        f"({share.wakeups / seconds:.1f}/s), {interrupts}"
    )


def samples_dropped(case: CheckedRun) -> Iterator[Doubt]:
    """The link was away or too slow for longer than the board's buffer lasts. Only single samples are lost by that."""
    stretches = dropped_samples(case.record)
    if not stretches:
        return
    samples = sum(each.samples for each in stretches)
    seconds = {second for each in stretches for second in _seconds(each)}
    detail = (
        f"of {quantity(len(seconds), 'second')} ({_ranges(seconds)}): the link was away or too slow{_when(case)}; the "
        "largest value and the counts of each second, the histogram and what is above the limits are whole, so the run "
        "is judged as with --record summary"
    )
    what = f"the link lost {quantity(samples, 'sample')}"
    yield Doubt("samples-dropped", WARNING, what, "mend it, or raise its buffer (stream=)", detail)


def _seconds(stretch: DroppedSamples) -> range:
    first = stretch.from_ns // SECOND_NS
    return range(first, min(stretch.to_ns // SECOND_NS, first + _MOST) + 1)


def _when(case: CheckedRun) -> str:
    origin_ns = case.record.begin.origin_realtime_ns
    told = [
        f"from {_clock(origin_ns, since)} {'until the end' if until is None else f'to {_clock(origin_ns, until)}'}"
        for since, until in times_away(case.record)
    ]
    shown = " and ".join(told[:3])
    more = f" and {quantity(len(told) - 3, 'more time')}" if len(told) > 3 else ""
    return f" {shown}{more} (UTC)" if told else ""


def _clock(origin_ns: int, offset_ns: int) -> str:
    """Such as 12:00:05. The date is that of the run."""
    return instant(origin_ns, offset_ns).partition(" ")[2].partition(".")[0] or "unknown"


def _ranges(seconds: set[int]) -> str:
    """Such as "65-105, 200", of at most four ranges."""
    found: list[list[int]] = []
    for second in sorted(seconds):
        if found and second == found[-1][1] + 1:
            found[-1][1] = second
        else:
            found.append([second, second])
    told = [str(first) if first == last else f"{first}-{last}" for first, last in found]
    return ", ".join(told[:4]) + (f" and {len(told) - 4} more ranges" if len(told) > 4 else "")


LINK_CHECKS: tuple[Check, ...] = (samples_dropped, link_load)
