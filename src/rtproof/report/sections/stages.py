# SPDX-License-Identifier: Apache-2.0
"""Where the time goes: the lateness of each stage of an activation, and of the same activation from stage to stage."""

from rtproof.analysis.fields import several_stages
from rtproof.analysis.model import Analysis
from rtproof.analysis.source import SourceCount, source_counts
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.stagetable import HEADINGS, is_response, numbers

MEANINGS = {
    "irq": "in the interrupt handler",
    "task": "in the task of the kernel",
    "thread": "in the woken thread, inside the kernel",
    "user": "in the task of user space",
    "top": "at the top of the loop",
    "start": "before its work",
    "end": "behind its work",
}
NO_SAMPLES = "The run kept a summary instead of every sample, so the time from stage to stage is not known."


def render(analysis: Analysis) -> list[Block]:
    stages = several_stages(analysis)
    if not stages or is_response(analysis):
        return []
    rows = [
        (stage.series.field, MEANINGS.get(stage.series.field, ""), *numbers(stage.observed_counts, stage.observed))
        for stage in stages
    ]
    caption = "Lateness of each stage: from the due time until the clock was read; the last one is judged"
    blocks: list[Block] = [_table(caption, ("stage", "clock read"), rows)]
    return [*blocks, *_switches(analysis), *_sources(source_counts(analysis.record))]


def _table(caption: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> Table:
    header = (*names, *HEADINGS)
    return Table(caption, header, tuple(rows), tuple(range(len(names), len(header))))


def _switches(analysis: Analysis) -> list[Block]:
    if not analysis.switches:
        return [Text((NO_SAMPLES,))]
    rows = [(f"{each.earlier} to {each.later}", *numbers(each.counts, each.moments)) for each in analysis.switches]
    return [_table("From stage to stage of the same activation, each difference exact", ("from, to",), rows)]


def _sources(found: tuple[SourceCount, ...]) -> list[Block]:
    if not found:
        return []
    header = ("thread", "stage", "counted", "missed", "lost", *figures.headings(figures.US, "min", "max"))
    rows = tuple((f"thread {each.thread}", each.field, *_counted(each)) for each in found)
    caption = "The kernel's own account, also of values that were lost on the way to the record"
    return [Table(caption, header, rows, tuple(range(2, len(header))))]


def _counted(each: SourceCount) -> tuple[str, ...]:
    ends = (each.min, each.max) if each.count else (None, None)
    return (*map(figures.count, (each.count, each.missed, each.lost)), *map(figures.US.show, ends))
