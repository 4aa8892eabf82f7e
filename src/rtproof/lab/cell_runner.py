# SPDX-License-Identifier: Apache-2.0
"""Measure the cells that are not stored: boot each system once, then its cells, with one process for each job.

KeyboardInterrupt in a main thread ends a virtual machine, so each task needs a process instead of a thread. Each
process has a session of its own. Its parent alone tells it of Ctrl-C, once; it also ends when the parent dies.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

from rtproof.core import defects
from rtproof.core.errors import RtproofError
from rtproof.core.processes import signal_when_parent_ends
from rtproof.lab.guest_cell import CellCost, CellSetting, CellStore, GuestCell, GuestLoad, GuestSystem, StoredCell
from rtproof.lab.kernel_comparison import CellReading, KernelComparison, SystemUnderLoad, read_cell
from rtproof.summary.summary_model import Doubt, Severity
from rtproof.vm.machine import Machine

# The next functions run tasks in processes. A task starts as soon as the task that it needs is done.


CLEAN_UP_S = 20
"""How long a task may take to clean up before it is killed."""


@dataclass(frozen=True)
class WorkerTask:
    """A task for a process. ``work`` and its result can be pickled. ``needs``: key of the task to be done before."""

    key: Hashable
    work: Callable[[], Any]
    needs: Hashable | None = None


@dataclass(frozen=True)
class TaskEnd:
    """The result of a task, or the sentence that says why the task failed."""

    value: Any = None
    failure: str = ""


OnTaskEnd = Callable[[WorkerTask, TaskEnd], None]


def run_tasks(tasks: Sequence[WorkerTask], jobs: int, told: OnTaskEnd) -> None:
    """Run every task, at most ``jobs`` at once, in order as far as their needs allow. Call ``told`` as each ends.

    If a task fails, the tasks that need it fail with the same sentence. On any exception, also KeyboardInterrupt, the
    running tasks are interrupted, and this function waits for them.
    """
    crew = _WorkerCrew(list(tasks), jobs)
    try:
        while crew.waiting or crew.running:
            crew.give_up(told)
            crew.start()
            if crew.running:
                crew.collect(told)
    finally:
        crew.stop()


@dataclass
class _WorkerCrew:
    waiting: list[WorkerTask]
    jobs: int
    running: dict[Connection, tuple[WorkerTask, SpawnProcess]] = field(default_factory=dict)
    ended: dict[Hashable, TaskEnd] = field(default_factory=dict)

    def give_up(self, told: OnTaskEnd) -> None:
        """End the tasks that need a task that failed."""
        for task in list(self.waiting):
            need = self.ended.get(task.needs) if task.needs is not None else None
            if need and need.failure:
                self.waiting.remove(task)
                self._end(task, TaskEnd(failure=need.failure), told)

    def start(self) -> None:
        """Start as many tasks as may run at once."""
        ready = [task for task in self.waiting if task.needs is None or task.needs in self.ended]
        for task in ready[: self.jobs - len(self.running)]:
            self.waiting.remove(task)
            self._start_worker(task)

    def _start_worker(self, task: WorkerTask) -> None:
        """Start the process of a task. It ignores Ctrl-C until it is ready to clean up, and no longer.

        Ctrl-C that comes meanwhile waits until the process is listed, so that ``stop`` knows of it.
        """
        context = get_context("spawn")
        answers, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_worker_main, args=(theirs, task.work))
        resource_tracker.ensure_running()  # Its start, which is part of the first process's, would unblock SIGINT.
        with _ctrl_c_waits():
            process.start()
            self.running[answers] = task, process
        theirs.close()

    def collect(self, told: OnTaskEnd) -> None:
        """Wait until at least one task has ended, and take its result."""
        for answers in connection.wait(list(self.running)):
            assert isinstance(answers, Connection)
            task, process = self.running.pop(answers)
            self._end(task, _worker_answer(answers, process), told)

    def _end(self, task: WorkerTask, ended: TaskEnd, told: OnTaskEnd) -> None:
        self.ended[task.key] = ended
        told(task, ended)

    def stop(self) -> None:
        """Interrupt the running tasks, and wait until they have cleaned up."""
        processes = [process for _, process in self.running.values()]
        for process in processes:
            if process.pid is not None and process.is_alive():
                os.kill(process.pid, signal.SIGINT)
        for process in processes:
            process.join(CLEAN_UP_S)
            if process.is_alive():
                process.kill()
                process.join()


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Handle a Ctrl-C that comes within the context at its end. A process that starts within begins with it blocked.

    Blocking is not enough for this process: the kernel then gives the signal to another thread, such as one of numpy's,
    and Python interrupts the main thread all the same. Outside of the main thread nothing needs to wait.
    """
    received: list[int] = []
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.signal(signal.SIGINT, lambda number, frame: received.append(number)) if in_main else None
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if received and callable(handler):
        handler(signal.SIGINT, None)


