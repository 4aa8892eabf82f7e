# SPDX-License-Identifier: Apache-2.0
"""Makes one measurement of the numbers and threads that another tool printed. Contradictions become faults.

A number that no tool prints is a UserError, because the file may be damaged or made to do harm.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rtproof.core import bounded
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, quantity
from rtproof.core.units import MOST_DIGITS, UNITS_NS
from rtproof.summary.counts import NO_COUNTS, Counts, merge_counts
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart

LARGEST_NS = 10**15
"""Eleven days. A larger latency is an early wake-up whose minus sign was lost."""
LARGEST_COUNT = 10**12
"""The most values that a thread can have: one each microsecond for eleven days."""

MOST_MISSING = 20_000
"""A tool that writes its file while its threads still run may count this many values that its histogram lacks: those
of a second at 50 us."""
CLOCK_ERROR = 1.01
CLOCK_STEP_NS = 2 * 10**9
"""How much longer than told a run may have been: by a hundredth, and by its beginning and end in whole seconds."""

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


def decode_json(text: str, kind: type[Kind]) -> Kind:
    """The JSON document as ``kind``; UserError if it has another form."""
    return bounded.decode_json(text, kind, "it is not of its form")


@dataclass(frozen=True)
class ThreadTotals:
    """The figures that a JSON file gives for a thread beside its bins. Times are in the unit of the bins."""

    number: int
    cpu: int | None
    count: int
    min: int
    max: int
    mean: float


def imported_thread(told: ThreadTotals, bins: Mapping[int, int], width_ns: int, scale_ns: int | None) -> ImportedPart:
    """A thread with its histogram; UserError if its figures make no sense.

    Values that are in no bin may be beyond the scale or lost. ``overflow`` is None if the file does not tell which.
    scale_ns: end of the scale, None if the file does not say. Without a bin and a scale there is no histogram.
    """
    if told.count < 0 or not abs(told.mean) <= LARGEST_NS:
        raise UserError(f"the count or the mean of thread {told.number} makes no sense")
    if max(map(abs, (told.min, told.max, told.count))) > LARGEST_NS:
        raise UserError(
            f"a figure of thread {told.number} is larger than any clock can show: a number without its sign"
        )
    counts = _counts(bins, width_ns) if bins or scale_ns is not None else None
    missing = 0 if counts is None else max(told.count - counts.total, 0)
    beyond = None if missing and scale_ns is not None and told.max * width_ns < scale_ns else missing
    return ImportedPart(
        told.number,
        told.cpu,
        told.count if counts is None else counts.total + (beyond or 0),
        told.min * width_ns,
        round(told.mean * width_ns),
        told.max * width_ns,
        None if counts is None else beyond,
        counts,
        told.count,
    )


def _counts(bins: Mapping[int, int], width_ns: int) -> Counts:
    if max(map(abs, (*bins, *bins.values())), default=0) > LARGEST_NS:
        raise UserError(UNCOUNTABLE)
    values = np.array(sorted(bins), np.int64)
    return histogram_of(values, np.array([bins[int(value)] for value in values], np.int64), width_ns)


def imported_measurement(
    tool: str, title: str, parts: Sequence[ImportedPart], resolution_ns: int, **told: Any
) -> ImportedHistogram:
    """The measurement of all threads; UserError if a count is beyond reason.

    told: further fields of ImportedHistogram; its faults come before those found.
    """
    counts = [part.count for part in parts]
    if max((number or 0 for part in parts for number in (part.count, part.overflow)), default=0) > LARGEST_NS:
        raise UserError(UNCOUNTABLE)
    binned = [part.histogram for part in parts]
    faults = [sentence for part in parts for sentence in _faults(part, resolution_ns)]
    faults += _too_many(parts, told.get("duration_ns"), told.get("shortest_period_ns"))
    if BUSY_LOOP in told.get("notes", ()):
        faults += _too_long(parts, told.get("duration_ns"))
    return ImportedHistogram(
        tool,
        title,
        count=_sum(counts),
        min_ns=min((part.min_ns for part in parts if part.min_ns is not None and part.count != 0), default=None),
        mean_ns=_mean(parts),
        max_ns=_max(parts),
        histogram=None if any(one is None for one in binned) else merge_counts(one for one in binned if one),
        overflow=_sum([part.overflow for part in parts]),
        resolution_ns=resolution_ns,
        parts=tuple(parts),
        faults=(*told.pop("faults", ()), *faults),
        **told,
    )


def _sum(numbers: Sequence[int | None]) -> int | None:
    return None if any(n is None for n in numbers) else sum(n for n in numbers if n is not None)


def _max(parts: Sequence[ImportedPart]) -> int | None:
    """The largest maximum; None if a thread has values and no maximum, because its own may be larger."""
    if any(part.count and part.max_ns is None for part in parts):
        return None
    return max((part.max_ns for part in parts if part.max_ns is not None and part.count != 0), default=None)


def _mean(parts: Sequence[ImportedPart]) -> int | None:
    known = [(part.mean_ns, part.count) for part in parts if part.mean_ns is not None and part.count]
    samples = sum(n for _, n in known)
    return round(sum(mean * n for mean, n in known) / samples) if len(known) == len(parts) and samples else None


def _too_many(parts: Sequence[ImportedPart], duration_ns: int | None, shortest_ns: int | None) -> Iterator[str]:
    """A sentence for each thread that counts more activations than its periods allow in the time that it ran."""
    for part in parts:
        period_ns, count = part.period_ns or shortest_ns, part.told or part.count
        if not duration_ns or not period_ns or not count:
            continue
        if count * period_ns > CLOCK_ERROR * duration_ns + CLOCK_STEP_NS:
            yield (
                f"thread {part.number} counts {quantity(count, 'activation')}, one every {duration(period_ns)}, and "
                f"the run took {duration(duration_ns)}"
            )


def _too_long(parts: Sequence[ImportedPart], duration_ns: int | None) -> Iterator[str]:
    """A sentence for each thread whose values are longer together than it ran. A loop has them one after another."""
    for part in parts:
        bins = part.histogram
        if not duration_ns or bins is None:
            continue
        whole_ns = float(np.dot(np.maximum(bins.lo, 0).astype(np.float64), bins.n))
        if whole_ns > CLOCK_ERROR * duration_ns + CLOCK_STEP_NS:
            took = f"the run took {duration(duration_ns)}"
            yield f"the values of thread {part.number} are {duration(round(whole_ns))} together, and {took}"


def _faults(part: ImportedPart, width_ns: int) -> Iterator[str]:
    name, low, mean, high = f"thread {part.number}", part.min_ns, part.mean_ns, part.max_ns
    counts_all = part.histogram is None or part.overflow == 0
    if counts_all and part.count == 0 and part.told in (0, None) and high is not None and 0 < high <= LARGEST_NS:
        yield f"{name} counts no value, and its maximum is {high // 1000} us"
    if part.count == 0 or low is None or high is None:
        return
    if high > LARGEST_NS or low > LARGEST_NS:
        yield f"the minimum or maximum of {name} is a number without its sign: a wake-up came before its time"
        return
    if low > high or (mean is not None and not low - width_ns < mean < high + width_ns):
        yield f"the mean of {name} does not lie between its minimum and its maximum"
    if part.histogram is not None and part.told is not None:
        yield from _against_count(name, part.told, part.histogram.total, lost=part.overflow is None)
    if part.histogram is not None and part.overflow is not None:
        yield from _against_bins(name, low, high, part.overflow, part.histogram)


def _against_count(name: str, told: int, counted: int, *, lost: bool) -> Iterator[str]:
    """lost: whether values that are in no bin lie on the scale."""
    if counted > told + 1:
        yield f"{name} counts {told:,} values, and its histogram adds up to {counted:,}"
    if lost and told - counted > max(MOST_MISSING, told // 100):
        yield f"{name} counts {told:,} values, and its histogram lacks {told - counted:,} of them"


def _against_bins(name: str, low: int, high: int, overflow: int, bins: Counts) -> Iterator[str]:
    """A sentence for each contradiction between the histogram of a thread and its minimum, maximum and overflow.

    The minimum has to lie in the first filled bin, and the maximum in the last one if no value is beyond the scale.
    """
    if not bins.n.size:
        return
    if not int(bins.lo[0]) <= low <= int(bins.hi[0]):
        yield f"the minimum of {name} is {low // 1000} us, but its lowest filled bin is {int(bins.lo[0]) // 1000} us"
    last, end = int(bins.lo[-1]), int(bins.hi[-1])
    if overflow and high <= last:
        yield f"{name} has {overflow:,} values beyond the histogram, but its maximum, {high // 1000} us, lies within"
    if not overflow and not last <= high <= end:
        yield f"the maximum of {name} is {high // 1000} us, but its highest filled bin is {last // 1000} us"
