# SPDX-License-Identifier: Apache-2.0
"""Why a cell's largest latency was so large: the same cell once more, while a plugin of QEMU records what it runs.

The plugin changes no byte of the guest, and the record of the second run is compared with that of the first. What it
recorded between the due time and the reading of the clock is divided into phases, each with the functions of the
kernel that ran in it. So the budget closes to the instruction.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rtproof.agents.build import MAP_SUFFIX, PINNED, ProgramSources, build_agent, build_program, source_folder
from rtproof.core.errors import TargetError, UserError
from rtproof.lab import executed_code
from rtproof.lab.executed_code import IDLE, ExecutedBlocks, FunctionSpan, Symbols, last_begun, within
from rtproof.lab.guest_cell import BOOT_TIMEOUT_S, SLOWEST_GUEST_RATIO, GuestCell, machine_identity
from rtproof.record import run_folder
from rtproof.record.contents import Moment, Record
from rtproof.summary.recorded_facts import fact_number
from rtproof.summary.trace_text import is_interrupt
from rtproof.vm.cache_folders import lab_cache, scratch_folder, write_cache_file
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

PLUGIN_NAME = "rtproof-instructions.so"
MARK = "conditions_note"
"""The agent's function that its measuring loop calls once for each activation, soon after it has read the clock."""
KERNEL_MARK = "source_commit"
"""The function of the kernel module that keeps an activation which the module itself has timed, once for each."""
KERNEL_CLOCK = "ktime_get"
SAME_TIME_NS = 1_000
LEAST_BLOCKS, MOST_BLOCKS = 1 << 21, 1 << 24
ACTIVATIONS_BEFORE = 32
"""The recording begins so many activations earlier: a system call may have begun long before it delays one."""
SHOWN_FUNCTIONS = 5


@dataclass(frozen=True)
class ExecutedPhase:
    """A part of a latency. ``start_ns``: from the due time.

    ``path``: the functions under which most of it was spent, from the outermost inwards. ``functions``: those that ran
    longest, without what they called, with their nanoseconds.
    """

    name: str
    start_ns: int
    length_ns: int
    path: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class CellExplanation:
    """Where the time of a cell's largest latency went. The lengths of the phases add up to ``latency_ns``.

    ``activation``: its place among those that ran, from 0 on. ``marked_ns``: when the kernel asked for a switch of
    tasks; None if it did not within the latency. ``scheduled_by``: the functions through which the scheduler came.
    ``reading_ns``: how long the code is in which the clock was read, so the ends of the phases are uncertain by this
    much. ``idle``: the processor waited within the latency, so instructions do not tell all of the time.
    """

    cell: str
    latency_ns: int
    activation: int
    activations_count: int
    phases: tuple[ExecutedPhase, ...]
    marked_ns: int | None
    scheduled_by: tuple[str, ...]
    reading_ns: int
    idle: bool

    @property
    def longest(self) -> ExecutedPhase:
        return max(self.phases, key=lambda phase: phase.length_ns)


SCHEDULER = "__schedule"
BEFORE_INTERRUPT = "until the timer's interrupt"
IN_INTERRUPT = "in the interrupt, until the wake-up"
BEFORE_WAKE_UP = "until the wake-up"
BEFORE_SCHEDULER = "from the wake-up until the scheduler came"
AFTER_SCHEDULER = "from the scheduler to the reading of the clock"
WITHOUT_SWITCH = "without a switch of tasks"


def explain_cell(cell: GuestCell, folder: Path) -> CellExplanation:
    """Explain the largest latency of a measured cell. ``folder``: its run folder.

    UserError if the cell cannot be explained or there is no compiler for the plugin. TargetError if the second run
    differs from the first or was not recorded.
    """
    record = run_folder.open_run(folder).record
    activation, values = _largest_activation(record)
    latency_ns = int(values[activation])
    symbols = kernel_symbols(cell.system.machine)
    if any(int(found.noted.sum()) for found in record.conditions.values()) or KERNEL_MARK not in symbols.names:
        marks = agent_marks(cell)
        blocks = recorded_blocks(cell, folder, marks[MARK], passes_before(record, activation), latency_ns)
        read_ns, reading_ns = clock_reading(blocks, symbols.kernel, marks["from"], marks["to"])
    else:
        mark, earlier = symbols.addresses[symbols.names.index(KERNEL_MARK)], _warmup_activations(record)
        blocks = recorded_blocks(cell, folder, mark, activation + earlier, latency_ns + record.series[-1].period_ns)
        read_ns, reading_ns = _kernel_reading(blocks, symbols, mark, values[: activation + 1], record)
    spans = executed_code.function_spans(blocks, symbols)
    due_ns = read_ns - latency_ns
    if not spans or spans[0].start_ns > due_ns:
        raise UserError(f"{cell.name}: the recording does not reach back to the due time")
    found = within(spans, due_ns, read_ns)
    phases, marked_ns, scheduled_by = divide_latency(found, symbols, due_ns)
    return CellExplanation(
        cell=cell.name,
        latency_ns=latency_ns,
        activation=activation,
        activations_count=len(values),
        phases=phases,
        marked_ns=marked_ns,
        scheduled_by=scheduled_by,
        reading_ns=reading_ns,
        idle=any(span.name == IDLE for span in found),
    )


