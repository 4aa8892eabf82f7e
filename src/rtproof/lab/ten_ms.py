# SPDX-License-Identifier: Apache-2.0
"""Article 2's measurement: a loop of 10 ms in a kernel task, in four scenarios, judged by the lengths of its cycles.

A kernel task sleeps until each due time and catches up when it is late; the first 1000 cycles are not counted. The
article measured on a board, with a scope at a pin and a flood of pings from another machine. Here it is the module's
loop in virtual time, and the flood is traffic on the loopback device, because a guest has no other network.
"""

import functools
from dataclasses import dataclass
from pathlib import Path

from rtproof import articles
from rtproof.analysis import cycles
from rtproof.analysis.model import Cycles, Severity
from rtproof.lab.cells import IDLE, Cell, Load, Setting, System, parse_load
from rtproof.lab.matrix import Ran, Result
from rtproof.lab.readings import read
from rtproof.record import rundir

PERIOD_NS = 10_000_000
IGNORED = cycles.IGNORE

STRESS = "cpu+dd+timers"
"""For the article's load of processor, disk and clock: a busy loop, a large file, many timers at one instant."""
FLOOD = "net"
NOTE = (
    f"Stress is {STRESS} at once. The article's flood of pings from another machine cannot be had, since a guest has "
    f"no network: the load {FLOOD} is in its place, which floods the loopback device. The article reports besides that "
    "the plain kernel's loop stopped completely under the flood; a loop that stands still here is shown as STALLED."
)


@dataclass(frozen=True)
class Line:
    """Figures of a scenario: short and long are the cycles outside of 10 ms +- 20 %."""

    counted: int
    short: int
    long: int
    max_ms: float
    min_ms: float


@dataclass(frozen=True)
class Scenario:
    """rt: on the kernel with PREEMPT_RT, with a real-time policy, as in the article. row: its key in that."""

    name: str
    rt: bool
    load: Load
    row: str

    @property
    def policy(self) -> tuple[str, ...]:
        return ("--policy", "fifo", "--priority", "99") if self.rt else ("--policy", "other")

    @property
    def article(self) -> Line:
        """What the article measured."""
        return _line(self.row)


SCENARIOS = (
    Scenario("plain kernel, idle", False, IDLE, "other-idle"),
    Scenario("plain kernel, stress", False, parse_load(STRESS), "other-stress"),
    Scenario("PREEMPT_RT, stress", True, parse_load(STRESS), "fifo-stress"),
    Scenario("PREEMPT_RT, stress and flood", True, parse_load(f"{STRESS}+{FLOOD}"), "fifo-stress-flood"),
)


@functools.cache
def _line(key: str) -> Line:
    row = articles.load("ten-ms").row(key)
    assert row is not None
    counted, short, long, largest, smallest = (
        row.figures[name].value for name in ("count", "below", "above", "max", "min")
    )
    return Line(int(counted), int(short), int(long), largest / 1e6, smallest / 1e6)


@dataclass(frozen=True)
class Found:
    """What a scenario came to: the cycles, or the sentence that says why there are none."""

    scenario: Scenario
    cell: Cell
    cycles: Cycles | None
    failure: str
    invalid: tuple[str, ...]

    @property
    def stalled_ns(self) -> int:
        """How long the loop stood still in all."""
        return sum(stall.duration_ns for stall in self.cycles.stalls) if self.cycles else 0


def cell(scenario: Scenario, system: System, agent: Path, counted: int) -> Cell:
    """The scenario as a cell: so many cycles after the ignored ones."""
    length_ns = (in_all(counted) + 1) * PERIOD_NS
    more = ("--method", "loop", *scenario.policy)
    return Cell(system, scenario.load, Setting("kernel", PERIOD_NS, length_ns, 0, more), agent)


def found(ran: Ran) -> list[Found]:
    """The scenarios in order, from the cells that were made of them."""
    return [_found(scenario, result) for scenario, result in zip(SCENARIOS, ran.results, strict=True)]


def _found(scenario: Scenario, result: Result) -> Found:
    if result.failure or result.kept is None:
        return Found(scenario, result.cell, None, result.failure, ())
    record = rundir.open_run(result.kept.folder).record
    doubts = read(result.kept.folder).doubts if result.reading is None else result.reading.doubts
    invalid = tuple(doubt.what for doubt in doubts if doubt.severity is Severity.INVALID)
    return Found(scenario, result.cell, cycles.cycles(record), "", invalid)


def exit_code(results: list[Found]) -> int:
    """0, or 2 if a scenario failed, or 3 if one measured something else."""
    if any(each.failure for each in results):
        return 2
    return 3 if any(each.invalid for each in results) else 0


def in_all(counted: int) -> int:
    """How many cycles a run has to have so that so many are counted: the first ones are not, of a short run a tenth."""
    return counted + min(IGNORED, -(-counted // (cycles.SHORT_RUN - 1)))
