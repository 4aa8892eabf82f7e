# SPDX-License-Identifier: Apache-2.0
"""Two explanations of the same activations: from the kernel's trace, and from what QEMU saw the guest execute.

A cell is measured, and all of its trace is kept. Then it runs again with the plugin, which changes no byte of the
guest. So both tell of the same activations, and the plugin's account is a truth from outside. The activations are
chosen by their latency, before anybody looks at the trace.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from part import Bound, Details, Figure, Part, percent, quantile

from rtproof.core.errors import TargetError
from rtproof.experiment import guest_runner
from rtproof.explain.budget import TimeBudget
from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.explanation import explain
from rtproof.lab import cell_explanation, executed_code
from rtproof.lab.cell_explanation import (
    AFTER_SCHEDULER,
    BEFORE_INTERRUPT,
    BEFORE_SCHEDULER,
    IN_INTERRUPT,
    SCHEDULER,
    UNTIL_SCHEDULER,
    WantedRecordings,
)
from rtproof.lab.executed_code import ExecutedBlocks, FunctionSpan, Symbols
from rtproof.lab.guest_cell import GuestCell
from rtproof.record import run_folder
from rtproof.record.activations import number_activations
from rtproof.record.contents import Record
from rtproof.summary.trace_text import is_interrupt

CELLS = ("dd", "mmap", "files", "timers")
KERNEL, MODEL = "debian-6.1", "none"
TRACE = ("--trace", "explain,whole,keep_mib=48,stacks", "--limit", "20us")
"""All events: where a load leaves the agent's writer no time, as timers does, the flight recorder has no events."""
SETUP = ("mount -t tracefs none /sys/kernel/tracing",)
OPTIONS = {"period": "1ms", "duration": "1s", "warmup": "1s", "probe": "timer", "module": (), "shifts": 1, "jobs": 1}
PROCESSORS = {"cpus": 1, "measured_cpus": None, "pace_us": None, "soakers": None, "qemu": None, "setup": ()}
LARGEST, LATE, OTHERS = 10, 50, 20
"""So many activations of a cell are compared: the largest, and by chance of the other late ones and of the rest."""
BEFORE = 1
KEPT_BLOCKS = 8_000_000
LEAD_NS = 100_000
"""So much before the due time is looked at, to find what ran then."""
CLOSE_US = 1.0
LATE_NS = 20_000
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
            Cause.THROTTLED, Cause.THROTTLED_OR_THREAD,
        ),
        "another thread",
    ),
    **dict.fromkeys(
        (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY, Cause.IRQ_OFF_OR_GONE, Cause.IDLE_EXIT, Cause.LATE_TIMER, Cause.MACHINE),
        "no interrupt",
    ),
}  # fmt: skip
"""What the trace and the executed code both can tell."""


SOFTIRQS = ("__do_softirq", "handle_softirqs")


def is_context(name: str) -> bool:
    """Whether a function begins an interrupt or the softirqs. An exception is the thread's own."""
    return name in SOFTIRQS or (is_interrupt(name) and not name.startswith("asm_exc"))


def innermost_context(stack: Sequence[str]) -> int | None:
    """The place of the innermost interrupt or softirq; None if there is none.

    The scheduler that comes at the end of an interrupt belongs to none, and neither does what it calls.
    """
    for at in range(len(stack) - 1, -1, -1):
        if stack[at].partition(".")[0] == SCHEDULER:
            return None
        if is_context(stack[at]):
            return at
    return None


@dataclass(frozen=True)
class Compared:
    """One activation: what the executed code says took the longest, and what the trace says, each with its ns.

    by_trace: more than one where the trace leaves it open; empty if the trace does not hold the activation.
    cause: the first one by the trace in words. path: the functions in which most of the time was, where the two differ.
    """

    index: int
    latency_ns: int
    by_trace: tuple[tuple[str, int], ...]
    by_code: tuple[str, int]
    cause: str
    path: tuple[str, ...]


def measure(name: str) -> dict[str, Any]:
    """The chosen activations of a cell, and how many there were to choose from."""
    ((cell, folder),) = traced_cells([name])
    record = run_folder.open_run(folder).record
    values = np.concatenate([block.values for block in record.blocks(record.series[-1].id)])
    found = [asdict(each) for each in compare_cell(cell, folder, chosen_places(values))]
    late = int((values > LATE_NS).sum())
    return {**numbers(found), "activations_in_all": len(values), "late_in_all": late, "activations": found}


def chosen_places(values: NDArray[np.int64]) -> list[int]:
    """Which activations are compared, by their latencies only: those that LARGEST, LATE and OTHERS ask for, in order.

    The first ones are never among them, because nothing was recorded before.
    """
    chance = np.random.default_rng(0)
    places = np.arange(BEFORE + 1, len(values))
    places = places[np.argsort(-values[places], kind="stable")]
    largest, rest = places[:LARGEST], places[LARGEST:]
    late, others = rest[values[rest] > LATE_NS], rest[values[rest] <= LATE_NS]
    some = (chance.choice(of, min(most, len(of)), replace=False) for of, most in ((late, LATE), (others, OTHERS)))
    return sorted(np.concatenate([largest, *some]).tolist())


