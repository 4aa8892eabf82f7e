# SPDX-License-Identifier: Apache-2.0
"""How a report prints numbers, units and the names of threads: one unit for a whole table, digits in groups."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeVar

from rtproof.core.phrases import limit_value, quantity, value_unit
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Int64Array
from rtproof.record.requirement import Requirement
from rtproof.report.blocks import Block, Marker, Table, Text
from rtproof.summary.measured_kernel import IN_BAND
from rtproof.summary.summary_model import Moments, Summary
from rtproof.summary.two_board_edges import BoardEdges

NS_PER_S = 1_000_000_000
UNKNOWN = "unknown"


@dataclass(frozen=True)
class PrintedUnit:
    """A unit of time. ns: its length in nanoseconds. digits: how many decimals are printed.

    scale_end_ns: a value from here on is printed as at least this; None for exact values.
    """

    name: str
    ns: int
    digits: int
    scale_end_ns: int | None = None

    def show(self, value_ns: float | None) -> str:
        """The number without its unit, for a column whose heading names it."""
        if self.scale_end_ns is not None and value_ns is not None and value_ns >= self.scale_end_ns:
            return f"at least {self.scale_end_ns / self.ns:,.{self.digits}f}"
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
    """The unit in which the median of the values reads best, so that one extreme value does not decide."""
    sizes = [abs(value) for value in values_ns if value]
    middle = median(sizes) if sizes else 0
    if middle < 1_000:
        return NS
    if middle < 2_000_000:
        return US
    return MS if middle < 2 * NS_PER_S else S


def axis_unit(span_ns: int) -> PrintedUnit:
    """The unit for a time axis of this length: seconds up to 10 minutes, minutes up to 5 hours, else hours."""
    if span_ns <= 10 * MIN.ns:
        return S
    return MIN if span_ns <= 5 * H.ns else H


def unit_headings(unit: PrintedUnit, *names: str) -> tuple[str, ...]:
    """Column headings with the unit of their numbers."""
    return tuple(f"{name} [{unit.name}]" for name in names)


def count_text(value: int | None) -> str:
    """A whole number in groups of three digits."""
    return UNKNOWN if value is None else f"{value:,}"


Item = TypeVar("Item")
Cell = str | int | None
"""The content of a cell: words, a number to be printed in groups of digits, or None for what is unknown."""


def table_of(
    caption: str,
    items: Iterable[Item],
    *columns: tuple[str, Callable[[Item], Cell]],
    words: int = 1,
    numeric: Sequence[int] | None = None,
    folded: bool = False,
) -> Table:
    """A table with a row for each item. columns: the heading, and how to read an item's value.

    numeric: the columns with numbers; without it, all behind the first ``words`` columns.
    """
    rows = tuple(tuple(cell_text(read(each)) for _, read in columns) for each in items)
    header = tuple(heading for heading, _ in columns)
    numbers = range(words, len(header)) if numeric is None else numeric
    return Table(caption, header, rows, tuple(numbers), folded=folded)


def cell_text(value: Cell) -> str:
    return value if isinstance(value, str) else count_text(value)


def in_unit(unit: PrintedUnit, name: str, read: Callable[[Item], float | None]) -> tuple[str, Callable[[Item], Cell]]:
    """A column of times, with the unit in its heading. read: gives a time in ns."""
    return f"{name} [{unit.name}]", lambda item: unit.show(read(item))


def number_text(value: float, digits: int = 4) -> str:
    """A number with a few significant digits and no exponent where it can be read without one."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e9:
        behind = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:,.{behind}f}"
    return f"{value:.{digits - 1}e}"


def share_text(part: int, whole: int) -> str:
    """A part of a whole in per cent. A share that is almost 0 or 100 % is never rounded to 0 or 100."""
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


POOLED = "all threads"


@dataclass(frozen=True)
class ReportStream:
    """One thread, or all threads together, with the name and the CPU that the report prints."""

    name: str
    cpu: str
    summary: Summary
    pooled: bool = False

    @property
    def role(self) -> str:
        """The role of its curve, as in ``blocks.Curve``."""
        return "whole" if self.pooled else "part"


