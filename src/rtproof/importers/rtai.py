# SPDX-License-Identifier: Apache-2.0
"""What RTAI's tests ``latency`` and ``preempt`` print.

Both print a line RTD each time that ``avrgtime`` is over, by default each second. All figures are in nanoseconds, and
a latency may be negative: the timer is set early by what its calibration found. ``latency`` gives minimum, mean and
maximum of this time, the extremes since the start, and the overruns since the start. ``preempt`` gives minimum, mean
and maximum since the start, and the largest jitter of two faster periodic tasks. There is no histogram and no last
line of totals. Period and avrgtime stand in lines before the table, which a saved output may lack: then the number of
values is not known. KERNEL is a task of RTAI in the kernel; USER (LXRT) is one in user space. (Format: RTAI,
testsuite/*/latency/display.c and testsuite/*/preempt/display.c.)
"""

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

import numpy as np

from rtproof.core.errors import UserError
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import (
    LARGEST_COUNT,
    LARGEST_NS,
    UNCOUNTABLE,
    notes_that_apply,
    refuse_several,
    whole_number,
)
from rtproof.summary.imported_histogram import NEVER, ImportedHistogram, TimedLines

TOOL = "RTAI"
NO_BINS = "it has no histogram: minimum, mean and maximum of each line are all that is left"
NO_HEAD = "the lines with its period and with the time of each line are missing, so the number of its values is unknown"
CALIBRATED = "a latency below 0 is a wake-up before its time, because RTAI sets its timer early by a calibrated time"
LINES_GONE = "its first lines are missing: values of theirs are in the minimum and the maximum, and not in the number"
MEAN_OF_LINES = "the mean is that of the lines, each counted alike"
JITTERS = "its periodic tasks were at most {0:,} ns (fast) and {1:,} ns (slow) off their period"

_TITLE = re.compile(r"^RTAI Testsuite - (.{1,40}?) (latency|preempt) \(all data in nanoseconds\)", re.M)
_HEAD = re.compile(r"^RTH\|((?:[ \w.]+\|)*[ \w.]+)$", re.M)
_LINE = re.compile(r"^RTD\|((?: *-?\d+\|)* *-?\d+) *$", re.M)
_PERIOD = re.compile(r"^[#*]+ +period = (\d{1,19}) \(ns\)", re.M)
_AVERAGED = re.compile(r"^[#*]+ .*\bavrgtime = (\d{1,9}) \(s\)", re.M)
FEWEST_LINES = 2
LATENCY = ("lat min", "lat avg", "lat max", "overruns")
PREEMPT = ("lat min", "lat avg", "lat max", "jit fast", "jit slow")

LINES = tool_lines(r"RTD\|", [_LINE])


def looks_like(text: str) -> bool:
    return bool(_TITLE.search(text) or _columns(text))


def read(text: str) -> ImportedHistogram:
    """The measurement in the text; UserError if its figures contradict each other or are missing."""
    refuse_several(_TITLE.findall(text))
    rows = _rows(text)
    title = _TITLE.search(text)
    told = "preempt" if "jit fast" in rows[0] else "latency"
    kind = f"{title[1]} {title[2]}" if title else told
    if told == "latency":
        return _latency(text, kind, rows)
    last = rows[-1]  # each of its figures is since the start
    return ImportedHistogram(
        TOOL,
        kind,
        min_ns=last["lat min"],
        mean_ns=last["lat avg"],
        max_ns=last["lat max"],
        notes=(NO_BINS, NO_HEAD, CALIBRATED, JITTERS.format(last["jit fast"], last["jit slow"])),
    )


def _rows(text: str) -> list[dict[str, int]]:
    """The figures of each line by the names of their columns."""
    columns = _columns(text)
    rows = []
    if not columns:
        raise UserError("it has no line with the names of its columns (RTH)")
    for line in _LINE.findall(text):
        words = line.split("|")
        if len(words) != len(columns):
            raise UserError(f"a line has {len(words)} figures, and its head names {len(columns)} columns")
        rows.append({name: whole_number(word.strip()) for name, word in zip(columns, words, strict=True)})
    if not rows:
        raise UserError("it has no line of figures (RTD): the program was ended before it measured")
    if max(abs(number) for row in rows for number in row.values()) > LARGEST_NS:
        raise UserError("a figure is larger than any clock can show")
    if any(not row["lat min"] <= row["lat avg"] <= row["lat max"] for row in rows):
        raise UserError("the mean of a line does not lie between its minimum and its maximum")
    return rows


