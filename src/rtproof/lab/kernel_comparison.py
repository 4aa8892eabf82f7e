# SPDX-License-Identifier: Apache-2.0
"""A finished comparison of kernels: the latencies of each system under each load, and the order of the systems."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from rtproof.core.units import format_cpus
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.doubts.target_state import LONGEST_TURN_US
from rtproof.lab.cell_explanation import CellExplanation
from rtproof.lab.guest_cell import PREEMPTION_FILE, CellCost, CellSetting, GuestLoad, GuestSystem
from rtproof.record import run_folder
from rtproof.summary.measured_kernel import IN_BAND
from rtproof.summary.recorded_facts import long_turns_clause, online_processors, turns_of_processors
from rtproof.summary.series import pooled
from rtproof.summary.summary_model import Doubt, Severity, Summary
from rtproof.vm.machine import Machine

Processor = tuple[int, int]
"""How many CPUs a guest had on line, and the number of one of them. Both determine the speed of that CPU."""


@dataclass(frozen=True, eq=False)
class CellReading:
    """The latencies of one cell, or of a part of its processors.

    summaries: of the stage that is judged, one for each thread; pooled: of all these threads. preemption: the model
    that the guest's kernel named, or "". core: the co-kernel beside Linux. online: how many CPUs the guest had on line.
    shares: the part of all instructions that each of them executed; empty if unknown.
    """

    summaries: tuple[Summary, ...]
    pooled: Summary
    doubts: tuple[Doubt, ...]
    kernel_version: str
    preemption: str
    core: str | None = None
    online: int = 1
    shares: tuple[float, ...] = ()

    @property
    def probe(self) -> str:
        return " ".join(filter(None, (self.pooled.series.probe, self.pooled.series.method)))

    @property
    def max_ns(self) -> int:
        return max(self.pooled.observed.max, self.pooled.stalled_ns)

    @property
    def invalid(self) -> tuple[Doubt, ...]:
        """The doubts that make the cell invalid; empty if it measured what was asked."""
        return tuple(doubt for doubt in self.doubts if doubt.severity is Severity.INVALID)

    @property
    def processors(self) -> frozenset[Processor]:
        """The processors that were measured; none if a thread was not bound, because its CPU is then not known."""
        numbers = {each.series.cpu for each in self.summaries}
        return frozenset() if min(numbers, default=-1) < 0 else frozenset((self.online, cpu) for cpu in numbers)

    @cached_property
    def cpus(self) -> "tuple[CellReading, ...]":
        """The same by processor, in the order of the processors' numbers."""
        numbers = sorted(cpu for _, cpu in self.processors)
        parts = [tuple(each for each in self.summaries if each.series.cpu == cpu) for cpu in numbers]
        return tuple(replace(self, summaries=part, pooled=pooled(part)) for part in parts)

    @property
    def cpu(self) -> int:
        return self.summaries[0].series.cpu

    @property
    def share(self) -> float | None:
        """The part of all instructions that this processor executed; None if the record does not tell it."""
        return self.shares[self.cpu] if self.cpu < len(self.shares) else None


def read_cell(folder: Path) -> CellReading:
    """The reading of a run folder. RecordError if its record cannot be read."""
    analysis = analyse(run_folder.open_run(folder).record, None, 1)
    try:
        words = (folder / PREEMPTION_FILE).read_text(errors="replace").split()
    except OSError:
        words = []
    return reading_of_analysis(analysis, next((word.strip("()") for word in words if word.startswith("(")), ""))


def reading_of_analysis(analysis: Analysis, preemption: str = "") -> CellReading:
    """The part of an analysis that a comparison needs."""
    return CellReading(
        summaries=analysis.summaries,
        pooled=analysis.pooled,
        doubts=analysis.doubts,
        kernel_version=analysis.record.begin.kernel_version,
        preemption=preemption,
        core=analysis.core,
        online=online_processors(analysis.record),
        shares=tuple(turns_of_processors(analysis.record).shares),
    )


VIRTUAL_TIME = (
    "Virtual time: one nanosecond per guest instruction, so these figures count instructions; they are not a board's "
    "microseconds. They rank kernels and find regressions; they do not sign off hardware."
)
"""Every output of the lab has this sentence."""
ONE_OBSERVATION = (
    "Each cell is one observation of its kernel and load: run again, it gives the same bytes. Another shift begins to "
    "measure at another moment of the same start-up and load, so shifts give no confidence interval."
)