def _largest_activation(record: Record) -> tuple[int, "np.ndarray[tuple[int], np.dtype[np.int64]]"]:
    """The place of the largest value among the activations that ran, and their values; of the last field."""
    values = [block.values for block in record.blocks(record.series[-1].id)]
    if len({series.thread for series in record.series}) != 1 or not values:
        raise UserError("only a cell with one measuring thread and its samples can be explained")
    joined = np.concatenate(values)
    return int(joined.argmax()), joined


def passes_before(record: Record, activation: int) -> int:
    """How often the agent passes the mark before this activation. One that the warm-up left over does not pass it."""
    noted = sum(int(found.noted.sum()) for found in record.conditions.values())
    count = sum(len(block.values) for block in record.blocks(record.series[-1].id))
    if count - noted not in (0, 1):
        raise UserError(f"the agent passed the mark {noted} times in {count} activations, so none can be told apart")
    return activation - (count - noted)


def _warmup_activations(record: Record) -> int:
    """How many activations the module had kept before the first of the record."""
    return fact_number(record, "warmup_activations", Moment.START, record.series[-1].thread) or 0


def _kernel_reading(
    blocks: ExecutedBlocks,
    symbols: Symbols,
    mark: int,
    values: "np.ndarray[tuple[int], np.dtype[np.int64]]",
    record: Record,
) -> tuple[int, int]:
    """As ``clock_reading``, of an activation that the kernel module has timed. values: up to this activation.

    UserError if the activation before was not one period earlier: then the recording may be of other activations.
    """
    read_ns, reading_ns = kernel_clock_reading(blocks, symbols)
    passes = np.flatnonzero(blocks.address == np.uint64(mark))
    earlier = [int(place) for place in passes if int(blocks.start_ns[place]) < read_ns]
    if not earlier or len(values) < 2:
        raise UserError(
            "the recording has no activation before the largest one, so nothing shows that it is the right one"
        )
    before = ExecutedBlocks(blocks.address[: earlier[-1]], blocks.start_ns[: earlier[-1]], 0, 0)
    before_ns, _ = kernel_clock_reading(before, symbols)
    apart_ns = read_ns - before_ns - int(values[-1] - values[-2])
    if abs(apart_ns - record.series[-1].period_ns) > SAME_TIME_NS:
        raise UserError(f"two activations are {apart_ns} ns apart, so the recording is of other ones than the record")
    return read_ns, reading_ns


# The next functions run guests and compilers.


def kernel_symbols(machine: Machine) -> Symbols:
    """The functions of the kernel that the machine runs, from a guest of it; kept in the cache."""
    place = lab_cache() / "symbols" / machine_identity(machine)
    with suppress(OSError, UserError):  # it is not there yet, or a damaged one is made again
        return executed_code.parse_kallsyms(place.read_text(errors="replace"))
    with scratch_folder() as folder:
        run_job(machine, Job("cat /proc/kallsyms >/out/kallsyms\n"), folder / "out")
        told = (folder / "out" / "kallsyms").read_bytes()
    write_cache_file(place, told)
    return executed_code.parse_kallsyms(told.decode(errors="replace"))


def agent_marks(cell: GuestCell) -> dict[str, int]:
    """Addresses of the agent in the guest: the mark, and from where to where its code is."""
    mapped = build_agent(cell.system.machine.kernel.arch, PINNED, mapped=True)
    if mapped.read_bytes() != cell.agent.read_bytes():
        raise UserError(f"{cell.agent} is not what its sources give, so its functions cannot be found")
    return parse_link_map(mapped.with_suffix(MAP_SUFFIX).read_text())


def parse_link_map(text: str) -> dict[str, int]:
    """Addresses from the map of LLVM's linker: the mark, and ``from`` and ``to`` of the section ``.text``."""
    rows = [words for words in map(str.split, text.splitlines()) if len(words) == 5]
    places = {words[4]: (int(words[0], 16), int(words[2], 16)) for words in rows if _is_hexadecimal(words[0], words[2])}
    if MARK not in places or ".text" not in places:
        raise UserError(f"the agent's map does not name {MARK} and .text")
    start, length = places[".text"]
    return {MARK: places[MARK][0], "from": start, "to": start + length}


