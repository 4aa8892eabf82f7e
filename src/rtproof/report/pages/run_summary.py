# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on the screen: the verdict, a line for each thread, the doubts, and where the rest is.

It has at most MOST_LINES lines. What does not fit is counted, and ``rtproof show`` prints all of it.
"""

import textwrap
from collections.abc import Sequence

import numpy as np

from rtproof.core.phrases import duration, quantity
from rtproof.core.printable import clean
from rtproof.core.sparkline import sparklines_of
from rtproof.judge import verdict_sentences
from rtproof.judge.analyse import FOREMOST_CODES
from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.report import number_format
from rtproof.report.audit_findings import audit_in_short
from rtproof.report.number_format import PrintedUnit, ReportStream
from rtproof.report.sections.explained import why_in_short
from rtproof.report.sections.verdict import loop_answer, run_objections
from rtproof.summary.edge_pairs import EdgePairs, edge_times
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart, scale_end_ns
from rtproof.summary.quantiles import quantile, quantiles
from rtproof.summary.summary_model import Severity, Summary

MOST_LINES = 18
"""20 with the last line of the live view and one of the agent."""
MOST_EXPLAINED = 16
"""Of a run that is explained: 20 with the four lines that the live view leaves of two threads on a terminal."""
WIDTH = 80
NARROWEST, WIDEST = 70, 120
LABEL = 10
"""Columns of the words on the left."""
MOST_LIMITS = 3
MOST_DOUBT_LINES = 4
SHARES = (0.5, 0.99, 0.999)
CELLS = 10
"""Columns of the maximum over time, where there is room for them."""
FEWEST_CELLS = 5
FEW_THREADS = 2
"""With so few there is room for a longer reason."""


COLOURS = {
    **dict.fromkeys((State.HELD, State.PROVEN), "green"),
    **dict.fromkeys((State.EXCEEDED, State.REFUTED, State.INVALID), "red"),
    State.UNDECIDED: "yellow",
}
"""Of a verdict on a terminal that shows colours."""


def summary_text(analysis: Analysis, where: Sequence[tuple[str, str]], width: int = WIDTH) -> str:
    """The summary, one newline after each line. where: label and place of the page and of all the rest."""
    width = min(max(width, NARROWEST), WIDEST)
    why = _why_lines(analysis, width)
    verdict = _verdict_lines(analysis, width, short=bool(why))
    doubts = _doubt_lines(analysis, width, short=bool(why))
    places = [f"{label:<{LABEL}}{clean(place)}" for label, place in where]
    rows = (MOST_EXPLAINED if why else MOST_LINES) - len(verdict) - len(why) - len(doubts) - len(places) - 3
    audit = _audit_lines(analysis, width) if rows > 1 else []
    threads = _thread_lines(analysis, width, max(rows - len(audit), 1))
    parts = (verdict, threads, [*why, *doubts, *audit, *places])
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def verdict_line(analysis: Analysis) -> str:
    """The verdict and its reason in one line, without a newline."""
    return clean(f"{analysis.verdict.state.value} {verdict_sentences.claim_answer(analysis.verdict)}")


def _verdict_lines(analysis: Analysis, width: int, *, short: bool = False) -> list[str]:
    """The verdict on the first limits, and what more there is to say of the one that decides.

    short: of one limit, only what was seen.
    """
    deciding = analysis.verdict
    verdicts = sorted(analysis.verdicts or (deciding,), key=lambda verdict: verdict is not deciding)
    if len(verdicts) == 1:
        first, *more = [text for text in (*_reasons(deciding), loop_answer(analysis)) if text] or [""]
        if short:
            return [*_one_verdict(deciding, width, 2), *_labelled("", first, width, 2)]
        most = 2 + (not more) + (len(analysis.summaries) <= FEW_THREADS)
        return [*_one_verdict(deciding, width, 2), *_labelled("", first, width, most), *_wrapped(more, width, 2)]
    lines = [*_one_verdict(deciding, width, 1), *_wrapped(_reasons(deciding), width, 2)]
    lines += [line for each in verdicts[1:MOST_LIMITS] for line in _one_verdict(each, width, 1)]
    left_out = len(verdicts) - MOST_LIMITS
    more = [f"{'':{LABEL}}and {quantity(left_out, 'more limit')}"] if left_out > 0 else []
    return [*lines, *more]


def _wrapped(texts: Sequence[str], width: int, most: int) -> list[str]:
    return [line for text in texts for line in _labelled("", text, width, most)]


def _one_verdict(verdict: Verdict, width: int, most: int) -> list[str]:
    return _labelled(verdict.state.value, verdict_sentences.claim_answer(verdict), width, most)


def _reasons(verdict: Verdict) -> list[str]:
    """What was seen, and what follows from the verdict."""
    if verdict.plain or verdict.state in (State.INVALID, State.NOT_ASKED):
        return [verdict_sentences.exact_answer(verdict)]
    if verdict.untimed and verdict.state is State.UNDECIDED:
        return [verdict_sentences.exact_answer(verdict)]
    if verdict.state is State.UNDECIDED:
        return [verdict_sentences.longer_run_answer(verdict)]
    asked = verdict.requirement
    one = f" Times up to {duration(asked.gap_ns)} apart are one episode." if asked and verdict.episodes else ""
    return [_seen(verdict, one), verdict_sentences.short_certainty_answer(verdict)]


def _seen(verdict: Verdict, one: str) -> str:
    """The first reason that the verdict's sentence does not say itself. one: what counts as one episode."""
    said = verdict_sentences.only_at_first(verdict) and not verdict_sentences.mostly_late(verdict)
    reasons = verdict.reasons[1:] if said else verdict.reasons
    return f"{reasons[0].rstrip('.')}.{one}" if reasons else ""


