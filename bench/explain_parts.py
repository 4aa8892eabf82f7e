# SPDX-License-Identifier: Apache-2.0
"""The parts of ``make bench-explain``: what each promises the caller, and the arithmetic that several of them share.

A part measures its items one after another. An item is the smallest thing that is worth keeping when the rest fails: a
system, a cell, a program. What an item gives is a dict for JSON. ``figures`` makes the numbers from the dicts of all
items, so that items of an earlier run count as well.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rtproof.explain.budget import TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import Explanation

ROOT = Path(__file__).parent.parent
Details = Mapping[str, Any]
Items = Mapping[str, Details]


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
    """One number. of: its item, "" for all together. value: None if there was nothing to measure it from.

    n: how many single values it was made from. bound: None for a number that is only told.
    """

    of: str
    words: str
    value: float | None
    unit: str
    n: int
    bound: Bound | None = None

    @property
    def holds(self) -> bool | None:
        """Whether the bound holds, which it does not without a value; None without a bound."""
        if self.bound is None:
            return None
        return self.value is not None and self.bound.holds(self.value)

    def as_json(self) -> dict[str, Any]:
        asked = str(self.bound) if self.bound else None
        told = {"of": self.of, "words": self.words, "value": self.value, "unit": self.unit, "n": self.n}
        return {**told, "asked": asked, "holds": self.holds}


def no_lines(_: Items) -> list[str]:
    """A part that prints its figures only."""
    return []


@dataclass(frozen=True)
class Part:
    """asked: the line of "Must show" that it measures. items: the names of all that it can measure.

    measure: measures one item; whatever it raises is the reason why there are no numbers of this item.
    lines: what is printed besides the figures, such as the rows of a table in docs. long: why it must be asked for by
    name; "" for a part that is always measured.
    """

    asked: str
    items: Callable[[], Sequence[str]]
    measure: Callable[[str], Details]
    figures: Callable[[Items], Sequence[Figure]]
    lines: Callable[[Items], list[str]] = no_lines
    long: str = ""


# What several parts compute.


def percent(count: int, of: int) -> float | None:
    """None of nothing."""
    return 100 * count / of if of else None


def quantile(values: Iterable[float], share: float) -> float | None:
    """The nearest rank; None of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def first_causes(budgets: Iterable[TimeBudget]) -> dict[str, int]:
    """How often each cause came first, the most frequent one before the others."""
    return dict(Counter(each.first.cause.value for each in budgets).most_common())


def explained_figures(found: Explanation) -> dict[str, Any]:
    """What the explanation of a record makes of its late activations."""
    return {
        "late": found.late,
        "explained": len(found.budgets),
        "not_in_the_trace": found.outside,
        "unexplained_percent": 100 * found.share_of(Cause.UNEXPLAINED),
        "irqoff_or_machine_percent": 100 * found.share_of(Cause.IRQ_OFF_OR_GONE),
        "first_causes": first_causes(found.budgets),
    }