def _is_hexadecimal(*words: str) -> bool:
    return all(set(word) <= set("0123456789abcdef") for word in words)


@dataclass(frozen=True)
class WantedRecordings:
    """What the plugin shall record: up to each of these passes of the mark, from ``before`` passes earlier on.

    ``passes``: in increasing order, from 0 on. ``room``: for so many blocks in each recording; others are dropped.
    """

    mark: int
    passes: tuple[int, ...]
    before: int
    room: int

    def words(self, plugin: Path, file: Path) -> str:
        """As QEMU takes them."""
        passes = "+".join(map(str, self.passes))
        told = {"mark": f"{self.mark:x}", "pass": passes, "before": self.before, "blocks": self.room, "out": file}
        return ",".join((str(plugin), *(f"{name}={value}" for name, value in told.items())))


def recorded_blocks(cell: GuestCell, folder: Path, mark: int, passes: int, latency_ns: int) -> ExecutedBlocks:
    """Run the cell again with the plugin, and return what it recorded up to this pass of the mark."""
    room = min(max(LEAST_BLOCKS, latency_ns), MOST_BLOCKS)
    (blocks,) = recordings(cell, folder, WantedRecordings(mark, (passes,), ACTIVATIONS_BEFORE, room))
    return blocks


def recordings(cell: GuestCell, folder: Path, wanted: WantedRecordings) -> Iterator[ExecutedBlocks]:
    """Run the cell again with the plugin, and give one recording after another, because each has millions of blocks.

    TargetError if the second run has another record than the first, or if a recording is missing.
    """
    timeout_s = BOOT_TIMEOUT_S + 2 * SLOWEST_GUEST_RATIO * cell.setting.virtual_ns(cell.shift) / 1e9
    plugin = build_plugin()
    with scratch_folder() as scratch:
        file = scratch / "blocks"
        words = ("-plugin", wanted.words(plugin, file))
        run_job(cell.system.machine, cell.job(), scratch / "out", timeout_s, words)
        again, first = (place / run_folder.RECORD_NAME for place in (scratch / "out", folder))
        if again.read_bytes() != first.read_bytes():
            raise TargetError(f"{cell.name}: the second run gave another record than the first, so it explains nothing")
        for number in wanted.passes:
            recording = file.with_name(f"{file.name}.{number}")
            if not recording.exists():
                raise TargetError(f"{cell.name}: the plugin recorded nothing; is the disk full?")
            yield executed_code.parse_blocks(recording.read_bytes())
            recording.unlink()


def build_plugin() -> Path:
    """The plugin for this machine's QEMU, compiled unless the cache has it. UserError if nothing can compile it."""
    sources = source_folder("qemu_plugin")
    return build_program(ProgramSources(PLUGIN_NAME, "the plugin for QEMU", sources, library=True))


# The next functions are pure.


def kernel_clock_reading(blocks: ExecutedBlocks, symbols: Symbols) -> tuple[int, int]:
    """When the kernel had read its clock the last time, and how long the last block is in which it did, in ns."""
    if KERNEL_CLOCK not in symbols.names[:-1]:
        raise UserError(f"the guest's kernel does not tell where {KERNEL_CLOCK}() is, which reads its clock")
    place = symbols.names.index(KERNEL_CLOCK)
    low, high = symbols.addresses[place], symbols.addresses[place + 1]
    found = np.flatnonzero((blocks.address >= np.uint64(low)) & (blocks.address < np.uint64(high)))
    if not len(found):
        raise UserError("the kernel did not read its clock in the recording")
    last = int(found[-1])
    end_ns = int(blocks.start_ns[last + 1]) if last + 1 < len(blocks.start_ns) else blocks.end_ns
    return end_ns, end_ns - int(blocks.start_ns[last])


def clock_reading(blocks: ExecutedBlocks, kernel: int, low: int, high: int) -> tuple[int, int]:
    """When the clock had been read, and how long the code is in which it was read, in ns.

    The C library reads the clock in a page of the kernel's (vDSO), outside of the agent's code (``low`` to ``high``).
    Without such a page it asks the kernel: then the reading lies somewhere before the return from there.
    """
    ends_ns = np.append(blocks.start_ns[1:], blocks.end_ns)
    inside = (blocks.address >= low) & (blocks.address < high)
    in_kernel = blocks.address >= np.uint64(kernel)
    last_kernel = int(np.flatnonzero(in_kernel)[-1]) if in_kernel.any() else -1
    page = np.flatnonzero(~inside & ~in_kernel)
    if len(page) and page[-1] > last_kernel:
        at = int(page[-1])
        return int(ends_ns[at]), int(ends_ns[at] - blocks.start_ns[at])
    returned_ns = int(ends_ns[last_kernel]) if last_kernel >= 0 else blocks.end_ns
    return returned_ns, blocks.end_ns - returned_ns


