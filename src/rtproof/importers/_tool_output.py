# SPDX-License-Identifier: Apache-2.0
"""Makes one measurement of the numbers and threads that another tool printed.

A number that no tool prints is a UserError, because the file may be damaged or made to do harm.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rtproof.core import bounded
from rtproof.core.errors import UserError
from rtproof.core.units import MOST_DIGITS, UNITS_NS
from rtproof.summary.counts import NO_COUNTS, Counts, merge_counts
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures

LARGEST_NS = 10**15
"""Eleven days. A larger latency is an early wake-up whose minus sign was lost."""
LARGEST_COUNT = 10**12
"""The most values that a thread can have: one each microsecond for eleven days."""

_WHOLE = re.compile(r"-?[0-9]+")
_TIME = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?")


def refuse_several(heads: Sequence[object]) -> None:
    """UserError if a file has the heads of several measurements: their figures would be mixed."""
    if len(heads) > 1:
        raise UserError(f"it has {len(heads):,} measurements: give each in a file of its own")


def whole_number(text: str) -> int:
    """A whole number of at most 20 digits, leading zeros not counted; UserError for any other text."""
    if not _WHOLE.fullmatch(text):
        raise UserError(f"{_short(text)} stands where a whole number belongs")
    digits = text.lstrip("-0")
    if len(digits) > MOST_DIGITS:
        raise UserError(f"the number {_short(text)} is larger than any that it can have counted")
    number = int(digits or "0")
    return -number if text.startswith("-") else number


def microseconds(text: str) -> float:
    """A latency in microseconds from a text with or without fraction and sign; UserError if it is none or too large."""
    if not _TIME.fullmatch(text):
        raise UserError(f"{_short(text)} stands where a time belongs")
    value = float(text) if len(text) <= 2 * MOST_DIGITS else math.inf
    if not abs(value) <= LARGEST_NS / 1_000:
        raise UserError(f"the latency {_short(text)} is larger than any clock can show")
    return value


def clock_ns(hours: str, minutes: str, seconds: str) -> int:
    """The nanoseconds of the three words of a clock such as 00:10:00."""
    return ((whole_number(hours) * 60 + whole_number(minutes)) * 60 + whole_number(seconds)) * UNITS_NS["s"]


def notes_that_apply(told: Mapping[str, bool]) -> tuple[str, ...]:
    """The sentences whose condition holds, in their order."""
    return tuple(note for note, applies in told.items() if applies)


def _short(text: str) -> str:
    return text if len(text) <= MOST_DIGITS + 2 else f"{text[:MOST_DIGITS]}... ({len(text):,} characters)"


Kind = TypeVar("Kind")

STOPPED = "it stopped at {0}, so its length depends on what it measured"

BUSY_LOOP = "it measures how long something took the CPU from a loop that never sleeps, not how late a thread woke up"
WITHOUT_SIGN = "the minimum or maximum of thread {0} is a number without its sign: a wake-up came before its time"
UNCOUNTABLE = "its histogram has numbers that no computer can count to"


def histogram_of(values: NDArray[np.int64], counts: NDArray[np.int64], width_ns: int) -> Counts:
    """Counts in bins of one width in ns, without the empty bins; UserError if they make no sense.

    values: the number of each bin, increasing, below 0 for early wake-ups. counts: of equal length.
    """
    if values.size and max(-int(values[0]), int(values[-1])) > LARGEST_NS // width_ns:
        raise UserError("its bins lie outside of what a clock can show")
    if np.any(np.diff(values) <= 0) or np.any(counts < 0):
        raise UserError("the rows of its histogram do not increase")
    if counts.sum(dtype=np.float64) > LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    some = counts > 0
    low = values[some] * width_ns
    return Counts(low, low + width_ns - 1, counts[some]) if low.size else NO_COUNTS


def counted_otherwise(said: int | None, counted: int) -> tuple[str, ...]:
    """A sentence if the tool says another number of values than its histogram has."""
    unlike = said is not None and said != counted
    return (f"it says {said:,} samples, and its histogram adds up to {counted:,}",) if unlike else ()


def decode_json(text: str, kind: type[Kind]) -> Kind:
    """The JSON document as ``kind``; UserError if it has another form."""
    return bounded.decode_json(text, kind, "it is not of its form")


def figures_of_values(number: int, values: NDArray[np.int64], width_ns: int) -> PrintedFigures:
    """The figures of a thread of which the file has each value, at least one, in units of ``width_ns``."""
    found, counts = np.unique(values, return_counts=True)
    return PrintedFigures(
        number=number,
        count=int(values.size),
        min_ns=int(found[0]) * width_ns,
        mean_ns=round(float(values.mean()) * width_ns),
        max_ns=int(found[-1]) * width_ns,
        overflow=0,
        histogram=histogram_of(found, counts.astype(np.int64), width_ns),
    )


def printed_thread(  # noqa: PLR0913 -- the figures of a thread, as each file has them
    number: int,
    cpu: int | None,
    count: int,
    ends: tuple[int, float, int],
    width_ns: int,
    *,
    bins: Mapping[int, int] | None = None,
    scale_ns: int | None = None,
) -> PrintedFigures:
    """The figures that a file has of a thread, and its histogram; UserError if they make no sense.

    ends: minimum, mean and maximum, in the unit of the bins, which is ``width_ns``. Values that are in no bin may be
    beyond the scale or lost. ``overflow`` is None if the file does not tell which. scale_ns: end of the scale, None if
    the file does not say. Without a bin and a scale there is no histogram.
    """
    least, mean, most = ends
    if count < 0 or not abs(mean) <= LARGEST_NS:
        raise UserError(f"the count or the mean of thread {number} makes no sense")
    if max(map(abs, (least, most, count))) > LARGEST_NS:
        raise UserError(f"a figure of thread {number} is larger than any clock can show: a number without its sign")
    told = PrintedFigures(
        number=number,
        cpu=cpu,
        count=count,
        min_ns=least * width_ns,
        mean_ns=round(mean * width_ns),
        max_ns=most * width_ns,
        told=count,
    )
    if not bins and scale_ns is None:
        return told
    if max(map(abs, (*(bins or {}), *(bins or {}).values())), default=0) > LARGEST_NS:
        raise UserError(UNCOUNTABLE)
    table = np.array(sorted((bins or {}).items()), np.int64).reshape(-1, 2)
    counts = histogram_of(table[:, 0], table[:, 1], width_ns)
    missing = max(count - counts.total, 0)
    beyond = None if missing and scale_ns is not None and most * width_ns < scale_ns else missing
    return replace(told, count=counts.total + (beyond or 0), overflow=beyond, histogram=counts)


def imported_measurement(
    tool: str,
    title: str,
    parts: Sequence[PrintedFigures],
    resolution_ns: int,
    *,
    whole: PrintedFigures | None = None,
    **told: Any,
) -> ImportedHistogram:
    """The measurement of all threads; UserError if a count is beyond reason.

    whole: what the tool itself says of all threads together. told: further fields of ImportedHistogram; its faults come
    before those found.
    """
    if max((number or 0 for part in parts for number in (part.count, part.overflow)), default=0) > LARGEST_NS:
        raise UserError(UNCOUNTABLE)
    binned = [part.histogram for part in parts]
    wrong = [part for part in parts if max(part.min_ns or 0, part.max_ns or 0) > LARGEST_NS]
    faults = [WITHOUT_SIGN.format(part.number) for part in wrong]
    # The mean is known if each thread has one. A thread with values and without a maximum may have a larger one.
    means = [(part.mean_ns, part.count) for part in parts if part.mean_ns is not None and part.count]
    samples = sum(n for _, n in means)
    mean_ns = round(sum(mean * n for mean, n in means) / samples) if means and len(means) == len(parts) else None
    maxima = [part.max_ns for part in parts if part.max_ns is not None and part.count != 0]
    most_unknown = any(part.count and part.max_ns is None for part in parts)
    found = ImportedHistogram(
        tool,
        title,
        count=_sum([part.count for part in parts]),
        min_ns=min((part.min_ns for part in parts if part.min_ns is not None and part.count != 0), default=None),
        mean_ns=mean_ns,
        max_ns=None if most_unknown else max(maxima, default=None),
        histogram=None if any(one is None for one in binned) else merge_counts(one for one in binned if one),
        overflow=_sum([part.overflow for part in parts]),
        resolution_ns=resolution_ns,
        parts=tuple(parts),
        busy_loop=BUSY_LOOP in told.get("notes", ()),
        faults=(*told.pop("faults", ()), *faults),
        **told,
    )
    return replace(found, faults=(*found.faults, *_unlike_whole(whole, found))) if whole else found


def _unlike_whole(whole: PrintedFigures, found: ImportedHistogram) -> Iterator[str]:
    """A sentence for each figure of all threads together that does not follow from those of each."""
    pairs = (
        ("number", whole.told, sum(part.told or 0 for part in found.parts)),
        ("minimum", whole.min_ns, found.min_ns),
        ("maximum", whole.max_ns, found.max_ns),
        ("number beyond the scale", whole.overflow, found.overflow),
    )
    for name, told, wanted in pairs:
        if None not in (told, wanted) and told != wanted:
            yield f"the {name} of all threads together does not follow from those of each"


def _sum(numbers: Sequence[int | None]) -> int | None:
    return None if any(n is None for n in numbers) else sum(n for n in numbers if n is not None)
