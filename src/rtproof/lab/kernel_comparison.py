# SPDX-License-Identifier: Apache-2.0
"""A finished comparison of kernels: the latencies of each system under each load, and the order of the systems."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.lab.cell_explanation import CellExplanation
from rtproof.lab.guest_cell import PREEMPTION_FILE, CellCost, CellSetting, GuestLoad, GuestSystem
from rtproof.record import run_folder
from rtproof.summary.counts import Counts
from rtproof.summary.measured_kernel import IN_BAND, core_beside
from rtproof.summary.summary_model import Doubt, Severity, Summary


@dataclass(frozen=True)
class CellReading:
    """The latencies of one cell: of activations that ran (min to max, counts) and of all (schedule_counts).

    ``field``: the stage that is judged. ``preemption``: the preemption model that the guest's kernel named, or "".
    ``core``: the co-kernel beside Linux; None if none was found.
    """

    count: int
    missed: int
    lost: int
    min_ns: int
    mean_ns: float
    max_ns: int
    counts: Counts
    schedule_counts: Counts
    probe: str
    field: str
    doubts: tuple[Doubt, ...]
    kernel_release: str
    kernel_version: str
    preemption: str
    core: str | None = None

    @property
    def invalid(self) -> tuple[Doubt, ...]:
        """The doubts that make the cell invalid; empty if it measured what was asked."""
        return tuple(doubt for doubt in self.doubts if doubt.severity is Severity.INVALID)


def read_cell(folder: Path) -> CellReading:
    """The reading of a run folder. RecordError if its record cannot be read."""
    analysis = analyse(run_folder.open_run(folder).record, None, 1)
    return reading_of_analysis(analysis, _preemption_model(folder / PREEMPTION_FILE))


def reading_of_analysis(analysis: Analysis, preemption: str = "") -> CellReading:
    """The numbers of an analysis that a comparison needs."""
    summary, begin = _judged_stage(analysis), analysis.record.begin
    observed = summary.observed
    return CellReading(
        count=observed.count,
        missed=summary.never_ran,
        lost=summary.lost,
        min_ns=observed.min,
        mean_ns=observed.mean or 0.0,
        max_ns=max(observed.max, summary.stalled_ns),
        counts=summary.observed_counts,
        schedule_counts=summary.schedule_counts,
        probe=" ".join(filter(None, (summary.series.probe, summary.series.method))),
        field=summary.series.field,
        doubts=analysis.doubts,
        kernel_release=begin.kernel_release,
        kernel_version=begin.kernel_version,
        preemption=preemption,
        core=core_beside(analysis.record),
    )


def _judged_stage(analysis: Analysis) -> Summary:
    """The stage that a limit judges."""
    return analysis.pooled


def _preemption_model(file: Path) -> str:
    """The model in brackets of the kernel's "none voluntary (full)"; empty if it did not say."""
    try:
        words = file.read_text(errors="replace").split()
    except OSError:
        return ""
    return next((word.strip("()") for word in words if word.startswith("(")), "")


VIRTUAL_TIME = (
    "Virtual time: one nanosecond per guest instruction, so these figures count instructions; they are not a board's "
    "microseconds. They rank kernels and find regressions; they do not sign off hardware."
)
"""Every output of the lab has this sentence."""
ONE_OBSERVATION = (
    "A cell that is run again gives the same bytes, so repeating it adds nothing: each cell is one observation of its "
    "kernel and load. Another shift starts the measurement at another moment. It is another observation, but of the "
    "same start-up and the same load, so shifts give no confidence interval."
)


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
    def usable(self) -> bool:
        """Whether there are readings, none is invalid and no shift failed."""
        return bool(self.readings) and not self.failures and not any(reading.invalid for reading in self.readings)

    @property
    def count(self) -> int:
        return sum(reading.count for reading in self.readings)

    @property
    def missed(self) -> int:
        return sum(reading.missed for reading in self.readings)

    @property
    def min_ns(self) -> int:
        return min(reading.min_ns for reading in self.readings)

    @property
    def mean_ns(self) -> float:
        return sum(reading.mean_ns * reading.count for reading in self.readings) / self.count

    @property
    def max_ns(self) -> int:
        return max(reading.max_ns for reading in self.readings)

    @property
    def smallest_max_ns(self) -> int:
        """The smallest of the shifts' maxima."""
        return min(reading.max_ns for reading in self.readings)


