# SPDX-License-Identifier: Apache-2.0
"""Why a cell's largest latency was so large: the same cell once more, while a plugin of QEMU records what it runs.

The plugin changes no byte of the guest, which the second record shows. What it recorded between the due time and the
reading of the clock is divided into phases, so the budget closes to the instruction. Several processors take turns, so
a latency is the instructions of the measured one and the turns of the others.
"""

import hashlib
import itertools
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rtproof.agents.build import MAP_SUFFIX, PINNED, ProgramSources, build_agent, build_program, source_folder
from rtproof.core.errors import TargetError, UserError
from rtproof.lab import executed_code
from rtproof.lab.executed_code import (
    IDLE,
    ExecutedBlocks,
    FunctionSpan,
    Symbols,
    last_begun,
    length_ns,
    main_path,
    of_cpu,
    time_by_function,
    within,
)
from rtproof.lab.guest_cell import MOST_RUNS, GuestCell, longest_host_s, machine_identity
from rtproof.lab.systems import needs_own_module
from rtproof.record import run_folder
from rtproof.record.contents import Moment, Record
from rtproof.summary.recorded_facts import fact_number
from rtproof.summary.trace_text import is_interrupt
from rtproof.vm.cache_folders import lab_cache, scratch_folder, write_cache_file
from rtproof.vm.guest import Job, run_job
from rtproof.vm.kernel_files import PT_LOAD, elf_segments
from rtproof.vm.machine import Machine

PLUGIN_NAME = "rtproof-instructions.so"
MARK = "conditions_note"
"""The agent's function that its measuring loop calls once for each activation, soon after it has read the clock."""
LEAST_BLOCKS, MOST_BLOCKS = 1 << 21, 1 << 24
ACTIVATIONS_BEFORE = 32
"""The recording begins so many activations earlier: a system call may have begun long before it delays one."""


class RecordDiffersError(TargetError):
    """A run with the plugin has another record than the cell: it was measured badly, or the plugin changes it."""


SHOWN_FUNCTIONS = 5


@dataclass(frozen=True)
class ExecutedPhase:
    """A part of a latency. start_ns: from the due time.

    path: the functions under which most of it was spent, from the outermost inwards. functions: those that ran longest,
    without what they called, in ns. others_ns: turns of other processors.
    """

    name: str
    start_ns: int
    length_ns: int
    path: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]
    others_ns: int = 0

    @property
    def own_ns(self) -> int:
        return self.length_ns - self.others_ns


