# SPDX-License-Identifier: Apache-2.0
"""The sections of a report, in the order of the report. A new section needs a function and a row here."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from rtproof.core import plugins
from rtproof.judge.analysis_model import Analysis, is_response, several_stages
from rtproof.judge.worst_first import FOREMOST_CODES
from rtproof.record.contents import WHOLE_RUN
from rtproof.report import sections
from rtproof.report.blocks import Block, HeatMap, Plot
from rtproof.summary import loops
from rtproof.summary.kernel_trace import has_trace, trace_refused
from rtproof.summary.recorded_facts import block_length_ns, is_collected, probe_accounts
from rtproof.summary.target_threads import target_threads

VERDICT, DOUBTS, WHY, NUMBERS = "Verdict", "Doubts", "Why it was late", "Numbers"
PARTS, PLOTS, SYSTEM, RECORD = "Stages and loops", "Over time and distribution", "Settings and system", "The record"
GROUPS = (VERDICT, DOUBTS, WHY, NUMBERS, PARTS, PLOTS, SYSTEM, RECORD)
"""The headings of the run's page, in its order. ``rtproof show`` lists the sections under them."""
OF_BOTH_BOARDS = ("edges", "forecast")
"""The sections whose figures are of what both boards of a run did. All others are of the responder alone."""


SHORT = (
    *("in_band", "virtual_time", "verdict", "doubts", "edges", "numbers"),
    *("stages", "cycles", "response", "app", "observer"),
)
"""The sections of the short form of the report, which is printed when a run ends."""
UNTIMED = ("verdict", "doubts", "tool", "lines", "percentiles", "histogram", "ccdf", "impossible")
"""Sections that need no time order, so a histogram of another tool has them too."""
RECORDED = ("virtual_time", "audit", "loads", "interrupts", "trace", "system", "threads", "repeat")
"""Sections that need the record but no values in it, so a run in which another tool measured has them."""


@dataclass(frozen=True)
class ReportSection:
    """One section. The function NAME_section of its module draws it: a pure function that makes blocks of an Analysis.

    ``name`` identifies the section in files and links. ``group``: one of GROUPS. ``module``: of ``sections/``. ``has``:
    whether a run has the section; no other run is drawn.
    """

    name: str
    title: str
    group: str
    module: str
    has: Callable[[Analysis], object]

    def draw(self, analysis: Analysis) -> list[Block]:
        """The blocks. The module is imported only now: all modules together take longer than the screen of a run."""
        blocks: list[Block] = getattr(plugins.load_plugin(sections, self.module), f"{self.name}_section")(analysis)
        if analysis.edges is None or self.name in OF_BOTH_BOARDS:
            return blocks
        return [
            replace(block, title=f"{block.title}, of the responder alone")
            if isinstance(block, Plot | HeatMap)
            else block
            for block in blocks
        ]


def _has_context_switch(analysis: Analysis) -> bool:
    """Whether the interrupt and the task were both seen."""
    stages = several_stages(analysis)
    both = bool(stages) and stages[0].series.field == "irq"
    return both and all(stage.observed_counts.n.size for stage in (stages[0], stages[-1]))


def _has_counted(analysis: Analysis) -> bool:
    """Whether a thread did anything by its probe's own account."""
    accounts = [*probe_accounts(analysis.record, "app").values(), *probe_accounts(analysis.record, "ipc").values()]
    return any(value not in ("", "0") for account in accounts for value in account.values())


def _beyond_scale(analysis: Analysis) -> bool:
    """Whether values of another tool's histogram lie, or may lie, where its bins do not reach."""
    return analysis.imported is not None and analysis.imported.overflow != 0


def _has_tail(analysis: Analysis) -> bool:
    pooled = analysis.pooled
    known = pooled.observed_counts.total or (pooled.missed and pooled.schedule_counts.total)
    return bool(known) and not _beyond_scale(analysis)


def _has_seconds(analysis: Analysis) -> bool:
    pooled = analysis.pooled
    return bool(pooled.stalled or (pooled.seconds.obtained > 0).any() or pooled.seconds.missed.any())


NOT_EVIDENCE = ("args", "claims")
"""Facts of the run that the section on evidence leaves out, besides those that the host adds (host.)."""


def _has_facts_of_the_run(analysis: Analysis) -> bool:
    facts = [fact for fact in analysis.record.facts if not fact.key.startswith("host.")]
    shown = any(fact.thread != WHOLE_RUN or fact.key not in NOT_EVIDENCE for fact in facts)
    return shown or bool(analysis.record.events)


