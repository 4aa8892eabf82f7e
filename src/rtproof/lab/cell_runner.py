# SPDX-License-Identifier: Apache-2.0
"""Measure the cells that are not stored: boot each system once, then its cells, each guest in a process of its own.

KeyboardInterrupt in a main thread ends a virtual machine, so each task needs a process instead of a thread.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

from rtproof.core import defects
from rtproof.core.errors import RtproofError
from rtproof.core.processes import KILLED, each_by_itself
from rtproof.lab import guest_cell
from rtproof.lab.guest_cell import CellCost, CellStore, GuestCell
from rtproof.lab.kernel_comparison import CellReading, KernelComparison, SystemUnderLoad, read_cell
from rtproof.summary.summary_model import Doubt, Severity
from rtproof.vm.machine import Machine


@dataclass(frozen=True)
class CellResult:
    """How a cell ended: stored and read, or failed with a sentence. fresh: measured by this command."""

    cell: GuestCell
    folder: Path | None = None
    cost: CellCost | None = None
    reading: CellReading | None = None
    failure: str = ""
    fresh: bool = False


class CellsInterrupted(KeyboardInterrupt):
    """Ctrl-C ended the command before all cells were finished. The finished cells stay in the cache."""

    def __init__(self, finished: int, cells: int) -> None:
        super().__init__()
        self.sentence = (
            f"interrupted: {finished} of {cells} cells are finished and kept; the same command continues from there"
        )


@dataclass(frozen=True)
class CellResults:
    """The results of the cells, in their order. ``host_s``: how long this command needed for them."""

    results: tuple[CellResult, ...]
    host_s: float

    @property
    def fresh(self) -> int:
        return sum(result.fresh for result in self.results)

    @property
    def cached(self) -> int:
        return sum(result.folder is not None and not result.fresh for result in self.results)

    @property
    def cost(self) -> CellCost:
        """The cost of all cells at the time when they were measured."""
        costs = [astuple(result.cost) for result in self.results if result.cost]
        return CellCost(*map(sum, zip(*costs, strict=True))) if costs else CellCost(0, 0, 0)


def failure_sentence(problem: Exception) -> str:
    sentence = defects.error_sentence(problem)
    return f"{sentence}: run fewer guests at once with --jobs" if sentence == KILLED else sentence


def run_missing_cells(
    cells: Sequence[GuestCell],
    store: CellStore,
    measure: Callable[[GuestCell, Path], CellCost],
    jobs: int,
    told: Callable[[CellResult], None],
) -> CellResults:
    """Measure the cells that the store does not have. Call ``told`` with each result. CellsInterrupted on Ctrl-C.

    Idle cells come last: they need little time, and fill the processors that the others leave free.
    """
    began = time.monotonic()
    results: dict[GuestCell, CellResult] = {}

    def take(cell: GuestCell, outcome: CellCost | str, *, fresh: bool = True) -> None:
        if isinstance(outcome, str):
            results[cell] = CellResult(cell, failure=outcome)
        else:
            try:
                results[cell] = replace(checked_result(cell, store.folder(cell.key()), outcome), fresh=fresh)
            except RtproofError as error:
                results[cell] = CellResult(cell, failure=str(error))
        told(results[cell])

    def boot_failure(machine: Machine) -> str:
        guest_cell.boot_guest(machine)
        return ""  # if it raises, each_by_itself gives the sentence

    def measured(cell: GuestCell) -> CellCost | str:
        return store.make(cell.key(), partial(measure, cell))

    try:
        for cell in cells:
            if cost := store.find(cell.key()):
                take(cell, cost, fresh=False)
        missing = [cell for cell in cells if cell not in results]
        machines = list(dict.fromkeys(cell.system.machine for cell in missing))
        failures = dict(zip(machines, each_by_itself(boot_failure, machines, jobs, failure_sentence), strict=True))
        for cell in (cell for cell in missing if failures[cell.system.machine]):
            take(cell, failures[cell.system.machine])
        booted = [cell for cell in missing if not failures[cell.system.machine]]
        booted.sort(key=lambda cell: not cell.load.loads)
        each_by_itself(measured, booted, jobs, failure_sentence, take)
    except KeyboardInterrupt:
        raise CellsInterrupted(sum(not each.failure for each in results.values()), len(cells)) from None
    return CellResults(tuple(results[cell] for cell in cells), time.monotonic() - began)


def compare_kernels(ran: CellResults) -> KernelComparison:
    """The cells of one setting as rows and columns."""
    cells = [result.cell for result in ran.results]
    systems = tuple(dict.fromkeys(cell.system for cell in cells))
    loads = tuple(dict.fromkeys(cell.load for cell in cells))
    spots = []
    for load, system in product(loads, systems):
        here = [each for each in ran.results if each.cell.system == system and each.cell.load == load]
        readings = tuple(each.reading for each in here if each.reading)
        spots.append(SystemUnderLoad(system, load, readings, tuple(each.failure for each in here if each.failure)))
    return KernelComparison(
        systems=systems,
        loads=loads,
        setting=cells[0].setting,
        shifts=1 + max(cell.shift for cell in cells),
        spots=tuple(spots),
        cost=ran.cost,
        fresh=ran.fresh,
        cached=ran.cached,
        host_s=ran.host_s,
    )


def checked_result(cell: GuestCell, folder: Path, cost: CellCost) -> CellResult:
    """A stored cell: failed if it measured nothing or another preemption model, INVALID if no two runs agree."""
    reading = read_cell(folder)
    if cost.none_agree:
        what = f"no two of {cost.runs} runs gave the same bytes"
        doubt = Doubt("runs-differ", Severity.INVALID, what, "try again when this host is less busy")
        reading = replace(reading, doubts=(doubt, *reading.doubts))
    asked = next((word for word in cell.system.machine.boot if word.startswith("preempt=")), "")
    model = asked.removeprefix("preempt=")
    if not reading.pooled.observed.count:
        return CellResult(cell, folder, cost, failure="the agent measured no activation")
    if model and reading.preemption and reading.preemption != model:
        why = (
            f"{cell.system.kernel} was booted with {asked} and runs {reading.preemption}: its kernel has no such model"
        )
        return CellResult(cell, folder, cost, failure=why)
    return CellResult(cell, folder, cost, reading)