@dataclass(frozen=True)
class CellExplanation:
    """Where the time of a cell's largest latency went. The lengths of the phases add up to ``latency_ns``.

    activation: its place among those that ran, from 0 on. marked_ns: when the kernel asked for a switch of tasks; None
    if it did not. scheduled_by: the functions through which the scheduler came. reading_ns: by so much the ends of the
    phases are uncertain. idle: the processor waited, so instructions do not tell all of the time. soaked: soakers kept
    all busy. count_error_ns: by how much the instructions since the activation before differ from the record's time;
    None if unknown. replaced_ns: the largest latency of each record that no run with the plugin repeated, so that it
    was replaced.
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
    cpus_count: int = 1
    cpu: int = 0
    soaked: bool = False
    count_error_ns: int | None = None
    replaced_ns: tuple[int, ...] = ()

    @property
    def own_ns(self) -> int:
        return sum(phase.own_ns for phase in self.phases)

    @property
    def others_ns(self) -> int:
        return sum(phase.others_ns for phase in self.phases)

    @property
    def longest(self) -> ExecutedPhase:
        return max(self.phases, key=lambda phase: phase.length_ns)


def explain_cell(cell: GuestCell, folder: Path) -> CellExplanation:
    """Explain the largest latency of a measured cell. ``folder``: its run folder.

    UserError if the cell cannot be explained or there is no compiler for the plugin. Else the errors of ``recordings``.
    """
    record = run_folder.open_run(folder).record
    largest = largest_activation(record)
    latency_ns, machine = largest.latency_ns, cell.system.machine
    symbols = kernel_symbols(machine, cell.setting.setup_lines())
    noted = any(int(found.noted.sum()) for found in record.conditions.values())
    if needs_own_module(cell.setting.probe) and not noted:
        raise UserError(f"{cell.name}: the kernel module timed the activations; lab explain follows the agent's alone")
    marks = agent_marks(cell)
    passed = passes_before(record, largest.place, largest.thread)
    (blocks,) = recordings(cell, folder, recording_up_to(marks[MARK], passed, latency_ns, largest.counted_cpu))
    read_ns, reading_ns = clock_reading(blocks, symbols.kernel, marks["from"], marks["to"])
    error_ns = count_error_ns(blocks, symbols.kernel, marks, largest) if machine.takes_turns else None
    refuse_moved_thread(cell.name, blocks, marks[MARK], largest)
    soaker = machine.soaker()
    loop = soaker_loop(soaker.read_bytes()) if soaker else (0, 0)
    spans = executed_code.function_spans(blocks, replace(symbols, soaker=loop))
    due_ns = read_ns - latency_ns
    if not spans or spans[0].start_ns > due_ns:
        raise UserError(f"{cell.name}: the recording does not reach back to the due time")
    found, cpu = within(spans, due_ns, read_ns), blocks.end_cpu
    phases, marked_ns, scheduled_by = divide_latency(found, symbols, due_ns, cpu)
    return CellExplanation(
        cell=cell.name,
        latency_ns=latency_ns,
        activation=largest.place,
        activations_count=largest.count,
        phases=phases,
        marked_ns=marked_ns,
        scheduled_by=scheduled_by,
        reading_ns=reading_ns,
        idle=any(span.name == IDLE for span in of_cpu(found, cpu)),
        cpus_count=machine.cpus,
        cpu=cpu,
        soaked=machine.takes_turns and machine.soakers,
        count_error_ns=error_ns,
    )


@dataclass(frozen=True)
class LargestActivation:
    """The largest latency of a record. place: among the activations of its thread that ran, from 0 on.

    values: of all these, in ns; of the last field. counted_cpu: the only processor on which a pass of the mark is one
    of this thread; None if no other thread passes it.
    """

    place: int
    values: "np.ndarray[tuple[int], np.dtype[np.int64]]"
    thread: int
    period_ns: int
    counted_cpu: int | None
    on_grid: bool = True

    @property
    def latency_ns(self) -> int:
        return int(self.values[self.place])

    @property
    def count(self) -> int:
        return len(self.values)


def largest_activation(record: Record) -> LargestActivation:
    """The largest latency of all threads. UserError if there are no samples, or no processor is known to be its own."""
    last_fields = list({series.thread: series for series in record.series}.values())
    found: list[LargestActivation] = []
    for series in last_fields:
        values = [block.values for block in record.blocks(series.id)]
        if values:
            joined = np.concatenate(values)
            own = series.cpu if len(last_fields) > 1 else None
            place, period_ns = int(joined.argmax()), series.period_ns
            found.append(LargestActivation(place, joined, series.thread, period_ns, own, series.on_grid))
    if not found:
        raise UserError("only a cell with its samples can be explained")
    cpus = [series.cpu for series in last_fields]
    elsewhere = sum(int(found.elsewhere.sum()) for found in record.conditions.values())
    if len(cpus) > 1 and (min(cpus) < 0 or len(set(cpus)) < len(cpus) or elsewhere):
        raise UserError(
            f"{len(cpus)} threads were measured, and not each stayed on a processor of its own, so nothing tells which "
            "processor read the clock: measure on one of them (--measured-cpus 1)"
        )
    return max(found, key=lambda each: each.latency_ns)


def refuse_moved_thread(name: str, blocks: ExecutedBlocks, mark: int, largest: LargestActivation) -> None:
    """UserError if the thread was on another processor one activation earlier, or if the record names another one."""
    if not len(blocks.cpu) and not largest.counted_cpu:
        return
    passes = np.flatnonzero(blocks.address == np.uint64(mark))
    before = int(blocks.cpu[passes[-1]]) if len(passes) and len(blocks.cpu) else blocks.end_cpu
    if largest.counted_cpu is None and before != blocks.end_cpu:
        raise UserError(
            f"{name}: the measured thread moved from CPU {before} to CPU {blocks.end_cpu} around its largest latency, "
            "and a thread that moves cannot be followed"
        )


SOAKER_NOPS = 16
_NOPS = {62: (b"\x90",), 183: (b"\x1f\x20\x03\xd5",), 40: (b"\x00\xf0\x20\xe3", b"\x00\xbf")}
"""The instruction that does nothing, by the machine's number in an ELF file: x86-64, ARM of 64 bits and of 32 bits."""
_LONGEST_JUMP = 5


