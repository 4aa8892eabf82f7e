# SPDX-License-Identifier: Apache-2.0
"""Xenomai's ``latency``: what it prints, and the file of its option -g.

The text has a line RTD each second and a line RTS at the end. Both have minimum, mean and maximum in microseconds,
overruns and mode switches. Option -h adds the histogram, -s its size. The histogram counts early wake-ups as late ones
of the same size, and its last bin holds all larger values too. The text does not say how wide a bin is (option -B, by
default 1 us). The file of -g has the middle of each bin and its count plus one, between two lines that mark the ends.
(Formats: Xenomai 2.6 and 3, testsuite/latency/latency.c.)
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from rtproof.core.errors import UserError
from rtproof.importers import ImportedHistogram
from rtproof.importers._tool_output import LARGEST_COUNT, LARGEST_NS, microseconds, whole_number
from rtproof.summary.counts import NO_COUNTS, Counts

TOOL = "Xenomai latency"
BIN_NS = 1_000
"""Width of a bin without option -B."""
FOLDED = (
    "its histogram counts early wake-ups as late ones of the same size, and all that is beyond its last bin in that"
)
WIDTH = "it does not say how wide its bins are: 1 us is taken, its default (option -B)"
GUARDED = "its file of bins adds one to each bin, which was taken off again"

UNFINISHED = (
    "the line of its end (RTS) is missing: the program did not finish, and the mean is that of the seconds printed, "
    "each counted alike"
)

_CLOCK = r"(\d+):(\d{2}):(\d{2})"
_NUMBER = r"\s*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
_PERIOD = re.compile(r"== Sampling period: (\d+) us")
_MODE = re.compile(r"== Test mode: (.+)")
_TITLE = re.compile(rf"^(?:RTT\||#)\s+{_CLOCK}\s+\((.+?), (\d+) us period, priority (\d+)", re.M)
_EACH = re.compile(rf"^RTD\|{'[|]'.join([_NUMBER] * 7)}\s*$", re.M)
_END = re.compile(rf"^RTS\|{'[|]'.join([_NUMBER] * 5)}\|\s*{_CLOCK}/{_CLOCK}\s*$", re.M)
_BIN = re.compile(r"^HSD\|\s*avg\|\s*(\d+)\s*-\s*(\d+)\s*\|\s*(\d+)\s*$", re.M)
_SIZE = re.compile(r"^HSS\|\s*avg\|\s*(\d+)\|", re.M)
_OVERALL = re.compile(rf"^# {_NUMBER}\|{_NUMBER}\|{_NUMBER}\|\s*(\d+)\|\s*(\d+)\|\s*$", re.M)
_POINT = re.compile(rf"^{_NUMBER}\s+(\d+)\s*$", re.M)


def looks_like(text: str) -> bool:
    return bool(_END.search(text) or _EACH.search(text) or _PERIOD.search(text) or _is_points(text))


def read(text: str) -> ImportedHistogram:
    """The measurement in the text; UserError if the figures contradict each other or are missing."""
    found = _with_points(text) if _is_points(text) else _with_lines(text)
    _check(found)
    bins = found.histogram if found.histogram is None else _open_ended(found.histogram, found.max_ns)
    return replace(found, histogram=bins, shortest_period_ns=found.period_ns, unsure=bins is not None)


def _open_ended(bins: Counts, max_ns: int | None) -> Counts:
    """The bins with the last one widened up to the maximum, because latency counts all larger values in it."""
    if not bins.n.size or max_ns is None or max_ns <= int(bins.hi[-1]):
        return bins
    return Counts(bins.lo, np.append(bins.hi[:-1], max_ns), bins.n)


def _is_points(text: str) -> bool:
    """Whether the text is a file of -g: only comments and pairs of numbers; the first and last pair mark the ends."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    ends = (lines[0], lines[-1]) if len(lines) >= 3 else ()
    return bool(ends) and all(_POINT.match(line) for line in lines) and all(line.split()[1] == "1" for line in ends)


@dataclass(frozen=True)
class _Figures:
    """The figures of a line, in microseconds as printed."""

    min_us: float
    mean_us: float
    max_us: float
    overruns: int
    switches: int


