# SPDX-License-Identifier: Apache-2.0
"""Check the numbers of activations against each other, the time and the request; and the order of the stages."""

from collections.abc import Iterator

from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.judge.doubts.case import (
    INVALID,
    TOLERANCE,
    WARNING,
    Check,
    CheckedRun,
    name_threads,
    sentence_list,
    series_name,
    severity_of,
)
from rtproof.record.contents import EndReason, Moment, View
from rtproof.record.requirement import rated
from rtproof.summary.kernel_trace import lost_trace_events
from rtproof.summary.loops import LOOP_FIELDS, is_app
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.quantiles import quantile
from rtproof.summary.recorded_facts import ends_when_decided, source_counts, stalled_since_ns
from rtproof.summary.summary_model import Doubt, Summary

_LATE = 0.5
"""From this median latency on, in periods, a timer is called coarse."""


def nothing_measured(case: CheckedRun) -> Iterator[Doubt]:
    stalled_ones = _stalled_threads(case)
    names = [s.series.thread for s in case.summaries if not s.observed.count and s.series.thread not in stalled_ones]
    if names or not case.summaries:
        what = f"{name_threads(names)} measured nothing" if names else "the record has no thread"
        yield Doubt("nothing-measured", INVALID, what, "see the agent's messages")


def activations_missing(case: CheckedRun) -> Iterator[Doubt]:
    """Due times that left no trace, or more activations than the time has periods. A stall is a result instead."""
    for summary in case.summaries:
        (due, least), known = _due(case, summary), _seen(summary) + summary.lost
        room, seen, thread = _room(case, summary), _seen(summary), summary.series.thread
        if 0 < known < least and thread not in _stalled_threads(case):
            what = f"the record lacks {percent(round(1 - known / due, 3))} of thread {thread}'s activations"
            detail = f"{due:,} were due, {known:,} are accounted for"
            yield Doubt("samples-missing", INVALID, what, "see what stops it", detail)
        if room is not None and seen > room + 1:
            what = f"thread {thread} has {quantity(seen - room, 'activation')} too many"
            detail = f"it has {seen:,}, and the time has room for {room:,}: one of the two clocks is wrong"
            yield Doubt("samples-surplus", severity_of(seen - room, room), what, "check the clock", detail)


def lost(case: CheckedRun) -> Iterator[Doubt]:
    """Values that the agent could not keep. The largest may be among them."""
    gone, expected = _gone(case)
    if gone and not _lost_chunks(case):
        detail = "the largest may be among them; a longer period, a faster disk or --record summary helps, too"
        if any(summary.series.external for summary in case.summaries):
            detail += "; the source of the events may have been late itself, so leave it a CPU"
        what = f"{gone:,} of {expected:,} values were lost"
        yield Doubt("lost", severity_of(gone, expected), what, "leave a CPU free for the agent's writer", detail)


def late_start(case: CheckedRun) -> Iterator[Doubt]:
    """Due times before the first activation in the record. A warm-up that ended late took them."""
    for summary in case.summaries:
        late = _late_by(summary)
        if late:
            what = f"thread {summary.series.thread} began {quantity(late, 'activation')} late"
            yield Doubt("late-start", WARNING, what, "lengthen the warm-up", "no figure counts these activations")


def totals(case: CheckedRun) -> Iterator[Doubt]:
    """The agent's totals of each series differ from the record. The agent counts them apart from samples and slices."""
    said = {t.series: t.obtained + t.missed + t.lost for t in case.record.end.totals} if case.record.end else {}
    for summary in case.every:
        known = _seen(summary) + summary.lost
        differ = said.get(summary.series.id, known) - known
        if abs(differ) > 1 and differ != _late_by(summary):
            number = quantity(abs(differ), "activation")
            what = f"the record lacks {number}" if differ > 0 else f"the record has {number} too many"
            detail = (
                f"{series_name(case, summary.series)}, by the agent's own count; if the record is no copy, this is a "
                "fault of rtproof"
            )
            yield Doubt("totals", severity_of(abs(differ), known), what, "copy it again", detail)


