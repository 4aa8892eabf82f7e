# SPDX-License-Identifier: Apache-2.0
"""The sections of a report, in the order of the report. A new section needs a function and a row here."""

from collections.abc import Callable
from dataclasses import dataclass

from rtproof.judge.analysis_model import Analysis
from rtproof.report.blocks import Block
from rtproof.report.sections import (
    answers,
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

VERDICT, DOUBTS, WHY, NUMBERS = "Verdict", "Doubts", "Why it was late", "Numbers"
PARTS, PLOTS, SYSTEM, RECORD = "Stages and loops", "Over time and distribution", "Settings and system", "The record"
GROUPS = (VERDICT, DOUBTS, WHY, NUMBERS, PARTS, PLOTS, SYSTEM, RECORD)
"""The headings of the run's page, in its order. ``rtproof show`` lists the sections under them."""


@dataclass(frozen=True)
class ReportSection:
    """One section: ``draw`` is a pure function, and the report leaves out a section whose list of blocks is empty.

    ``name`` identifies the section in files and links. ``group``: one of GROUPS. ``short``: the section is also in the
    short form of the report, which is printed when a run ends. ``untimed``: it needs no time order, so a histogram of
    another tool has it too. ``recorded``: it needs the record but no values in it, so a run in which another tool
    measured has it.
    """

    name: str
    title: str
    group: str
    draw: Callable[[Analysis], list[Block]]
    short: bool = False
    untimed: bool = False
    recorded: bool = False


SECTIONS = (
    ReportSection("in_band", "Beside a co-kernel", VERDICT, verdict.in_band_section, short=True),
    ReportSection("virtual_time", "Virtual time", VERDICT, verdict.virtual_time_section, short=True, recorded=True),
    ReportSection("verdict", "Verdict", VERDICT, verdict.verdict_section, short=True, untimed=True),
    ReportSection("doubts", "Doubts", DOUBTS, verdict.doubts_section, short=True, untimed=True),
    ReportSection("edges", "Edges of two boards", NUMBERS, edges.edges_section, short=True),
    ReportSection("numbers", "Numbers per thread", NUMBERS, numbers.numbers_section, short=True),
    ReportSection("stages", "Stages", PARTS, stages.stages_section, short=True),
    ReportSection("preemption", "Context switch", PARTS, stages.preemption_section),
    ReportSection("cycles", "Cycles of the loop", PARTS, loops.cycles_section, short=True),
    ReportSection("ipc", "Who woke the threads", PARTS, stages.ipc_section),
    ReportSection("response", "Response", PARTS, answers.response_section, short=True),
    ReportSection("app", "Loops of the application", PARTS, loops.app_section, short=True),
    ReportSection("app_account", "What the application did", PARTS, loops.app_account_section),
    ReportSection("tool", "What the tool tells", NUMBERS, numbers.tool_section, untimed=True),
    ReportSection(
        "lines", "Over time, by the lines that the tool printed", PLOTS, timeline.lines_section, untimed=True
    ),
    ReportSection("percentiles", "Percentiles", NUMBERS, numbers.percentiles_section, untimed=True),
    ReportSection("histogram", "Histogram", PLOTS, distribution.histogram_section, untimed=True),
    ReportSection("ccdf", "Tail", PLOTS, distribution.ccdf_section, untimed=True),
    ReportSection("impossible", "What this file cannot say", DOUBTS, verdict.impossible_section, untimed=True),
    ReportSection("timeline", "Over time", PLOTS, timeline.timeline_section),
    ReportSection("outliers", "Largest latencies", NUMBERS, numbers.outliers_section),
    ReportSection("explained", "Why it was late", WHY, explained.explained_section),
    ReportSection("audit", "Audit", SYSTEM, audit.audit_section, recorded=True),
    ReportSection("levels", "Above limits and levels", NUMBERS, timeline.levels_section),
    ReportSection("forecast", "Forecast", PLOTS, forecast.forecast_section),
    ReportSection("evidence", "Evidence: asked and effective", SYSTEM, evidence.evidence_section),
    ReportSection("loads", "Evidence: loads, temperature, frequency", SYSTEM, evidence.loads_section, recorded=True),
    ReportSection("interrupts", "Evidence: interrupts", SYSTEM, evidence.interrupts_section, recorded=True),
    ReportSection("trace", "The kernel's trace", RECORD, tracing.trace_section, recorded=True),
    ReportSection(
        "observer", "Observer effect: what tracing itself changes", RECORD, tracing.observer_section, short=True
    ),
    ReportSection("system", "Evidence: the system", SYSTEM, system.system_section, recorded=True),
    ReportSection("threads", "Evidence: threads of the system", SYSTEM, system.threads_section, recorded=True),
    ReportSection("cumulative", "Cumulative percentage", PLOTS, distribution.cumulative_section),
    ReportSection("repeat", "The record, and how to repeat the run", RECORD, evidence.repeat_section, recorded=True),
)
SECTION_NAMES = tuple(section.name for section in SECTIONS)