def _labelled(label: str, text: str, width: int, most: int) -> list[str]:
    """A text beside a label, cut after ``most`` lines."""
    return textwrap.wrap(
        clean(text),
        width,
        initial_indent=f"{label:<{LABEL}}" if len(label) < LABEL else f"{label} ",
        subsequent_indent=" " * LABEL,
        max_lines=most,
        placeholder=" ...",
    )


def _thread_lines(analysis: Analysis, width: int, most: int) -> list[str]:
    """A table with a row for each thread; the ones with the largest maxima if there are more than fit."""
    if analysis.imported:
        return _imported_lines(analysis, analysis.imported, most)
    if analysis.edges:
        return _edge_lines(analysis.edges)
    threads = [stream for stream in number_format.report_streams(analysis) if not stream.pooled]
    shown = _worst(threads, most)
    unit = number_format.latency_unit(analysis)
    header = ("thread", "cpu", "n", "missed", "min", "median", "99 %", "99.9 %", f"max {unit.name}")
    lines = _right_aligned([header, *(_row(stream, unit) for stream in shown)])
    cells = min(width - len(lines[0]) - 2, CELLS)
    if cells >= FEWEST_CELLS:
        lines = [f"{line}  {more}".rstrip() for line, more in zip(lines, _over_time(shown, cells), strict=True)]
    left_out = len(threads) - len(shown)
    return [*lines, *([f"and {quantity(left_out, 'more thread')}, none later"] if left_out else [])]


def _edge_lines(pairs: EdgePairs) -> list[str]:
    """The response times of a run on two boards, and their parts; and how many edges had an answer."""
    never, us = pairs.never_answered_ns.size, number_format.US.ns
    found = f"{quantity(pairs.edges, 'edge')}, {never:,} never answered, {pairs.given.size:,} paired"
    rows = []
    for each in edge_times(pairs):
        shares = [quantile(each.counts, share, ends=each.moments).value for share in SHARES]
        figures = (each.moments.min, *shares, each.moments.max)
        shown = ("-" if ns is None else f"{ns / us:,.1f}" for ns in figures)
        rows.append((each.name, f"{each.moments.count:,}", *shown))
    header = ("time", "n", "min", "median", "99 %", "99.9 %", "max us")
    return [*_right_aligned([header, *rows]), found]


def _imported_lines(analysis: Analysis, imported: ImportedHistogram, most: int) -> list[str]:
    """The same of what another tool measured; a value beyond its scale is only known to be larger than that."""
    header = ("thread", "cpu", "n", "min", "median", "99 %", "99.9 %", "max us")
    known = {summary.series.thread: summary for summary in analysis.summaries}
    latest = sorted(imported.parts, key=lambda part: -(part.max_ns or 0))[: max(most - 1, 1)]
    shown = [part for part in imported.parts if part in latest or len(imported.parts) <= most]
    rows = [_imported_row(part, known.get(part.number), scale_end_ns(imported)) for part in shown]
    left_out = len(imported.parts) - len(shown)
    more = [f"and {quantity(left_out, 'more thread')}, none later"] if left_out else []
    return [*_right_aligned([header, *rows]), *more] if rows else []