def together(items: Mapping[str, Details]) -> dict[str, Any]:
    return numbers([each for one in items.values() for each in one["activations"]])


def numbers(rows: Sequence[Details]) -> dict[str, Any]:
    """How often the two name the same, what the trace leaves open, and what it charges to the wrong one."""
    late = [each for each in rows if each["latency_ns"] > LATE_NS]
    clear, clear_late, left_open = _named(rows, 1), _named(late, 1), _named(rows, 2)
    apart_us = [abs(each["by_trace"][0][1] - each["by_code"][1]) / 1000 for each in clear if _is_right(each)]
    return {
        "compared": len(rows),
        "clear": len(clear),
        "clear_late": len(clear_late),
        "open": len(left_open),
        "right": len(apart_us),
        "same_percent": _right_percent(clear),
        "same_late_percent": _right_percent(clear_late),
        "open_percent": percent(len(left_open), len(rows)),
        "open_late_percent": percent(len(_named(late, 2)), len(late)),
        "among_percent": _right_percent(left_open),
        "not_in_trace_percent": percent(sum(not each["by_trace"] for each in rows), len(rows)),
        "close_percent": percent(sum(us <= CLOSE_US for us in apart_us), len(apart_us)),
        **{f"apart_{key}_us": quantile(apart_us, share) for key, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))},
    }


def _named(rows: Sequence[Details], least: int) -> list[Details]:
    """Those of which the trace names one cause; with 2, those of which it names several."""
    return [each for each in rows if min(len(each["by_trace"]), 2) == least]


def _is_right(row: Details) -> bool:
    return row["by_code"][0] in [kind for kind, _ in row["by_trace"]]


def _right_percent(rows: Sequence[Details]) -> float | None:
    return percent(sum(map(_is_right, rows)), len(rows))


def traced_cells(names: Sequence[str]) -> Iterator[tuple[GuestCell, Path]]:
    """Each cell, measured with a trace, and its folder."""
    asked = {"kernels": [KERNEL], "preempts": [MODEL], "boots": [""], "loads": names}
    options = {**OPTIONS, **PROCESSORS, **asked, "method": None, "policy": None, "priority": None}
    cells = [
        replace(cell, setting=replace(cell.setting, more_arguments=(*cell.setting.more_arguments, *TRACE), setup=SETUP))
        for cell in guest_runner.matrix_cells(options)
    ]
    for result in guest_runner.run_guest_cells(cells, 1, ("make", "bench-explain")).results:
        if result.folder is None or result.failure:
            raise TargetError(f"{result.cell.name}: {result.failure}")
        yield result.cell, result.folder


def compare_cell(cell: GuestCell, folder: Path, places: Sequence[int]) -> Iterator[Compared]:
    """These activations, by their places among those that ran. TargetError if a recording is too short."""
    record = run_folder.open_run(folder).record
    traced = _traced(record)
    marks = cell_explanation.agent_marks(cell)
    first = cell_explanation.passes_before(record, 0)
    passes = tuple(place + first for place in places)
    wanted = WantedRecordings(marks[cell_explanation.MARK], passes, BEFORE, KEPT_BLOCKS)
    symbols = cell_explanation.kernel_symbols(cell.system.machine)
    recordings = cell_explanation.recordings(cell, folder, wanted)
    for place, blocks in zip(places, recordings, strict=True):
        read_ns, _ = cell_explanation.clock_reading(blocks, symbols.kernel, marks["from"], marks["to"])
        due_ns = read_ns - traced.latencies_ns[place]
        spans = executed_code.function_spans(from_on(blocks, due_ns - LEAD_NS), symbols)
        if not spans or spans[0].start_ns > due_ns:
            raise TargetError(f"{cell.name}: the recording of activation {place} does not reach back to its due time")
        yield compared(traced, place, executed_code.within(spans, due_ns, read_ns), symbols)


def from_on(blocks: ExecutedBlocks, from_ns: int) -> ExecutedBlocks:
    """The blocks that end after this time."""
    at = max(0, int(np.searchsorted(blocks.start_ns, from_ns, "right")) - 1)
    return ExecutedBlocks(blocks.address[at:], blocks.start_ns[at:], blocks.end_ns, blocks.dropped + at)


@dataclass(frozen=True)
class Traced:
    """What the record and its trace tell, by the place of an activation among those that ran."""

    latencies_ns: Sequence[int]
    indices: Sequence[int]
    budgets: Mapping[int, TimeBudget]


