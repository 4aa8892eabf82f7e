# SPDX-License-Identifier: Apache-2.0
"""What rt-tests' ``oslat`` prints, and the file of its option --json.

oslat reads the CPU's counter in a loop without a pause. A value is the time between two readings, so it is no latency
of a wake-up, but a time that something else took the CPU for.

Before version 2.5, a value is one more than its whole microseconds: from 0 to 1 us it is 1, in the bin "001". Since 2.5
a value is rounded up to a unit: a microsecond, or a nanosecond if a bin is not whole microseconds wide (option -W). A
bin holds the rounded values from one width below its name: "002" holds 1, which is 0 to 1 us. The last bin also counts
all that is longer. With -B every bin is moved up by the shortest time that the warm-up saw, and shorter values fall
into the first bin. With -z empty bins have no row. The text has all times in microseconds; the JSON has minimum and
maximum in units. The mean is that of the names of the bins, so it is not read from bins that are wider than a unit.
(Format: rt-tests, src/oslat/oslat.c, insert_bucket and write_summary, of versions 2.4 and 2.5.)
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import UserError
from rtproof.importers._pasted import tool_lines
from rtproof.importers._rt_tests import decode_result, looks_like_rt_tests, option_length_ns, option_number
from rtproof.importers._tool_output import (
    BUSY_LOOP,
    LARGEST_COUNT,
    LARGEST_NS,
    UNCOUNTABLE,
    imported_measurement,
    microseconds,
    refuse_several,
    whole_number,
)
from rtproof.summary.counts import NO_COUNTS, Counts
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures

Int64Array = NDArray[np.int64]
TOOL = "oslat"
US_NS = 1_000
MOST_CPUS = 65_536
MOVED = "its bins were moved up by the shortest time of its warm-up (option -B); the first has all shorter times too"
ROUNDS_UP_SINCE = 2.5
LETTERS = "b:Bc:C:D:f:hm:qsw:W:T:vz"
LONG_NAMES = {"bucket-size": "b", "bucket-width": "W", "bias": "B", "duration": "D", "rtprio": "f", "cpu-list": "c"}

_ROW = re.compile(
    r"^ *(Core|\d{1,6}(?:\.\d{3})? \(us\)|Minimum|Average|Maximum|Duration):((?: +[0-9.]+)+) *(\(.*\))?$", re.M
)
_TEXT = re.compile(r"^ *Core:(?: +\d+)+$", re.M)
_VERSION = re.compile(r"^oslat V (\d\.\d+)$", re.M)
_BIAS = re.compile(r"^Global bias set to ", re.M)
_LEFT_OUT = re.compile(r"^ *\.\.\.$", re.M)
_PRIORITY = re.compile(r"^Thread priority: +SCHED_FIFO:(\d{1,2})$", re.M)
FIGURES = ("Core", "Minimum", "Maximum", "Average", "Duration")
LINES = tool_lines(
    r" *(?:Core|\d{3,}(?:\.\d+)? \(us\)|Minimum|Average|Maximum|Duration):",
    [_ROW, _VERSION],
    r" *\.\.\.|(?:Total runtime|Thread priority|CPU list|CPU for main thread|Workload|Workload mem|Preheat cores):.*|"
    r" *(?:Counter Freq|Max-Min):.*|Pre-heat for .*|Test (?:starts|completed)\.*|Global bias set to .*",
)


Cpu = tuple[PrintedFigures, Mapping[int, int]]
"""The figures of a CPU as printed, in nanoseconds, and its bins by their names."""


@dataclass(frozen=True)
class _Scale:
    """What the names of the bins mean. last_ns: the name of the last one, 0 without a bin. moved: with option -B.

    up: whether values were rounded up.
    """

    unit_ns: int
    width_ns: int
    moved: bool
    last_ns: int = 0
    up: bool = False

    def ends(self, names_ns: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The smallest and the largest value of each bin."""
        if self.up:
            return names_ns - self.width_ns - self.unit_ns + 1, names_ns - self.unit_ns
        return names_ns - self.width_ns, names_ns - 1


def looks_like(text: str) -> bool:
    return looks_like_rt_tests(text, "oslat") or bool(_TEXT.search(text) and "Max-Min:" in text)


def read(text: str) -> ImportedHistogram:
    """The measurement in the text or in the document; UserError if its figures make no sense."""
    return _of_json(text) if text.lstrip().startswith("{") else _of_text(text)


def _of_json(text: str) -> ImportedHistogram:
    document = decode_result(text)
    options = document.options(LETTERS, LONG_NAMES)
    threads = [each for _, each in sorted(document.thread.items())]
    unit_ns = 1 if any("." in name for each in threads for name in each.histogram) else US_NS
    cpus = []
    for number, each in enumerate(threads):
        least, mean_us, most = each.ends
        bins = {_ns(name): count for name, count in each.histogram.items()}
        cpus.append((_printed(number, each.cpu, least * unit_ns, mean_us, most * unit_ns), bins))
    scale = _Scale(unit_ns, option_number(options.get("W", "")) or US_NS, "B" in options)
    found = _measured(cpus, scale, document.version, max(each.duration for each in threads))
    return replace(
        found,
        title=document.command,
        priority=option_number(options.get("f", "0")),
        asked_duration_ns=option_length_ns(options.get("D", "")),
        started_s=document.times_s[0],
        facts=document.facts,
        faults=(*document.faults, *found.faults),
    )