def _worker_answer(answers: Connection, process: SpawnProcess) -> TaskEnd:
    try:
        ended = answers.recv()
    except EOFError:
        process.join()
        ended = TaskEnd(failure=_death_sentence(process.exitcode or 0))
    process.join()
    answers.close()
    assert isinstance(ended, TaskEnd)
    return ended


def _death_sentence(exit_code: int) -> str:
    if exit_code == -signal.SIGKILL:
        return "its process was killed, maybe because memory ran out: run fewer guests at once with --jobs"
    return f"its process ended with exit code {exit_code} and without a result"


def _worker_main(answers: Connection, work: Callable[[], Any]) -> None:
    """Do the work of a task in its process. Every error becomes a sentence."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM):
            # A shell starts a command in the background with SIGINT ignored, and a process inherits that.
            signal.signal(number, signal.default_int_handler)
        signal_when_parent_ends(signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        parent = parent_process()
        if parent is not None and not parent.is_alive():
            return  # it died before prctl, so its death interrupts nobody
        ended = TaskEnd(work())
    except KeyboardInterrupt:
        return
    except Exception as error:
        ended = TaskEnd(failure=defects.error_sentence(error))
    try:
        answers.send(ended)
    except Exception as error:
        answers.send(TaskEnd(failure=defects.error_sentence(error)))


@dataclass(frozen=True)
class KernelMatrix:
    """The systems and loads to compare. ``agents``: the agent's program file by architecture."""

    systems: tuple[GuestSystem, ...]
    loads: tuple[GuestLoad, ...]
    setting: CellSetting
    shifts: int
    agents: Mapping[str, Path]

    def cells(self) -> list[GuestCell]:
        return [
            GuestCell(system, load, self.setting, self.agents[system.machine.kernel.arch], shift)
            for load in self.loads
            for system in self.systems
            for shift in range(self.shifts)
        ]


@dataclass(frozen=True)
class GuestFunctions:
    """The functions that boot a machine and measure a cell. Another process must find them by name."""

    boot: Callable[[Machine], None]
    measure: Callable[[GuestCell, Path], CellCost]


@dataclass(frozen=True)
class CellResult:
    """How a cell ended: stored and read, or failed with a sentence."""

    cell: GuestCell
    kept: StoredCell | None = None
    reading: CellReading | None = None
    failure: str = ""


class CellsInterrupted(KeyboardInterrupt):
    """Ctrl-C ended the command before all cells were finished. The finished cells stay in the cache."""

    def __init__(self, finished: int, cells: int) -> None:
        super().__init__()
        self.sentence = (
            f"interrupted: {finished} of {cells} cells are finished and kept; the same command continues from there"
        )


OnResult = Callable[[CellResult], None]


@dataclass(frozen=True)
class CellResults:
    """The results of the cells, in their order. ``host_s``: how long this command needed for them."""

    results: tuple[CellResult, ...]
    host_s: float

    @property
    def kept(self) -> list[StoredCell]:
        return [result.kept for result in self.results if result.kept]

    @property
    def fresh(self) -> int:
        """How many cells were measured now. The others were in the cache."""
        return sum(kept.fresh for kept in self.kept)

    @property
    def cost(self) -> CellCost:
        """The cost of all cells at the time when they were measured."""
        costs = [kept.cost for kept in self.kept]
        return CellCost(
            sum(cost.host_s for cost in costs),
            sum(cost.virtual_s for cost in costs),
            sum(cost.runs for cost in costs),
            sum(cost.differing for cost in costs),
            sum(cost.unguarded for cost in costs),
        )


def run_missing_cells(
    cells: list[GuestCell], cache: CellStore, runner: GuestFunctions, jobs: int, told: OnResult
) -> CellResults:
    """Measure the cells that the cache does not have. Call ``told`` with each result. CellsInterrupted on Ctrl-C."""
    began = time.monotonic()
    desk = _ResultCollector(cache, told)
    try:
        desk.look_up(cells)
        run_tasks(_boots_and_cells(desk, runner), jobs, desk.take)
    except KeyboardInterrupt:
        raise CellsInterrupted(sum(not each.failure for each in desk.results.values()), len(cells)) from None
    return CellResults(tuple(desk.results[cell] for cell in cells), time.monotonic() - began)


