# SPDX-License-Identifier: Apache-2.0
"""The threads of an analysis and all of them together, each with the name that tables and plots give it."""

from dataclasses import dataclass

from rtproof.core.phrases import quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Block, Marker, Text
from rtproof.report.number_format import PrintedUnit, unit_for
from rtproof.summary.cokernels import IN_BAND, core_beside
from rtproof.summary.summary_model import Summary

POOLED = "all threads"


@dataclass(frozen=True)
class ReportStream:
    """One thread, or the pool of all."""

    name: str
    cpu: str
    summary: Summary
    pooled: bool = False

    @property
    def role(self) -> str:
        """How a curve of it is drawn (``blocks.Curve``)."""
        return "whole" if self.pooled else "part"


def report_streams(analysis: Analysis) -> list[ReportStream]:
    """Every thread and, where there are several, their pool last. Beside a co-kernel each name says in-band."""
    several_fields = len({summary.series.field for summary in analysis.summaries}) > 1
    mark = f", {IN_BAND}" if core_beside(analysis.record) else ""
    found = [_stream(summary, several_fields, mark) for summary in analysis.summaries]
    return found if len(found) == 1 else [*found, ReportStream(f"{POOLED}{mark}", "", analysis.pooled, pooled=True)]


def plotted_streams(analysis: Analysis, most: int) -> tuple[list[ReportStream], str]:
    """The streams that a plot can hold: the pool and the ``most`` worst threads; and a sentence on what is left out."""
    found = report_streams(analysis)
    threads = [stream for stream in found if not stream.pooled]
    if len(threads) <= most:
        return found, ""
    worst = sorted(threads, key=lambda stream: -stream.summary.observed.max)[:most]
    kept = [stream for stream in found if stream.pooled or stream in worst]
    return kept, f"Of {len(threads)} threads the {most} with the largest maxima are drawn."


def left_out_at_the_end(analysis: Analysis) -> list[Block]:
    """What no percentile, plot or second holds: due times that a thread never ran for. Nothing if there are none."""
    pooled = analysis.pooled
    if not pooled.stalled:
        return []
    count, unit = quantity(pooled.stalled, "due time"), latency_unit(analysis)
    told = (
        f"Not in here: {count} at the end of the run, for which their thread did not run. "
        f"The latency of the first one is at least {unit.show(pooled.stalled_ns)} {unit.name}."
    )
    return [Text((told,), "doubt")]


def _stream(summary: Summary, several_fields: bool, mark: str) -> ReportStream:
    series = summary.series
    name = f"thread {series.thread}" + (f" {series.field}" if several_fields else "") + mark
    return ReportStream(name, "any" if series.cpu < 0 else str(series.cpu), summary)


def latency_unit(analysis: Analysis) -> PrintedUnit:
    """One unit for every latency of a report, so that its tables and plots can be compared at a glance."""
    observed = analysis.pooled.observed
    return unit_for((observed.min, observed.mean, observed.max))


def limit_marker(analysis: Analysis, axis: str, unit: PrintedUnit) -> tuple[Marker, ...]:
    """Each limit as a line in a plot; none where none was asked for."""
    asked = (verdict.requirement for verdict in analysis.verdicts or (analysis.verdict,))
    limits = dict.fromkeys(requirement.limit_ns for requirement in asked if requirement)
    return tuple(Marker(f"limit {value(limit_ns)}", axis, unit.scale(limit_ns)) for limit_ns in limits)
