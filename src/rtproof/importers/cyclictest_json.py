# SPDX-License-Identifier: Apache-2.0
"""The file of ``cyclictest --json`` (rt-tests 2.x), with a histogram if it was run with -h.

The file has the number of cycles of each thread and a histogram of those on the scale. The cycles beyond the scale are
in no bin, and the file does not say how many they are. cyclictest writes the file while the threads still run, so a
thread may have a few cycles more than its histogram. Policy, priority and period are only in the command line. (Format:
rt-tests, src/cyclictest/cyclictest.c and src/lib/rt-utils.c.)
"""

import contextlib
import re
import shlex
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from itertools import pairwise

import msgspec

from rtproof.core.errors import UserError
from rtproof.importers._tool_output import ThreadTotals, decode_json, imported_measurement, imported_thread
from rtproof.importers.cyclictest import MAX_ONLY, OMITTED
from rtproof.summary.imported_histogram import ImportedHistogram, ImportedPart

TOOL = "cyclictest --json"
NO_PRIORITY = "it was started without -p, so it ran without a real-time policy"
WHILE_RUNNING = (
    "{0:,} cycles are counted that its histogram does not have, though its scale has room for them: left out"
)
BROKEN_OFF = "it was to stop at the first value above {0} us (option -b), so its length depends on what it measured"
BACKWARDS = "it ended before it began, by its own clock"
CLOCK = "its beginning and end are given to the second"
SECOND_NS = 1_000_000_000
LENGTHS_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Thread(msgspec.Struct, frozen=True):
    cycles: int
    min: int
    max: int
    avg: float
    histogram: dict[int, int] = {}
    cpu: int | None = None


class CyclictestResult(msgspec.Struct, frozen=True, kw_only=True):
    command: str = msgspec.field(name="cmdline:", default="")
    version: str = msgspec.field(name="rt_test_version:", default="")
    start_time: str = ""
    end_time: str = ""
    sysinfo: dict[str, str | int] = {}
    resolution_in_ns: int = 0
    thread: dict[int, Thread]


def looks_like(text: str) -> bool:
    return text.lstrip().startswith("{") and '"rt_test_version:"' in text and "cyclictest" in text[:4_096]


def read(text: str) -> ImportedHistogram:
    """The measurement in the document; UserError if the document has another form."""
    document = decode_json(text, CyclictestResult)
    if not document.thread:
        raise UserError("it has no thread")
    return _imported(document, _options(document.command))


def _imported(document: CyclictestResult, options: Mapping[str, str]) -> ImportedHistogram:
    width_ns = 1 if document.resolution_in_ns else 1_000
    wanted = _number(options.get("h") or options.get("H"))
    scale_ns = wanted * width_ns if wanted is not None else None
    parts = [_part(number, each, width_ns, scale_ns) for number, each in sorted(document.thread.items())]
    left_out = sum(each.cycles for each in document.thread.values()) - sum(part.count or 0 for part in parts)
    began, ended = _time_s(document.start_time), _time_s(document.end_time)
    period_us = _number(options.get("i", "1000"))
    return imported_measurement(
        TOOL,
        document.command,
        parts,
        width_ns,
        scale_ns=scale_ns,
        period_ns=period_us * 1_000 if period_us and len(parts) == 1 else None,
        shortest_period_ns=period_us * 1_000 if period_us and not options.get("d", "").startswith("-") else None,
        left_out=max(left_out, 0),
        priority=_priority(options.get("p")),
        duration_ns=(ended - began) * SECOND_NS if began is not None and ended is not None and began <= ended else None,
        asked_duration_ns=_length_ns(options.get("D", "")),
        started_s=began,
        facts=_facts(document),
        notes=tuple(_notes(options, parts, left_out)),
        faults=(BACKWARDS,) if began is not None and ended is not None and ended < began else (),
    )


def _part(number: int, thread: Thread, width_ns: int, scale_ns: int | None) -> ImportedPart:
    told = ThreadTotals(number, thread.cpu, thread.cycles, thread.min, thread.max, thread.avg)
    return imported_thread(told, thread.histogram, width_ns, scale_ns)


def _notes(options: Mapping[str, str], parts: list[ImportedPart], left_out: int) -> list[str]:
    told = {
        OMITTED: True,
        CLOCK: True,
        NO_PRIORITY: "p" not in options,
        MAX_ONLY: any(part.histogram is None for part in parts),
        WHILE_RUNNING.format(left_out): left_out > 0,
        BROKEN_OFF.format(options.get("b")): "b" in options,
    }
    return [note for note, applies in told.items() if applies]


def _facts(document: CyclictestResult) -> tuple[tuple[str, str], ...]:
    said = {key: str(value) for key, value in document.sysinfo.items()}
    told = {"command": document.command, "rt-tests": document.version, **said}
    return tuple((key, value) for key, value in told.items() if value)


LONG_NAMES = {
    "histogram": "h",
    "histofall": "H",
    "interval": "i",
    "priority": "p",
    "prio": "p",
    "duration": "D",
    "breaktrace": "b",
    "distance": "d",
}
_LONG = re.compile(r"--([a-z]+)=(.*)")
_SHORT = re.compile(r"-([hHipDbd])(.*)")


def _options(command: str) -> dict[str, str]:
    """Values of the needed options by their letters; "-i 1000", "-i1000" and "--interval=1000" mean the same."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    found: dict[str, str] = {}
    for word, following in pairwise([*words, ""]):
        if match := _LONG.fullmatch(word):
            found[LONG_NAMES.get(match[1], match[1])] = match[2]
        elif match := _SHORT.fullmatch(word):
            found[match[1]] = match[2].removeprefix("=") or following
    return found


def _number(word: str | None) -> int | None:
    return int(word) if word and word.isascii() and word.isdigit() and len(word) < 16 else None


def _priority(word: str | None) -> int | None:
    """The priority: 0 without -p. None for -p 0, because some versions use the lowest priority then, others 2."""
    return 0 if word is None else _number(word) or None


def _length_ns(word: str) -> int | None:
    number = _number(word.rstrip("smhd"))
    unit = word[len(word.rstrip("smhd")) :]
    return number * LENGTHS_S[unit] * SECOND_NS if number is not None and unit in LENGTHS_S else None


def _time_s(words: str) -> int | None:
    """Seconds since 1970 of "Fri, 20 Nov 2026 23:20:21 +0000"."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return round(parsedate_to_datetime(words).timestamp())
    return None