SECTIONS = (
    ReportSection(
        "in_band",
        "Beside a co-kernel",
        VERDICT,
        "verdict",
        lambda run: any(doubt.code in FOREMOST_CODES for doubt in run.doubts),
    ),
    ReportSection("virtual_time", "Virtual time", VERDICT, "verdict", lambda run: run.virtual_clock),
    ReportSection("verdict", "Verdict", VERDICT, "verdict", bool),
    ReportSection("doubts", "Doubts", DOUBTS, "verdict", lambda run: run.doubts or not run.imported),
    ReportSection("edges", "Edges of two boards", NUMBERS, "answers", lambda run: run.edges),
    ReportSection("numbers", "Numbers per thread", NUMBERS, "numbers", bool),
    ReportSection("stages", "Stages", PARTS, "stages", lambda run: several_stages(run) and not is_response(run)),
    ReportSection("preemption", "Context switch", PARTS, "stages", _has_context_switch),
    ReportSection("cycles", "Cycles of the loop", PARTS, "stages", lambda run: run.cycles),
    ReportSection("response", "Response", PARTS, "answers", is_response),
    ReportSection(
        "app",
        "Loops of the application",
        PARTS,
        "stages",
        lambda run: loops.is_app(run.record) and run.pooled.observed.count,
    ),
    ReportSection("account", "What the probe counted", PARTS, "stages", _has_counted),
    ReportSection("tool", "What the tool tells", NUMBERS, "numbers", lambda run: run.imported),
    ReportSection(
        "lines",
        "Over time, by the lines that the tool printed",
        PLOTS,
        "timeline",
        lambda run: run.imported and run.imported.lines,
    ),
    ReportSection(
        "percentiles",
        "Percentiles",
        NUMBERS,
        "numbers",
        lambda run: not run.imported or run.pooled.observed_counts.total,
    ),
    ReportSection(
        "histogram",
        "Histogram",
        PLOTS,
        "distribution",
        lambda run: run.pooled.observed_counts.total and not _beyond_scale(run),
    ),
    ReportSection("ccdf", "Tail", PLOTS, "distribution", _has_tail),
    ReportSection("impossible", "What this file cannot say", DOUBTS, "verdict", lambda run: run.imported),
    ReportSection("timeline", "Over time", PLOTS, "timeline", _has_seconds),
    ReportSection(
        "outliers",
        "Largest latencies",
        NUMBERS,
        "numbers",
        lambda run: any(each.top.index.size for each in run.summaries),
    ),
    ReportSection(
        "explained", "Why it was late", WHY, "explained", lambda run: has_trace(run.record) or trace_refused(run.record)
    ),
    ReportSection("audit", "Audit", SYSTEM, "audit", lambda run: is_collected(run.record)),
    ReportSection(
        "forecast", "Forecast", PLOTS, "distribution", lambda run: run.forecast and run.forecast.worth_telling
    ),
    ReportSection("evidence", "Evidence: asked and effective", SYSTEM, "evidence", _has_facts_of_the_run),
    ReportSection("loads", "Evidence: loads, temperature, frequency", SYSTEM, "evidence", bool),
    ReportSection("interrupts", "Evidence: interrupts", SYSTEM, "evidence", bool),
    ReportSection("trace", "The kernel's trace", RECORD, "tracing", lambda run: has_trace(run.record)),
    ReportSection(
        "observer",
        "Observer effect: what tracing itself changes",
        RECORD,
        "tracing",
        lambda run: block_length_ns(run.record),
    ),
    ReportSection("system", "Evidence: the system", SYSTEM, "system", bool),
    ReportSection(
        "threads", "Evidence: threads of the system", SYSTEM, "system", lambda run: target_threads(run.record)
    ),
    ReportSection("repeat", "The record, and how to repeat the run", RECORD, "evidence", bool),
)
SECTION_NAMES = tuple(section.name for section in SECTIONS)


def sections_of(analysis: Analysis, *, short: bool = False) -> list[ReportSection]:
    """The sections that a run has, in order; with ``short`` only those of the short form."""
    names = SHORT if short else SECTION_NAMES
    if analysis.imported:  # What another tool printed has no times, and maybe no record.
        known = (*UNTIMED, *(RECORDED if analysis.run_record else ()))
        names = tuple(name for name in names if name in known)
    return [section for section in SECTIONS if section.name in names and section.has(analysis)]
