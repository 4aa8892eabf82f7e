# SPDX-License-Identifier: Apache-2.0
"""Sections with numbers per thread: activations, latencies, percentiles with intervals, the largest latencies."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from rtproof.core.phrases import duration, instant, percent, quantity
from rtproof.judge.analysis_model import Analysis, several_stages, shares_of
from rtproof.record.contents import View
from rtproof.report import number_format
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import ReportStream, latency_unit, left_out_at_the_end, report_streams
from rtproof.summary import moments
from rtproof.summary.imported_histogram import (
    DURATION_STATED,
    NEVER,
    ImportedHistogram,
)
from rtproof.summary.quantiles import CONFIDENCE, OffsetAndSpread, offset_and_spread, quantiles
from rtproof.summary.summary_model import Dependence, Moments, Quantile, Summary


def numbers_section(analysis: Analysis) -> list[Block]:
    """Activations due, ran, missed and lost per thread, and the latency of those that ran and of all due times."""
    found = report_streams(analysis)
    unit = latency_unit(analysis)
    stages = several_stages(analysis)
    field = f", {stages[-1].series.field}, the last stage" if stages else ""
    observed = _latencies(f"Observed: latency of the activations that ran{field}", found, _observed, unit)
    return [_activations(found), observed, _spreads(found, unit), _of_the_schedule(analysis, found, unit)]


def _activations(found: list[ReportStream]) -> Table:
    header = ("thread", "CPU", "due", "ran", "missed", "lost", "missed of due", "measured")
    rows = tuple(_activation_row(stream) for stream in found)
    return Table("Activations (lost: ran, but the value was not kept)", header, rows, tuple(range(1, len(header))))


def _activation_row(stream: ReportStream) -> tuple[str, ...]:
    summary = stream.summary
    counts = (summary.due, summary.obtained, summary.never_ran, summary.lost)
    rate = number_format.share_text(summary.never_ran, summary.due)
    return (stream.name, stream.cpu, *map(number_format.count_text, counts), rate, duration(summary.span_ns))


def _of_the_schedule(analysis: Analysis, found: list[ReportStream], unit: number_format.PrintedUnit) -> Block:
    if not analysis.pooled.never_ran:
        return Text(("No activation was missed, so the table holds for every due time.",))
    table = _latencies("Schedule: latency of every due time, also of missed activations", found, _schedule, unit)
    return replace(table, rows=tuple(_to_the_end(row, each, unit) for row, each in zip(table.rows, found, strict=True)))


def _to_the_end(row: tuple[str, ...], stream: ReportStream, unit: number_format.PrintedUnit) -> tuple[str, ...]:
    """The row with the largest latency as a lower bound, if the thread stood still to the end for longer than that.

    No mean holds such a stall.
    """
    if stream.summary.stalled_ns <= _schedule(stream).max:
        return row
    return (*row[:4], f"at least {unit.show(stream.summary.stalled_ns)}", *row[5:])


def _observed(stream: ReportStream) -> Moments:
    return stream.summary.observed


def _schedule(stream: ReportStream) -> Moments:
    return moments.merge_moments((stream.summary.observed, stream.summary.charged))


def _latencies(
    caption: str, found: list[ReportStream], view: Callable[[ReportStream], Moments], unit: number_format.PrintedUnit
) -> Table:
    seen = [view(stream) for stream in found]
    header = ("thread", "n", *number_format.unit_headings(unit, "min", "mean", "max", "deviation"))
    rows = tuple(
        (stream.name, number_format.count_text(each.count), *map(unit.show, _values(each)))
        for stream, each in zip(found, seen, strict=True)
    )
    return Table(caption, header, rows, tuple(range(1, len(header))))


def _values(seen: Moments) -> tuple[float | None, ...]:
    """Smallest, mean, largest and deviation. Without a value, smallest and largest are unknown, not 0."""
    ends = (seen.min, seen.max) if seen.count else (None, None)
    return ends[0], seen.mean, ends[1], seen.deviation


def _spreads(found: list[ReportStream], unit: number_format.PrintedUnit) -> Table:
    spreads = [offset_and_spread(stream.summary) for stream in found]
    header: tuple[str, ...] = ("thread", *number_format.unit_headings(unit, "offset", "jitter", "peak to peak"))
    rows = [(stream.name, *_spread(each, unit)) for stream, each in zip(found, spreads, strict=True)]
    if any(each.drift_ppm is not None for each in spreads):
        header = (*header, "drift [ppm]")
        rows = [(*row, _drift(each)) for row, each in zip(rows, spreads, strict=True)]
    caption = "Offset (median) and jitter (from the 1st to the 99th percentile)"
    return Table(caption, header, tuple(rows), tuple(range(1, len(header))))


def _spread(seen: OffsetAndSpread, unit: number_format.PrintedUnit) -> tuple[str, ...]:
    return tuple(map(unit.show, (seen.offset, seen.jitter, seen.peak_to_peak)))


def _drift(seen: OffsetAndSpread) -> str:
    """The drift in ppm; "" unless the row is a single thread that does not keep to the grid of due times."""
    return "" if seen.drift_ppm is None else f"{seen.drift_ppm:,.1f}"


def tool_section(analysis: Analysis) -> list[Block]:
    """The figures of each thread and of the whole file, as the tool prints them; [] for a run."""
    imported = analysis.imported
    if imported is None:
        return []
    rows = tuple((name, words) for name, words in _told(imported) if words)
    told = Table("What the tool printed", ("what", "value"), (*rows, *imported.facts))
    unit = number_format.unit_for((imported.min_ns, imported.mean_ns, imported.max_ns))
    return [*([_as_printed(imported, unit)] if imported.parts else []), told]


def _told(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    yield "samples", number_format.count_text(imported.count)
    binned = imported.histogram is not None
    yield "beyond the scale", number_format.count_text(imported.overflow) if binned else ""
    ends = (("smallest", imported.min_ns), ("mean", imported.mean_ns), ("largest", imported.max_ns))
    yield from ((name, "" if ns is None else number_format.US(ns)) for name, ns in ends)
    yield "period", duration(imported.period_ns) if imported.period_ns else ""
    yield "priority", "" if imported.priority is None else str(imported.priority)
    yield f"measured, {_whose_duration(imported)}", duration(imported.duration_ns) if imported.duration_ns else ""
    bound_ns = None if imported.duration_ns else imported.at_least_ns
    yield "measured, by samples and period", f"at least {duration(bound_ns)}" if bound_ns else ""
    due = (imported.duration_ns or 0) // (imported.shortest_period_ns or NEVER)
    yield "periods in this time, each thread", number_format.count_text(due) if due else ""
    yield "asked for", duration(imported.asked_duration_ns) if imported.asked_duration_ns else ""
    yield "overruns", "" if imported.overruns is None else number_format.count_text(imported.overruns)
    switches = imported.mode_switches
    yield "mode switches (msw)", "" if switches is None else number_format.count_text(switches)


def _whose_duration(imported: ImportedHistogram) -> str:
    if imported.recorded:
        return "as it was asked"
    return "as the user states" if DURATION_STATED in imported.stated else "by its own account"


def _as_printed(imported: ImportedHistogram, unit: number_format.PrintedUnit) -> Table:
    told = any(part.period_ns for part in imported.parts)
    rows = tuple(
        (
            f"thread {part.number}",
            "unknown" if part.cpu is None else str(part.cpu),
            number_format.count_text(part.count),
            number_format.count_text(part.overflow),
            *(unit.show(ns) for ns in (part.min_ns, part.mean_ns, part.max_ns)),
            *((duration(part.period_ns) if part.period_ns else "unknown",) if told else ()),
        )
        for part in imported.parts
    )
    header = (
        "thread",
        "CPU",
        "n",
        "beyond the scale",
        *number_format.unit_headings(unit, "min", "mean", "max"),
        *(("period",) if told else ()),
    )
    return Table("Threads", header, rows, tuple(range(1, len(header))))


Shares = tuple[float, ...]
StreamQuantiles = tuple[ReportStream, tuple[Quantile, ...]]
"""A stream and its quantiles, one for each share."""

VIEWS = {View.OBSERVED: "observed", View.CHARGED: "schedule"}
EXPLAINED = (
    "Unknown: the run has too few values for this percentile. The interval says how well this run fixes the value, not "
    "what another run would show. "
)
SAID = {
    Dependence.ESTIMATED: "Late values that come together count as fewer independent values.",
    Dependence.UNCLEAR: (
        "Without a number of independent values there is no interval: neighbouring values resemble each other for too "
        "long a part of the run."
    ),
    Dependence.ASSUMED_NONE: "It is too narrow if late values come in bursts.",
}
"""What an interval assumes. The report prints the sentences of the kinds that occur in its tables."""
INDEPENDENT = "independent values"

VIRTUAL = (
    "Unknown: the run has too few values for this percentile. In virtual time there is no interval: a second run has "
    "the same values."
)


def percentiles_section(analysis: Analysis) -> list[Block]:
    """Percentiles of both views with their intervals; "unknown" where there are too few samples for one."""
    found, unit, shares = report_streams(analysis), latency_unit(analysis), shares_of(analysis)
    if analysis.imported and not analysis.pooled.observed_counts.total:
        return []
    if analysis.imported and analysis.imported.overflow:
        unit = replace(unit, scale_end_ns=analysis.imported.scale_end_ns)
    views = [View.OBSERVED, View.CHARGED] if analysis.pooled.missed else [View.OBSERVED]
    known = {view: [(stream, quantiles(stream.summary, view, shares)) for stream in found] for view in views}
    if analysis.virtual_clock:
        tables = [_per_thread(known[view], view, unit, shares) for view in views]
        return [*left_out_at_the_end(analysis), *tables, Text((VIRTUAL,))]
    blocks = left_out_at_the_end(analysis)
    pooled = {view: known[view][-1][1] for view in views}
    blocks += [_intervals(found[-1], pooled, unit, shares), Text((_explained(known),))]
    if len(found) > 1:
        blocks += [_per_thread(known[view], view, unit, shares) for view in views]
        blocks += [_all_intervals(known[view][:-1], view, unit) for view in views]
    return blocks


def _intervals(
    stream: ReportStream,
    found: Mapping[View, tuple[Quantile, ...]],
    unit: number_format.PrintedUnit,
    shares: Shares,
) -> Table:
    views, columns = list(found), list(found.values())
    known = (INDEPENDENT,) if stream.summary.blocks else ()
    header = [part for view in views for part in (*_header(view, unit), *known)]
    rows = tuple(
        (
            _name(share),
            *(
                cell
                for column in columns
                for cell in (*_value_and_interval(column[at], unit), *_worth(column[at], known))
            ),
        )
        for at, share in enumerate(shares)
    )
    caption = (
        f"Latency not exceeded by this share of the activations, {stream.name} ({_amounts(stream.summary, views)})"
    )
    return Table(caption, ("share", *header), rows, tuple(range(1, len(header) + 1)))


def _explained(found: Mapping[View, list[StreamQuantiles]]) -> str:
    """The sentences on percentiles, and on what the intervals in all tables assume."""
    rest = {q.dependence for rows in found.values() for _, row in rows for q in row if q.value is not None}
    measured = bool(rest - {Dependence.ASSUMED_NONE})
    said = [text for kind, text in SAID.items() if kind in rest or (measured and kind is Dependence.ESTIMATED)]
    return EXPLAINED + " ".join(said or [SAID[Dependence.ASSUMED_NONE]])


def _header(view: View, unit: number_format.PrintedUnit) -> tuple[str, str]:
    return f"{VIEWS[view]} [{unit.name}]", f"{percent(CONFIDENCE)} interval"


def _worth(q: Quantile, known: tuple[str, ...]) -> tuple[str, ...]:
    """The number of independent values as a cell; () if the table has no such column."""
    return tuple(number_format.UNKNOWN if q.effective is None else number_format.count_text(q.effective) for _ in known)


def _per_thread(rows: list[StreamQuantiles], view: View, unit: number_format.PrintedUnit, shares: Shares) -> Table:
    cells = tuple(
        (stream.name, number_format.count_text(row[0].n), *(unit.show(q.value) for q in row)) for stream, row in rows
    )
    header = ("thread", "n", *map(_name, shares))
    return Table(f"Per thread, {VIEWS[view]} [{unit.name}]", header, cells, tuple(range(1, len(header))))


def _all_intervals(rows: list[StreamQuantiles], view: View, unit: number_format.PrintedUnit) -> Table:
    cells = tuple(
        (stream.name if at == 0 else "", _name(q.p), *_value_and_interval(q, unit))
        for stream, row in rows
        for at, q in enumerate(row)
    )
    header = ("thread", "share", f"{VIEWS[view]} [{unit.name}]", f"{percent(CONFIDENCE)} interval")
    return Table(f"Intervals per thread, {VIEWS[view]}", header, cells, (1, 2, 3), folded=True)


def _name(share: float) -> str:
    """A share as a percentage with all the digits that were asked for, so that 99.99999 % is not printed as 100 %."""
    return f"{share * 100:.10g} %"


def _value_and_interval(q: Quantile, unit: number_format.PrintedUnit) -> tuple[str, str]:
    ends = f"{unit.show(q.low)} to {unit.show(q.high)}"
    return unit.show(q.value), number_format.UNKNOWN if q.low is None and q.high is None else ends


def _amounts(summary: Summary, views: list[View]) -> str:
    counts = {View.OBSERVED: summary.observed_counts, View.CHARGED: summary.schedule_counts}
    return ", ".join(f"n = {number_format.count_text(counts[view].total)} {VIEWS[view]}" for view in views)


SHOWN = 20
MORE = 100
COLUMNS = ("date and time (UTC)", "thread", "CPU", "activation", "together")
UNTOLD = "not told"
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Outlier:
    """One activation among the largest: late from ``due_ns`` until ``due_ns + value_ns``."""

    thread: str
    cpu: str
    index: int
    due_ns: int
    value_ns: int

    @property
    def ran_ns(self) -> int:
        return self.due_ns + self.value_ns


def outliers_section(analysis: Analysis) -> list[Block]:
    """The largest latencies with their times, threads and CPUs, and which of them happened at the same time."""
    found = outliers(analysis)
    if not found:
        return []
    groups, unit = outliers_together(found), latency_unit(analysis)
    origin_ns = analysis.record.begin.origin_realtime_ns
    rows = tuple(
        (str(rank), unit.show(each.value_ns), *_where_and_when(each, origin_ns), groups.get(each, ""))
        for rank, each in enumerate(found, 1)
    )
    ran = quantity(analysis.pooled.observed.count, "activation")
    tables = [_table(f"The largest of {ran} that ran; due at: since measuring began", rows[:SHOWN], unit, folded=False)]
    if rows[SHOWN:]:
        tables.append(_table("Those that follow", rows[SHOWN:], unit, folded=True))
    return [*tables, Text((_outlier_sentence(analysis, groups),))] if len(found) > 1 else [*tables]


def _table(caption: str, rows: tuple[tuple[str, ...], ...], unit: number_format.PrintedUnit, folded: bool) -> Table:
    header = ("rank", *number_format.unit_headings(unit, "latency"), "due at [s]", *COLUMNS)
    return Table(caption, header, rows, (0, 1, 2, 6), folded=folded)


def _where_and_when(each: Outlier, origin_ns: int) -> tuple[str, ...]:
    due = f"{each.due_ns / number_format.NS_PER_S:,.6f}"
    return (
        due,
        instant(origin_ns, each.due_ns) if origin_ns else UNTOLD,
        each.thread,
        each.cpu,
        number_format.count_text(each.index),
    )


def outliers(analysis: Analysis) -> list[Outlier]:
    """The largest latencies of all threads, largest first, at most SHOWN + MORE."""
    found = [
        Outlier(stream.name, stream.cpu, int(index), int(due), int(value))
        for stream in report_streams(analysis)
        if not stream.pooled
        for index, due, value in zip(
            stream.summary.top.index, stream.summary.top.due_ns, stream.summary.top.value, strict=True
        )
    ]
    return sorted(found, key=lambda each: (-each.value_ns, each.due_ns, each.thread))[: SHOWN + MORE]


def outliers_together(found: list[Outlier]) -> dict[Outlier, str]:
    """A letter for each outlier that was late at the same time as another one. Groups get letters in time order."""
    groups: list[list[Outlier]] = []
    reach = None
    for each in sorted(found, key=lambda outlier: outlier.due_ns):
        if reach is None or each.due_ns >= reach:
            groups.append([])
            reach = each.ran_ns
        groups[-1].append(each)
        reach = max(reach, each.ran_ns)
    several = [group for group in groups if len(group) > 1]
    return {each: _letters(at) for at, group in enumerate(several) for each in group}


def _letters(at: int) -> str:
    """The letters of a group by its number: A to Z, then AA, AB, ..."""
    more, last = divmod(at, len(LETTERS))
    return (_letters(more - 1) if more else "") + LETTERS[last]


def _outlier_sentence(analysis: Analysis, groups: dict[Outlier, str]) -> str:
    if not groups:
        return "No two of these were late at the same time."
    letters = set(groups.values())
    several = sum(len({each.thread for each in groups if groups[each] == letter}) > 1 for letter in letters)
    across = f", {several} with more than one thread" if len(analysis.summaries) > 1 else ""
    return (
        'The same letter under "together" marks latencies at the same time, which may have the same cause: '
        f"{quantity(len(letters), 'group')}{across}."
    )