def _of_text(text: str) -> ImportedHistogram:
    refuse_several(_TEXT.findall(text))
    rows = {name: words.split() for name, words, _ in _ROW.findall(text)}
    bins = {name.partition(" ")[0]: words for name, words in rows.items() if name[0].isdigit()}
    told = [rows.get(name, []) for name in FIGURES]
    if not bins or any(len(words) != len(told[0]) for words in (*told, *bins.values())):
        raise UserError("a row of its table is missing or has not a number for each CPU")
    if len(told[0]) > MOST_CPUS:
        raise UserError(f"it has {len(told[0]):,} CPUs")
    names = [_ns(name) for name in bins]
    cpus = [
        (
            _printed(at, whole_number(cpu), _ns(least), microseconds(mean), _ns(most)),
            {name: whole_number(counts[at]) for name, counts in zip(names, bins.values(), strict=True)},
        )
        for at, (cpu, least, most, mean, _) in enumerate(zip(*told, strict=True))
    ]
    unit_ns = 1 if any("." in name for name in bins) else US_NS
    # Of a text without empty bins, the bins may be narrower than the steps between their names.
    width_ns = gcd(*(name - min(names) for name in names)) or US_NS
    moved = bool(_BIAS.search(text)) or (min(names) > width_ns and not _LEFT_OUT.search(text))
    version, priority = _VERSION.search(text), _PRIORITY.search(text)
    seconds = max(map(microseconds, told[-1]))
    found = _measured(cpus, _Scale(unit_ns, width_ns, moved), version[1] if version else "", seconds)
    return replace(found, priority=int(priority[1]) if priority else 0)


def _ns(text: str) -> int:
    """The nanoseconds of microseconds as printed."""
    return round(microseconds(text) * US_NS)


def _printed(number: int, cpu: int | None, min_ns: int, mean_us: float, max_ns: int) -> PrintedFigures:
    if not 0 <= mean_us <= LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    return PrintedFigures(number=number, cpu=cpu, min_ns=min_ns, mean_ns=round(mean_us * US_NS), max_ns=max_ns)


def _measured(cpus: Sequence[Cpu], scale: _Scale, version: str, seconds: float) -> ImportedHistogram:
    """The measurement. version: "" if unknown. Without -z all bins are there; the last always is."""
    for told, bins in cpus:
        min_ns, max_ns = told.min_ns or 0, told.max_ns or 0
        numbers = (min_ns // US_NS, max_ns // US_NS, told.cpu or 0, *bins.values())
        if max(map(abs, (*numbers, *(name // US_NS for name in bins)))) > LARGEST_COUNT:
            raise UserError(UNCOUNTABLE)
        if min(min_ns, *bins, 1) < 1 or min(bins.values(), default=0) < 0:
            raise UserError("its bins begin below 1 us, or count fewer than no values")
    if not 0 <= seconds <= LARGEST_NS / 1e9:
        raise UserError("it lasted longer than any clock can show")
    last_ns = max((name for _, bins in cpus for name in bins), default=0)
    scale = replace(scale, last_ns=last_ns, up=scale.unit_ns == 1 or _rounds_up(cpus, last_ns, version))
    return imported_measurement(
        TOOL,
        "",
        [_part(told, bins, scale) for told, bins in cpus],
        scale.unit_ns,
        rounded_up=scale.up,
        scale_ns=int(scale.ends(np.array([last_ns], np.int64))[0][0]) if last_ns else None,
        duration_ns=round(seconds * 1e9) or None,
        unsure=scale.moved,
        notes=(BUSY_LOOP, MOVED) if scale.moved else (BUSY_LOOP,),
    )


def _rounds_up(cpus: Sequence[Cpu], last_ns: int, version: str) -> bool:
    """Whether the largest value lies in a bin of a higher name, as since 2.5.

    The version tells it only up to 2.9, because 2.1 calls itself 2.10.
    """
    for told, bins in cpus:
        highest = max((name for name, count in bins.items() if count), default=last_ns)
        if highest < last_ns:
            return highest > (told.max_ns or 0)
    number = re.match(r"\d{1,3}\.\d{1,3}", version, re.ASCII)
    return number is not None and float(number[0]) >= ROUNDS_UP_SINCE


def _part(told: PrintedFigures, bins: Mapping[int, int], scale: _Scale) -> PrintedFigures:
    """The figures of a CPU. With -B the first bin is widened down to the printed minimum."""
    names = np.array(sorted(name for name, count in bins.items() if count and name < scale.last_ns), np.int64)
    counts = np.array([bins[int(name)] for name in names], np.int64)
    min_ns, mean_ns, max_ns = (ns or 0 for ns in (told.min_ns, told.mean_ns, told.max_ns))
    low, high = scale.ends(names)
    if scale.moved and names.size:
        low[0] = min(int(low[0]), min_ns - scale.unit_ns + scale.up)
    beyond = bins.get(scale.last_ns, 0)
    more_ns = 0 if scale.up else US_NS
    found = replace(
        told,
        count=int(counts.sum()) + beyond,
        min_ns=min_ns - more_ns,
        mean_ns=mean_ns - scale.width_ns if scale.width_ns == scale.unit_ns else None,
        max_ns=max_ns - more_ns,
    )
    if not scale.last_ns:
        return found
    on_scale = Counts(np.maximum(low, 0), high, counts) if names.size else NO_COUNTS
    return replace(found, overflow=beyond, histogram=on_scale)
