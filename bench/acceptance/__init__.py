# SPDX-License-Identifier: Apache-2.0
"""Check that rtproof's statements are true as often as they claim. Each module covers one part and has goals.

A module has ``BENCHMARKS: tuple[Benchmark, ...]`` with simulations or timings. ``make bench-stats`` measures all of
them in full. The tests measure the short form: its seeds are fixed, and its goals allow for fewer repetitions.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

Value = float | int | str | bool | None | dict[str, "Value"] | list["Value"]


@dataclass(frozen=True)
class Result:
    """What was measured. value: as JSON; goal: in words; says: lines to print below, such as sentences."""

    value: Value
    goal: str
    holds: bool
    says: tuple[str, ...] = ()


@dataclass(frozen=True)
class Benchmark:
    """key: its name in the JSON, beginning with its number. measure: short (with fixed seeds, in seconds) or in full.

    in_tests: whether the short form is no timing and needs nothing but the code.
    """

    key: str
    title: str
    measure: Callable[[bool], Result]
    in_tests: bool = True


def benchmarks() -> list[Benchmark]:
    """Those of all modules, by key."""
    modules = (importlib.import_module(f"{__name__}.{info.name}") for info in pkgutil.iter_modules(__path__))
    found: list[Benchmark] = [one for module in modules for one in module.BENCHMARKS]
    return sorted(found, key=lambda one: one.key)
