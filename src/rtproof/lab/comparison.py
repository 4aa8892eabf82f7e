# SPDX-License-Identifier: Apache-2.0
"""A finished comparison: what every system did under every load, and the order that follows."""

from dataclasses import dataclass, replace

from rtproof.analysis.cokernels import IN_BAND
from rtproof.lab.cells import Cost, Load, Setting, System
from rtproof.lab.readings import Reading

VIRTUAL_TIME = (
    "Virtual time: one nanosecond per guest instruction, so these figures count instructions; they are not a board's "
    "microseconds. They rank kernels and find regressions; they do not sign off hardware."
)
"""Stands in every output of the lab."""
ONE_OBSERVATION = (
    "A cell run again gives the same bytes, so repeating it adds nothing: each cell is one observation of what its "
    "kernel and load can do. Another shift starts the measurement at another moment and is another observation, but of "
    "the same start-up and the same load; no confidence interval can be had from these."
)


@dataclass(frozen=True)
class Spot:
    """One system under one load: a reading for each shift that was measured, a sentence for each that was not."""

    system: System
    load: Load
    readings: tuple[Reading, ...]
    failures: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether there are figures, and nothing says that they measured something else."""
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
class Comparison:
    """spots: those of the first load, one for each system, then those of the next.

    host_s: seconds of this host from the first to the last; fresh: how many cells were run now, cached: how many were
    there; cost: of all of them when they were made.
    """

    systems: tuple[System, ...]
    loads: tuple[Load, ...]
    setting: Setting
    shifts: int
    spots: tuple[Spot, ...]
    cost: Cost
    fresh: int
    cached: int
    host_s: float

    def row(self, load: Load) -> list[Spot]:
        """A load under every system."""
        return [spot for spot in self.spots if spot.load == load]

    def column(self, system: System) -> list[Spot]:
        """A system under every load."""
        return [spot for spot in self.spots if spot.system == system]

    @property
    def failed(self) -> list[Spot]:
        return [spot for spot in self.spots if spot.failures]

    @property
    def invalid(self) -> list[Spot]:
        return [spot for spot in self.spots if any(reading.invalid for reading in spot.readings)]

    @property
    def exit_code(self) -> int:
        """0, or 2 if a cell failed, or 3 if one measured something else."""
        if self.failed:
            return 2
        return 3 if self.invalid else 0


MARK = f"({IN_BAND})"


MARK = f"({IN_BAND})"


def cores(comparison: Comparison) -> dict[str, str]:
    """The co-kernel of each system that has one, by the name of the system."""
    return {spot.system.name: reading.core for spot in comparison.spots for reading in spot.readings if reading.core}


def beside_a_core(comparison: Comparison) -> list[str]:
    """A sentence for each system that has a co-kernel."""
    return [
        f"{IN_BAND}: {core} runs beside Linux on {name}; what was measured is Linux's own thread. The co-kernel's "
        "tasks are not delayed by Linux and were not measured."
        for name, core in cores(comparison).items()
    ]


def marked(comparison: Comparison) -> Comparison:
    """The same, with "in-band" behind the name of each system that has a co-kernel, for every table."""
    beside = set(cores(comparison))

    def name(system: System) -> System:
        if system.name not in beside or system.variant.endswith(MARK):
            return system
        return replace(system, variant=f"{system.variant} {MARK}".strip())

    spots = tuple(replace(spot, system=name(spot.system)) for spot in comparison.spots)
    return replace(comparison, systems=tuple(map(name, comparison.systems)), spots=spots)


@dataclass(frozen=True)
class Place:
    """Of a system in the order: its largest latency and the load that it came under."""

    system: System
    spot: Spot


def common_loads(comparison: Comparison) -> list[Load]:
    """The loads under which every system has figures, but for systems that have none at all."""
    able = [system for system in comparison.systems if any(spot.usable for spot in comparison.column(system))]
    rows = {load: comparison.row(load) for load in comparison.loads} if able else {}
    return [load for load, row in rows.items() if all(spot.usable for spot in row if spot.system in able)]


def ranking(comparison: Comparison) -> list[Place]:
    """Systems by the largest latency under any of the common loads, the smallest first."""
    loads = common_loads(comparison)
    columns = [[spot for spot in comparison.column(system) if spot.load in loads] for system in comparison.systems]
    worst = [max(column, key=_largest) for column in columns if column and column[0].usable]
    return sorted((Place(spot.system, spot) for spot in worst), key=lambda place: place.spot.max_ns)


CLEAR = 1.5
"""Maxima that are closer to each other than this are not ranked: another shift moves them as much."""


def first_under(comparison: Comparison, place: Place) -> list[Load]:
    """The loads under which a system's largest latency is clearly below every other's."""
    return [load for load in comparison.loads if _is_first(comparison.row(load), place.system)]


def _is_first(row: list[Spot], system: System) -> bool:
    own = [spot for spot in row if spot.system == system and spot.usable]
    others = [spot for spot in row if spot.system != system and spot.usable]
    return bool(own and others) and all(CLEAR * own[0].max_ns < spot.max_ns for spot in others)


def _largest(spot: Spot) -> int:
    return spot.max_ns
