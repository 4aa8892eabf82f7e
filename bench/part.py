# SPDX-License-Identifier: Apache-2.0
"""What a part of the benchmarks is: one module ``GROUP_NAME.py`` whose ``PART`` has the goal and the figures.

The parts of the group stats are the simulations in the folder acceptance.

A part measures its items one after another. An item is the smallest thing that is worth keeping when the rest fails: a
kernel, a cell, a program. What an item gives is a dict for JSON, with the value of each figure under the figure's key.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build"
Details = Mapping[str, Any]


@dataclass(frozen=True)
class Bound:
    """What is asked of a number. Both ends are allowed; None where an end is open."""

    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        if self.least is not None and self.least == self.most:
            return f"{self.least:g}"
        words = (("at least", self.least), ("at most", self.most))
        return " and ".join(f"{word} {end:g}" for word, end in words if end is not None)

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


@dataclass(frozen=True)
class Figure:
    """A number of an item. key: where its details have the value; an item without the key does not have the figure.

    of: the key of how many single values it was made from. bound: None for a number without a goal.
    """

    key: str
    words: str
    unit: str = ""
    bound: Bound | None = None
    of: str = ""

    def holds(self, details: Details) -> bool:
        """Whether the bound holds. It does not hold without a value."""
        value = details[self.key]
        return self.bound is None or (value is not None and self.bound.holds(value))

    def line(self, item: str, details: Details) -> str:
        """One line of the table of figures."""
        value = details[self.key]
        shown = "none" if value is None else f"{value:,.3f}".rstrip("0").rstrip(".") if value < 1e6 else f"{value:,.0f}"
        n = f"n = {details[self.of]:,}" if self.of else ""
        asked = str(self.bound or "")
        goal = f"asked {asked}{'' if self.holds(details) else ', MISSED'}" if asked else ""
        return f"{item:20} {self.words:54} {shown:>10} {self.unit:2} {n:12} {goal}".rstrip()


@dataclass(frozen=True)
class Part:
    """goal: a sentence with what is asked. items: the names of all that it can measure.

    measure: measures one item; whatever it raises is the reason why there are no numbers of this item.
    together: from the details of all items, those of all as one, with the same figures.
    head, rows: a table for docs, and the rows of an item. long: why it must be asked for by name; "" if it need not.
    """

    goal: str
    measure: Callable[[str], dict[str, Any]]
    figures: Sequence[Figure]
    items: Callable[[], Sequence[str]] = lambda: ("all",)
    together: Callable[[Mapping[str, Details]], Details] | None = None
    head: str = ""
    rows: Callable[[str, Details], Sequence[str]] | None = None
    long: str = ""

    def figures_of(self, details: Details) -> list[Figure]:
        """Those that the item has. A simulation tells the bounds of its numbers itself, by their names."""
        own = (Figure(name, name, bound=Bound(*ends)) for name, ends in details.get("bounds", {}).items())
        return [*(figure for figure in self.figures if figure.key in details), *own]


def percent(count: int, of: int) -> float | None:
    """None of nothing."""
    return 100 * count / of if of else None


def quantile(values: Iterable[float], share: float) -> float | None:
    """The nearest rank; None of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