def largest_differs(case: CheckedRun) -> Iterator[Doubt]:
    """The parts of a whole record each know the largest latency of a series. If they differ, one of them is wrong."""
    record = case.record
    for series in record.series if record.end is not None and not _lost_chunks(case) else ():
        seconds, top = record.seconds.get(series.id), record.top.get(series.id)
        told = {
            "SUMMARY": [s.max for s in record.slices if (s.series, s.view) == (series.id, View.OBSERVED) and s.count],
            "SECONDS": seconds.max[seconds.obtained > 0].tolist() if seconds else [],
            "TOP": top.value.tolist() if top else [],
        }
        known = {part: max(values) for part, values in told.items() if values}
        if len(set(known.values())) > 1:
            what = "the record contradicts itself about the largest latency"
            detail = f"{series_name(case, series)}: " + ", ".join(f"{part} {value(ns)}" for part, ns in known.items())
            yield Doubt("contradiction", INVALID, what, "copy it again", detail)


def truncated(case: CheckedRun) -> Iterator[Doubt]:
    """Without END nobody knows how the run ended. The rest is judged for the time that it covers."""
    if case.record.end is None:
        asked = case.number("duration_ns")
        covered = max((s.span_ns for s in case.summaries), default=0)
        what = f"the record was cut off after {duration(covered)}" + (f" of {duration(asked)}" if asked else "")
        unbinned = sum(s.unbinned for s in case.summaries)
        only = f"; of {unbinned:,} activations only the largest of each second is known; no percentile counts them"
        detail = f"find what ended the agent or the copy{only if unbinned else ''}"
        yield Doubt("truncated", WARNING, what, "measure again", detail)


def limit(case: CheckedRun) -> Iterator[Doubt]:
    """A run that ended because the probe found what the user asked for. It is complete, however short it is."""
    for event in case.events("limit"):
        what = f"the run ended after {duration(max(event.time_ns, 0))}"
        yield Doubt("limit", WARNING, what, "use its figures up to then", event.text)


def ended_early(case: CheckedRun) -> Iterator[Doubt]:
    """A run that ended before its time, with the reason. Other checks cover a load that died and the guard."""
    end, why = (
        case.record.end,
        {
            EndReason.INTERRUPTED: "the run was interrupted",
            EndReason.NO_SPACE: "the medium was full",
            EndReason.HOST_GONE: "the host was gone",
            EndReason.ERROR: "the run failed",
        },
    )
    if end is None or end.reason not in why:
        return
    severity = INVALID if end.reason is EndReason.ERROR else WARNING
    remedy, detail = "measure again to the end", end.text
    if end.reason is EndReason.INTERRUPTED and ends_when_decided(case.record):
        remedy = "judge it by its own limits"
        detail = "; ".join(filter(None, (detail, "it was to end as soon as the limits in its run.json were decided")))
    what = f"{why[end.reason]} after {duration(max(end.time_ns, 0))}"
    yield Doubt("ended-early", severity, what, remedy, detail)


def damage(case: CheckedRun) -> Iterator[Doubt]:
    """Parts of the file that could not be read. What is lost may be an exceedance, or what makes the run INVALID.

    Of a record that was cut off no more than its end is missing, as long as few activations are. A missing END is no
    such part: it has a doubt of its own.
    """
    places = [place for place in case.record.damage if place.length or place.offset < case.record.size]
    if not places:
        return
    (gone, expected), end = _gone(case), case.record.end
    parts = [place for place in places if place.length] or places
    first, what = parts[0], parts[0].sentence
    if first.length:
        what = f"bytes {first.offset:,} to {first.offset + first.length - 1:,} can't be read"
    if len(parts) > 1:
        what = f"{len(parts)} parts of the record from byte {first.offset:,} on can't be read"
    whole = end and not _lost_chunks(case)
    told = "no chunk is missing" if whole else f"{gone:,} of {expected:,} activations are gone with them"
    detail = f"{sentence_list(place.sentence for place in places)}; {told}"
    severity = INVALID if _lost_chunks(case) and end else severity_of(gone, expected)
    described = {series.id for series in case.record.series}
    unknown = any(total.series not in described for total in end.totals) if end else False
    if unknown or any(place.series is not None for place in places):
        severity, detail = INVALID, f"{what}; {detail}"
        what = "what one thread measured can't be read"
    yield Doubt("damage", severity, what, "copy it again", detail)


def stalled(case: CheckedRun) -> Iterator[Doubt]:
    """A stall is the worst possible result, and no fault of the measurement. Only the quantiles leave it out."""
    for event in case.record.events:
        since = stalled_since_ns(event)
        if since is not None:
            what = f"thread {event.thread} did not run again after {duration(max(since, 0))}"
            yield Doubt("stalled", WARNING, what, "find what stopped it", "the quantiles leave this stall out")


