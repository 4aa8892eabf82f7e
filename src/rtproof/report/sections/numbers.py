# SPDX-License-Identifier: Apache-2.0
"""Sections with numbers per thread: activations, latencies, percentiles with intervals, the largest latencies."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from rtproof.core.phrases import duration, instant, percent, quantity
from rtproof.judge.analysis_model import Analysis, several_stages, shares_of
from rtproof.record.contents import View
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import (
    NS_PER_S,
    UNKNOWN,
    US,
    Cell,
    PrintedUnit,
    ReportStream,
    cell_text,
    count_text,
    in_unit,
    latency_unit,
    left_out_at_the_end,
    report_streams,
    share_text,
    table_of,
    unit_for,
)
from rtproof.summary import moments
from rtproof.summary.imported_histogram import DURATION_STATED, NEVER, ImportedHistogram, PrintedFigures
from rtproof.summary.quantiles import CONFIDENCE, offset_and_spread, quantiles
from rtproof.summary.summary_model import Dependence, Moments, Quantile


def numbers_section(analysis: Analysis) -> list[Block]:
    """Activations due, ran, missed and lost per thread, and the latency of those that ran and of all due times."""
    found = report_streams(analysis)
    unit = latency_unit(analysis)
    stages = several_stages(analysis)
    field = f", {stages[-1].series.field}, the last stage" if stages else ""
    activations = table_of(
        "Activations (lost: ran, but the value was not kept)",
        found,
        ("thread", lambda each: each.name),
        ("CPU", lambda each: each.cpu),
        ("due", lambda each: each.summary.due),
        ("ran", lambda each: each.summary.obtained),
        ("missed", lambda each: each.summary.never_ran),
        ("lost", lambda each: each.summary.lost),
        ("missed of due", lambda each: share_text(each.summary.never_ran, each.summary.due)),
        ("measured", lambda each: duration(each.summary.span_ns)),
    )
    observed = table_of(
        f"Observed: latency of the activations that ran{field}; offset: the median; jitter: from the 1st to the 99th "
        "percentile",
        found,
        *_latency_columns(unit, lambda each: each.summary.observed),
        in_unit(unit, "offset", lambda each: offset_and_spread(each.summary).offset),
        in_unit(unit, "jitter", lambda each: offset_and_spread(each.summary).jitter),
        in_unit(unit, "peak to peak", lambda each: offset_and_spread(each.summary).peak_to_peak),
        *([("drift [ppm]", _drift)] if any(map(_drift, found)) else []),
    )
    return [activations, observed, _of_the_schedule(analysis, found, unit)]


def _latency_columns(
    unit: PrintedUnit, read: Callable[[ReportStream], Moments]
) -> list[tuple[str, Callable[[ReportStream], Cell]]]:
    """Smallest, mean, largest and deviation. Without a value, smallest and largest are unknown, not 0."""
    return [
        ("thread", lambda each: each.name),
        ("n", lambda each: read(each).count),
        in_unit(unit, "min", lambda each: read(each).smallest),
        in_unit(unit, "mean", lambda each: read(each).mean),
        in_unit(unit, "max", lambda each: read(each).largest),
        in_unit(unit, "deviation", lambda each: read(each).deviation),
    ]


def _schedule(stream: ReportStream) -> Moments:
    return moments.merge_moments((stream.summary.observed, stream.summary.charged))


def _of_the_schedule(analysis: Analysis, found: list[ReportStream], unit: PrintedUnit) -> Block:
    """The latencies of all due times. The largest is a lower bound if a thread stood still to the end for longer."""
    if not analysis.pooled.never_ran:
        return Text(("No activation was missed, so the table holds for every due time.",))
    caption = "Schedule: latency of every due time, also of missed activations"
    table = table_of(caption, found, *_latency_columns(unit, _schedule))
    stood = [each.summary.stalled_ns if each.summary.stalled_ns > _schedule(each).max else 0 for each in found]
    bounded = tuple(
        (*row[:4], f"at least {unit.show(stalled_ns)}", *row[5:]) if stalled_ns else row
        for row, stalled_ns in zip(table.rows, stood, strict=True)
    )
    return replace(table, rows=bounded)


def _drift(stream: ReportStream) -> str:
    """The drift in ppm; "" unless the row is a single thread that does not keep to the grid of due times."""
    drift_ppm = offset_and_spread(stream.summary).drift_ppm
    return "" if drift_ppm is None else f"{drift_ppm:,.1f}"


def tool_section(analysis: Analysis) -> list[Block]:
    """The figures of each thread and of the whole file, as the tool prints them; [] for a run."""
    imported = analysis.imported
    if imported is None:
        return []
    rows = tuple((name, words) for name, words in _told(imported) if words)
    told = Table("What the tool printed", ("what", "value"), (*rows, *imported.facts))
    unit = unit_for((imported.min_ns, imported.mean_ns, imported.max_ns))
    return [*([_as_printed(imported, unit)] if imported.parts else []), told]


def _told(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    yield "samples", count_text(imported.count)
    binned = imported.histogram is not None
    yield "beyond the scale", count_text(imported.overflow) if binned else ""
    ends = (("smallest", imported.min_ns), ("mean", imported.mean_ns), ("largest", imported.max_ns))
    yield from ((name, "" if ns is None else US(ns)) for name, ns in ends)
    yield "period", duration(imported.period_ns) if imported.period_ns else ""
    yield "priority", "" if imported.priority is None else str(imported.priority)
    stated = "as the user states" if DURATION_STATED in imported.stated else "by its own account"
    whose = "as it was asked" if imported.recorded else stated
    yield f"measured, {whose}", duration(imported.duration_ns) if imported.duration_ns else ""
    bound_ns = None if imported.duration_ns else imported.at_least_ns
    yield "measured, by samples and period", f"at least {duration(bound_ns)}" if bound_ns else ""
    due = (imported.duration_ns or 0) // (imported.shortest_period_ns or NEVER)
    yield "periods in this time, each thread", count_text(due) if due else ""
    yield "asked for", duration(imported.asked_duration_ns) if imported.asked_duration_ns else ""
    yield "overruns", "" if imported.overruns is None else count_text(imported.overruns)
    switches = imported.mode_switches
    yield "mode switches (msw)", "" if switches is None else count_text(switches)


def _period(part: PrintedFigures) -> str:
    return duration(part.period_ns) if part.period_ns else UNKNOWN


def _as_printed(imported: ImportedHistogram, unit: PrintedUnit) -> Table:
    return table_of(
        "Threads",
        imported.parts,
        ("thread", lambda part: f"thread {part.number}"),
        ("CPU", lambda part: part.cpu),
        ("n", lambda part: part.count),
        ("beyond the scale", lambda part: part.overflow),
        in_unit(unit, "min", lambda part: part.min_ns),
        in_unit(unit, "mean", lambda part: part.mean_ns),
        in_unit(unit, "max", lambda part: part.max_ns),
        *([("period", _period)] if any(part.period_ns for part in imported.parts) else []),
    )


StreamQuantiles = tuple[ReportStream, dict[View, tuple[Quantile, ...]]]
"""A stream and the quantiles of each view, one for each share."""

VIEWS = {View.OBSERVED: "observed", View.CHARGED: "schedule"}
EXPLAINED = (
    "Unknown: the run has too few values for this percentile. The interval says how well this run fixes the value, not "
    "what another run would show. "
)
ESTIMATED = "Late values that come together count as fewer independent values."
UNCLEAR = (
    "Without a number of independent values there is no interval: neighbouring values resemble each other for too long "
    "a part of the run."
)
ASSUMED = "It is too narrow if late values come in bursts."
VIRTUAL = (
    "Unknown: the run has too few values for this percentile. In virtual time there is no interval: a second run has "
    "the same values."
)


def percentiles_section(analysis: Analysis) -> list[Block]:
    """Percentiles of both views with their intervals; "unknown" where there are too few samples for one."""
    found, unit, shares = report_streams(analysis), latency_unit(analysis), shares_of(analysis)
    if analysis.imported and analysis.imported.overflow:
        unit = replace(unit, scale_end_ns=analysis.imported.scale_end_ns)
    views = [View.OBSERVED, View.CHARGED] if analysis.pooled.missed else [View.OBSERVED]
    known = [(each, {view: quantiles(each.summary, view, shares) for view in views}) for each in found]
    virtual, whole = analysis.virtual_clock is not None, found[-1]
    counts = {View.OBSERVED: whole.summary.observed_counts, View.CHARGED: whole.summary.schedule_counts}
    amounts = ", ".join(f"n = {counts[view].total:,} {VIEWS[view]}" for view in views)
    caption = f"Latency not exceeded by this share of the activations, {whole.name} ({amounts})"
    whole_table = _intervals(caption, known[-1:], unit, virtual=virtual)
    header, rows = whole_table.header[1:], tuple(row[1:] for row in whole_table.rows)
    tables = [Table(caption, header, rows, tuple(range(1, len(header))))]
    if len(found) > 1:
        each_thread = _intervals("The same of each thread", known[:-1], unit, virtual=virtual)
        tables.append(replace(each_thread, folded=True))
    return [*left_out_at_the_end(analysis), *tables, Text((VIRTUAL if virtual else _explained(known),))]


def _intervals(caption: str, rows: list[StreamQuantiles], unit: PrintedUnit, *, virtual: bool) -> Table:
    """A row for each share of each stream: its value, interval and number of independent values in each view."""
    blocks = any(stream.summary.blocks for stream, _ in rows)
    measures: list[tuple[str, Callable[[Quantile], str]]] = [
        ("", lambda q: unit.show(q.value)),
        (
            f"{percent(CONFIDENCE)} interval",
            lambda q: UNKNOWN if q.low is None and q.high is None else f"{unit.show(q.low)} to {unit.show(q.high)}",
        ),
        ("independent values", lambda q: cell_text(q.effective)),
    ]
    shown = measures[: 1 if virtual else 3 if blocks else 2]
    views = list(rows[0][1])
    header = tuple(name or f"{VIEWS[view]} [{unit.name}]" for view in views for name, _ in shown)
    cells = tuple(
        (
            ""
            if at
            else f"{stream.name} (n = {', '.join(f'{row[0].n:,} {VIEWS[view]}' for view, row in found.items())})",
            f"{found[views[0]][at].p * 100:.10g} %",  # with all digits: 99.99999 % is not 100 %
            *(read(found[view][at]) for view in views for _, read in shown),
        )
        for stream, found in rows
        for at in range(len(found[views[0]]))
    )
    return Table(caption, ("thread", "share", *header), cells, tuple(range(2, len(header) + 2)))


def _explained(found: list[StreamQuantiles]) -> str:
    """The sentences on percentiles, and on what the intervals in all tables assume."""
    kinds = {q.dependence for _, views in found for row in views.values() for q in row if q.value is not None}
    measured = kinds - {Dependence.ASSUMED_NONE}
    said = (
        ESTIMATED if measured else "",
        UNCLEAR if Dependence.UNCLEAR in kinds else "",
        ASSUMED if Dependence.ASSUMED_NONE in kinds or not kinds else "",
    )
    return EXPLAINED + " ".join(filter(None, said))


SHOWN = 20
MORE = 100


def outliers_section(analysis: Analysis) -> list[Block]:
    """The largest latencies of all threads with their times, threads and CPUs."""
    origin_ns, unit = analysis.record.begin.origin_realtime_ns, latency_unit(analysis)
    found = sorted(
        (-int(top.value[at]), int(top.due_ns[at]), stream.name, stream.cpu, int(top.index[at]))
        for stream, top in ((stream, stream.summary.top) for stream in report_streams(analysis) if not stream.pooled)
        for at in range(top.value.size)
    )
    rows = [
        (
            str(rank),
            unit.show(-negative),
            f"{due_ns / NS_PER_S:,.6f}",
            instant(origin_ns, due_ns) if origin_ns else "not told",
            thread,
            cpu,
            f"{index:,}",
        )
        for rank, (negative, due_ns, thread, cpu, index) in enumerate(found[: SHOWN + MORE], 1)
    ]
    ran = quantity(analysis.pooled.observed.count, "activation")
    header = ("rank", f"latency [{unit.name}]", "due at [s]", "date and time (UTC)", "thread", "CPU", "activation")
    caption = f"The largest of {ran} that ran; due at: since measuring began"
    first = Table(caption, header, tuple(rows[:SHOWN]), (0, 1, 2, 6))
    more = replace(first, caption="Those that follow", rows=tuple(rows[SHOWN:]), folded=True)
    return [first, more] if more.rows else [first]
