# SPDX-License-Identifier: Apache-2.0
"""Simulations: are rtproof's statements true as often as they claim? Each module covers one part.

A module has ``SIMULATIONS``. Each draws series or runs whose truth is known, lets rtproof judge them, and counts how
often that is wrong. ``make bench-stats`` measures all in full. The tests measure the short form: its seeds are fixed,
and its bounds allow for fewer repetitions.
"""

import importlib
import math
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import Pool
from typing import Any, SupportsFloat, TypeVar

from part import Bound, Part

Found = TypeVar("Found")


@dataclass(frozen=True)
class Row:
    """One number of a simulation. bound: None if it is only told."""

    name: str
    value: float | None
    bound: Bound | None = None

    @property
    def holds(self) -> bool:
        return self.bound is None or (self.value is not None and self.bound.holds(self.value))


@dataclass(frozen=True)
class Simulation:
    """key: its name, which begins with its number. rows: of the short form (fixed seeds, seconds) or of the full."""

    key: str
    goal: str
    rows: Callable[[bool], Iterable[Row]]

    def part(self) -> Part:
        """The full form as a part of the runner."""
        return Part(self.goal, lambda _: self._details(), figures=())

    def _details(self) -> dict[str, Any]:
        rows = list(self.rows(False))
        bounds = {row.name: [row.bound.least, row.bound.most] if row.bound else [None, None] for row in rows}
        return {**{row.name: row.value for row in rows}, "bounds": bounds}


def simulations() -> list[Simulation]:
    """Those of all modules, by key."""
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    found: list[Simulation] = [one for module in modules for one in module.SIMULATIONS]
    return sorted(found, key=lambda one: one.key)


def at_least(name: str, value: SupportsFloat, least: float) -> Row:
    return Row(name, float(value), Bound(least=least))


def at_most(name: str, value: SupportsFloat, most: float) -> Row:
    return Row(name, float(value), Bound(most=most))


def around(name: str, value: float, truth: float, slack: float) -> Row:
    return Row(name, float(value), Bound(truth - slack, truth + slack))


def spread(task: Callable[..., Found], cells: Iterable[Sequence[Any]]) -> list[Found]:
    """What the task gives for the arguments of each cell, in as many processes as there are CPUs."""
    with Pool() as pool:
        return pool.starmap(task, cells, chunksize=1)


def slack(percent: float, count: int, short: bool) -> float:
    """What fewer runs than the full ones may be off by: three standard errors, in percent."""
    return 3 * math.sqrt(percent * (100 - percent) / count) if short else 0.0