def warm_up(case: CheckedRun) -> Iterator[Doubt]:
    """A run without a warm-up, or with one that was too short for a thread."""
    threads = [summary.series.thread for summary in case.summaries]
    without = [n for n in threads if case.number("warmup_activations", Moment.START, n) == 0]
    if case.number("warmup_ns") == 0:
        detail = "the first activations ran with cold caches and unfaulted memory"
        yield Doubt("warm-up", WARNING, "the run had no warm-up", "leave the warm-up on", detail)
    elif without and not case.summaries[0].series.external:
        detail = "none of its activations came before the first that counts; several periods are enough"
        yield Doubt("warm-up", WARNING, f"the warm-up was too short for {name_threads(without)}", "lengthen it", detail)


def coarse_timer(case: CheckedRun) -> Iterator[Doubt]:
    """A median of half a period or more shows how coarse the timer is, not how late the scheduler is.

    In the loop of an application only the field ``top`` shows the timer. The judged field includes the loop's work.
    """
    tops = [summary for summary in case.every if summary.series.field == LOOP_FIELDS[0]]
    for summary in tops if is_app(case.record) else case.summaries:
        period_ns = summary.series.period_ns
        median = quantile(summary.observed_counts, 0.5).value if not summary.series.external else None
        if median is not None and period_ns and median >= _LATE * period_ns:
            what = f"the median is {percent(round(median / period_ns, 2))} of the period"
            detail = (
                f"half of the activations of thread {summary.series.thread} are {value(median)} late or more, at a "
                f"period of {value(period_ns)}; the timer is coarse, or the CPU overloaded"
            )
            yield Doubt("granularity", WARNING, what, "try another method or period", detail)


def short_gap(case: CheckedRun) -> Iterator[Doubt]:
    """With a gap below two periods, late activations in a row do not join: each is an episode of its own."""
    period_ns = max((summary.series.period_ns for summary in case.summaries), default=0)
    for gap_ns in dict.fromkeys(each.gap_ns for each in rated(case.requirements) if each.gap_ns < 2 * period_ns):
        what = f"the gap of {duration(gap_ns)} is below 2 periods"
        detail = f"2 periods are {duration(2 * period_ns)}; each late activation counts as an episode of its own"
        yield Doubt("gap-short", WARNING, what, "give a wider --gap, or a rarer --at-most", detail)


def drift(case: CheckedRun) -> Iterator[Doubt]:
    """Methods that sleep relative to the last wake-up keep to no grid, so their latencies add up."""
    for summary in case.summaries:
        fits = summary.span_ns // summary.series.period_ns if summary.series.period_ns else 0
        seen = _seen(summary)
        free = not summary.series.on_grid and not summary.series.external
        if free and fits - seen > max(1, TOLERANCE * fits):
            what = f"thread {summary.series.thread} ran {percent(round(seen / fits, 3))} of its cycles"
            detail = f"{seen:,} of {fits:,}: it sleeps relative to its last wake-up"
            yield Doubt("drift", WARNING, what, "use absolute due times", detail)


def events_dropped(case: CheckedRun) -> Iterator[Doubt]:
    """Events or traces of the kernel that are not in the record, or that nobody recorded. The latencies are whole."""
    if case.events("dropped"):
        yield Doubt("events-dropped", WARNING, "too many events came at once to keep all", "see the events before")
    overrun, dropped = lost_trace_events(case.record)
    if overrun or dropped:
        what = f"the trace lost {quantity(overrun + dropped, 'event')}"
        detail = f"later ones overwrote {overrun:,}, {dropped:,} were dropped; the latencies are whole"
        yield Doubt("trace-lost", WARNING, what, "raise --trace buffer_kib=N", detail)
    if why := case.fact("trace_refused"):
        yield Doubt(
            "trace-refused", WARNING, "the kernel's events could not be traced", "measure without --explain", why
        )


