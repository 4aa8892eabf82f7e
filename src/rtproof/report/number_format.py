# SPDX-License-Identifier: Apache-2.0
"""Numbers as a report prints them: one unit for a whole table, digits in groups, and a word where nothing is known."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from rtproof.core.printable import clean
from rtproof.record.contents import Int64Array

__all__ = ["clean", "whole_number"]


NS_PER_S = 1_000_000_000
UNKNOWN = "unknown"


@dataclass(frozen=True)
class PrintedUnit:
    """A unit of time: how many nanoseconds it has and the digits that are printed behind the point."""

    name: str
    ns: int
    digits: int

    def show(self, value_ns: float | None) -> str:
        """The number without its unit, for a column whose heading names it."""
        return UNKNOWN if value_ns is None else f"{value_ns / self.ns:,.{self.digits}f}"

    def __call__(self, value_ns: float | None) -> str:
        """The number with its unit, for a sentence."""
        return UNKNOWN if value_ns is None else f"{self.show(value_ns)} {self.name}"

    def scale(self, value_ns: float) -> float:
        """The number for an axis in this unit."""
        return value_ns / self.ns


NS = PrintedUnit("ns", 1, 0)
US = PrintedUnit("us", 1_000, 3)
MS = PrintedUnit("ms", 1_000_000, 3)
S = PrintedUnit("s", NS_PER_S, 3)
MIN = PrintedUnit("min", 60 * NS_PER_S, 1)
H = PrintedUnit("h", 3_600 * NS_PER_S, 2)


def unit_for(values_ns: Iterable[float | None]) -> PrintedUnit:
    """The unit in which the middle one of the values reads best; one wild value does not take it along."""
    sizes = [abs(value) for value in values_ns if value]
    middle = median(sizes) if sizes else 0
    if middle < 1_000:
        return NS
    if middle < 2_000_000:
        return US
    return MS if middle < 2 * NS_PER_S else S


def axis_unit(span_ns: int) -> PrintedUnit:
    """The unit for an axis of the time of a run: seconds up to 10 minutes, minutes up to 5 hours, else hours."""
    if span_ns <= 10 * MIN.ns:
        return S
    return MIN if span_ns <= 5 * H.ns else H


def unit_headings(unit: PrintedUnit, *names: str) -> tuple[str, ...]:
    """Column headings with the unit of their numbers."""
    return tuple(f"{name} [{unit.name}]" for name in names)


def count_text(value: int | None) -> str:
    """A whole number in groups of three digits."""
    return UNKNOWN if value is None else f"{value:,}"


def number_text(value: float, digits: int = 4) -> str:
    """A number with a few significant digits and no exponent where it can be read without one."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e9:
        behind = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:,.{behind}f}"
    return f"{value:.{digits - 1}e}"


def share_text(part: int, whole: int) -> str:
    """A part of a whole in per cent; never 0 or 100 unless it is exactly that."""
    if whole == 0:
        return UNKNOWN
    percent = 100 * part / whole
    text = f"{percent:.4g}"
    if part != whole and float(text) == 100:
        text = "above 99.99"
    return f"{text} %"


def nice_steps(edges: Sequence[int] | Int64Array) -> str:
    """The width of equal columns of seconds in words."""
    width = int(edges[1] - edges[0])
    return "1 second" if width == 1 else f"{width:,} seconds"


MOST_DIGITS = 20


def whole_number(words: str) -> int | None:
    """The number that a file or a fact gives in decimal digits; None for anything else, also for digits without end."""
    return int(words) if words.isascii() and words.isdigit() and len(words) <= MOST_DIGITS else None