def divide_latency(
    spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int
) -> tuple[tuple[ExecutedPhase, ...], int | None, tuple[str, ...]]:
    """The phases of a latency; when a switch of tasks was asked for; and the functions through which it came.

    ``spans``: all functions from the due time to the reading of the clock, without a hole.
    """
    switched = _switched(spans, symbols)
    phases = tuple(_phase(name, spans, due_ns, *bounds) for name, *bounds in phase_bounds(spans, symbols, due_ns))
    if switched is None:
        return phases, None, ()
    before, came, woken = switched
    came_ns = came.start_ns if came else before[-1].start_ns
    return phases, _marked_ns(within(before, due_ns, came_ns), woken, due_ns), _callers(came)


def phase_bounds(spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int) -> list[tuple[str, int, int]]:
    """The name of each phase of a latency, and from when to when it lasts. spans: as for ``divide_latency``."""
    end_ns = spans[-1].end_ns
    switched = _switched(spans, symbols)
    if switched is None:
        return [(WITHOUT_SWITCH, due_ns, end_ns)]
    before, came, woken = switched
    came_ns = came.start_ns if came else before[-1].start_ns
    ends = [*_ends_before_wake_up(before, woken), (BEFORE_SCHEDULER, came_ns), (AFTER_SCHEDULER, end_ns)]
    starts_ns = [due_ns, *(stop_ns for _, stop_ns in ends)]
    return [(name, start_ns, stop_ns) for start_ns, (name, stop_ns) in zip(starts_ns, ends, strict=False)]


def is_scheduler(name: str) -> bool:
    """Whether a function is the scheduler, or a part that the compiler made of it."""
    return name.partition(".")[0] == SCHEDULER


_Switch = tuple[list[FunctionSpan], FunctionSpan | None, FunctionSpan | None]


def _switched(spans: Sequence[FunctionSpan], symbols: Symbols) -> _Switch | None:
    """The spans up to the last switch of tasks, where the scheduler came for it, and where a task was woken before."""
    switched = last_begun(spans, lambda name: name == symbols.task_switch)
    if switched is None:
        return None
    before = [span for span in spans if span.start_ns <= switched.start_ns]
    came = last_begun(before, is_scheduler)
    came_ns = came.start_ns if came else switched.start_ns
    return before, came, last_begun([span for span in before if span.start_ns < came_ns], _is_enqueue)


def _marked_ns(before: Sequence[FunctionSpan], woken: FunctionSpan | None, due_ns: int) -> int | None:
    """When a switch of tasks was asked for after the wake-up, from the due time on."""
    marked = last_begun(before, _is_mark_for_switch)
    return marked.start_ns - due_ns if marked and woken and marked.start_ns >= woken.start_ns else None


def _is_enqueue(name: str) -> bool:
    """Whether a function puts a real-time task on the queue of those that can run (kernel/sched/rt.c, deadline.c)."""
    return name in ("enqueue_task_rt", "enqueue_task_dl")


def _is_mark_for_switch(name: str) -> bool:
    return name.lstrip("_").startswith("resched_curr")


def _ends_before_wake_up(before: Sequence[FunctionSpan], woken: FunctionSpan | None) -> Iterator[tuple[str, int]]:
    if woken is None:
        return
    entered = next(filter(is_interrupt, reversed(woken.call.stack())), "")
    earlier = [span for span in before if span.start_ns <= woken.start_ns]
    interrupt = last_begun(earlier, lambda name: name == entered)
    if interrupt is None:
        yield BEFORE_WAKE_UP, woken.start_ns
        return
    yield BEFORE_INTERRUPT, interrupt.start_ns
    yield IN_INTERRUPT, woken.start_ns


def _callers(came: FunctionSpan | None) -> tuple[str, ...]:
    return came.call.stack()[:-1] if came else ()


def _phase(name: str, spans: Sequence[FunctionSpan], due_ns: int, start_ns: int, stop_ns: int) -> ExecutedPhase:
    inside = within(spans, start_ns, stop_ns)
    longest = list(executed_code.time_by_function(inside).items())[:SHOWN_FUNCTIONS]
    return ExecutedPhase(name, start_ns - due_ns, stop_ns - start_ns, executed_code.main_path(inside), tuple(longest))
