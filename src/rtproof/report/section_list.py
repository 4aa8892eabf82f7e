# SPDX-License-Identifier: Apache-2.0
"""The sections of a report, in the order in which the report shows them. A new section is a function and a row here."""

from collections.abc import Callable
from dataclasses import dataclass

from rtproof.analysis.model import Analysis
from rtproof.report.blocks import Block
from rtproof.report.sections import (
    app,
    app_account,
    ccdf,
    cumulative,
    cycles,
    doubts,
    evidence,
    forecast,
    histogram,
    in_band,
    interrupts,
    ipc,
    levels,
    loads,
    numbers,
    objections,
    observer,
    outliers,
    percentiles,
    preemption,
    repeat,
    response,
    stages,
    system,
    threads,
    timeline,
    trace,
    verdict,
    virtual_time,
)


@dataclass(frozen=True)
class ReportSection:
    """One section: ``draw`` is a pure function, and the report leaves out a section whose list of blocks is empty.

    ``name`` identifies the section in files and links. The short form, printed when a run ends, has the ``short`` ones.
    """

    name: str
    title: str
    draw: Callable[[Analysis], list[Block]]
    short: bool = False


SECTIONS = (
    ReportSection("in_band", "Beside a co-kernel", in_band.render, short=True),
    ReportSection("virtual_time", "Virtual time", virtual_time.render, short=True),
    ReportSection("verdict", "Verdict", verdict.render, short=True),
    ReportSection("doubts", "Doubts", doubts.render, short=True),
    ReportSection("numbers", "Numbers per thread", numbers.render, short=True),
    ReportSection("stages", "Stages", stages.render, short=True),
    ReportSection("preemption", "Context switch", preemption.render),
    ReportSection("cycles", "Cycles of the loop", cycles.render, short=True),
    ReportSection("ipc", "Who woke the threads", ipc.render),
    ReportSection("response", "Response", response.render, short=True),
    ReportSection("app", "Loops of the application", app.render, short=True),
    ReportSection("app_account", "What the application did", app_account.render),
    ReportSection("objections", "Objections", objections.render, short=True),
    ReportSection("percentiles", "Percentiles", percentiles.render),
    ReportSection("histogram", "Histogram", histogram.render),
    ReportSection("ccdf", "Tail", ccdf.render),
    ReportSection("timeline", "Over time", timeline.render),
    ReportSection("outliers", "Largest latencies", outliers.render),
    ReportSection("levels", "Above limits and levels", levels.render),
    ReportSection("forecast", "Forecast", forecast.render),
    ReportSection("evidence", "Evidence: asked and effective", evidence.render),
    ReportSection("loads", "Evidence: loads, temperature, frequency", loads.render),
    ReportSection("interrupts", "Evidence: interrupts", interrupts.render),
    ReportSection("trace", "The kernel's trace", trace.render),
    ReportSection("observer", "Observer effect: what tracing itself changes", observer.render, short=True),
    ReportSection("system", "Evidence: the system", system.render),
    ReportSection("threads", "Evidence: threads of the system", threads.render),
    ReportSection("cumulative", "Cumulative percentage", cumulative.render),
    ReportSection("repeat", "The record, and how to repeat the run", repeat.render),
)
