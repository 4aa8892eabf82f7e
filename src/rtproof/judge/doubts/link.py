# SPDX-License-Identifier: Apache-2.0
"""Check a run whose record was streamed: whether its own link disturbed it, and what the link did not bring away."""

from collections.abc import Iterator

from rtproof.core.phrases import duration, instant, quantity
from rtproof.judge.doubts.case import WARNING, Check, CheckedRun, sentence_list
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.streaming import LinkShare, dropped_samples, link_share, times_away
from rtproof.summary.summary_model import Doubt

_SLIGHT = 0.01
"""From this share of one CPU on, the link matters wherever it ran: caches, memory and the bus are shared."""


def link_load(case: CheckedRun) -> Iterator[Doubt]:
    """The link worked on a measured CPU, or took much time on another one."""
    share = link_share(case.record)
    span_ns = max((summary.span_ns for summary in case.summaries), default=0)
    if share is None or not span_ns:
        return
    measured = {summary.series.cpu for summary in case.summaries}
    busy = set(share.cpus) | {cpu for cpu, count in (share.interrupts or {}).items() if count}
    on = sorted(busy if min(measured, default=-1) < 0 else busy & measured)  # Bound to none, it may run on any.
    of_a_cpu = share.cpu_ns / span_ns
    if on or of_a_cpu >= _SLIGHT:
        took = f"{100 * of_a_cpu:.2f} %"
        what = f"streaming took {took} of a CPU"
        if on:
            what = f"streaming used {quantity(len(on), 'measured CPU')} ({took})"
        where = f"on CPU {', '.join(map(str, on))}; " if on else ""
        detail = f"{where}{took} of a CPU, {_cost(share, span_ns)}"
        yield Doubt("link-load", WARNING, what, "compare without --stream", detail)


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
    first, last = (duration(max(ns, 0)) for ns in (stretches[0].from_ns, max(each.to_ns for each in stretches)))
    away = [
        f"{_clock(case, since)} to {'the end' if until is None else _clock(case, until)}"
        for since, until in times_away(case.record)
    ]
    detail = (
        f"between {first} and {last}: the link was {f'away ({sentence_list(away)} UTC)' if away else 'too slow'}; the "
        "largest value and the counts of each second, the histogram and what is above the limits are whole, so the run "
        "is judged as with --record summary"
    )
    what = f"the link lost {quantity(sum(each.samples for each in stretches), 'sample')}"
    yield Doubt("samples-dropped", WARNING, what, "mend it, or raise its buffer (stream=)", detail)


def _clock(case: CheckedRun, offset_ns: int) -> str:
    """Such as 12:00:05. The date is that of the run."""
    at = instant(case.record.begin.origin_realtime_ns, offset_ns)
    return at.partition(" ")[2].partition(".")[0] or "unknown"


LINK_CHECKS: tuple[Check, ...] = (samples_dropped, link_load)
