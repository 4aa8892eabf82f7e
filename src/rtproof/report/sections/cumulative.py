# SPDX-License-Identifier: Apache-2.0
"""Cumulative percentage of the latencies, whole and the top of it, and the 99.999 % threshold, as in article 5."""

from rtproof.analysis.fields import several_stages
from rtproof.analysis.model import Analysis, Summary
from rtproof.report import cumulative, thresholds
from rtproof.report.blocks import Block, Text
from rtproof.report.cumulative import Named
from rtproof.report.streams import latency_unit, left_out_at_the_end, limit_marker, streams

CAPTION = "Largest latency, and the one that few exceed"


def render(analysis: Analysis) -> list[Block]:
    """Of every stage where activations have several values; of all threads together, as the tail shows each."""
    if not analysis.pooled.observed.count:
        return []
    named = [(stage.series.field, stage) for stage in several_stages(analysis)] or [_whole(analysis)]
    unit = latency_unit(analysis)
    curves = [Named(name, summary.observed_counts) for name, summary in named]
    drawn = cumulative.plots(curves, unit=unit, markers=limit_marker(analysis, "x", unit))
    left_out = cumulative.left_out(curves)
    more = [Text((left_out,))] if left_out else []
    never_ran = left_out_at_the_end(analysis)
    return [*never_ran, thresholds.table(CAPTION, named), Text((thresholds.DEFINITION,)), *drawn, *more]


def _whole(analysis: Analysis) -> tuple[str, Summary]:
    last = streams(analysis)[-1]
    return last.name, last.summary
