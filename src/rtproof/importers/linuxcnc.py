# SPDX-License-Identifier: Apache-2.0
"""What LinuxCNC's ``latency-histogram --nox`` prints: for each of its threads, minimum, maximum and deviation so far.

Its threads are called base and servo. It prints a line for each of them, again and again. What it measures is how much
longer or shorter than its period a cycle was: one late wake-up makes a cycle too long and the next one too short. So a
value may be negative, and it is no lateness. The histogram itself, with bins on both sides of 0, is only drawn: no
option writes it to a file, nor the periods (--base, --servo), nor the number of values. Values wrap at 2.1 s, because
it keeps them in 32 bits. (Format: LinuxCNC, scripts/latency-histogram and src/hal/components/latencybins.comp.)
"""

import re
from collections.abc import Sequence

import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.units import UNITS_NS
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import imported_measurement, microseconds, whole_number
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures, TimedLines

TOOL = "LinuxCNC latency-histogram"
THREADS = ("base", "servo")
STEP_NS = 100
"""Figures are printed to a tenth of a microsecond."""
MOST_NS = 2**31
MOST_SECONDS = 400 * 86_400
CYCLES = (
    "it measures how much longer or shorter than its period a cycle was, not how late a thread woke up: one late "
    "wake-up counts twice"
)
DRAWN = "its histogram is only drawn: minimum, maximum and deviation so far are all that it prints"
UNTOLD = "it tells neither its periods (options --base, --servo) nor the number of its values"

_LINE = re.compile(
    r"^ *(\d{1,9}) secs +(\w{1,20}) min: *(-?\d{1,9}\.\d{3}) uS max: *(-?\d{1,9}\.\d{3}) uS "
    r"sdev: *(\d{1,9}\.\d{3}) uS *$",
    re.M,
)

LINES = tool_lines(r" *\d+ secs ", [_LINE])


Line = tuple[int, int, int, str]
"""The seconds since the start, minimum and maximum of a thread in ns, and its deviation as printed."""


def looks_like(text: str) -> bool:
    return bool(_LINE.search(text))


def read(text: str) -> ImportedHistogram:
    """The figures of each thread; UserError if they contradict each other."""
    lines = _lines_of_threads(text)
    if not lines:
        raise UserError("it has no line of a thread that measured")
    names = [name for name in THREADS if name in lines]
    parts = [
        PrintedFigures(number=number, min_ns=low_ns, max_ns=high_ns)
        for number, name in enumerate(names)
        for _, low_ns, high_ns, _ in lines[name][-1:]
    ]
    return imported_measurement(
        TOOL,
        " and ".join(names),
        parts,
        STEP_NS,
        duration_ns=max(each[-1][0] for each in lines.values()) * UNITS_NS["s"] or None,
        lossy=True,
        lines=tuple(_timed(name, lines[name]) for name in names if len(lines[name]) > 1),
        facts=tuple(
            (f"thread {number}", f"{name}, standard deviation {lines[name][-1][3]} us")
            for number, name in enumerate(names)
        ),
        notes=(CYCLES, DRAWN, UNTOLD),
    )


def _lines_of_threads(text: str) -> dict[str, list[Line]]:
    """The lines of each thread in the order of time. Lines before the first value of a thread are left out."""
    found: dict[str, list[Line]] = {}
    for seconds, name, least, most, deviation in _LINE.findall(text):
        if name not in THREADS:
            raise UserError(f"it has a thread {name}, and its threads are base and servo")
        low_ns, high_ns = (round(microseconds(word) * 1_000) for word in (least, most))
        after_s = whole_number(seconds)
        if low_ns > high_ns:
            if found.get(name):
                raise UserError("the minimum of a line is above its maximum")
            continue
        if max(-low_ns, high_ns) > MOST_NS or after_s > MOST_SECONDS:
            raise UserError("a figure is larger than it can count to")
        lines = found.setdefault(name, [])
        before_s, before_low_ns, before_high_ns, _ = lines[-1] if lines else (0, low_ns, high_ns, "")
        if after_s < before_s or high_ns < before_high_ns or low_ns > before_low_ns:
            raise UserError("it has the lines of several runs: give each in a file of its own")
        lines.append((after_s, low_ns, high_ns, deviation))
    return found


def _timed(name: str, lines: Sequence[Line]) -> TimedLines:
    """The lines of a thread. The seconds were read before the figures, by a few seconds, because reading takes time."""
    end_ns = np.array([seconds for seconds, *_ in lines], np.int64) * UNITS_NS["s"]
    start_ns = np.concatenate(([0], end_ns[:-1]))
    least, most = (np.array([line[at] for line in lines], np.int64) for at in (1, 2))
    # What a line shows happened before the next line was begun; of the last one nothing tells when.
    latest_ns = np.append(end_ns[1:] + UNITS_NS["s"], end_ns[-1] + 2 * (end_ns[-1] - start_ns[-1]) + UNITS_NS["s"])
    return TimedLines(name, start_ns, end_ns, latest_ns, least, most, so_far=True)