def compare_kernels(matrix: KernelMatrix, ran: CellResults) -> KernelComparison:
    """The cells of a matrix as rows and columns."""
    return KernelComparison(
        systems=matrix.systems,
        loads=matrix.loads,
        setting=matrix.setting,
        shifts=matrix.shifts,
        spots=tuple(
            _system_under_load(system, load, ran.results) for load in matrix.loads for system in matrix.systems
        ),
        cost=ran.cost,
        fresh=ran.fresh,
        cached=len(ran.kept) - ran.fresh,
        host_s=ran.host_s,
    )


def _system_under_load(system: GuestSystem, load: GuestLoad, results: tuple[CellResult, ...]) -> SystemUnderLoad:
    here = [each for each in results if each.cell.system == system and each.cell.load == load]
    readings = tuple(each.reading for each in here if each.reading)
    return SystemUnderLoad(system, load, readings, tuple(each.failure for each in here if each.failure))


def _boots_and_cells(desk: "_ResultCollector", runner: GuestFunctions) -> list[WorkerTask]:
    """The tasks: first all boots, then all cells. A cell can start as soon as its own system is booted.

    Idle cells come last. They need little time, so they fill the processors that the other cells leave free.
    """
    machines = list(dict.fromkeys(cell.system.machine for cell in desk.missing))
    boots = [WorkerTask(machine, partial(runner.boot, machine)) for machine in machines]
    cells = [
        WorkerTask(
            cell, partial(_make_cell, desk.cache, desk.missing[cell], cell, runner.measure), needs=cell.system.machine
        )
        for cell in sorted(desk.missing, key=lambda cell: not cell.load.loads)
    ]
    return [*boots, *cells]


def _make_cell(
    cache: CellStore, key: str, cell: GuestCell, measure: Callable[[GuestCell, Path], CellCost]
) -> StoredCell:
    return cache.make(key, partial(measure, cell))


@dataclass
class _ResultCollector:
    """Collects results as tasks end. ``missing``: the cells to measure, with their keys."""

    cache: CellStore
    told: OnResult
    missing: dict[GuestCell, str] = field(default_factory=dict)
    results: dict[GuestCell, CellResult] = field(default_factory=dict)

    def look_up(self, cells: list[GuestCell]) -> None:
        for cell in cells:
            key = cell.key()
            kept = self.cache.find(key)
            if kept:
                self._read(cell, kept)
            else:
                self.missing[cell] = key

    def take(self, task: WorkerTask, ended: TaskEnd) -> None:
        if not isinstance(task.key, GuestCell):
            return
        if ended.failure:
            self._add(CellResult(task.key, failure=ended.failure))
        else:
            self._read(task.key, ended.value)

    def _read(self, cell: GuestCell, kept: StoredCell) -> None:
        try:
            self._add(checked_result(cell, kept))
        except RtproofError as error:
            self._add(CellResult(cell, failure=str(error)))

    def _add(self, result: CellResult) -> None:
        self.results[result.cell] = result
        self.told(result)


def _doubted_if_none_agree(reading: CellReading, cost: CellCost) -> CellReading:
    """The reading, INVALID if no two runs of the cell gave the same bytes."""
    if not cost.none_agree:
        return reading
    what = f"no two of {cost.runs} runs gave the same bytes"
    doubt = Doubt("runs-differ", Severity.INVALID, what, "try again when this host is less busy")
    return replace(reading, doubts=(doubt, *reading.doubts))


def checked_result(cell: GuestCell, kept: StoredCell) -> CellResult:
    """The result of a stored cell. It has failed if it measured nothing or another preemption model."""
    reading = _doubted_if_none_agree(read_cell(kept.folder), kept.cost)
    asked = next((word for word in cell.system.machine.boot if word.startswith("preempt=")), "")
    model = asked.removeprefix("preempt=")
    if not reading.count:
        return CellResult(cell, kept, failure="the agent measured no activation")
    if model and reading.preemption and reading.preemption != model:
        why = (
            f"{cell.system.kernel} was booted with {asked} and runs {reading.preemption}: its kernel has no such model"
        )
        return CellResult(cell, kept, failure=why)
    return CellResult(cell, kept, reading)
