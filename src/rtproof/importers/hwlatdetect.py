# SPDX-License-Identifier: Apache-2.0
"""What ``hwlatdetect`` of rt-tests prints: the longest time that the hardware took from a loop with interrupts off.

Firmware (system management interrupts) and hypervisors are what takes it. The tool looks only for a part of the time,
and times below its threshold are in no figure. With --report or --debug the samples follow, each with its time: inner
is a time within the loop, outer one between two loops. (Format: rt-tests, src/hwlatdetect/hwlatdetect.py; kernel,
Documentation/trace/hwlat_detector.rst.)
"""

import re

import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.phrases import percent
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import (
    LARGEST_COUNT,
    LARGEST_NS,
    UNCOUNTABLE,
    microseconds,
    refuse_several,
    whole_number,
)
from rtproof.summary.imported_histogram import ImportedHistogram, TimedLines

TOOL = "hwlatdetect"
US_NS = 1_000
HARDWARE = (
    "it measures how long the hardware or a hypervisor took the CPU from a loop with interrupts off, not how late a "
    "thread woke up"
)
LOOKED = "it looked for {0} of the time"
BELOW = "no time was longer than its threshold of {0} us; shorter ones are in no figure"
CONTRADICTED = "its longest time contradicts the number above its threshold"
ABOVE = "{0:,} times were longer than its threshold of {1} us; shorter ones are in no figure"

_TITLE = re.compile(r"^hwlatdetect:  test duration (\d{1,9}) seconds$", re.M)
_SETTING = re.compile(r"^ *(Latency threshold|Sample window|Sample width): +(\d{1,12})us$", re.M)
_MAX = re.compile(r"^Max Latency: (Below threshold|\d{1,12}us)$", re.M)
_EXCEEDING = re.compile(r"^Samples exceeding threshold: (\d{1,18})$", re.M)
_SAMPLE = re.compile(r"^ts: (\d{1,10})\.(\d{3,9}), inner: *(\d{1,12}), outer: *(\d{1,12})(?:,.*)?$", re.M)
_COUNT = re.compile(r"^(Samples recorded|SMIs during run): (\d{1,18})$", re.M)
NAMES = {"Samples recorded": "samples recorded", "SMIs during run": "SMIs during the run"}
LINES = tool_lines(
    r"ts: ?\d|Max Latency:|Samples (?:exceeding|recorded)",
    [_TITLE, _SETTING, _MAX, _EXCEEDING, _SAMPLE, _COUNT],
    r" +detector: .*|(?:  +| *parameters:|Starting test|test finished|report saved|\d+ SMIs occured|hwlatdetect:).*|"
    r" *(?:CPU list|CPU mode|Non-sampling period|Output File|detector|Threads?): .*",
)


def looks_like(text: str) -> bool:
    return bool(_TITLE.search(text))


def read(text: str) -> ImportedHistogram:
    """The longest time in the text; UserError if the tool was ended before it printed that."""
    titles = _TITLE.findall(text)
    refuse_several(titles)
    settings = {name: whole_number(value) for name, value in _SETTING.findall(text)}
    most, exceeding = _MAX.search(text), _EXCEEDING.search(text)
    if not most or not exceeding or len(settings) != 3:
        raise UserError("its settings or its longest time are missing: it was ended before it had measured")
    longer = whole_number(exceeding[1])
    if longer > LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    threshold, window, width = (settings[name] for name in ("Latency threshold", "Sample window", "Sample width"))
    if not 0 < width <= window:
        raise UserError("it says that it looked for longer than there was time")
    max_ns = round(microseconds(most[1].removesuffix("us")) * US_NS) if most[1] != "Below threshold" else None
    agrees = longer == 0 if max_ns is None else longer > 0 and max_ns >= threshold * US_NS
    duration_ns = whole_number(titles[0]) * 10**9 or None
    return ImportedHistogram(
        TOOL,
        "hardware latency",
        duration_ns=duration_ns,
        lines=_samples(text, duration_ns or 0),
        max_ns=max_ns,
        resolution_ns=US_NS,
        lossy=True,
        facts=(
            *((name, f"{value:,} us") for name, value in settings.items()),
            *((NAMES[name], f"{whole_number(count):,}") for name, count in _COUNT.findall(text)),
        ),
        notes=(
            HARDWARE,
            LOOKED.format(percent(width / window)),
            ABOVE.format(longer, f"{threshold:,}") if longer else BELOW.format(f"{threshold:,}"),
        ),
        faults=() if agrees else (CONTRADICTED,),
    )


def _samples(text: str, duration_ns: int) -> tuple[TimedLines, ...]:
    """The samples in the order of time. The first is the begin, because the time before it is unknown."""
    rows = [
        (int(seconds), int(part.ljust(9, "0")), int(inner), int(outer))
        for seconds, part, inner, outer in _SAMPLE.findall(text)
    ]
    if not rows:
        return ()
    times_ns = np.array([seconds * 10**9 + ns for seconds, ns, _, _ in rows], np.int64)
    longest_ns = np.array([max(inner, outer) * US_NS for _, _, inner, outer in rows], np.int64)
    if np.any(np.diff(times_ns) < 0) or longest_ns.max() > LARGEST_NS:
        raise UserError("the times of its samples go back, or a sample is longer than any clock can show")
    since_ns = times_ns - times_ns[0]
    before_ns = max(duration_ns - int(since_ns[-1]), 0)
    return (TimedLines("", since_ns, since_ns, since_ns + before_ns, longest_ns, longest_ns),)