def _with_lines(text: str) -> ImportedHistogram:
    end = _END.search(text)
    figures = _of_end(end) if end else _of_seconds(text)
    if figures is None:
        raise UserError("it has no line of figures (RTD or RTS): the program was ended before it measured")
    counts = _bins(tuple(map(whole_number, row)) for row in _BIN.findall(text))
    notes = (FOLDED, WIDTH) if counts else ()
    if not end:
        notes = (*notes, UNFINISHED)
    told = _told(text, figures)
    size = _SIZE.search(text)
    count = whole_number(size[1]) if size else counts.total if counts else None
    if count is not None and counts is not None and count != counts.total:
        told = replace(told, faults=(f"it says {count:,} samples, and its histogram adds up to {counts.total:,}",))
    times = [_seconds_ns(end.groups()[at : at + 3]) for at in (5, 8)] if end else [None, None]
    return replace(told, duration_ns=times[0], asked_duration_ns=times[1], count=count, histogram=counts, notes=notes)


def _told(text: str, figures: _Figures) -> ImportedHistogram:
    title, period, mode = _TITLE.search(text), _PERIOD.search(text), _MODE.search(text)
    period_us = period[1] if period else title[5] if title else None
    return ImportedHistogram(
        tool=TOOL,
        title=mode[1].strip() if mode else title[4] if title else "",
        period_ns=whole_number(period_us) * 1_000 if period_us else None,
        priority=whole_number(title[6]) if title else None,
        min_ns=_ns(figures.min_us),
        mean_ns=_ns(figures.mean_us),
        max_ns=_ns(figures.max_us),
        overruns=figures.overruns,
        mode_switches=figures.switches,
    )


def _of_end(end: re.Match[str]) -> _Figures:
    low, mean, high, overruns, switches = end.groups()[:5]
    return _figures(low, mean, high, overruns, switches)


def _figures(low: str, mean: str, high: str, overruns: str, switches: str) -> _Figures:
    least, middle, most = map(microseconds, (low, mean, high))
    return _Figures(least, middle, most, whole_number(overruns), whole_number(switches))


def _of_seconds(text: str) -> _Figures | None:
    rows = _EACH.findall(text)
    if not rows:
        return None
    last = rows[-1]
    end = _figures(last[5], last[1], last[6], last[3], last[4])
    return replace(end, mean_us=sum(microseconds(row[1]) for row in rows) / len(rows))


def _with_points(text: str) -> ImportedHistogram:
    points = [(microseconds(x), whole_number(n)) for x, n in _POINT.findall(text)]
    half_us = points[1][0] - points[0][0]
    if half_us <= 0 or any(n < 1 for _, n in points):
        raise UserError("its bins do not increase, or a count is 0 where every bin has one added")
    width_ns = round(2 * half_us * 1_000)
    bins = [(round((x - half_us) * 1_000), round((x - half_us) * 1_000) + width_ns, n - 1) for x, n in points[1:-1]]
    counts = _in_ns(bins)
    overall, title = _OVERALL.search(text), _TITLE.search(text)
    found = ImportedHistogram(TOOL, "", count=counts.total, histogram=counts, notes=(FOLDED, GUARDED))
    if overall:
        told = _told(text, _figures(*overall.groups()))
        found = replace(told, count=counts.total, histogram=counts, notes=found.notes)
    return replace(found, duration_ns=_seconds_ns(title.groups()[:3])) if title else found


def _bins(rows: Iterable[tuple[int, ...]]) -> Counts | None:
    bins = [(low * BIN_NS, high * BIN_NS, n) for low, high, n in rows]
    return _in_ns(bins) if bins else None


def _in_ns(bins: list[tuple[int, int, int]]) -> Counts:
    """Counts of the bins [low, high) in nanoseconds, without the empty ones; UserError if the bins overlap."""
    some = [(low, high - 1, n) for low, high, n in bins if n]
    if any(low > high for low, high, _ in some) or any(a[1] >= b[0] for a, b in pairwise(some)):
        raise UserError("its bins overlap or do not increase")
    if sum(n for *_, n in some) > LARGEST_COUNT or any(
        abs(end) > LARGEST_NS for low, high, _ in some for end in (low, high)
    ):
        raise UserError("its histogram has numbers that no computer can count to")
    return Counts(*np.array(some, np.int64).T) if some else NO_COUNTS


def _check(found: ImportedHistogram) -> None:
    if found.min_ns is None or found.mean_ns is None or found.max_ns is None:
        return
    if not found.min_ns <= found.mean_ns <= found.max_ns:
        raise UserError("its mean does not lie between its minimum and its maximum")


def _ns(microseconds: float) -> int:
    return round(microseconds * 1_000)


def _seconds_ns(clock: tuple[str, ...]) -> int:
    hours, minutes, seconds = map(whole_number, clock)
    return (hours * 3600 + minutes * 60 + seconds) * 1_000_000_000
