# SPDX-License-Identifier: Apache-2.0
"""Two explanations of the same activations: from the kernel's trace, and from what QEMU saw the guest execute.

A cell is measured with the flight recorder. Then it runs again with the plugin, which changes no byte of the guest. So
both tell of the same activations, and the plugin's account is a truth from outside.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from explain_parts import Bound, Details, Figure, Items, Part, percent, quantile

from rtproof.core.errors import TargetError
from rtproof.experiment import guest_runner
from rtproof.explain.budget import TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.lab import cell_explanation, executed_code
from rtproof.lab.cell_explanation import AFTER_SCHEDULER, BEFORE_INTERRUPT, BEFORE_SCHEDULER, IN_INTERRUPT
from rtproof.lab.executed_code import ExecutedBlocks, FunctionSpan, Symbols
from rtproof.lab.guest_cell import GuestCell
from rtproof.record import run_folder
from rtproof.record.activations import number_activations
from rtproof.record.contents import Record
from rtproof.summary.trace_text import is_interrupt

CELLS = ("dd", "mmap", "files", "timers")
KERNEL, MODEL = "debian-6.1", "none"
RECORDER = ("--trace", "recorder,top=256,ordinary=32,stacks", "--limit", "20us")
SETUP = ("mount -t tracefs none /sys/kernel/tracing",)
OPTIONS = {"period": "1ms", "duration": "1s", "warmup": "1s", "probe": "timer", "module": (), "shifts": 1, "jobs": 1}
KEPT_BLOCKS = 6_000_000
CLOSE_US, AGREE_PERCENT = 1.0, 99.0
LATE_NS = 20_000
SOFTIRQS = ("__do_softirq", "handle_softirqs")
SOFTIRQ_OF = {
    "run_timer_softirq": "TIMER", "net_rx_action": "NET_RX", "net_tx_action": "NET_TX", "rcu_core_si": "RCU",
    "tasklet_action": "TASKLET", "tasklet_hi_action": "HI", "run_rebalance_domains": "SCHED",
    "blk_done_softirq": "BLOCK", "hrtimer_run_softirq": "HRTIMER", "irq_poll_softirq": "IRQ_POLL",
}  # fmt: skip
KIND_OF = {
    **dict.fromkeys((Cause.TIMER, Cause.OTHER_TIMERS), "the timer's interrupt"),
    **dict.fromkeys((Cause.HARDIRQ, Cause.NMI), "another interrupt"),
    **dict.fromkeys((Cause.SCHEDULER, Cause.MIGRATION, Cause.RETURN, Cause.OWN_CODE), "the switch"),
    Cause.SOFTIRQ: "softirq",
    **dict.fromkeys(
        (
            Cause.PREEMPT_OFF, Cause.NO_POINT, Cause.PREEMPT_OFF_OR_NO_POINT, Cause.SOFTIRQS_OFF, Cause.THREAD,
            Cause.THROTTLED,
        ),
        "another thread",
    ),
    **dict.fromkeys(
        (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE, Cause.IDLE_EXIT, Cause.LATE_TIMER, Cause.MACHINE),
        "no interrupt",
    ),
}  # fmt: skip
"""What the trace and the executed code both can tell."""


@dataclass(frozen=True)
class Compared:
    """One activation: what each of the two says took the longest, with its length. function: where most of it was."""

    cell: str
    index: int
    latency_ns: int
    by_trace: tuple[str, int]
    by_code: tuple[str, int]
    cause: str
    path: tuple[str, ...]

    @property
    def agrees(self) -> bool:
        return self.by_trace[0] == self.by_code[0]

    @property
    def difference_ns(self) -> int:
        return self.by_trace[1] - self.by_code[1]


def measure(name: str) -> dict[str, Any]:
    """The activations of a cell that both can explain."""
    (found,) = (list(compare_cell(cell, folder)) for cell, folder in traced_cells([name]))
    return {"kernel": f"{KERNEL} preempt={MODEL}", "activations": [_row(each) for each in found]}


def _row(of: Compared) -> dict[str, Any]:
    return {
        "index": of.index,
        "latency_ns": of.latency_ns,
        "agrees": of.agrees,
        "difference_ns": of.difference_ns,
        "trace": {"kind": of.by_trace[0], "length_ns": of.by_trace[1], "cause": of.cause},
        "code": {"kind": of.by_code[0], "length_ns": of.by_code[1], "path": list(of.path)},
    }


def figures(items: Items) -> list[Figure]:
    """How often the two name the same, of all activations and of the late ones, and how far the lengths differ."""
    rows = {name: list(one["activations"]) for name, one in items.items()}
    together = [each for some in rows.values() for each in some]
    return [figure for name, some in (*rows.items(), ("", together)) for figure in _agreement(name, some)]


def _agreement(name: str, rows: Sequence[Details]) -> list[Figure]:
    late = [each for each in rows if each["latency_ns"] > LATE_NS]
    agree = [each for each in rows if each["agrees"]]
    apart_us = [abs(each["difference_ns"]) / 1000 for each in agree]
    close = sum(us <= CLOSE_US for us in apart_us)
    return [
        Figure(name, "same first cause", percent(len(agree), len(rows)), "%", len(rows), Bound(AGREE_PERCENT)),
        Figure(name, f"the same above {LATE_NS / 1000:g} us", percent(_agreeing(late), len(late)), "%", len(late)),
        Figure(name, f"its length within {CLOSE_US:g} us", percent(close, len(agree)), "%", len(agree)),
        Figure(name, "the lengths apart, median", quantile(apart_us, 0.5), "us", len(agree)),
        Figure(name, "the same, 95 %", quantile(apart_us, 0.95), "us", len(agree), Bound(most=CLOSE_US)),
        Figure(name, "the same, largest", quantile(apart_us, 1.0), "us", len(agree)),
    ]


def _agreeing(rows: Sequence[Details]) -> int:
    return sum(each["agrees"] for each in rows)


def traced_cells(names: Sequence[str]) -> Iterator[tuple[GuestCell, Path]]:
    """Each cell, measured with the flight recorder, and its folder."""
    options = {**OPTIONS, "method": None, "policy": None, "priority": None}
    matrix = guest_runner.kernel_matrix(guest_runner.MatrixRequest([KERNEL], [MODEL], [""], names, options))
    cells = [
        replace(cell, setting=replace(cell.setting, more=(*cell.setting.more, *RECORDER), setup=SETUP))
        for cell in matrix.cells()
    ]
    for result in guest_runner.run_guest_cells(cells, 1, ("make", "bench-explain")).results:
        if result.kept is None or result.failure:
            raise TargetError(f"{result.cell.name}: {result.failure}")
        yield result.cell, result.kept.folder


def compare_cell(cell: GuestCell, folder: Path) -> Iterator[Compared]:
    """The activations around the largest one that both can explain."""
    record = run_folder.open_run(folder).record
    budgets = _budgets(record)
    values = np.concatenate([block.values for block in record.blocks(record.series[-1].id)])
    largest = int(values.argmax())
    marks = cell_explanation.agent_marks(cell)
    passes = cell_explanation.passes_before(record, largest)
    blocks = cell_explanation.recorded_blocks(cell, folder, marks[cell_explanation.MARK], passes, KEPT_BLOCKS)
    symbols = cell_explanation.kernel_symbols(cell.system.machine)
    spans = executed_code.function_spans(blocks, symbols)
    for back, until in enumerate(reversed(_passes(blocks, marks[cell_explanation.MARK]))):
        place = largest - back
        read_ns, _ = cell_explanation.clock_reading(until, symbols.kernel, marks["from"], marks["to"])
        due_ns = read_ns - int(values[place])
        if place < 0 or due_ns < spans[0].start_ns:
            return
        if place in budgets:
            yield _compared(cell, budgets[place], executed_code.within(spans, due_ns, read_ns), symbols, due_ns)


def _budgets(record: Record) -> dict[int, TimeBudget]:
    """The budgets by the place of their activation among those that ran."""
    found = explain(record, 1)
    places = {index: place for place, index in enumerate(_indices(record))}
    return {places[each.activation.index]: each for each in (*found.budgets, *found.ordinary)}


def _indices(record: Record) -> list[int]:
    """The index of each activation that ran, in order: those that were missed have one too."""
    indices: list[int] = []
    for block in record.blocks(record.series[-1].id):
        missed = np.zeros(block.values.size, np.int64)
        missed[block.gap_position] = block.gap_missed
        some = number_activations(record.series[-1], block.first_index, block.first_due_ns, block.values, missed)
        indices += some.index.tolist()
    return indices


def _passes(blocks: ExecutedBlocks, mark: int) -> list[ExecutedBlocks]:
    """The blocks up to each pass of the mark; those up to the last one end the recording."""
    places = [*np.flatnonzero(blocks.address == np.uint64(mark)).tolist(), len(blocks.address)]
    if len(places) > 1 and places[-2] == places[-1] - 1:
        del places[-2]  # the recording ends with the mark itself
    return [_until(blocks, place) for place in places]


def _until(blocks: ExecutedBlocks, place: int) -> ExecutedBlocks:
    end_ns = int(blocks.start_ns[place]) if place < len(blocks.start_ns) else blocks.end_ns
    return ExecutedBlocks(blocks.address[:place], blocks.start_ns[:place], end_ns, blocks.dropped)


def _compared(
    cell: GuestCell, budget: TimeBudget, spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int
) -> Compared:
    by_trace: Counter[str] = Counter()
    for cause, length_ns in budget.by_cause.items():
        by_trace[_named(KIND_OF.get(cause.cause, cause.cause.value), cause.name)] += length_ns
    kinds = list(_kinds(spans, symbols, due_ns))
    by_code = Counter[str]()
    for kind, span in kinds:
        by_code[kind] += span.end_ns - span.start_ns
    first = _first(by_code)
    path = executed_code.main_path([span for kind, span in kinds if kind == first[0]])
    activation = budget.activation
    return Compared(
        cell.load.name, activation.index, activation.latency_ns, _first(by_trace), first, budget.first.words(), path
    )


def _first(times: Mapping[str, int]) -> tuple[str, int]:
    return max(times.items(), key=lambda item: (item[1], item[0]))


def _named(kind: str, name: str) -> str:
    return f"{kind} {name}" if kind == "softirq" else kind


def _kinds(spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int) -> Iterator[tuple[str, FunctionSpan]]:
    """Each span, cut at the phases, with what it was by the trace's words."""
    phases, _, _ = cell_explanation.divide_latency(spans, symbols, due_ns)
    for phase in phases:
        start_ns = due_ns + phase.start_ns
        for span in executed_code.within(spans, start_ns, start_ns + phase.length_ns):
            yield kind_of_span(phase.name, span.call.stack()), span