def soaker_loop(program: bytes) -> tuple[int, int]:
    """The addresses of the soaker's loop, from and to, in its ELF file; twice 0 if there is none."""
    loaded = [(offset, address, length) for kind, offset, address, length in elf_segments(program) if kind == PT_LOAD]
    for nop in _NOPS.get(int.from_bytes(program[18:20], "little"), ()):
        place = program.find(nop * SOAKER_NOPS)
        for offset, address, length in loaded:
            if offset <= place < offset + length:
                begin = address + place - offset
                return begin, begin + len(nop) * SOAKER_NOPS + _LONGEST_JUMP
    return 0, 0


def passes_before(record: Record, activation: int, thread: int | None = None) -> int:
    """How often a thread passes the mark before this activation. UserError if the record does not tell.

    An activation that the warm-up left over does not pass it. Where the thread reads its CPU at its checks only, as on
    ARM, its passes are not counted, and the warm-up must have had all its activations. thread: None for the only one.
    """
    last = [series for series in record.series if thread in (None, series.thread)][-1]
    own = [found for found in record.conditions.values() if thread in (None, found.thread)]
    noted, checks = sum(int(found.noted.sum()) for found in own), sum(int(found.checks.sum()) for found in own)
    count = sum(len(block.values) for block in record.blocks(last.id))
    if count - noted in (0, 1):
        return activation - (count - noted)
    if noted != checks:
        raise UserError(f"the agent passed the mark {noted} times in {count} activations, so none can be told apart")
    due = (fact_number(record, "warmup_ns") or 0) // last.period_ns
    left_over = fact_number(record, "warmup_activations", Moment.START, last.thread) or 0
    if activation and not (last.on_grid and left_over == due):
        raise UserError(
            "the agent of this architecture does not count its activations, so none can be told apart after a warm-up "
            "that left one over: measure with another --warmup"
        )
    return activation


# The next functions run guests and compilers.


_LOADS_MODULE = re.compile(r"\b(insmod|modprobe)\b")


def kernel_symbols(machine: Machine, setup: Sequence[str] = ()) -> Symbols:
    """The functions of the kernel that the machine runs, from a guest of it; kept in the cache.

    setup: lines for the guest's shell, which are run if they load a module, because its functions have names too.
    """
    lines = tuple(setup) if any(map(_LOADS_MODULE.search, setup)) else ()
    script = "\n".join([*lines, "cat /proc/kallsyms >/out/kallsyms\n"])
    digest = f"-{hashlib.sha256(script.encode()).hexdigest()}" if lines else ""
    place = lab_cache() / "symbols" / f"{machine_identity(machine)}{digest}"
    with suppress(OSError, UserError):  # it is not there yet, or a damaged one is made again
        return executed_code.parse_kallsyms(place.read_text(errors="replace"))
    with scratch_folder() as folder:
        run_job(machine, Job(script), folder / "out")
        told = (folder / "out" / "kallsyms").read_bytes()
    write_cache_file(place, told)
    return executed_code.parse_kallsyms(told.decode(errors="replace"))


def agent_marks(cell: GuestCell) -> dict[str, int]:
    """Addresses of the agent in the guest by the linker's map: the mark, and ``from`` and ``to`` of its code."""
    mapped = build_agent(cell.system.machine.kernel.arch, PINNED, mapped=True)
    if mapped.read_bytes() != cell.agent.read_bytes():
        raise UserError(f"{cell.agent} is not what its sources give, so its functions cannot be found")
    found = _IN_LINK_MAP.findall(mapped.with_suffix(MAP_SUFFIX).read_text())
    places = {name: (int(start, 16), int(length, 16)) for start, length, name in found}
    if MARK not in places or ".text" not in places:
        raise UserError(f"the agent's map does not name {MARK} and .text")
    start, length = places[".text"]
    return {MARK: places[MARK][0], "from": start, "to": start + length}


_IN_LINK_MAP = re.compile(r"^ *([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+) +\d+ +(\S+)$", re.MULTILINE)
"""The address, the length and the name of a section or a function."""


@dataclass(frozen=True)
class WantedRecordings:
    """What the plugin shall record: up to each of these passes of the mark, from ``before`` passes earlier on.

    passes: in increasing order, from 0 on. room: for so many blocks each. cpu: count only passes on it; None counts
    all.
    """

    mark: int
    passes: tuple[int, ...]
    before: int
    room: int
    cpu: int | None = None

    def words(self, plugin: Path, file: Path) -> str:
        passes = "+".join(map(str, self.passes))
        told = {"mark": f"{self.mark:x}", "pass": passes, "before": self.before, "blocks": self.room, "out": file}
        if self.cpu is not None:
            told["cpu"] = self.cpu
        return ",".join((str(plugin), *(f"{name}={value}" for name, value in told.items())))