def _due(case: CheckedRun, summary: Summary) -> tuple[int, int]:
    """The number of activations that were due, and the smallest number without a doubt; zeros if unknown.

    A run to its end has the number that was asked for, within the tolerance. If a run ended early, all its threads end
    within a second. Without a grid latencies add up, so only a number of samples is known, if the user asked for one.
    """
    end, period, on_grid = case.record.end, summary.series.period_ns, summary.series.on_grid
    if end is None or not period:
        return 0, 0
    if end.reason is not EndReason.AS_ASKED or case.events("limit"):
        longest = max(s.span_ns for s in case.summaries) // period if on_grid else 0
        return longest, longest - SECOND_NS // period
    asked = case.number("duration_ns") or 0
    due = _samples(case, period) or (asked // period if on_grid else 0)
    return due, due - max(1, int(TOLERANCE * due))


def _samples(case: CheckedRun, period_ns: int) -> int:
    """The number of samples asked for. It is that of the first thread; one with a longer period has fewer."""
    asked, first_ns = case.number("samples") or 0, case.number("period_ns") or period_ns
    return asked * first_ns // period_ns if case.number("period_step_ns") else asked


def _room(case: CheckedRun, summary: Summary) -> int | None:
    """How many periods fit into the asked duration and the time until the end; None without a period or an end."""
    end, period = case.record.end, summary.series.period_ns
    if end is None or not period or summary.series.external:
        return None
    asked = case.number("duration_ns")
    passed = max((end.time_ns - summary.series.first_due_ns) // period + 1, 0)
    return min(passed, -(-asked // period)) if asked else passed


def _late_by(summary: Summary) -> int:
    """The number of activations that were due before the first one in the record."""
    series, first = summary.series, summary.first_due_ns
    if first is None or not series.on_grid or not series.period_ns:
        return 0
    return (first - series.first_due_ns) // series.period_ns


def _stalled_threads(case: CheckedRun) -> set[int]:
    return {event.thread for event in case.record.events if stalled_since_ns(event) is not None}


def _lost_chunks(case: CheckedRun) -> bool:
    return any(place.lost for place in case.record.damage)


def _gone(case: CheckedRun) -> tuple[int, int]:
    return sum(s.lost for s in case.summaries), sum(s.expected for s in case.summaries)


def _seen(summary: Summary) -> int:
    return summary.obtained - summary.lost + summary.missed


COUNTING_CHECKS: tuple[Check, ...] = (
    nothing_measured, activations_missing, lost, late_start, totals, largest_differs, truncated,
    limit, ended_early, damage, stalled, warm_up, coarse_timer, short_gap, drift, events_dropped,
)  # fmt: skip


def stage_order(case: CheckedRun) -> Iterator[Doubt]:
    """A task cannot run before the interrupt that wakes it. If it seems to, a clock or a value is wrong."""
    for switch in case.switches:
        if switch.backwards:
            whole, least = switch.moments.count, switch.moments.min
            what = f"{quantity(switch.backwards, 'stage')} came too early"
            detail = (
                f"{switch.later} came before {switch.earlier} in {switch.backwards:,} of "
                f"{quantity(whole, 'activation')}, by {value(-least)} at most, which is impossible"
            )
            remedy = "see whether the CPUs' clocks agree"
            yield Doubt("stage-order", severity_of(switch.backwards, whole), what, remedy, detail)


def stages_differ(case: CheckedRun) -> Iterator[Doubt]:
    """All fields of a thread count the same activations. If they differ, a stage lacks values, maybe its largest."""
    judged = {summary.series.thread: summary for summary in case.summaries}
    for summary in case.every:
        whole = judged.get(summary.series.thread, summary)
        missing = abs(summary.observed.count - whole.observed.count) + abs(summary.missed - whole.missed)
        if missing:
            detail = (
                f"{series_name(case, summary.series)} has {quantity(summary.observed.count, 'value')} and "
                f"{summary.missed:,} missed, {whole.series.field} has {whole.observed.count:,} and {whole.missed:,}"
            )
            what = f"a stage lacks {quantity(missing, 'activation')} of another stage"
            yield Doubt("stages-differ", WARNING, what, "measure again to compare stages", detail)


def source_differs(case: CheckedRun) -> Iterator[Doubt]:
    """The source of a probe counts lost values too. At the end both may differ by one activation."""
    counted = source_counts(case.record)
    for summary in case.every:
        told, kept = counted.get((summary.series.thread, summary.series.field)), summary.observed
        if told is None:
            continue
        count, lost, most = told["count"], told["lost"], told["max"]
        larger = count > 0 and (not kept.count or most > kept.max)
        if lost > 0 or count > kept.count + 1 or larger:
            what = f"the record lacks {quantity(max(lost, count - kept.count), 'value')} of its source"
            if most > kept.max:
                what = f"the source saw a maximum of {value(most)}"
            detail = (
                f"{series_name(case, summary.series)}: its source counted {quantity(count, 'value')} up to "
                f"{value(most)} and lost {lost:,}; the record has {kept.count:,} up to {value(kept.max)}"
            )
            yield Doubt("source-differs", WARNING, what, "relieve the reader", detail)


STAGE_CHECKS: tuple[Check, ...] = (stage_order, stages_differ, source_differs)
