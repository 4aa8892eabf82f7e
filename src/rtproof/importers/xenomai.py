# SPDX-License-Identifier: Apache-2.0
"""Xenomai's ``latency``: what it prints, and the file of its option -g.

The text has a line RTD each second and a line RTS at the end. Both have minimum, mean and maximum in microseconds,
overruns and mode switches. Versions 2.4 and 2.5 do not print mode switches; the first versions print whole
nanoseconds. EVL's latmus prints the same lines. Option -h adds the histogram, -s its size. The histogram counts early
wake-ups as late ones of the same size, and its last bin holds all larger values too. The text does not say how wide a
bin is (option -B, by default 1 us). The file of -g has the middle of each bin and its count plus one, between two lines
that mark the ends. (Formats: Xenomai 2 and 3, testsuite/latency/latency.c; libevl, benchmarks/latmus.c.)
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rtproof.core.errors import UserError
from rtproof.importers import ImportedHistogram
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import (
    LARGEST_COUNT,
    LARGEST_NS,
    clock_ns,
    counted_otherwise,
    microseconds,
    refuse_several,
    whole_number,
)
from rtproof.summary.counts import NO_COUNTS, Counts
from rtproof.summary.imported_histogram import NEVER, TimedLines

TOOL = "Xenomai latency"
LATMUS = "EVL latmus"
"""Prints the same lines, with the CPU in the title of each table."""
SECOND_NS = 1_000_000_000
MARGIN_NS = SECOND_NS
"""Titles and ends have whole seconds."""
FEWEST_LINES = 2
COUNTED_BY_LINES = "it prints no number of values; one second of periods is counted for each line"
BIN_NS = 1_000
"""Width of a bin without option -B."""
FOLDED = (
    "its histogram counts early wake-ups as late ones of the same size, and all that is beyond its last bin in that"
)
NOT_BELIEVED = (
    "its histogram contradicts its minimum, mean or maximum, so its bins are not 1 us wide (option -B): it is left out"
)
WIDTH = "it does not say how wide its bins are: 1 us is taken, its default (option -B)"
GUARDED = "its file of bins adds one to each bin, which was taken off again"

UNFINISHED = (
    "the line of its end (RTS) is missing: the program did not finish, and the mean is that of the seconds printed, "
    "each counted alike"
)

_CLOCK = r"(\d+):(\d{2}):(\d{2})"
_NUMBER = r" *(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?) *"
_PERIOD = re.compile(r"== Sampling period: (\d+) us")
_MODE = re.compile(r"== Test mode: (.+)")
_TITLE = re.compile(rf"^(?:RTT\||#)\s+{_CLOCK}\s+\((.+?), (\d+) us period, priority (\d+)", re.M)
_EACH = re.compile(rf"^RTD\|{'[|]'.join([_NUMBER] * 4)}\|(?:{_NUMBER}[|])?{_NUMBER}\|{_NUMBER}\s*$", re.M)
_END = re.compile(rf"^RTS\|{'[|]'.join([_NUMBER] * 4)}(?:[|]{_NUMBER})?\|\s*{_CLOCK}/{_CLOCK}\s*$", re.M)
_BEST = re.compile(r"^RTH\|.*lat best\|", re.M)
_FRACTION = re.compile(r"^RT[DS]\|.*\.\d", re.M)
_LATMUS = re.compile(r"^RTT\|.*, CPU\d+(?:-noisol)?\)\s*$", re.M)
_BIN = re.compile(r"^HSD\|\s*avg\|\s*(\d+)\s*-\s*(\d+)\s*\|\s*(\d+)\s*$", re.M)
_SIZE = re.compile(r"^HSS\|\s*avg\|\s*(\d+)\|", re.M)
_OVERALL = re.compile(rf"^# {_NUMBER}\|{_NUMBER}\|{_NUMBER}\|\s*(\d+) *\|\s*(\d+) *\|\s*$", re.M)
_POINT = re.compile(rf"^{_NUMBER}\s+(\d+)\s*$", re.M)

LINES = tool_lines(
    r"RT[DS] *\||HSD *\| *avg",
    [_EACH, _END, _BIN, _SIZE, _OVERALL, _POINT],
    r"RT[TH]\|.*|HS[DHS]\|.*|(?:\^C)?---.*|\^C *|== .*|warming up.*|#.*",
)


def looks_like(text: str) -> bool:
    lines = _END.search(text) or (_EACH.search(text) and (_BEST.search(text) or _FRACTION.search(text)))
    return bool(lines or _PERIOD.search(text) or _is_points(text))


def read(text: str) -> ImportedHistogram:
    """The measurement in the text; UserError if the figures contradict each other or are missing."""
    found = _with_points(text) if _is_points(text) else _with_lines(text)
    if min(found.overruns or 0, found.mode_switches or 0) < 0:
        raise UserError("it counts fewer than no overruns or mode switches: the counter has wrapped")
    ends = found.min_ns, found.mean_ns, found.max_ns
    if None not in ends and list(ends) != sorted(each or 0 for each in ends):
        raise UserError("its mean does not lie between its minimum and its maximum")
    found = replace(found, shortest_period_ns=found.period_ns)
    if found.histogram is None:
        return found
    true = with_true_bins(found, found.histogram)
    # Of bins whose width is only assumed, none shows that a limit was exceeded: the printed maximum does.
    return replace(true, unsure=true.unsure or (WIDTH in true.notes and true.histogram is not None))


def with_true_bins(found: ImportedHistogram, bins: Counts) -> ImportedHistogram:
    """The measurement with bins that hold the values which were counted in them.

    latency counts a value below 0 as one of the same size above it. Without the minimum nobody knows which of the bins
    have such values. The bins hold all values. If the maximum lies above the last bin, that bin is the end of the scale
    and holds the overflow, unless it may also hold values below 0.
    """
    low_ns, high_ns = found.min_ns, found.max_ns
    if low_ns is None or high_ns is None or not bins.n.size:
        return replace(found, unsure=bool(bins.n.size))
    last_ns, largest_ns = int(bins.lo[-1]), max(-low_ns, high_ns)
    # latency counts all values above its last bin in that one.
    true = Counts(bins.lo, np.append(bins.hi[:-1], max(largest_ns, int(bins.hi[-1]))), bins.n)
    true = _unfolded(true, low_ns, high_ns)
    # The means of the lines are rounded to a nanosecond.
    least, most = (np.dot(true.n, ends.astype(np.float64)) / float(true.n.sum()) for ends in (true.lo, true.hi))
    mean_fits = found.mean_ns is None or least - BIN_NS <= found.mean_ns <= most + BIN_NS
    if last_ns > largest_ns or not mean_fits:
        return replace(found, histogram=None, notes=(*found.notes, NOT_BELIEVED))
    if found.count != bins.total:
        return replace(found, histogram=true)
    if -low_ns < last_ns and int(bins.hi[-1]) < high_ns:
        on_scale = Counts(true.lo[:-1], true.hi[:-1], true.n[:-1])
        return replace(found, histogram=on_scale, overflow=int(true.n[-1]), scale_ns=last_ns)
    return replace(found, histogram=true, overflow=0)


def _unfolded(bins: Counts, low_ns: int, high_ns: int) -> Counts:
    """The bins as far as they lie between minimum and maximum.

    All bins that values below 0 may have been counted in become one: which values are in which bin is not known.
    """
    mixed = int(np.searchsorted(bins.lo, -low_ns, side="right")) if low_ns < 0 else 0
    if not mixed:
        return bins
    # No value lies above the maximum, also where all of them came before their time.
    top = min(int(bins.hi[mixed - 1]), high_ns)
    n = np.append(bins.n[:mixed].sum(), bins.n[mixed:])
    return Counts(np.append(low_ns, bins.lo[mixed:]), np.append(top, bins.hi[mixed:]), n)


def _is_points(text: str) -> bool:
    """Whether the text is a file of -g: only comments and pairs of numbers, in even steps between two ends."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [_POINT.match(line) for line in lines]
    if len(pairs) < 3 or not all(pairs):
        return False
    places = np.array([float(line.split()[0]) for line in lines])
    if any(line.split()[1] != "1" for line in (lines[0], lines[-1])):
        return False
    if not np.isfinite(places).all():  # refused by name where it is read
        return True
    # The first and the last step are half as long as the others; they are printed with six digits.
    steps = np.diff(places)
    wanted = np.full(steps.size, 2 * steps[0])
    wanted[[0, -1]] = steps[0]
    return bool(np.all(np.abs(steps - wanted) <= np.abs(places[1:]) * 1e-4 + 1e-9))


