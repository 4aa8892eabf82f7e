# SPDX-License-Identifier: Apache-2.0
"""The sections of a report, in the order of the report. A new section needs a function and a row here."""

from collections.abc import Callable
from dataclasses import dataclass

from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Block
from rtproof.report.sections import (
    audit,
    distribution,
    edges,
    evidence,
    explained,
    forecast,
    loops,
    numbers,
    stages,
    system,
    timeline,
    tracing,
    verdict,
)


@dataclass(frozen=True)
class ReportSection:
    """One section: ``draw`` is a pure function, and the report leaves out a section whose list of blocks is empty.

    ``name`` identifies the section in files and links. ``short``: the section is also in the short form of the report,
    which is printed when a run ends. ``untimed``: it needs no time order, so a histogram of another
    tool has it too. ``recorded``: it needs the record but no values in
    it, so a run in which another tool measured has it.
    """

    name: str
    title: str
    draw: Callable[[Analysis], list[Block]]
    short: bool = False
    untimed: bool = False
    recorded: bool = False


SECTIONS = (
    ReportSection("in_band", "Beside a co-kernel", verdict.in_band_section, short=True),
    ReportSection("virtual_time", "Virtual time", verdict.virtual_time_section, short=True, recorded=True),
    ReportSection("verdict", "Verdict", verdict.verdict_section, short=True, untimed=True),
    ReportSection("doubts", "Doubts", verdict.doubts_section, short=True, untimed=True),
    ReportSection("edges", "Edges of two boards", edges.edges_section, short=True),
    ReportSection("numbers", "Numbers per thread", numbers.numbers_section, short=True),
    ReportSection("stages", "Stages", stages.stages_section, short=True),
    ReportSection("preemption", "Context switch", stages.preemption_section),
    ReportSection("cycles", "Cycles of the loop", loops.cycles_section, short=True),
    ReportSection("ipc", "Who woke the threads", stages.ipc_section),
    ReportSection("response", "Response", stages.response_section, short=True),
    ReportSection("app", "Loops of the application", loops.app_section, short=True),
    ReportSection("app_account", "What the application did", loops.app_account_section),
    ReportSection("objections", "Objections", verdict.objections_section, short=True, untimed=True),
    ReportSection("tool", "What the tool tells", numbers.tool_section, untimed=True),
    ReportSection("lines", "Over time, by the tool's lines", timeline.lines_section, untimed=True),
    ReportSection("tool_time", "What the tool told over time", numbers.tool_time_section, untimed=True),
    ReportSection("percentiles", "Percentiles", numbers.percentiles_section, untimed=True),
    ReportSection("histogram", "Histogram", distribution.histogram_section, untimed=True),
    ReportSection("ccdf", "Tail", distribution.ccdf_section, untimed=True),
    ReportSection("impossible", "What this file cannot say", verdict.impossible_section, untimed=True),
    ReportSection("timeline", "Over time", timeline.timeline_section),
    ReportSection("outliers", "Largest latencies", numbers.outliers_section),
    ReportSection("explained", "Why it was late", explained.explained_section),
    ReportSection("audit", "Audit", audit.audit_section, recorded=True),
    ReportSection("levels", "Above limits and levels", timeline.levels_section),
    ReportSection("forecast", "Forecast", forecast.forecast_section),
    ReportSection("evidence", "Evidence: asked and effective", evidence.evidence_section),
    ReportSection("loads", "Evidence: loads, temperature, frequency", evidence.loads_section, recorded=True),
    ReportSection("interrupts", "Evidence: interrupts", evidence.interrupts_section, recorded=True),
    ReportSection("trace", "The kernel's trace", tracing.trace_section, recorded=True),
    ReportSection("observer", "Observer effect: what tracing itself changes", tracing.observer_section, short=True),
    ReportSection("system", "Evidence: the system", system.system_section, recorded=True),
    ReportSection("threads", "Evidence: threads of the system", system.threads_section, recorded=True),
    ReportSection("cumulative", "Cumulative percentage", distribution.cumulative_section),
    ReportSection("repeat", "The record, and how to repeat the run", evidence.repeat_section, recorded=True),
)
