# SPDX-License-Identifier: Apache-2.0
"""The text of rt-tests' ``cyclictest``: with -h or -H its histogram, else the last line of each thread.

The histogram has one row for each microsecond, with a count for each thread; -H adds their sum. Lines on minimum, mean
(cut to whole microseconds), maximum and overflows follow. Overflows are values beyond the scale; only their number and
their cycles are left. Version 2.7 dropped the line Total, version 2.8 the empty rows. The text does not say how long
cyclictest ran and at which policy. Nor does it count the cycles that cyclictest skipped because it was late for them:
one long delay is one value, however many cycles it took. What draws its histogram is often given the rows alone,
without the lines that begin with #. (Format: rt-tests, src/cyclictest/cyclictest.c and
src/lib/histogram.c, versions 0.84 to 2.8.)
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import (
    LARGEST_NS,
    STOPPED,
    UNCOUNTABLE,
    histogram_of,
    imported_measurement,
    refuse_several,
    whole_number,
)
from rtproof.summary.counts import Counts
from rtproof.summary.imported_histogram import NEVER, ImportedHistogram, PrintedFigures, TimedLines
from rtproof.summary.summary_model import Doubt, Severity

TOOL = "cyclictest"
BIN_NS = 1_000
MANY, SMALLEST_NS = 100, 500_000
"""Of so many values of any machine, the smallest is below half a millisecond."""
START_NS = 1_000_000_000
"""Its threads start one after the other, within a second."""

MICROSECONDS = (
    "it does not say in which unit it counted: microseconds are taken, its usual one (option -N: nanoseconds)"
)
HARDLY = "hardly microseconds"
TOO_LONG = f"all {{0:,}} values of thread {{1}} are {{2:,}} us or longer, so they are {HARDLY} (option -N: nanoseconds)"
CUT_WITHIN = "{0} of figures end before the last digit of the maximum, so columns were cut off"
ABOVE_THRESHOLD = "a value above its threshold (option -b): {0:,} us"
MEAN = "mean of the bins"
OMITTED = "cycles that it skipped because it was late are neither counted nor charged with their lateness"
CUT_OFF = "the lines behind its histogram (#) are missing, so nothing tells whether values lay beyond its scale"
OUTLIERS = (
    "of the values beyond the scale it tells the numbers of some cycles, which are no times: skipped ones lie between"
)
BINS_MEAN = "{0}, of the lower ends of its bins{1}; those of the threads are cut to whole microseconds"
MAX_ONLY = "it has no histogram (option -h): minimum, mean and maximum of each thread are all that is left"

_REMARK = r"[ \t]*(?:[ \t](?:#|--|//).*)?"
"""What people write behind a line that they explain."""
_ROW = re.compile(rf"^[ \t]*(\d+)[ \t]+(\d+(?:[ \t]+\d+)*){_REMARK}$", re.M)
_BARE = re.compile(r"\s*(?:0\d{5}(?: +\d{6,})+ *\n\s*){2,}")
_TRAILER = re.compile(
    rf"^# (Total|Min Latencies|Avg Latencies|Max Latencies|Histogram Overflows|SMIs):((?:[ \t]+\d+)*){_REMARK}$", re.M
)
_LIVE = re.compile(
    r"T: *(\d+) \( *(\d+)\) +P: *(\d+) +I: *(\d+) +C: *(\d+)"
    r" +Min: *(-?\d+) +Act: *-?\d+ +Avg: *(-?\d+) +Max: *(-?\d+)"
    r"(?!\w|[.,' \u202f]\d)"
)
_CUT_WITHIN = re.compile(r"^ *T:.*Min:[ \d-]{7,} Act:.*Max:  [ \d-]{1,5}$", re.M)
"""A line that ends within its maximum: cyclictest pads the minimum to seven characters, and the maximum to eight."""
_SMIS = re.compile(rf"{_LIVE.pattern} SMI: *(\d+)")
_BREAK = re.compile(r"^# Break value: (\d{1,18})$", re.M)
_KERNEL = re.compile(r"^# Kernel: *(\S.{0,200})$", re.M)
_POLICY = re.compile(r"^(?:\x1b\[\d{1,5}A)?policy: (\w{1,20}): loadavg: ((?:\d{1,6}\.\d\d ){3})", re.M)
_HEAD = re.compile(r"^# Histogram\s*$", re.M)
SAMPLE = re.compile(r"^ *(\d{1,8}): *(\d{1,18}): *(-?\d{1,19})$", re.M)
"""A value of option -v. Such a text has a reader of its own."""


LINES = tool_lines(
    r"T: *\d|0\d{5}(?: |$)|# (?:Total|Min|Avg|Max|Histogram Overflows|SMIs)\b",
    [rf"^ *{_LIVE.pattern}(?: SMI: *\d+)? *$", _ROW, _TRAILER, SAMPLE],
    r"#.*|policy: .*|WARN.*|INFO.*|.*cpu_dma_latency.*",
)


def looks_like(text: str) -> bool:
    if _HEAD.search(text) or "# Max Latencies:" in text or _BARE.fullmatch(text + "\n"):
        return True
    return bool(_LIVE.search(text)) and not SAMPLE.search(text)


@dataclass(frozen=True)
class Line:
    """A line of figures (T: ...) of one thread, as printed."""

    process: int
    priority: int
    period_us: int
    count: int
    least: int
    mean: int
    most: int


def read(text: str) -> ImportedHistogram:
    """The measurement in the text; UserError if it has no figures, rows of different lengths, or several runs."""
    refuse_several(_HEAD.findall(text))
    refuse_several([match for match in _TRAILER.finditer(text) if match[1] == "Max Latencies"])
    rows = _rows(text)
    printed = printed_lines(text)
    lines = {number: each[-1] for number, each in printed.items()}
    found = _of_rows(text, rows, lines) if rows.size else _of_lines(lines) if lines else _of_footer(text)
    policy, kernel, stopped = _POLICY.findall(text), _KERNEL.search(text), _BREAK.search(text)
    facts = (("policy", policy[-1][0]), ("load average", policy[-1][1].strip())) if policy else ()
    return replace(
        found,
        facts=(*facts, *([("release", kernel[1].strip())] if kernel else []), *found.facts),
        doubts=tuple(_interrupts_of_firmware(text)),
        stop=STOPPED.format(ABOVE_THRESHOLD.format(whole_number(stopped[1]))) if stopped else "",
        faults=tuple(_faults(text, found)),
        lines=tuple(timed for number, each in sorted(printed.items()) if (timed := _timed(number, each))),
    )


def _faults(text: str, found: ImportedHistogram) -> Iterator[str]:
    yield from found.faults
    if cut := sum(1 for _ in _CUT_WITHIN.finditer(text)):
        yield CUT_WITHIN.format(quantity(cut, "line"))
    for part in found.parts:
        if (part.count or 0) >= MANY and SMALLEST_NS <= (part.min_ns or 0) <= LARGEST_NS:
            yield TOO_LONG.format(part.count or 0, part.number, (part.min_ns or 0) // BIN_NS)


def _interrupts_of_firmware(text: str) -> Iterator[Doubt]:
    """A doubt if cyclictest counted such interrupts (option --smi). Each thread counts those of its own CPU."""
    trailer = next((match[2].split() for match in _TRAILER.finditer(text) if match[1] == "SMIs"), ())
    of_thread = {match[1]: match[9] for match in _SMIS.finditer(text)}
    count = sum(map(whole_number, trailer or of_thread.values()))
    if count:
        what = f"its CPUs had {count:,} SMIs (interrupts of the firmware), a likely cause of its largest values"
        yield Doubt("smi", Severity.WARNING, what, "look for their source with hwlatdetect")


def last_lines(text: str) -> dict[int, Line]:
    """The last line of figures of each thread: each new one holds the ones before it."""
    return {number: lines[-1] for number, lines in printed_lines(text).items()}


def printed_lines(text: str) -> dict[int, list[Line]]:
    """The lines of figures of each thread, in the order of time. Lines without a cycle more are left out."""
    found: dict[int, list[Line]] = {}
    for match in _LIVE.finditer(text):
        number, *figures = map(whole_number, match.groups())
        line, lines = Line(*figures), found.setdefault(number, [])
        before = lines[-1] if lines else None
        if before and before.count and _is_of_another_run(line, before):
            raise UserError("it has the lines of several runs: give each in a file of its own")
        if (before and line.count == before.count) or (before and not before.count):
            lines.pop()
        lines.append(line)
    return found


def _is_of_another_run(line: Line, before: Line) -> bool:
    """Whether a line of figures cannot follow one of the same thread: cycles and maximum only grow."""
    return (
        line.process != before.process
        or line.count < before.count
        or line.most < before.most
        or line.least > before.least
        or line.period_us != before.period_us
    )


def _timed(number: int, lines: Sequence[Line]) -> TimedLines | None:
    """The lines of a thread with their times: so many cycles take so many intervals. None for a single line.

    A cycle can be skipped only behind a value as long as the interval. Until then the time is exact, later longer.
    None, too, for figures that no clock can show, which become a fault elsewhere.
    """
    most = max(max(abs(line.least), abs(line.most), line.count * line.period_us) for line in lines)
    if len(lines) < 2 or most > LARGEST_NS:
        return None
    rows = np.array([(line.count, line.least, line.most) for line in lines], np.int64)
    interval_ns = lines[-1].period_us * BIN_NS
    end_ns = rows[:, 0] * interval_ns
    exact = rows[:, 2] * BIN_NS < interval_ns
    return TimedLines(
        f"thread {number}",
        np.concatenate(([0], end_ns[:-1])),
        end_ns,
        np.where(exact, end_ns + START_NS, NEVER),
        rows[:, 1] * BIN_NS,
        rows[:, 2] * BIN_NS,
        so_far=True,
    )


def _rows(text: str) -> NDArray[np.int64]:
    """The rows of the histogram, one per microsecond: the microseconds, then a count for each thread."""
    found = [[whole_number(word) for word in (row[1], *row[2].split())] for row in _ROW.finditer(text)]
    if len({len(row) for row in found}) > 1:
        raise UserError("the rows of its histogram do not all have the same number of columns")
    try:
        return np.array(found, np.int64)
    except OverflowError:
        raise UserError(UNCOUNTABLE) from None


def _of_rows(text: str, rows: NDArray[np.int64], lines: dict[int, Line]) -> ImportedHistogram:
    trailer = {match[1]: [whole_number(word) for word in match[2].split()] for match in _TRAILER.finditer(text)}
    trailer.pop("SMIs", None)
    # Option -H adds the sum of all threads to other lines than that of the minima.
    threads = min((len(trailer[name]) for name in ("Min Latencies", "Max Latencies") if name in trailer), default=0)
    columns = _columns(rows[:, 1:], threads, len(lines))
    bins = [histogram_of(rows[:, 0], column, BIN_NS) for column in columns.T]
    told = {name: figures for name, figures in trailer.items() if len(figures) >= len(bins)}
    periods = {number: line.period_us * 1_000 for number, line in lines.items()}
    parts = [replace(_part(number, counts, told), period_ns=periods.get(number)) for number, counts in enumerate(bins)]
    cut_off = "Histogram Overflows" not in told
    notes = [MICROSECONDS, OMITTED, *[CUT_OFF] * cut_off, *[OUTLIERS] * any(part.overflow for part in parts)]
    first = lines.get(0)
    return imported_measurement(
        TOOL,
        "histogram",
        parts,
        BIN_NS,
        whole=_part(len(bins), None, {name: told for name, told in trailer.items() if len(told) > len(bins)}),
        scale_ns=(int(rows[-1, 0]) + 1) * BIN_NS,
        priority=first.priority if first else None,
        period_ns=first.period_us * 1_000 if first and len(parts) == 1 else None,
        shortest_period_ns=min(periods.values()) if len(periods) == len(parts) else None,
        # The comments that rtproof's own export writes for virtual time and simulated runs.
        notes=(*notes, *(each[2:].strip() for each in text.splitlines() if each.startswith(OWN_COMMENTS))),
        facts=_mean_of_bins(bins, parts),
        faults=(
            *(
                f"its line {name} has {len(figures)} figures, and its histogram has {len(bins)} threads"
                for name, figures in trailer.items()
                if len(figures) < len(bins)
            ),
            *(sentence for part in parts for sentence in _against_line(part, lines.get(part.number))),
        ),
    )


def _mean_of_bins(bins: Sequence[Counts], parts: Sequence[PrintedFigures]) -> tuple[tuple[str, str], ...]:
    """The mean that the rows have, because the printed one of a thread was cut to whole microseconds."""
    values = sum(counts.total for counts in bins)
    if not values:
        return ()
    mean_us = sum(float(np.dot(counts.lo, counts.n)) for counts in bins) / values / BIN_NS
    beyond = "" if all(part.overflow == 0 for part in parts) else "; values beyond its scale are left out"
    return ((MEAN, BINS_MEAN.format(f"{mean_us:,.2f} us", beyond)),)


def _against_line(part: PrintedFigures, line: Line | None) -> Iterator[str]:
    """A sentence if a line that was printed during the run holds more than the histogram that was printed behind it."""
    if line is None or not line.count or part.histogram is None:
        return
    most = int(part.histogram.hi.max(initial=-1)) if part.max_ns is None else part.max_ns
    if line.most * BIN_NS > most:
        yield f"its last line of thread {part.number} says a maximum of {line.most:,} us, and its histogram has none"
    if part.min_ns is not None and line.least * BIN_NS < part.min_ns:
        yield f"its last line of thread {part.number} says a minimum of {line.least:,} us, and its histogram has none"
    if part.overflow is not None and line.count > (part.count or 0):
        yield (
            f"its last line of thread {part.number} counts {line.count:,} cycles, and its histogram {part.count or 0:,}"
        )


def _columns(counts: NDArray[np.int64], threads: int, lines: int) -> NDArray[np.int64]:
    """The counts without the last column of option -H, which is the sum of the others.

    threads: how many the lines behind the histogram name, 0 if the file was cut off; lines: how many those before it.
    """
    summed = counts.shape[1] == (threads or lines) + 1 > 1
    if summed and np.array_equal(counts[:, :-1].sum(axis=1), counts[:, -1]):
        return counts[:, :-1]
    if threads and counts.shape[1] != threads:
        raise UserError(f"its histogram has {counts.shape[1]} columns, and the lines behind it have {threads}")
    return counts


def _part(number: int, counts: Counts | None, told: dict[str, list[int]]) -> PrintedFigures:
    """The figures at this place of each line: those of a thread, or with option -H, behind them, those of all."""

    def of(name: str) -> int | None:
        return told[name][number] if name in told else None

    overflow, total = of("Histogram Overflows"), of("Total")
    return PrintedFigures(
        number=number,
        count=counts.total + (overflow or 0) if counts is not None else None,
        min_ns=_ns(of("Min Latencies")),
        mean_ns=_ns(of("Avg Latencies")),
        max_ns=_ns(of("Max Latencies")),
        overflow=overflow,
        histogram=counts,
        told=None if total is None else total + (overflow or 0),
    )


OWN_COMMENTS = ("# virtual time", "# simulated")
FOOTER = ("Min Latencies", "Avg Latencies", "Max Latencies")


def _of_footer(text: str) -> ImportedHistogram:
    """The measurement from the lines behind a histogram whose rows are not there."""
    told = {match[1]: [whole_number(word) for word in match[2].split()] for match in _TRAILER.finditer(text)}
    threads = min(len(told.get(name, ())) for name in FOOTER)
    if not threads:
        raise UserError(
            "it has neither a histogram nor a line of figures (T: ...): the program ended before it measured"
        )
    ends = zip(*(told[name][:threads] for name in FOOTER), strict=True)
    parts = [_figures(number, *each) for number, each in enumerate(ends)]
    if {"Total", "Histogram Overflows"} <= set(told):  # until version 2.6
        counts = zip(parts, told["Total"], told["Histogram Overflows"], strict=False)
        parts = [replace(part, count=total + beyond) for part, total, beyond in counts]
    return imported_measurement(TOOL, "footer", parts, BIN_NS, notes=(MAX_ONLY, MICROSECONDS, OMITTED))


def _figures(number: int, least: int, mean: int, most: int) -> PrintedFigures:
    return PrintedFigures(number=number, min_ns=least * BIN_NS, mean_ns=mean * BIN_NS, max_ns=most * BIN_NS)


def _of_lines(lines: dict[int, Line]) -> ImportedHistogram:
    """The measurement from the lines that cyclictest prints while it runs; only the last line of each thread counts."""
    parts = [
        replace(_figures(number, line.least, line.mean, line.most), count=line.count, period_ns=line.period_us * BIN_NS)
        for number, line in sorted(lines.items())
    ]
    return imported_measurement(
        TOOL,
        "last lines",
        parts,
        BIN_NS,
        priority=lines[min(lines)].priority,
        period_ns=parts[0].period_ns if len(parts) == 1 else None,
        shortest_period_ns=min(part.period_ns or 0 for part in parts) or None,
        notes=(MAX_ONLY, MICROSECONDS, OMITTED),
    )


UNIT_STATED, UNIT_UNUSED = "the user states the unit (--unit)", "--unit is not used"


def in_stated_unit(found: ImportedHistogram, unit: str | None) -> ImportedHistogram:
    """The measurement in the unit that the user states, if the text does not tell it."""
    if unit is None or MICROSECONDS not in found.notes:
        return replace(found, stated=(*found.stated, *([UNIT_UNUSED] if unit else [])))
    known = replace(
        found,
        notes=tuple(note for note in found.notes if note != MICROSECONDS),
        faults=tuple(fault for fault in found.faults if HARDLY not in fault),
        stated=(*found.stated, UNIT_STATED),
    )
    if unit == "us":
        return known
    # Periods are printed in microseconds always. Whether a cycle was skipped was judged by the wrong unit, so the lines
    # have no time.
    return replace(
        _thousandth(known),
        parts=tuple(map(_thousandth, known.parts)),
        scale_ns=None if known.scale_ns is None else known.scale_ns // BIN_NS,
        resolution_ns=1,
        lines=(),
        facts=tuple(fact for fact in known.facts if fact[0] != MEAN),
    )


Told = TypeVar("Told", bound=PrintedFigures)


def _thousandth(told: Told) -> Told:
    """The figures, each a thousandth of what it was read as."""
    least, mean, most = (None if ns is None else ns // BIN_NS for ns in (told.min_ns, told.mean_ns, told.max_ns))
    bins = told.histogram
    fine = None if bins is None else Counts(bins.lo // BIN_NS, bins.lo // BIN_NS, bins.n)
    return replace(told, min_ns=least, mean_ns=mean, max_ns=most, histogram=fine)


def _ns(microseconds: int | None) -> int | None:
    return None if microseconds is None else microseconds * BIN_NS
