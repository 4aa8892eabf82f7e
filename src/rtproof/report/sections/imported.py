# SPDX-License-Identifier: Apache-2.0
"""Sections on a histogram that another tool printed: what the tool tells, and what needs more than a histogram."""

from collections.abc import Iterator

from rtproof.core.phrases import duration
from rtproof.judge.analysis_model import Analysis, State
from rtproof.judge.histogram_only import impossible_figures
from rtproof.report import number_format
from rtproof.report.blocks import Block, Table, Text
from rtproof.summary.imported_histogram import DURATION_STATED, ImportedHistogram


def tool_section(analysis: Analysis) -> list[Block]:
    """The figures of each thread and of the whole file, as the tool prints them; [] for a run."""
    imported = analysis.imported
    if imported is None:
        return []
    rows = tuple((name, words) for name, words in _told(imported) if words)
    told = Table("What the tool tells", ("what", "value"), (*rows, *imported.facts))
    unit = number_format.unit_for((imported.min_ns, imported.mean_ns, imported.max_ns))
    return [*([_threads(imported, unit)] if imported.parts else []), told]


def _told(imported: ImportedHistogram) -> Iterator[tuple[str, str]]:
    yield "samples", number_format.count_text(imported.count)
    yield "beyond the scale", number_format.count_text(imported.overflow)
    ends = (("smallest", imported.min_ns), ("mean", imported.mean_ns), ("largest", imported.max_ns))
    yield from ((name, "" if ns is None else number_format.US(ns)) for name, ns in ends)
    yield "period", duration(imported.period_ns) if imported.period_ns else ""
    yield "priority", "" if imported.priority is None else str(imported.priority)
    whose = "as the user states" if DURATION_STATED in imported.stated else "by its own account"
    yield f"measured, {whose}", duration(imported.duration_ns) if imported.duration_ns else ""
    yield "asked for", duration(imported.asked_duration_ns) if imported.asked_duration_ns else ""
    yield "overruns", "" if imported.overruns is None else number_format.count_text(imported.overruns)
    switches = imported.mode_switches
    yield "mode switches (msw)", "" if switches is None else number_format.count_text(switches)


def _threads(imported: ImportedHistogram, unit: number_format.PrintedUnit) -> Table:
    rows = tuple(
        (
            f"thread {part.number}",
            "unknown" if part.cpu is None else str(part.cpu),
            number_format.count_text(part.count),
            number_format.count_text(part.overflow),
            *(unit.show(ns) for ns in (part.min_ns, part.mean_ns, part.max_ns)),
        )
        for part in imported.parts
    )
    header = ("thread", "CPU", "n", "beyond the scale", *number_format.unit_headings(unit, "min", "mean", "max"))
    return Table("Threads", header, rows, tuple(range(1, len(header))))


def impossible_section(analysis: Analysis) -> list[Block]:
    """Each figure that a run has and the file lacks, with the reason; [] for a run."""
    imported = analysis.imported
    if imported is None:
        return []
    caption = "Statements that need more than a histogram"
    table = Table(caption, ("statement", "why not"), tuple(impossible_figures(imported)))
    ordered = "rtproof run measures with time order, so that it can prove and refute."
    return [table, *([Text((ordered,))] if analysis.verdict.state is State.UNDECIDED else [])]
