# SPDX-License-Identifier: Apache-2.0
"""Context switch between the interrupt and the task of the same event, as in article 5.

Its context switch is the difference of the bins that most samples lie in; beside it stands what it cannot have: the
difference of each event.
"""

from rtproof.analysis.dominant import Dominant, dominant
from rtproof.analysis.fields import several_stages
from rtproof.analysis.model import Analysis, Summary, Switch
from rtproof.report import figures
from rtproof.report.blocks import Block, Table
from rtproof.report.stagetable import ENDS, ends

FIRST = "irq"
INTERRUPT_BIN_NS, TASK_BIN_NS = 500, 2_000
"""Article 5's bins: 2,000 of the one, 2,500 of the other."""


def render(analysis: Analysis) -> list[Block]:
    stages = several_stages(analysis)
    if not stages or stages[0].series.field != FIRST:
        return []
    return _context_switch(analysis, stages[0], stages[-1])


def _context_switch(analysis: Analysis, interrupt: Summary, preemption: Summary) -> list[Block]:
    first = dominant(interrupt.observed_counts, INTERRUPT_BIN_NS)
    last = dominant(preemption.observed_counts, TASK_BIN_NS)
    if first is None or last is None:
        return []
    apart = f"{_us(max(last.start - first.end, 0))} to {_us(last.end - first.start)}"
    rows = (
        ("interrupt latency", *_bin(first), *ends(interrupt.observed)[1:]),
        ("preemption latency", *_bin(last), *ends(preemption.observed)[1:]),
        ("from one bin to the other", apart, *[""] * 4),
        *(_each_event(switch) for switch in analysis.switches),
    )
    header = ("context switch", "dominant bin [us]", "share of samples", *ENDS[1:])
    caption = (
        f"Context switch from the bins that most samples lie in, {_us(INTERRUPT_BIN_NS)} us wide for the interrupt and "
        f"{_us(TASK_BIN_NS)} us for the task, and exactly, event by event"
    )
    return [Table(caption, header, rows, tuple(range(1, len(header))))]


def _each_event(switch: Switch) -> tuple[str, ...]:
    found = dominant(switch.counts, TASK_BIN_NS)
    shown = _bin(found) if found else (figures.UNKNOWN, figures.UNKNOWN)
    return (f"each event, {switch.earlier} to {switch.later}", *shown, *ends(switch.moments)[1:])


def _bin(found: Dominant) -> tuple[str, str]:
    return f"{_us(found.start)} to {_us(found.end)}", figures.share(found.n, found.total)


def _us(ns: int) -> str:
    return f"{ns / figures.US.ns:g}"
