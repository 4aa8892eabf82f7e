# SPDX-License-Identifier: Apache-2.0
"""Every system under every load: boot each system once, then its cells, all of them on as many cores as are given."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rtproof.errors import RtproofError
from rtproof.lab.cache import Cache, Kept
from rtproof.lab.cells import Cell, Cost, Load, Setting, System
from rtproof.lab.comparison import Comparison, Spot
from rtproof.lab.readings import Reading, read
from rtproof.lab.workers import Ended, Task, run_all
from rtproof.vm.machine import Machine


@dataclass(frozen=True)
class Matrix:
    """agents: the agent's program file by architecture."""

    systems: tuple[System, ...]
    loads: tuple[Load, ...]
    setting: Setting
    shifts: int
    agents: Mapping[str, Path]

    def cells(self) -> list[Cell]:
        return [
            Cell(system, load, self.setting, self.agents[system.machine.kernel.arch], shift)
            for load in self.loads
            for system in self.systems
            for shift in range(self.shifts)
        ]


@dataclass(frozen=True)
class Runner:
    """How a machine is booted and a cell measured, as functions that another process can find by name."""

    boot: Callable[[Machine], None]
    measure: Callable[[Cell, Path], Cost]


@dataclass(frozen=True)
class Result:
    """How a cell ended: kept and read, or failed with a sentence."""

    cell: Cell
    kept: Kept | None = None
    reading: Reading | None = None
    failure: str = ""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in the middle; what is finished stays in the cache."""

    def __init__(self, finished: int, cells: int) -> None:
        super().__init__()
        self.sentence = (
            f"interrupted: {finished} of {cells} cells are finished and kept, the same command goes on from there"
        )


Told = Callable[[Result], None]


@dataclass(frozen=True)
class Ran:
    """results: of the cells, in their order; host_s: how long that took here, now."""

    results: tuple[Result, ...]
    host_s: float

    @property
    def kept(self) -> list[Kept]:
        return [result.kept for result in self.results if result.kept]

    @property
    def fresh(self) -> int:
        """How many cells were measured now; the others were in the cache."""
        return sum(kept.fresh for kept in self.kept)

    @property
    def cost(self) -> Cost:
        """Of all cells when they were measured."""
        costs = [kept.cost for kept in self.kept]
        return Cost(sum(cost.host_s for cost in costs), sum(cost.virtual_s for cost in costs))


def run(cells: list[Cell], cache: Cache, runner: Runner, jobs: int, told: Told) -> Ran:
    """Run what the cache lacks; tell of each cell as it ends. Interrupted on Ctrl-C."""
    began = time.monotonic()
    desk = _Desk(cache, told)
    try:
        desk.look_up(cells)
        run_all(_tasks(desk, runner), jobs, desk.take)
    except KeyboardInterrupt:
        raise Interrupted(sum(not each.failure for each in desk.results.values()), len(cells)) from None
    return Ran(tuple(desk.results[cell] for cell in cells), time.monotonic() - began)


def comparison(matrix: Matrix, ran: Ran) -> Comparison:
    """The cells of a matrix as rows and columns."""
    return Comparison(
        systems=matrix.systems,
        loads=matrix.loads,
        setting=matrix.setting,
        shifts=matrix.shifts,
        spots=tuple(_spot(system, load, ran.results) for load in matrix.loads for system in matrix.systems),
        cost=ran.cost,
        fresh=ran.fresh,
        cached=len(ran.kept) - ran.fresh,
        host_s=ran.host_s,
    )


def _spot(system: System, load: Load, results: tuple[Result, ...]) -> Spot:
    here = [each for each in results if each.cell.system == system and each.cell.load == load]
    readings = tuple(each.reading for each in here if each.reading)
    return Spot(system, load, readings, tuple(each.failure for each in here if each.failure))


def _tasks(desk: "_Desk", runner: Runner) -> list[Task]:
    """All boots before all cells, so that no core waits for one; a cell as soon as its own system is there.

    Idle cells come last: they are over in a moment and fill what the others leave.
    """
    machines = list(dict.fromkeys(cell.system.machine for cell in desk.missing))
    boots = [Task(machine, partial(runner.boot, machine)) for machine in machines]
    cells = [
        Task(cell, partial(_make, desk.cache, desk.missing[cell], cell, runner.measure), needs=cell.system.machine)
        for cell in sorted(desk.missing, key=lambda cell: not cell.load.loads)
    ]
    return [*boots, *cells]


def _make(cache: Cache, key: str, cell: Cell, measure: Callable[[Cell, Path], Cost]) -> Kept:
    return cache.make(key, partial(measure, cell))


@dataclass
class _Desk:
    """Where results come in. missing: the cells that have to be run, and their keys."""

    cache: Cache
    told: Told
    missing: dict[Cell, str] = field(default_factory=dict)
    results: dict[Cell, Result] = field(default_factory=dict)

    def look_up(self, cells: list[Cell]) -> None:
        for cell in cells:
            key = cell.key()
            kept = self.cache.find(key)
            if kept:
                self._read(cell, kept)
            else:
                self.missing[cell] = key

    def take(self, task: Task, ended: Ended) -> None:
        if not isinstance(task.key, Cell):
            return
        if ended.failure:
            self._add(Result(task.key, failure=ended.failure))
        else:
            self._read(task.key, ended.value)

    def _read(self, cell: Cell, kept: Kept) -> None:
        try:
            self._add(_result(cell, kept))
        except RtproofError as error:
            self._add(Result(cell, failure=str(error)))

    def _add(self, result: Result) -> None:
        self.results[result.cell] = result
        self.told(result)


def _result(cell: Cell, kept: Kept) -> Result:
    reading = read(kept.folder)
    asked = next((word for word in cell.system.machine.boot if word.startswith("preempt=")), "")
    model = asked.removeprefix("preempt=")
    if not reading.count:
        return Result(cell, kept, failure="the agent measured no activation")
    if model and reading.preemption and reading.preemption != model:
        why = (
            f"{cell.system.kernel} was booted with {asked} and runs {reading.preemption}: its kernel has no such model"
        )
        return Result(cell, kept, failure=why)
    return Result(cell, kept, reading)