def turns_sentences(machines: Iterable[Machine]) -> list[str]:
    """What the figures of several processors in virtual time are, which every output says; empty for one processor."""
    turning = (machine for machine in machines if machine.takes_turns)
    return list(dict.fromkeys(turns_sentence(each.cpus, each.pace_us, soakers=each.soakers) for each in turning))


def turns_sentence(cpus: int, pace_us: int, *, soakers: bool) -> str:
    """What the figures of processors are that take turns of at most ``pace_us``, with or without soakers."""
    turns = f"{cpus} processors take turns of at most {pace_us} us"
    if not soakers or pace_us > LONGEST_TURN_US:
        return (
            f"{turns}. A latency may be such a turn of another processor, so these figures are INVALID. They need "
            f"soakers, and turns of at most {LONGEST_TURN_US} us; 4 us are usual."
        )
    usual = (
        f"{turns}, so each is slower than a single one. Such figures rank systems and find missing isolation. They are "
        "not those of a parallel machine. Compare a processor only with the same processor."
    )
    long = long_turns_clause(pace_us)
    return f"{usual} {long.capitalize()}." if long else usual


@dataclass(frozen=True)
class SystemUnderLoad:
    """One system under one load: a reading for each shift that was measured, a sentence for each that failed."""

    system: GuestSystem
    load: GuestLoad
    readings: tuple[CellReading, ...]
    failures: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.system.name}, {self.load.name}"

    @property
    def processors(self) -> frozenset[Processor]:
        """The processors that were measured, in any shift."""
        return frozenset(each for reading in self.readings for each in reading.processors)

    @property
    def cpus(self) -> tuple[int, ...]:
        """The numbers of the CPUs that were measured, in any shift, in ascending order."""
        return tuple(sorted({cpu for _, cpu in self.processors}))

    def on_cpu(self, cpu: int) -> "SystemUnderLoad":
        """What was measured on one CPU. It has no readings if that CPU was not measured."""
        parts = tuple(part for reading in self.readings for part in reading.cpus if part.cpu == cpu)
        return replace(self, readings=parts)

    @property
    def usable(self) -> bool:
        """Whether there are readings, none is invalid and no shift failed."""
        return bool(self.readings) and not self.failures and not any(reading.invalid for reading in self.readings)

    @property
    def count(self) -> int:
        return sum(reading.pooled.observed.count for reading in self.readings)

    @property
    def missed(self) -> int:
        return sum(reading.pooled.never_ran for reading in self.readings)

    @property
    def min_ns(self) -> int:
        return min(reading.pooled.observed.min for reading in self.readings)

    @property
    def mean_ns(self) -> float:
        observed = [reading.pooled.observed for reading in self.readings]
        return sum((each.mean or 0.0) * each.count for each in observed) / self.count

    @property
    def max_ns(self) -> int:
        return max(reading.max_ns for reading in self.readings)

    @property
    def smallest_max_ns(self) -> int:
        """The smallest of the shifts' maxima."""
        return min(reading.max_ns for reading in self.readings)


@dataclass(frozen=True)
class KernelComparison:
    """A comparison of systems under loads. spots: one for each system under the first load, then the next load.

    host_s: how long this command needed. fresh, cached: how many cells were measured now, and were in the cache. cost:
    of all cells when they were measured. explanations, unexplained: of the largest latency of each spot, if asked for.
    """

    systems: tuple[GuestSystem, ...]
    loads: tuple[GuestLoad, ...]
    setting: CellSetting
    shifts: int
    spots: tuple[SystemUnderLoad, ...]
    cost: CellCost
    fresh: int
    cached: int
    host_s: float
    explanations: tuple[CellExplanation, ...] = ()
    unexplained: tuple[str, ...] = ()

    @property
    def turns(self) -> list[str]:
        return turns_sentences(system.machine for system in self.systems)

    def row(self, load: GuestLoad) -> list[SystemUnderLoad]:
        return [spot for spot in self.spots if spot.load == load]

    @property
    def failed(self) -> list[SystemUnderLoad]:
        return [spot for spot in self.spots if spot.failures]

    @property
    def invalid(self) -> list[SystemUnderLoad]:
        return [spot for spot in self.spots if any(reading.invalid for reading in spot.readings)]

    @property
    def exit_code(self) -> int:
        """2 if a cell failed, 3 if a cell is invalid, otherwise 0."""
        if self.failed:
            return 2
        return 3 if self.invalid else 0