def _imported_row(part: ImportedPart, summary: Summary | None, end_ns: int) -> tuple[str, ...]:
    def us(ns: int | None, *, in_a_bin: bool = False) -> str:
        if ns is None:
            return "-"
        return f">{end_ns / 1_000:,.0f}" if in_a_bin and part.overflow and ns >= end_ns else f"{ns / 1_000:,.1f}"

    shares = [each.value for each in quantiles(summary, shares=SHARES)] if summary else [None] * len(SHARES)
    cpu, count = ("-" if part.cpu is None else str(part.cpu)), ("-" if part.count is None else f"{part.count:,}")
    # A bin ends behind the largest value, which is told besides.
    known = (each if each is None or part.max_ns is None else min(each, part.max_ns) for each in shares)
    middle = (us(each, in_a_bin=True) for each in known)
    return (str(part.number), cpu, count, us(part.min_ns), *middle, us(part.max_ns))


def _right_aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(size) for cell, size in zip(row, widths, strict=True)) for row in rows]


def _worst(threads: Sequence[ReportStream], most: int) -> list[ReportStream]:
    if len(threads) <= most:
        return list(threads)
    latest = sorted(threads, key=lambda stream: -stream.summary.observed.max)[: max(most - 1, 1)]
    return [stream for stream in threads if stream in latest]


def _row(stream: ReportStream, unit: PrintedUnit) -> tuple[str, ...]:
    summary = stream.summary
    digits = {1: 0, 1_000: 1}.get(unit.ns, 3)
    found = [each.value for each in quantiles(summary, shares=SHARES)]
    ends = (summary.observed.min, summary.observed.max) if summary.observed.count else (None, None)
    figures = (ends[0], *found, ends[1])
    return (
        stream.name.removeprefix("thread "),
        stream.cpu,
        f"{summary.obtained:,}",
        f"{summary.never_ran:,}",
        *("-" if each is None else f"{each / unit.ns:,.{digits}f}" for each in figures),
    )


def _over_time(streams: Sequence[ReportStream], cells: int) -> list[str]:
    """A heading, and for each stream the largest value of each part of the run, all on one logarithmic scale."""
    parts = [_maxima(stream.summary, cells) for stream in streams]
    return ["over time"[:cells].ljust(cells), *sparklines_of(parts)]


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


def _why_lines(analysis: Analysis, width: int) -> list[str]:
    """The first causes of an explained run, and what tracing adds."""
    causes = why_in_short(analysis)
    return [line for at, text in enumerate(causes) for line in _labelled("" if at else "why", text, width, 2 - at)]


def _audit_lines(analysis: Analysis, width: int) -> list[str]:
    """One line if the run's own record has a finding of the audit that is fatal or high."""
    short = audit_in_short(analysis.record, width - LABEL)
    return _labelled("audit", short, width, 1) if short else []


def _doubt_lines(analysis: Analysis, width: int, *, short: bool = False) -> list[str]:
    """Each kind of doubt once, then the objections. What does not fit is counted. short: one line of the first.

    First those that make the run invalid, and those that say what the figures are of.
    """
    doubts = sorted(
        analysis.doubts, key=lambda doubt: (doubt.severity is not Severity.INVALID, doubt.code not in FOREMOST_CODES)
    )
    kinds = {doubt.code: doubt.what for doubt in reversed(doubts)}
    told = [kinds[code] for code in dict.fromkeys(doubt.code for doubt in doubts)]
    told = [what for what in told if not _in_reason(analysis, what)]
    told += dict.fromkeys(f"objection: {each.what}" for each in run_objections(analysis))
    return _as_many_as_fit(told, width, (2, 1) if short else (MOST_DOUBT_LINES, 2))


def _in_reason(analysis: Analysis, what: str) -> bool:
    """Whether the verdict's own lines say it already."""
    return analysis.verdict.state is State.INVALID and what.lower() in " ".join(analysis.verdict.reasons).lower()


def _as_many_as_fit(told: Sequence[str], width: int, most: tuple[int, int]) -> list[str]:
    """most: lines in all, and of one doubt."""
    lines: list[str] = []
    for at, what in enumerate(told):
        some = _labelled("" if lines else "doubts", what, width, most[1])
        if len(lines) + len(some) > most[0] - (at + 1 < len(told)):
            return [*lines, f"{'':{LABEL}}and {len(told) - at:,} more"]
        lines += some
    return lines
