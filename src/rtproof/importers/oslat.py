# SPDX-License-Identifier: Apache-2.0
"""What rt-tests' ``oslat`` prints, and the file of its option --json.

oslat reads the CPU's counter in a loop without a pause. A value is the time between two readings, so it is no latency
of a wake-up, but a time that something else took the CPU for. A value of less than 1 us is shown as 1, of less than
2 us as 2, and so on: each is one more than the whole microseconds in it. The last bin also counts all that is longer.
With -B every bin is moved up by the shortest time that the warm-up saw, and shorter values fall into the first bin.
(Format: rt-tests, src/oslat/oslat.c, insert_bucket and write_summary.)
"""

import re
from dataclasses import replace

import msgspec
import numpy as np

from rtproof.core.errors import UserError
from rtproof.importers._rt_tests import RtTestsResult, looks_like_rt_tests, option_length_ns, option_number
from rtproof.importers._tool_output import (
    BUSY_LOOP,
    LARGEST_COUNT,
    LARGEST_NS,
    UNCOUNTABLE,
    decode_json,
    imported_measurement,
    microseconds,
    refuse_several,
    whole_number,
)
from rtproof.summary.counts import NO_COUNTS, Counts
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart

TOOL = "oslat"
US_NS = 1_000
MOST_CPUS = 65_536
MOVED = "its bins were moved up by the shortest time of its warm-up (option -B); the first has all shorter times too"
LETTERS = "b:Bc:C:D:f:hm:qsw:T:vz"
LONG_NAMES = {"bucket-size": "b", "bias": "B", "duration": "D", "rtprio": "f", "cpu-list": "c"}

_ROW = re.compile(
    r"^[ \t]*(Core|\d{1,6} \(us\)|Minimum|Average|Maximum|Duration):((?:[ \t]+[0-9.]+)+)[ \t]*(\(.*\))?$", re.M
)
_TEXT = re.compile(r"^[ \t]*Core:(?:[ \t]+\d+)+$", re.M)
_PRIORITY = re.compile(r"^Thread priority:[ \t]+SCHED_FIFO:(\d{1,2})$", re.M)


class OslatThread(msgspec.Struct, frozen=True):
    """A thread: times in microseconds, the duration in seconds."""

    cpu: int
    min: int
    max: int
    avg: float
    duration: float = 0
    histogram: dict[int, int] = {}


class OslatResult(RtTestsResult, frozen=True, kw_only=True):
    thread: dict[int, OslatThread]


def looks_like(text: str) -> bool:
    return looks_like_rt_tests(text, "oslat") or bool(_TEXT.search(text) and "Max-Min:" in text)


def read(text: str) -> ImportedHistogram:
    """The measurement in the text or in the document; UserError if its figures make no sense."""
    return _of_json(text) if text.lstrip().startswith("{") else _of_text(text)


def _of_json(text: str) -> ImportedHistogram:
    document = decode_json(text, OslatResult)
    if not document.thread:
        raise UserError("it has no thread")
    options = document.options(LETTERS, LONG_NAMES)
    threads = [each for _, each in sorted(document.thread.items())]
    found = _measured(threads, moved="B" in options)
    return replace(
        found,
        title=document.command,
        priority=option_number(options.get("f", "0")),
        asked_duration_ns=option_length_ns(options.get("D", "")),
        started_s=document.times_s[0],
        facts=document.facts,
        faults=(*document.faults, *found.faults),
    )


FIGURES = ("Core", "Minimum", "Maximum", "Average", "Duration")


def _of_text(text: str) -> ImportedHistogram:
    refuse_several(_TEXT.findall(text))
    rows = {name: words.split() for name, words, _ in _ROW.findall(text)}
    bins = {whole_number(name.partition(" ")[0]): words for name, words in rows.items() if name[0].isdigit()}
    told = [rows.get(name, []) for name in FIGURES]
    if not bins or any(len(words) != len(told[0]) for words in (*told, *bins.values())):
        raise UserError("a row of its table is missing or has not a number for each CPU")
    if len(told[0]) > MOST_CPUS:
        raise UserError(f"it has {len(told[0]):,} CPUs")
    threads = [
        OslatThread(
            whole_number(cpu),
            whole_number(least),
            whole_number(most),
            microseconds(mean),
            microseconds(seconds),
            {number: whole_number(counts[at]) for number, counts in bins.items()},
        )
        for at, (cpu, least, most, mean, seconds) in enumerate(zip(*told, strict=True))
    ]
    return replace(_measured(threads, moved=min(bins) > 1), priority=_priority(text))


def _priority(text: str) -> int:
    found = _PRIORITY.search(text)
    return int(found[1]) if found else 0


def _measured(threads: list[OslatThread], *, moved: bool) -> ImportedHistogram:
    """The measurement. moved: whether option -B moved the bins. Without -z all bins are there; the last always is."""
    last = max((number for each in threads for number in each.histogram), default=0)
    parts = [_part(number, each, last, moved) for number, each in enumerate(threads)]
    seconds = max(each.duration for each in threads)
    if not 0 <= seconds <= LARGEST_NS / 1e9:
        raise UserError("it lasted longer than any clock can show")
    return imported_measurement(
        TOOL,
        "",
        parts,
        US_NS,
        scale_ns=(last - 1) * US_NS if last else None,
        duration_ns=round(seconds * 1e9) or None,
        unsure=moved,
        notes=(BUSY_LOOP, MOVED) if moved else (BUSY_LOOP,),
    )


def _part(number: int, told: OslatThread, last: int, moved: bool) -> ImportedPart:
    _refuse_nonsense(told)
    whole = {each: n for each, n in told.histogram.items() if n and each < last}
    beyond = told.histogram.get(last, 0)
    return ImportedPart(
        number,
        told.cpu,
        sum(whole.values()) + beyond,
        (told.min - 1) * US_NS,
        round((told.avg - 1) * US_NS),
        (told.max - 1) * US_NS,
        beyond if last else None,
        _counts(whole, told.min if moved else 0) if last else None,
    )


def _refuse_nonsense(told: OslatThread) -> None:
    numbers = (told.min, told.max, told.cpu, *told.histogram, *told.histogram.values())
    if max(map(abs, numbers)) > LARGEST_COUNT or not 0 <= told.avg <= LARGEST_COUNT:
        raise UserError(UNCOUNTABLE)
    if min(told.min, *told.histogram, 1) < 1 or min(told.histogram.values(), default=0) < 0:
        raise UserError("its bins begin below 1 us, or count fewer than no values")


def _counts(bins: dict[int, int], least: int) -> Counts:
    """The bins, with the first one widened down to ``least``."""
    if not bins:
        return NO_COUNTS
    ends = np.array(sorted(bins), np.int64)
    low = (ends - 1) * US_NS
    if least:
        low[0] = min(int(low[0]), (least - 1) * US_NS)
    return Counts(low, ends * US_NS - 1, np.array([bins[int(end)] for end in ends], np.int64))