def cokernel_sentences(comparison: KernelComparison) -> list[str]:
    cores = {spot.system.name: reading.core for spot in comparison.spots for reading in spot.readings if reading.core}
    return [
        f"{IN_BAND}: {core} runs beside Linux on {name}, and Linux's own thread was measured. The co-kernel's tasks do "
        "not wait for Linux and were not measured."
        for name, core in cores.items()
    ]


def with_in_band_marks(comparison: KernelComparison) -> KernelComparison:
    """The comparison with "in-band" after the name of each system with a co-kernel, for every table."""
    beside = {spot.system for spot in comparison.spots if any(reading.core for reading in spot.readings)}
    mark = f"({IN_BAND})"
    named = {
        each: each if each.variant.endswith(mark) else replace(each, variant=f"{each.variant} {mark}".strip())
        for each in beside
    }
    spots = tuple(replace(spot, system=named.get(spot.system, spot.system)) for spot in comparison.spots)
    return replace(comparison, systems=tuple(named.get(each, each) for each in comparison.systems), spots=spots)


def unlike_sentences(comparison: KernelComparison) -> list[str]:
    """Say why nothing is compared, if not all usable cells measured the same processors. Each has its own speed."""
    if len({spot.processors for spot in comparison.spots if spot.usable}) <= 1:
        return []
    found: dict[str, dict[str, None]] = {}
    for spot in comparison.spots:
        for reading in spot.readings:
            cpus = format_cpus(tuple(each.cpu for each in reading.cpus)) or "no fixed one"
            found.setdefault(spot.system.name, {})[f"{cpus} of {reading.online}"] = None
    measured = "; ".join(f"{name}: {', '.join(cpus)}" for name, cpus in found.items())
    return [
        f"Nothing is compared or ranked: the systems measured different processors ({measured}), and each has its "
        "own speed. --measured-cpus names processors that all systems can measure."
    ]


def common_loads(comparison: KernelComparison) -> list[GuestLoad]:
    """The loads under which every system has figures. Systems without any figures are not considered."""
    measured = {spot.system for spot in comparison.spots if spot.usable}
    able = [system for system in comparison.systems if system in measured]
    rows = {load: comparison.row(load) for load in comparison.loads} if able else {}
    return [load for load, row in rows.items() if all(spot.usable for spot in row if spot.system in able)]


def rank_systems(comparison: KernelComparison) -> list[SystemUnderLoad]:
    """Each system where its largest latency under any common load was measured, the smallest first; empty if unlike."""
    if unlike_sentences(comparison):
        return []
    loads = common_loads(comparison)
    columns = [
        [spot for spot in comparison.spots if spot.system == system and spot.load in loads]
        for system in comparison.systems
    ]
    worst = [max(column, key=lambda spot: spot.max_ns) for column in columns if column and column[0].usable]
    return sorted(worst, key=lambda spot: spot.max_ns)


LEAST_SHIFTS = 4
"""Fewer shifts a cell show no spread to go by, and nothing is called different.

If two cells had one distribution of maxima, all of one lie below all of the other in 1 of C(8, 4) = 70 cases (the
rank-sum test of Wilcoxon and of Mann and Whitney at its end). With three shifts it would be 1 of 20.
"""


def loads_clearly_won(comparison: KernelComparison, place: SystemUnderLoad) -> list[GuestLoad]:
    """The loads under which the largest latency of a system is clearly below that of every other system."""
    won = []
    for load in comparison.loads:
        usable = [spot for spot in comparison.row(load) if spot.usable]
        own = [spot for spot in usable if spot.system == place.system]
        others = [spot for spot in usable if spot.system != place.system]
        if own and others and all(clearly_below(own[0], spot) for spot in others):
            won.append(load)
    return won


def clearly_below(one: SystemUnderLoad, other: SystemUnderLoad) -> bool:
    """Whether the maxima of one cell are below those of another by more than the shifts of either move them.

    The ranges of the maxima must be apart, and the ratio between them must exceed the ratio within the wider range.
    """
    if one.processors != other.processors:
        return False
    if min(len(one.readings), len(other.readings)) < LEAST_SHIFTS or one.max_ns <= 0:
        return False
    ratios = [spot.max_ns / spot.smallest_max_ns if spot.smallest_max_ns > 0 else math.inf for spot in (one, other)]
    return other.smallest_max_ns / one.max_ns > max(1.0, *ratios)