def kind_of_span(phase: str, stack: Sequence[str]) -> str:
    """What a function did in a phase: by the innermost interrupt or softirq above it."""
    inner = next((at for at in range(len(stack) - 1, -1, -1) if _is_context(stack[at])), None)
    if phase == IN_INTERRUPT:
        return "the timer's interrupt"
    if inner is not None and stack[inner] in SOFTIRQS:
        called = stack[inner + 1] if inner + 1 < len(stack) else ""
        softirq = f"softirq {SOFTIRQ_OF.get(called, called)}"
        return "no interrupt" if phase == BEFORE_INTERRUPT else softirq
    if inner is not None:
        return "the timer's interrupt" if "timer" in stack[inner] else "another interrupt"
    return {BEFORE_INTERRUPT: "no interrupt", BEFORE_SCHEDULER: "another thread", AFTER_SCHEDULER: "the switch"}.get(
        phase, phase
    )


def _is_context(name: str) -> bool:
    """Whether a function begins an interrupt or the softirqs. An exception is the thread's own."""
    return name in SOFTIRQS or (is_interrupt(name) and not name.startswith("asm_exc"))


PART = Part(
    asked="2: the trace and the code that QEMU saw the guest execute name the same first cause",
    items=lambda: CELLS,
    measure=measure,
    figures=figures,
)
