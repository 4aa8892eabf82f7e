# SPDX-License-Identifier: Apache-2.0
"""The file that EVL's ``latmus`` writes with -g.

Comments tell the kernel, the period, the kind of the measured thread, its priority and CPU, and the figures of the run.
The rows of numbers have a whole microsecond and the values of that length. Like Xenomai's latency, latmus counts a
wake-up before its time as a late one of the same size. The last row, marked with "+", has all longer values too. The
first versions add one to each count, and tell neither the number of values nor the time of the largest. (Format:
libevl, benchmarks/latmus.c, dump_gnuplot.)
"""

import re
from dataclasses import replace

import numpy as np

from rtproof.core.errors import UserError
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import (
    LARGEST_COUNT,
    UNCOUNTABLE,
    clock_ns,
    counted_otherwise,
    histogram_of,
    microseconds,
    refuse_several,
    whole_number,
)
from rtproof.importers.xenomai import FOLDED, LATMUS, with_true_bins
from rtproof.summary.counts import Counts
from rtproof.summary.imported_histogram import ImportedHistogram

TOOL = LATMUS
US_NS = 1_000
ONE_MORE = "its rows have one added to each count, as the first versions write them: it was taken off again"
DEGRADED = "latmus itself says that it ran in a degraded mode and that its figures may be irrelevant"

_COMMENT = re.compile(r"^# ([A-Za-z][A-Za-z -]{0,40}?(?: \(hhmmss\))?): (.{0,200})$", re.M)
_ROW = re.compile(r"^(\d{1,12})(\+?)((?: \d{1,12}){1,64}) *$", re.M)
_PERIOD = re.compile(r"(\d{1,9}) microseconds")
_CLOCK = re.compile(r"(\d{1,6}):(\d{2}):(\d{2})")
SAMPLES = "sample count"
COUNTERS = ("OVERRUNS", "IN-BAND SWITCHES")
FACTS = ("clock gravity", "clocksource", "vDSO access", "libevl version", "thread affinity")
"""Comments that describe the system."""
OTHER_BINS = "its histogram contradicts its minimum, mean or maximum"

LINES = tool_lines(r"\d", [_ROW])


def looks_like(text: str) -> bool:
    return "# libevl version: " in text and "# sampling period: " in text


def read(text: str) -> ImportedHistogram:
    """The measurement in the file; UserError if its figures make no sense."""
    refuse_several(re.findall(r"^# libevl version: ", text, re.M))
    comments = _COMMENT.findall(text)

    def told(name: str) -> str:
        """The value of a comment, "" if there is none. The newest versions put words before some names."""
        return next((said.strip() for key, said in dict(comments).items() if f" {key}".endswith(f" {name}")), "")

    old = not told(SAMPLES)
    bins, counted = _bins(text, old)
    period, clock = _PERIOD.fullmatch(told("sampling period")), _CLOCK.match(told("duration (hhmmss)"))
    period_ns = whole_number(period[1]) * US_NS if period else None
    least, mean, most = (_figure_ns(f"{name} latency", told(f"{name} latency")) for name in ("min", "avg", "max"))
    overruns, switches = (whole_number(told(name) or "0") for name in COUNTERS)
    for name, count in zip(COUNTERS, (overruns, switches), strict=True):
        if count < 0:
            raise UserError(f"its {name} are fewer than none: the counter has wrapped")
    found = ImportedHistogram(
        TOOL,
        told("context"),
        period_ns=period_ns,
        shortest_period_ns=period_ns,
        priority=whole_number(told("thread priority")) if told("thread priority") else None,
        duration_ns=clock_ns(*clock.groups()) or None if clock else None,
        count=counted,
        min_ns=least,
        mean_ns=mean,
        max_ns=most,
        overruns=overruns,
        mode_switches=switches,
        histogram=bins,
        facts=tuple((key, told(key)) for key in FACTS if told(key)),
        notes=(FOLDED, *([ONE_MORE] if old else []), *([DEGRADED] if "# DEGRADED MODE" in text else [])),
        faults=counted_otherwise(None if old else whole_number(told(SAMPLES)), counted),
    )
    true = with_true_bins(found, bins)
    # The width of its bins is known, so no other width explains the contradiction.
    return true if true.histogram is not None else replace(found, histogram=None, faults=(*found.faults, OTHER_BINS))


def _bins(text: str, old: bool) -> tuple[Counts, int]:
    """The histogram and the number of values in it. old: each count has one added."""
    rows = _ROW.findall(text)
    if not rows or len({len(row[2].split()) for row in rows}) != 1:
        raise UserError("it has no rows of numbers, or rows of different lengths")
    if len(rows[0][2].split()) > 1:
        raise UserError("it has more than one measurement, and only the figures of one could be told")
    numbers = np.array([whole_number(row[0]) for row in rows], np.int64)
    counts = np.array([whole_number(row[2].strip()) - old for row in rows], np.int64)
    if counts.sum(dtype=np.float64) > LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    return histogram_of(numbers, counts, US_NS), int(counts.sum())


def _figure_ns(name: str, word: str) -> int | None:
    """The time that the file has in microseconds; None for "". UserError if it is none."""
    if word and not re.fullmatch(r"-?\d{1,15}(\.\d{1,9})?", word):
        raise UserError(f"its {name} is no number")
    return round(microseconds(word) * US_NS) if word else None