def _traced(record: Record) -> Traced:
    latencies_ns: list[int] = []
    indices: list[int] = []
    for block in record.blocks(record.series[-1].id):
        missed = np.zeros(block.values.size, np.int64)
        missed[block.gap_position] = block.gap_missed
        some = number_activations(record.series[-1], block.first_index, block.first_due_ns, block.values, missed)
        indices += some.index.tolist()
        latencies_ns += block.values.tolist()
    found = explain(record, 1)
    place_of = {index: place for place, index in enumerate(indices)}
    budgets = {place_of[each.activation.index]: each for each in found.budgets}
    return Traced(latencies_ns, indices, budgets)


def compared(traced: Traced, place: int, spans: Sequence[FunctionSpan], symbols: Symbols) -> Compared:
    """spans: from the due time to the reading of the clock."""
    due_ns, budget = spans[0].start_ns, traced.budgets.get(place)
    kinds = list(_kinds(spans, symbols, due_ns))
    by_code = Counter[str]()
    for kind, span in kinds:
        by_code[kind] += span.end_ns - span.start_ns
    first, named = _largest(by_code), kinds_by_trace(budget) if budget else ()
    differs = [kind for kind, _ in named] != [first[0]]
    path = executed_code.main_path([span for kind, span in kinds if kind == first[0]]) if differs else ()
    index, latency_ns = traced.indices[place], traced.latencies_ns[place]
    if budget is None:
        return Compared(index, latency_ns, (), first, "", path)
    return Compared(index, latency_ns, named, first, budget.first.words(), path)


def kinds_by_trace(budget: TimeBudget) -> tuple[tuple[str, int], ...]:
    """The kinds of causes that may have taken the most by the trace, with their ns; the largest first."""
    total: Counter[str] = Counter()
    for cause, length_ns in budget.by_cause.items():
        total[_kind(cause)] += length_ns
    named = dict.fromkeys((_largest(total)[0], *map(_kind, budget.possible_firsts)))
    return tuple((kind, total[kind]) for kind in named)


def _kind(cause: NamedCause) -> str:
    kind = KIND_OF.get(cause.cause, cause.cause.value)
    return f"{kind} {cause.name}" if kind == "softirq" else kind


def _largest(times: Mapping[str, int]) -> tuple[str, int]:
    return max(times.items(), key=lambda item: (item[1], item[0]))


def _kinds(spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int) -> Iterator[tuple[str, FunctionSpan]]:
    """Each span, cut at the phases, with what it was by the trace's words."""
    phases, _, _ = cell_explanation.divide_latency(spans, symbols, due_ns)
    for phase in phases:
        known: dict[int, str] = {}
        start_ns = due_ns + phase.start_ns
        for span in executed_code.within(spans, start_ns, start_ns + phase.length_ns):
            call = id(span.call)
            if call not in known:
                known[call] = kind_of_span(phase.name, span.call.stack())
            yield known[call], span


def _in_timer_handler(stack: Sequence[str]) -> bool:
    """Whether a timer's interrupt runs of which the beginning was not recorded."""
    return "hrtimer_interrupt" in stack and SCHEDULER not in stack


def kind_of_span(phase: str, stack: Sequence[str]) -> str:
    """What a function did in a phase: by the innermost interrupt or softirq above it."""
    inner = innermost_context(stack)
    if phase == IN_INTERRUPT or (inner is None and _in_timer_handler(stack)):
        return "the timer's interrupt"
    if inner is not None and stack[inner] in SOFTIRQS:
        called = stack[inner + 1] if inner + 1 < len(stack) else ""
        softirq = f"softirq {SOFTIRQ_OF.get(called, called)}"
        return "no interrupt" if phase == BEFORE_INTERRUPT else softirq
    if inner is not None:
        return "the timer's interrupt" if "timer" in stack[inner] else "another interrupt"
    thread = dict.fromkeys((BEFORE_SCHEDULER, UNTIL_SCHEDULER), "another thread")
    return {BEFORE_INTERRUPT: "no interrupt", **thread, AFTER_SCHEDULER: "the switch"}.get(phase, phase)


ABOVE = f"above {LATE_NS / 1000:g} us"
PART = Part(
    goal="the trace and the code that QEMU saw the guest execute name the same first cause in 99 %",
    items=lambda: CELLS,
    measure=measure,
    together=together,
    figures=(
        Figure("same_percent", "same first cause", "%", Bound(99), "clear"),
        Figure("same_late_percent", f"the same {ABOVE}", "%", Bound(99), "clear_late"),
        Figure("open_percent", "left open", "%", of="compared"),
        Figure("open_late_percent", f"left open {ABOVE}", "%"),
        Figure("among_percent", "the truth is among those left open", "%", of="open"),
        Figure("not_in_trace_percent", "not in the trace", "%", of="compared"),
        Figure("close_percent", f"its length within {CLOSE_US:g} us", "%", of="right"),
        Figure("apart_p50_us", "the lengths apart, median", "us", of="right"),
        Figure("apart_p95_us", "the same, 95 %", "us", Bound(most=CLOSE_US), "right"),
        Figure("apart_max_us", "the same, largest", "us", of="right"),
    ),
)