@dataclass(frozen=True)
class KernelComparison:
    """A comparison of systems under loads. ``spots``: one for each system under the first load, then the next load.

    ``host_s``: how long this command needed. ``fresh``, ``cached``: how many cells were measured now, and how many were
    in the cache. ``cost``: of all cells at the time when they were measured. ``explanations``: why the largest latency
    of each spot was so large, if that was asked for. ``unexplained``: a sentence for each that could not be explained.
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

    def row(self, load: GuestLoad) -> list[SystemUnderLoad]:
        """One load under every system."""
        return [spot for spot in self.spots if spot.load == load]

    def column(self, system: GuestSystem) -> list[SystemUnderLoad]:
        """One system under every load."""
        return [spot for spot in self.spots if spot.system == system]

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


IN_BAND_MARK = f"({IN_BAND})"


def cokernels_by_system(comparison: KernelComparison) -> dict[str, str]:
    """The co-kernel of each system that has one, by the name of the system."""
    return {spot.system.name: reading.core for spot in comparison.spots for reading in spot.readings if reading.core}


def cokernel_sentences(comparison: KernelComparison) -> list[str]:
    """A sentence for each system that has a co-kernel."""
    return [
        f"{IN_BAND}: {core} runs beside Linux on {name}; what was measured is Linux's own thread. The co-kernel's "
        "tasks are not delayed by Linux and were not measured."
        for name, core in cokernels_by_system(comparison).items()
    ]


def with_in_band_marks(comparison: KernelComparison) -> KernelComparison:
    """The comparison with "in-band" after the name of each system with a co-kernel, for every table."""
    beside = set(cokernels_by_system(comparison))

    def name(system: GuestSystem) -> GuestSystem:
        if system.name not in beside or system.variant.endswith(IN_BAND_MARK):
            return system
        return replace(system, variant=f"{system.variant} {IN_BAND_MARK}".strip())

    spots = tuple(replace(spot, system=name(spot.system)) for spot in comparison.spots)
    return replace(comparison, systems=tuple(map(name, comparison.systems)), spots=spots)


@dataclass(frozen=True)
class RankedSystem:
    """A system in the ranking. ``spot``: where its largest latency was measured."""

    system: GuestSystem
    spot: SystemUnderLoad


def common_loads(comparison: KernelComparison) -> list[GuestLoad]:
    """The loads under which every system has figures. Systems without any figures are not considered."""
    able = [system for system in comparison.systems if any(spot.usable for spot in comparison.column(system))]
    rows = {load: comparison.row(load) for load in comparison.loads} if able else {}
    return [load for load, row in rows.items() if all(spot.usable for spot in row if spot.system in able)]


def rank_systems(comparison: KernelComparison) -> list[RankedSystem]:
    """The systems in the order of their largest latency under any common load, smallest first."""
    loads = common_loads(comparison)
    columns = [[spot for spot in comparison.column(system) if spot.load in loads] for system in comparison.systems]
    worst = [max(column, key=_largest_ns) for column in columns if column and column[0].usable]
    return sorted((RankedSystem(spot.system, spot) for spot in worst), key=lambda place: place.spot.max_ns)


LEAST_SHIFTS = 4
"""Fewer shifts a cell show no spread to go by, and nothing is called different.

If two cells had one distribution of maxima, all of one lie below all of the other in 1 of C(8, 4) = 70 cases (the
rank-sum test of Wilcoxon and of Mann and Whitney at its end). With three shifts it would be 1 of 20.
"""


def loads_clearly_won(comparison: KernelComparison, place: RankedSystem) -> list[GuestLoad]:
    """The loads under which the largest latency of a system is clearly below that of every other system."""
    return [load for load in comparison.loads if _clearly_wins(comparison.row(load), place.system)]


def clearly_below(one: SystemUnderLoad, other: SystemUnderLoad) -> bool:
    """Whether the maxima of one cell are below those of another by more than the shifts of either move them.

    The ranges of the maxima must be apart, and the ratio between them must exceed the ratio within the wider range.
    """
    if min(len(one.readings), len(other.readings)) < LEAST_SHIFTS or one.max_ns <= 0:
        return False
    gap = other.smallest_max_ns / one.max_ns
    return gap > 1 and gap > max(_shift_ratio(one), _shift_ratio(other))


def _shift_ratio(spot: SystemUnderLoad) -> float:
    """The largest of the shifts' maxima divided by the smallest."""
    return spot.max_ns / spot.smallest_max_ns if spot.smallest_max_ns > 0 else math.inf


def _clearly_wins(row: list[SystemUnderLoad], system: GuestSystem) -> bool:
    own = [spot for spot in row if spot.system == system and spot.usable]
    others = [spot for spot in row if spot.system != system and spot.usable]
    return bool(own and others) and all(clearly_below(own[0], spot) for spot in others)


def _largest_ns(spot: SystemUnderLoad) -> int:
    return spot.max_ns
