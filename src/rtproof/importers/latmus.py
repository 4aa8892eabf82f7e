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
from rtproof.importers._tool_output import LARGEST_COUNT, UNCOUNTABLE, histogram_of, microseconds, whole_number
from rtproof.importers.xenomai import FOLDED, LATMUS, with_true_bins
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


def looks_like(text: str) -> bool:
    return "# libevl version: " in text and "# sampling period: " in text


def read(text: str) -> ImportedHistogram:
    """The measurement in the file; UserError if its figures make no sense."""
    told = dict(_COMMENT.findall(text))
    rows = _ROW.findall(text)
    if not rows or len({len(row[2].split()) for row in rows}) != 1:
        raise UserError("it has no rows of numbers, or rows of different lengths")
    if len(rows[0][2].split()) > 1:
        raise UserError("it has more than one measurement, and only the figures of one could be told")
    old = SAMPLES not in told
    numbers = [whole_number(row[0]) for row in rows]
    counts = np.array([whole_number(row[2].strip()) - old for row in rows], np.int64)
    if counts.sum(dtype=np.float64) > LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    bins = histogram_of(np.array(numbers, np.int64), counts, US_NS)
    period, seconds = (
        _PERIOD.fullmatch(told.get("sampling period", "")),
        _CLOCK.match(told.get("duration (hhmmss)", "")),
    )
    period_ns = whole_number(period[1]) * US_NS if period else None
    found = ImportedHistogram(
        TOOL,
        told.get("context", ""),
        period_ns=period_ns,
        shortest_period_ns=period_ns,
        priority=_number(told, "thread priority"),
        duration_ns=_duration_ns(seconds) if seconds else None,
        count=int(counts.sum()),
        min_ns=_figure(told, "min latency"),
        mean_ns=_figure(told, "avg latency"),
        max_ns=_figure(told, "max latency"),
        overruns=_number(told, "OVERRUNS") or 0,
        mode_switches=_number(told, "IN-BAND SWITCHES") or 0,
        histogram=bins,
        facts=tuple((key, value) for key, value in told.items() if key in FACTS),
        notes=(FOLDED, *([ONE_MORE] if old else []), *([DEGRADED] if "# DEGRADED MODE" in text else [])),
        faults=tuple(_faults(told, int(counts.sum()), old)),
    )
    return replace(with_true_bins(found, bins), title=found.title)


FACTS = ("clock gravity", "clocksource", "vDSO access", "libevl version", "thread affinity")
"""Comments that describe the system."""


def _faults(told: dict[str, str], counted: int, old: bool) -> list[str]:
    samples = None if old else _number(told, SAMPLES)
    if samples is None or samples == counted:
        return []
    return [f"it says {samples:,} samples, and its histogram adds up to {counted:,}"]


def _duration_ns(clock: re.Match[str]) -> int:
    hours, minutes, seconds = map(int, clock.groups())
    return ((hours * 60 + minutes) * 60 + seconds) * 1_000_000_000


def _number(told: dict[str, str], name: str) -> int | None:
    word = told.get(name, "").strip()
    return whole_number(word) if word else None


def _figure(told: dict[str, str], name: str) -> int | None:
    word = told.get(name, "").strip()
    if word and not re.fullmatch(r"-?\d{1,15}(\.\d{1,9})?", word):
        raise UserError(f"its {name} is no number")
    return round(microseconds(word) * US_NS) if word else None