def _with_lines(text: str) -> ImportedHistogram:
    refuse_several(_END.findall(text))
    end, rows = _END.search(text), _EACH.findall(text)
    if not end and not rows:
        raise UserError("it has no line of figures (RTD or RTS): the program was ended before it measured")
    factor = 1_000 if _FRACTION.search(text) else 1  # The first versions print whole nanoseconds.
    if end:
        told = _told(text, end.groups()[:5], factor)
    else:
        last, mean_us = rows[-1], sum(microseconds(row[1]) for row in rows) / len(rows)
        told = _told(text, (last[5], last[1], last[6], last[3], last[4]), factor)
        told = replace(told, mean_ns=round(mean_us * factor))
    bins = [tuple(map(whole_number, row)) for row in _BIN.findall(text)]
    counts = _in_ns([(low * BIN_NS, high * BIN_NS, n) for low, high, n in bins]) if bins else None
    notes = (*((FOLDED, WIDTH) if counts else ()), *(() if end else (UNFINISHED,)))
    size = _SIZE.search(text)
    count = whole_number(size[1]) if size else counts.total if counts else None
    said_otherwise = counted_otherwise(count, counts.total) if counts else ()
    times = [clock_ns(*end.groups()[at : at + 3]) for at in (5, 8)] if end else [None, None]
    lines = _lines(text, times[0], factor)
    if count is None and lines and told.period_ns:
        # latency prints a line after so many values, however long they took.
        count = lines[0].most_ns.size * max(SECOND_NS // told.period_ns, 1)
        notes = (*notes, COUNTED_BY_LINES)
    return replace(
        told,
        duration_ns=times[0],
        asked_duration_ns=times[1],
        count=count,
        histogram=counts,
        lines=lines,
        notes=notes,
        faults=(*said_otherwise, *(_beyond_end(rows, told, factor) if end else ())),
    )


def _lines(text: str, duration_ns: int | None, factor: int) -> tuple[TimedLines, ...]:
    """The lines RTD in the order of time; () if there are fewer than two. factor: ns of what is printed.

    Each line has the values of a second, which took longer only if periods were overrun. Each title has the time.
    """
    rows = [(each.start(), each.groups()) for each in _EACH.finditer(text)]
    titles = _title_times(text, duration_ns or 0)
    if len(rows) < FEWEST_LINES:
        return ()
    # A title at 00:00:22 stands before the line of the second that ends then: lines before it may be gone.
    first_s = max((titles[0][1] // SECOND_NS - 1 - _lines_before(rows, titles[0][0]), 0)) if titles else 0
    start_ns = (first_s + np.arange(len(rows), dtype=np.int64)) * SECOND_NS
    end_ns = start_ns + SECOND_NS
    # Lines that are gone, and seconds that took longer, show in the titles behind them and in the end.
    behind_ns = [time_ns - (first_s + _lines_before(rows, place) + 1) * SECOND_NS for place, time_ns in titles]
    more_ns = max((duration_ns or 0) - int(end_ns[-1]), *behind_ns, 0) + MARGIN_NS
    least, mean, most = (np.array([_ns(row[at], factor) for _, row in rows], np.int64) for at in range(3))
    if np.any(least > most):
        raise UserError("the minimum of a line is above its maximum")
    latest_ns = end_ns + more_ns if duration_ns or titles else np.full(len(rows), NEVER)
    return (TimedLines("", start_ns, end_ns, latest_ns, least, most, mean_ns=mean),)


def _title_times(text: str, duration_ns: int) -> list[tuple[int, int]]:
    """The place of each title in the text, and its time in ns. UserError if a time is impossible or goes back."""
    titles = [(each.start(), clock_ns(*each.groups()[:3])) for each in _TITLE.finditer(text)]
    if max(duration_ns, *(time_ns for _, time_ns in titles), 0) > LARGEST_NS:
        raise UserError("a time in it is larger than any clock can show")
    if any(one[1] > other[1] for one, other in pairwise(titles)):
        raise UserError("the times of its titles go back: it has several runs. Give each in a file of its own")
    return titles


def _lines_before(rows: Sequence[tuple[int, tuple[str, ...]]], place: int) -> int:
    return sum(at < place for at, _ in rows)


def _beyond_end(rows: Sequence[Sequence[str]], end: ImportedHistogram, factor: int) -> Iterator[str]:
    """A sentence if a figure so far (best, worst, overruns) goes beyond the one at the end."""
    for _, _, _, overruns, _, best, worst, *_ in rows:
        beyond = _ns(worst, factor) > (end.max_ns or 0) or _ns(best, factor) < (end.min_ns or 0)
        if beyond or whole_number(overruns) > (end.overruns or 0):
            yield "the best, the worst or the overruns of a line go beyond its end: it was put together of several runs"
            return


def _told(text: str, figures: Sequence[str | None], factor: int) -> ImportedHistogram:
    """What the head says, and the figures of a line; switches: "" or None in a version that does not count them."""
    title, period, mode = _TITLE.search(text), _PERIOD.search(text), _MODE.search(text)
    period_us = period[1] if period else title[5] if title else None
    low, mean, high, overruns, switches = (word or "" for word in figures)
    return ImportedHistogram(
        tool=LATMUS if _LATMUS.search(text) else TOOL,
        title=mode[1].strip() if mode else title[4] if title else "",
        period_ns=whole_number(period_us) * 1_000 if period_us else None,
        priority=whole_number(title[6]) if title else None,
        min_ns=_ns(low, factor),
        mean_ns=_ns(mean, factor),
        max_ns=_ns(high, factor),
        overruns=whole_number(overruns),
        mode_switches=whole_number(switches) if switches else None,
    )


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
        told = _told(text, overall.groups(), 1_000)
        found = replace(told, count=counts.total, histogram=counts, notes=found.notes)
    return replace(found, duration_ns=clock_ns(*title.groups()[:3])) if title else found


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


def _ns(text: str, factor: int) -> int:
    return round(microseconds(text) * factor)