def recording_up_to(mark: int, passed: int, latency_ns: int, cpu: int | None = None) -> WantedRecordings:
    """The recording of a latency, which ends after so many passes of the mark. ``cpu``: as in ``WantedRecordings``."""
    room = min(max(LEAST_BLOCKS, latency_ns), MOST_BLOCKS)
    return WantedRecordings(mark, (passed,), ACTIVATIONS_BEFORE, room, cpu)


def recordings(cell: GuestCell, folder: Path, wanted: WantedRecordings) -> Iterator[ExecutedBlocks]:
    """Run the cell again with the plugin, and give one recording after another, because each has millions of blocks.

    As many runs as when the cell is measured. RecordDiffersError if none has the record of the first; TargetError if a
    recording is missing.
    """
    plugin = build_plugin()
    with scratch_folder() as scratch:
        for run in range(1, MOST_RUNS + 1):
            file = scratch / str(run) / "blocks"
            file.parent.mkdir()
            out = file.with_name("out")
            arguments = ("-plugin", wanted.words(plugin, file))
            guarded = run_job(cell.system.machine, cell.job(), out, 2 * longest_host_s(cell), arguments).guarded
            record, first = ((place / run_folder.RECORD_NAME).read_bytes() for place in (out, folder))
            if record == first:
                break
            shutil.rmtree(file.parent)
            if run == MOST_RUNS or (guarded and not cell.system.machine.takes_turns):
                again = "the second run" if run == 1 else f"each of {run} further runs"
                raise RecordDiffersError(
                    f"{cell.name}: {again} gave another record than the first, so it explains nothing; "
                    "rtproof lab explain measures such a cell again"
                )
        for number in wanted.passes:
            recording = file.with_name(f"{file.name}.{number}")
            if not recording.exists():
                raise TargetError(f"{cell.name}: the plugin recorded nothing; is the disk full?")
            yield executed_code.parse_blocks(recording.read_bytes())
            recording.unlink()


def build_plugin() -> Path:
    sources = source_folder("qemu_plugin")
    return build_program(ProgramSources(PLUGIN_NAME, "the plugin for QEMU", sources, library=True))


# The next functions are pure.


def clock_reading(blocks: ExecutedBlocks, kernel: int, low: int, high: int) -> tuple[int, int]:
    """When the clock had been read, and how long the code is in which it was read, in ns.

    The C library reads the clock in a page of the kernel's (vDSO), outside of the agent's code (low to high). Without
    such a page it asks the kernel: then the reading lies somewhere before the return from there.
    """
    ends_ns, own = blocks.ends_ns, blocks.on_cpu(blocks.end_cpu)
    inside = (blocks.address >= low) & (blocks.address < high)
    in_kernel = blocks.address >= np.uint64(kernel)
    kernels = np.flatnonzero(in_kernel & own)
    last_kernel = int(kernels[-1]) if len(kernels) else -1
    page = np.flatnonzero(~inside & ~in_kernel & own)
    if len(page) and page[-1] > last_kernel:
        at, lengths_ns = int(page[-1]), ends_ns - blocks.start_ns
        # Turns of other processors within the last blocks in the page: the clock was read before or after them.
        breaks = np.flatnonzero(np.diff(np.cumsum(own)[page]) != 1)
        first = int(page[breaks[-1] + 1] if len(breaks) else page[0])
        turns_ns = int(lengths_ns[first : at + 1][~own[first : at + 1]].sum())
        return int(ends_ns[at]), int(lengths_ns[at]) + turns_ns
    returned_ns = int(ends_ns[last_kernel]) if last_kernel >= 0 else blocks.end_ns
    return returned_ns, blocks.end_ns - returned_ns


def count_error_ns(
    blocks: ExecutedBlocks, kernel: int, marks: Mapping[str, int], largest: LargestActivation
) -> int | None:
    """By how much the instructions between the last two activations differ from the record's time; None if unknown."""
    passes = np.flatnonzero((blocks.address == np.uint64(marks[MARK])) & blocks.on_cpu(blocks.end_cpu))
    if not largest.on_grid or not len(passes) or not largest.place:
        return None
    code = (kernel, marks["from"], marks["to"])
    apart_ns = clock_reading(blocks, *code)[0] - clock_reading(blocks.until(int(passes[-1])), *code)[0]
    error_ns = apart_ns - int(largest.values[largest.place] - largest.values[largest.place - 1])
    return error_ns - largest.period_ns * round(error_ns / largest.period_ns)