def report_streams(analysis: Analysis) -> list[ReportStream]:
    """Every thread, and last all threads together if there are several. Beside a co-kernel each name says in-band."""
    several_fields = len({summary.series.field for summary in analysis.summaries}) > 1
    mark = f", {IN_BAND}" if analysis.core else ""
    found = []
    for summary in analysis.summaries:
        series = summary.series
        name = f"thread {series.thread}{f' {series.field}' if several_fields else ''}{mark}"
        found.append(ReportStream(name, "any" if series.cpu < 0 else str(series.cpu), summary))
    return found if len(found) == 1 else [*found, ReportStream(f"{POOLED}{mark}", "", analysis.pooled, pooled=True)]


def plotted_streams(analysis: Analysis, most: int) -> tuple[list[ReportStream], str]:
    """All threads together and the ``most`` threads with the largest maxima, and a sentence on those left out."""
    found = report_streams(analysis)
    threads = [stream for stream in found if not stream.pooled]
    if len(threads) <= most:
        return found, ""
    worst = sorted(threads, key=lambda stream: -stream.summary.observed.max)[:most]
    kept = [stream for stream in found if stream.pooled or stream in worst]
    return kept, f"Of {len(threads)} threads the {most} with the largest maxima are drawn."


def left_out_at_the_end(analysis: Analysis) -> list[Block]:
    """A note on due times at the end for which a thread never ran, because no percentile or plot holds them."""
    pooled = analysis.pooled
    if not pooled.stalled:
        return []
    told = (
        f"Not in here: {quantity(pooled.stalled, 'due time')} at the end of the run, for which their thread did not "
        f"run. The latency of the first one is at least {latency_unit(analysis)(pooled.stalled_ns)}."
    )
    return [Text((told,), "doubt")]


def latency_unit(analysis: Analysis) -> PrintedUnit:
    """The one unit for all latencies of a report: that of the deciding limit, or one that fits the latencies."""
    return unit_beside(analysis.pooled.observed, analysis.verdict.requirement)


def unit_beside(observed: Moments, asked: Requirement | None) -> PrintedUnit:
    """The unit of a limit, or without one that which fits these latencies."""
    fitting = unit_for((observed.min, observed.mean, observed.max))
    if asked is None or not asked.limit_ns:
        return fitting
    unit = next(each for each in (NS, US, MS, S) if each.name == value_unit(asked.limit_ns)[0])
    if fitting.ns * 1_000 < unit.ns:  # A limit in s says nothing of latencies in us.
        return fitting
    small_ns = min(max(observed.mean or 0, 1), unit.ns)
    more = math.ceil(math.log10(unit.ns / small_ns)) if unit.digits else 0
    return replace(unit, digits=min(unit.digits + more, MOST_DIGITS.get(unit.name, unit.digits)))


MOST_DIGITS = {"ms": 6, "s": 9}
"""More would be finer than a nanosecond."""


def response_unit(analysis: Analysis, edges: BoardEdges) -> PrintedUnit:
    """The unit of the responses and of the responder's own: that of the limit, or one that fits, to the nanosecond."""
    unit = unit_beside(edges.response.moments, analysis.verdict.requirement)
    return replace(unit, digits=MOST_DIGITS.get(unit.name, unit.digits))


def limit_marker(analysis: Analysis, axis: str, unit: PrintedUnit) -> tuple[Marker, ...]:
    """A line for each limit, to be drawn in a plot; () if no limit was given, or if it is of what two boards did."""
    return () if analysis.edges else limit_of_responses(analysis, axis, unit)


def limit_of_responses(analysis: Analysis, axis: str, unit: PrintedUnit) -> tuple[Marker, ...]:
    """The same for a plot of what the verdict is of, which two boards did together."""
    asked = (verdict.requirement for verdict in analysis.verdicts or (analysis.verdict,))
    limits = dict.fromkeys(requirement.limit_ns for requirement in asked if requirement)
    return tuple(Marker(f"limit {limit_value(limit_ns)}", axis, unit.scale(limit_ns)) for limit_ns in limits)
