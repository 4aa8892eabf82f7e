# SPDX-License-Identifier: Apache-2.0
"""Do the fields of a record agree: with each other, with the order in which they happen, and with their source?"""

from collections.abc import Iterator

from rtproof.analysis.checks.case import WARNING, Case, Check, series_name, severity_of
from rtproof.analysis.model import Doubt, Summary
from rtproof.analysis.phrases import quantity, value
from rtproof.analysis.source import SourceCount, source_counts


def stage_order(case: Case) -> Iterator[Doubt]:
    """A task cannot run before the interrupt that wakes it: where it does, one of the clocks or values is wrong."""
    for switch in case.switches:
        if switch.backwards:
            whole, least = switch.moments.count, switch.moments.min
            what = (
                f"{switch.later} came before {switch.earlier} in {switch.backwards:,} of "
                f"{quantity(whole, 'activation')}, by {value(-least)} at most, which cannot be"
            )
            remedy = "check that all CPUs of the target have the same clock; do not trust these stages"
            yield Doubt("stage-order", severity_of(switch.backwards, whole), what, remedy)


def stages_differ(case: Case) -> Iterator[Doubt]:
    """All fields of a thread count the same activations; where they do not, a stage lacks values, maybe its largest."""
    judged = {summary.series.thread: summary for summary in case.summaries}
    for summary in case.every:
        whole = judged.get(summary.series.thread, summary)
        if _counted(summary) != _counted(whole):
            what = (
                f"{series_name(case, summary.series)} has {quantity(summary.observed.count, 'value')} and "
                f"{summary.missed:,} missed, {whole.series.field} has {whole.observed.count:,} and {whole.missed:,}"
            )
            remedy = "compare the stages with care; copy the record again if it is a copy"
            yield Doubt("stages-differ", WARNING, what, remedy)


def source_differs(case: Case) -> Iterator[Doubt]:
    """The source of a probe counts what the reader lost too, so it may know of a larger value than the record."""
    counted = {(count.thread, count.field): count for count in source_counts(case.record)}
    for summary in case.every:
        count = counted.get((summary.series.thread, summary.series.field))
        if count and _knows_more(count, summary):
            what = (
                f"{series_name(case, summary.series)}: its source counted {quantity(count.count, 'value')} up to "
                f"{value(count.max)}, of which {count.lost:,} were lost on the way; the record has "
                f"{summary.observed.count:,} up to {value(summary.observed.max)}"
            )
            remedy = "take the larger maximum; relieve the reader (priority, another CPU, a longer period)"
            yield Doubt("source-differs", WARNING, what, remedy)


def _counted(summary: Summary) -> tuple[int, int]:
    return summary.observed.count, summary.missed


def _knows_more(count: SourceCount, summary: Summary) -> bool:
    """An activation more or less may be due to the end of the run, at which both stop at different instants."""
    larger = count.count > 0 and (not summary.observed.count or count.max > summary.observed.max)
    return count.lost > 0 or count.count > summary.observed.count + 1 or larger


CHECKS: tuple[Check, ...] = (stage_order, stages_differ, source_differs)