def _columns(text: str) -> list[str]:
    """The names of the columns; [] where no line names those of one of the two tests."""
    heads = [[name.strip() for name in head.split("|")] for head in _HEAD.findall(text)]
    return next((head for head in heads if set(LATENCY) <= set(head) or set(PREEMPT) <= set(head)), [])


def _latency(text: str, kind: str, rows: list[dict[str, int]]) -> ImportedHistogram:
    period, averaged = _PERIOD.search(text), _AVERAGED.search(text)
    period_ns = whole_number(period[1]) if period else None
    duration_ns = whole_number(averaged[1]) * 1_000_000_000 * len(rows) if averaged else None
    if 0 in {period_ns, duration_ns} or (duration_ns or 0) > LARGEST_NS:
        raise UserError("the period or the time of a line makes no sense")
    count = duration_ns // period_ns if duration_ns and period_ns else None
    if (count or 0) > LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    return ImportedHistogram(
        TOOL,
        kind,
        period_ns=period_ns,
        shortest_period_ns=period_ns,
        duration_ns=duration_ns,
        count=count,
        min_ns=min(row.get(name, row["lat min"]) for row in rows for name in ("lat min", "ovl min")),
        mean_ns=round(sum(row["lat avg"] for row in rows) / len(rows)),
        max_ns=max(row.get(name, row["lat max"]) for row in rows for name in ("lat max", "ovl max")),
        overruns=max(rows[-1]["overruns"], 0),
        lines=_lines(rows, duration_ns, period_ns),
        notes=notes_that_apply(
            {
                NO_BINS: True,
                LINES_GONE: _starts_late(rows),
                NO_HEAD: count is None,
                CALIBRATED: True,
                MEAN_OF_LINES: len(rows) > 1,
            }
        ),
        faults=tuple(_faults(rows)),
    )


def _lines(rows: list[dict[str, int]], duration_ns: int | None, period_ns: int | None) -> tuple[TimedLines, ...]:
    """The lines in the order of time; () if there are fewer than two, or nothing tells their time."""
    if len(rows) < FEWEST_LINES or duration_ns is None:
        return ()
    line_ns = duration_ns // len(rows)
    end_ns = np.arange(1, len(rows) + 1, dtype=np.int64) * line_ns
    least, mean, most = (np.array([row[name] for row in rows], np.int64) for name in ("lat min", "lat avg", "lat max"))
    # An overrun may cost a period. Of lines whose first ones are missing, nobody knows when they were.
    overrun_ns = max(rows[-1]["overruns"], 0) * (period_ns or LARGEST_NS)
    latest_ns = end_ns + min(overrun_ns, LARGEST_NS) + line_ns
    if _starts_late(rows):
        latest_ns = np.full(len(rows), NEVER)
    return (TimedLines("", end_ns - line_ns, end_ns, latest_ns, least, most, mean_ns=mean),)


def _starts_late(rows: list[dict[str, int]]) -> bool:
    """Whether the first line has wider extremes since the start than of its own time: earlier lines are missing."""
    first = rows[0]
    return (
        first.get("ovl min", first["lat min"]) < first["lat min"]
        or first.get("ovl max", first["lat max"]) > first["lat max"]
    )


def _faults(rows: list[dict[str, int]]) -> Iterator[str]:
    """Where the extremes since the start do not hold those of the lines, or the overruns become fewer."""
    for name, own, sign in (("ovl min", "lat min", -1), ("ovl max", "lat max", 1)):
        if name not in rows[0]:
            continue
        so_far = accumulate((sign * max(sign * row[own], sign * row[name]) for row in rows), min if sign < 0 else max)
        if any(row[name] != widest for row, widest in zip(rows, so_far, strict=True)):
            yield f"its {name} is not the widest {own} so far"
    if any(a["overruns"] > b["overruns"] for a, b in pairwise(rows)):
        yield "its overruns become fewer from one line to the next"
