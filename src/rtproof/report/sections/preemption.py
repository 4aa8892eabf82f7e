# SPDX-License-Identifier: Apache-2.0
"""Interrupt and preemption latency of the same event and the context switch between them, as in article 5.

Its context switch is the difference of the bins that most samples lie in; beside it stands what it cannot have: the
difference of each event.
"""

from rtproof.analysis.dominant import Dominant, dominant
from rtproof.analysis.fields import several_stages
from rtproof.analysis.model import Analysis, Summary, Switch
from rtproof.analysis.phrases import percent
from rtproof.analysis.quantiles import quantile
from rtproof.report import figures
from rtproof.report.blocks import Block, Table
from rtproof.report.stagetable import ENDS, ends

ORDER = 50
TITLE = "Interrupt and preemption latency"

FIRST = "irq"
SHARE = 0.99999
BIN_NS = 2_000


def render(analysis: Analysis) -> list[Block]:
    stages = several_stages(analysis)
    if not stages or stages[0].series.field != FIRST:
        return []
    interrupt, preemption = stages[0], stages[-1]
    return [_thresholds(interrupt, preemption), *_context_switch(analysis, interrupt, preemption)]


def _thresholds(interrupt: Summary, preemption: Summary) -> Table:
    named = (("interrupt latency", interrupt), ("preemption latency", preemption))
    rows = tuple(
        (name, figures.count(stage.observed.count), _maximum(stage), _threshold(stage)) for name, stage in named
    )
    header = ("latency", "n", "maximum [us]", f"{percent(SHARE)} are not above [us]")
    return Table("From the due time to the interrupt handler, and to the task", header, rows, (1, 2, 3))


def _maximum(stage: Summary) -> str:
    return figures.US.show(stage.observed.max if stage.observed.count else None)


def _threshold(stage: Summary) -> str:
    found = quantile(stage.observed_counts, SHARE, ends=stage.observed)
    return f"n = {found.n:,} does not carry it" if found.value is None else figures.US.show(found.value)


def _context_switch(analysis: Analysis, interrupt: Summary, preemption: Summary) -> list[Block]:
    first, last = (dominant(stage.observed_counts, BIN_NS) for stage in (interrupt, preemption))
    if first is None or last is None:
        return []
    width = BIN_NS / figures.US.ns
    apart = f"{(last.start - first.start) / figures.US.ns:g}, give or take {width:g}"
    rows = (
        ("interrupt latency", *_bin(first), *ends(interrupt.observed)[1:]),
        ("preemption latency", *_bin(last), *ends(preemption.observed)[1:]),
        ("difference of the two bins", apart, *[""] * 4),
        *(_each_event(switch) for switch in analysis.switches),
    )
    header = ("context switch", "dominant bin [us]", "share of samples", *ENDS[1:])
    caption = f"Context switch from the bins of {width:g} us that most samples lie in, and exactly, event by event"
    return [Table(caption, header, rows, tuple(range(1, len(header))))]


def _each_event(switch: Switch) -> tuple[str, ...]:
    found = dominant(switch.counts, BIN_NS)
    shown = _bin(found) if found else (figures.UNKNOWN, figures.UNKNOWN)
    return (f"each event, {switch.earlier} to {switch.later}", *shown, *ends(switch.moments)[1:])


def _bin(found: Dominant) -> tuple[str, str]:
    bounds = f"{found.start / figures.US.ns:g} to {found.end / figures.US.ns:g}"
    return bounds, figures.share(found.n, found.total)