# Divide a latency into phases, by the functions that the measured processor ran from the due time on. Of a thread that
# another processor woke, nothing tells when that was: its first phase ends when the scheduler came.


SCHEDULER = "__schedule"
BEFORE_INTERRUPT = "until the timer's interrupt"
IN_INTERRUPT = "in the interrupt, until the wake-up"
BEFORE_WAKE_UP = "until the wake-up"
BEFORE_SCHEDULER = "from the wake-up until the scheduler came"
UNTIL_SCHEDULER = "until the scheduler came"
AFTER_SCHEDULER = "from the scheduler to the reading of the clock"
WITHOUT_SWITCH = "without a switch of tasks"
_SENT_INTERRUPT = re.compile(r"(asm_)?sysvec_(reschedule_ipi|call_function(_single)?)|(do_)?handle_IPI|ipi_handler")
"""The functions that handle an interrupt which another processor sent (arch/*/kernel/smp.c)."""


def divide_latency(
    spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int, cpu: int = 0
) -> tuple[tuple[ExecutedPhase, ...], int | None, tuple[str, ...]]:
    """The phases of a latency; when a switch of tasks was asked for; and the functions through which it came.

    spans: all functions of all processors from the due time to the reading of the clock. cpu: the measured processor.
    """
    own, end_ns = of_cpu(spans, cpu), spans[-1].end_ns
    switched = last_begun(own, lambda name: name == symbols.task_switch)
    if switched is None:
        return (_phase(WITHOUT_SWITCH, own, (due_ns, end_ns), due_ns),), None, ()
    before = [span for span in own if span.start_ns <= switched.start_ns]
    # The compiler may have made parts of the scheduler, such as __schedule.part.0.
    came = last_begun(before, lambda name: name.partition(".")[0] == SCHEDULER)
    came_ns = came.start_ns if came else switched.start_ns
    # What puts a real-time task on the queue of those that can run (kernel/sched/rt.c, deadline.c).
    enqueues = ("enqueue_task_rt", "enqueue_task_dl")
    woken = last_begun([span for span in before if span.start_ns < came_ns], lambda name: name in enqueues)
    ends = [*_ends_before_wake_up(before, woken)] if woken else []
    ends += [(BEFORE_SCHEDULER if woken else UNTIL_SCHEDULER, came_ns), (AFTER_SCHEDULER, end_ns)]
    phases, start_ns = [], due_ns
    for name, stop_ns in ends:
        phases.append(_phase(name, own, (start_ns, stop_ns), due_ns))
        start_ns = stop_ns
    marked = last_begun(within(own, due_ns, came_ns), lambda name: name.lstrip("_").startswith("resched_curr"))
    marked_ns = marked.start_ns - due_ns if marked and woken and marked.start_ns >= woken.start_ns else None
    return tuple(phases), marked_ns, came.call.stack()[:-1] if came else ()


def _ends_before_wake_up(before: Sequence[FunctionSpan], woken: FunctionSpan) -> list[tuple[str, int]]:
    """The phases until the wake-up: two if it came in an interrupt that no other processor sent."""
    # Where the innermost interrupt entered the kernel. On 64-bit ARM two functions in a row are named after it.
    calls = itertools.dropwhile(lambda call: not is_interrupt(call.name), (woken.call, *woken.call.callers()))
    *_, entered = (None, *itertools.takewhile(lambda call: is_interrupt(call.name), calls))
    interrupt = next((span for span in before if span.call is entered and span.began), None)
    sent = any(_SENT_INTERRUPT.fullmatch(name.partition(".")[0]) for name in woken.call.stack())
    if interrupt is None or sent:
        return [(BEFORE_WAKE_UP, woken.start_ns)]
    return [(BEFORE_INTERRUPT, interrupt.start_ns), (IN_INTERRUPT, woken.start_ns)]


def _phase(name: str, own: Sequence[FunctionSpan], window_ns: tuple[int, int], due_ns: int) -> ExecutedPhase:
    start_ns, stop_ns = window_ns
    inside = within(own, start_ns, stop_ns)
    longest = tuple(list(time_by_function(inside).items())[:SHOWN_FUNCTIONS])
    whole_ns = stop_ns - start_ns
    others_ns = whole_ns - length_ns(inside)
    return ExecutedPhase(name, start_ns - due_ns, whole_ns, main_path(inside), longest, others_ns)
