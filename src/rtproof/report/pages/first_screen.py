# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on the screen: the fact, what it shows, the threads, causes, cautions, and where the rest is.

It has at most MOST_LINES lines. No sentence is cut: what does not fit is counted, and ``rtproof show --all`` prints it.
"""

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from rtproof.core.phrases import duration, quantity
from rtproof.core.printable import clean
from rtproof.core.sparkline import sparklines_of
from rtproof.judge import verdict_sentences
from rtproof.judge.analysis_model import Analysis, State
from rtproof.report import number_format
from rtproof.report.number_format import US, PrintedUnit, ReportStream
from rtproof.report.sections.verdict import doubts_in_short, edges_answer, loop_answer
from rtproof.report.text_table import SCREEN_WIDTH, plain_table, without_column
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures
from rtproof.summary.kernel_trace import has_recorder, trace_refused
from rtproof.summary.quantiles import quantile, quantiles
from rtproof.summary.recorded_facts import is_collected
from rtproof.summary.summary_model import Summary
from rtproof.summary.two_board_edges import BoardEdges

MOST_LINES = 16
WIDTH = SCREEN_WIDTH
NARROWEST, WIDEST = 70, 120
LABEL = 10
"""Columns of the words on the left."""
MOST_VERDICT_LINES = 8
MOST_WHY_LINES = 3
SHARES = (0.5, 0.99, 0.999)
BREAKS = 2
"""Empty lines."""
FINER = 2
"""The sections have so many digits more."""
FEWEST_ROWS = 3
"""The fewest lines of the table of threads."""
LEAST_COLUMNS = ("min", "99 %", "median", "missed")
LONGEST_NAME = 32
CELLS = 10
"""Columns of the maximum over time, where there is room for them."""
FEWEST_CELLS = 5

COLOURS = {"good": "green", "bad": "red", "doubt": "yellow"}
"""Of a verdict on a terminal that shows colours, by its kind."""


def summary_text(analysis: Analysis, where: Sequence[tuple[str, str]], width: int = WIDTH) -> str:
    """The summary, one newline after each line. where: label and place of the page and of all the rest."""
    width = min(max(width, NARROWEST), WIDEST)
    verdict = _verdict_lines(analysis, width)
    why = _fitting(_why(analysis), "why", width, MOST_WHY_LINES)
    places = [f"{label:<{LABEL}}{clean(place)}" for label, place in where]
    audit = ""
    if analysis.run_record and is_collected(analysis.run_record):
        from rtproof.report.audit_findings import audit_in_short  # slow to import, and not every run has facts

        audit = audit_in_short(analysis.run_record, width - LABEL)
    places = [*(labelled("audit", audit, width) if audit else []), *places]
    rows = MOST_LINES - len(verdict) - len(why) - len(places) - BREAKS
    few = 1 + max(sum(not stream.pooled for stream in number_format.report_streams(analysis)), 1)
    said = analysis.verdict.reasons if analysis.verdict.state is State.INVALID else ()
    cautions = [
        line for line in doubts_in_short(analysis) if not any(line.lower().startswith(each.lower()) for each in said)
    ]
    doubts = fitting_cautions(cautions, width, max(rows - min(few, max(rows // 2, FEWEST_ROWS)), 1))
    threads = _thread_lines(analysis, width, max(rows - len(doubts) - 1, 1))
    parts = (verdict, threads, [*why, *doubts, *places])
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def _why(analysis: Analysis) -> tuple[str, ...]:
    """The causes of a run with --explain; () for any other run."""
    record = analysis.run_record
    if record is None or not (trace_refused(record) or has_recorder(record)):
        return ()
    from rtproof.report.sections.explained import why_in_short  # slow to import

    return why_in_short(analysis)


def verdict_line(analysis: Analysis) -> str:
    """The verdict and its fact in one line, without a newline; of an INVALID run also what was seen of the limit."""
    verdict = analysis.verdict
    said = (verdict.state.word, verdict_sentences.claim_answer(verdict), verdict_sentences.fact_if_invalid(verdict))
    return clean(" ".join(filter(None, said)))


def _verdict_lines(analysis: Analysis, width: int) -> list[str]:
    """The fact and what it shows, of the limit that decides; of the others the fact alone."""
    deciding = analysis.verdict
    verdicts = sorted(analysis.verdicts or (deciding,), key=lambda verdict: verdict is not deciding)
    lines = labelled(deciding.state.word, verdict_sentences.claim_answer(deciding), width)
    shown = [] if deciding.state is State.NOT_ASKED else [verdict_sentences.short_answer(deciding)]
    for text in (*shown, loop_answer(analysis), edges_answer(analysis)):
        lines += labelled("", text, width)
    for at, each in enumerate(verdicts[1:], 1):
        invalid = each.state is State.INVALID  # For what reason, the first limit has said.
        fact = verdict_sentences.short_answer(each) if invalid else verdict_sentences.claim_answer(each)
        asked = each.requirement  # Two limits may differ in their rate alone.
        rate = f"At most once per {duration(asked.at_most_ns)}: " if asked and not asked.plain else ""
        more = labelled(each.state.word, f"{rate}{fact}", width)
        if len(lines) + len(more) > MOST_VERDICT_LINES - (at + 1 < len(verdicts)):
            return [*lines, f"{'':{LABEL}}and {quantity(len(verdicts) - at, 'more limit')}"]
        lines += more
    return lines


def labelled(label: str, text: str, width: int) -> list[str]:
    """A text beside a label, in as many lines as it needs."""
    return textwrap.wrap(
        clean(text),
        width,
        initial_indent=f"{label:<{LABEL}}" if len(label) < LABEL else f"{label} ",
        subsequent_indent=" " * LABEL,
    )


def _fitting(items: Sequence[str], label: str, width: int, most: int) -> list[str]:
    """As many whole items in a row as fit into so many lines, and how many more there are; the first one always."""
    for kept in range(len(items), 0, -1):
        more = f"; and {len(items) - kept} more" if kept < len(items) else ""
        lines = labelled(label, "; ".join(items[:kept]) + more, width)
        if len(lines) <= most or kept == 1:
            return lines
    return []


def _thread_lines(analysis: Analysis, width: int, most: int) -> list[str]:
    if analysis.imported:
        return _imported_lines(analysis, analysis.imported, most)
    if analysis.edges:
        return _edge_lines(analysis.edges, replace(number_format.response_unit(analysis, analysis.edges), digits=3))
    threads = [stream for stream in number_format.report_streams(analysis) if not stream.pooled]
    shown, more = _latest(threads, most, lambda stream: stream.summary.observed.max)
    unit = number_format.latency_unit(analysis)
    rows: list[tuple[str, ...]] = [
        ("thread", "cpu", "n", "missed", "min", "median", "99 %", "99.9 %", f"max {unit.name}")
    ]
    rows += [_row(stream, unit) for stream in shown]
    for name in ("", *LEAST_COLUMNS):  # The section has the columns that are dropped here.
        rows = without_column(rows, name)
        lines = plain_table(rows)
        if len(lines[0]) <= width:
            break
    cells = min(width - len(lines[0]) - 2, CELLS)
    if cells >= FEWEST_CELLS:
        heading = ("over time" if cells >= len("over time") else "time").ljust(cells)
        over_time = [heading, *sparklines_of([_maxima(stream.summary, cells) for stream in shown])]
        lines = [f"{line}  {part}".rstrip() for line, part in zip(lines, over_time, strict=True)]
    return [*lines, *more]


Item = TypeVar("Item")


def _latest(found: Sequence[Item], most: int, largest_ns: Callable[[Item], int]) -> tuple[list[Item], list[str]]:
    """As many as fit into so many lines, those with the largest latencies, and a line that counts the others."""
    if len(found) <= most:
        return list(found), []
    latest = sorted(found, key=lambda each: -largest_ns(each))[: max(most - 1, 1)]
    left_out = quantity(len(found) - len(latest), "more thread")
    return [each for each in found if each in latest], [f"and {left_out}, none later"]


def _edge_lines(edges: BoardEdges, unit: PrintedUnit) -> list[str]:
    """The response times of a run on two boards, those of the responder itself, and how many edges had no answer."""
    found = f"{quantity(edges.given, 'edge')} given, {edges.never_answered_ns.size:,} never answered"
    rows = []
    for each in edges.times:
        shares = [quantile(each.counts, share, ends=each.moments).value for share in SHARES]
        figures = (each.moments.min, *shares, each.moments.max)
        rows.append((each.name, f"{each.moments.count:,}", *table_times(figures, unit)))
    header = ("time", "n", "min", "median", "99 %", "99.9 %", f"max {unit.name}")
    return [*plain_table([header, *rows]), found]


def _imported_lines(analysis: Analysis, imported: ImportedHistogram, most: int) -> list[str]:
    """The same of what another tool measured; a value beyond its scale is only known to be larger than that."""
    header = ("thread", "cpu", "n", "min", "median", "99 %", "99.9 %", "max us")
    known = {summary.series.thread: summary for summary in analysis.summaries}
    shown, more = _latest(imported.parts, most, lambda part: part.max_ns or 0)
    rows = [_imported_row(part, known.get(part.number), imported.scale_end_ns) for part in shown]
    return [*plain_table([header, *rows]), *more] if rows else []


def _imported_row(part: PrintedFigures, summary: Summary | None, end_ns: int) -> tuple[str, ...]:
    shares = [each.value for each in quantiles(summary, shares=SHARES)] if summary else [None] * len(SHARES)
    least, *middle, largest = table_times((part.min_ns, *shares, part.max_ns), US)
    for at, ns in enumerate(shares):
        if ns is not None and part.overflow and ns >= end_ns:
            middle[at] = f">{end_ns / US.ns:,.0f}"
        elif ns is not None and part.max_ns is not None and ns > part.max_ns:
            middle[at] = largest  # A bin ends behind the largest value, which is told besides.
    cpu, count = ("-" if part.cpu is None else str(part.cpu)), ("-" if part.count is None else f"{part.count:,}")
    return (str(part.number), cpu, count, least, *middle, largest)


def table_times(times_ns: Iterable[float | None], unit: PrintedUnit) -> tuple[str, ...]:
    """Times as cells of a small table, which has fewer digits than the sections."""
    digits = {1: 0, 1_000: 1}.get(unit.ns, max(unit.digits - FINER, 3))
    return tuple("-" if ns is None else f"{round(ns / unit.ns, digits) + 0.0:,.{digits}f}" for ns in times_ns)


def _row(stream: ReportStream, unit: PrintedUnit) -> tuple[str, ...]:
    summary = stream.summary
    shares = [each.value for each in quantiles(summary, shares=SHARES)]
    figures = table_times((summary.observed.smallest, *shares, summary.observed.largest), unit)
    name = stream.name.removeprefix("thread ")[:LONGEST_NAME]
    return (name, stream.cpu, f"{summary.obtained:,}", f"{summary.never_ran:,}", *figures)


def _maxima(summary: Summary, cells: int) -> list[int]:
    """The largest positive value of each part of the run; 0 for a part without one."""
    seconds = summary.seconds
    ran = seconds.obtained > 0
    if not ran.any():
        return []
    second, largest = seconds.second[ran], np.maximum(seconds.max[ran], 0)
    count = int(second[-1] - second[0]) + 1
    place = (second - second[0]) * min(cells, count) // count
    found = np.zeros(min(cells, count), np.int64)
    np.maximum.at(found, place, largest)
    return [int(each) for each in found]


def fitting_cautions(found: Sequence[str], width: int, most: int, rest: str = "", label: str = "doubts") -> list[str]:
    """As many whole cautions as fit into so many lines, each on lines of its own, and how many more there are.

    rest: where those are.
    """
    whole = [labelled("" if at else label, text, width) for at, text in enumerate(found)]
    for kept in range(len(whole), -1, -1):
        lines = [line for lines in whole[:kept] for line in lines]
        if kept < len(whole):
            lines += labelled("" if kept else label, f"and {len(whole) - kept:,} more{rest}", width)
        if len(lines) <= most:
            break
    return lines
