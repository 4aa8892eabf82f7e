# SPDX-License-Identifier: Apache-2.0
"""The JSON file of any program of rt-tests, with the options in its command line, and of jitterdebugger.

(Format: rt-tests, src/lib/rt-utils.c, rt_write_json, and the write_stats of each program; jitterdebugger.c.)
"""

import contextlib
import re
import shlex
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from rtproof.core.command_options import options_of
from rtproof.core.errors import UserError
from rtproof.importers._tool_output import decode_json, imported_measurement, printed_thread, whole_number
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures

SECOND_NS = 1_000_000_000
CLOCK = "its beginning and end are given to the second"
OTHER_NUMBER = "it says that it had {0:,} threads, and has the figures of {1:,}"
BACKWARDS = "it ended before it began, by its own clock"
LENGTHS_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


class Thread(msgspec.Struct, frozen=True):
    """What a file says of a thread, or of a pair of threads: of a sender, and of a receiver with the figures.

    cycles, count, samples: the number of values, by the name that each program gives it. duration: in seconds.
    min, max, avg: in the unit of the histogram, but for oslat's mean, which is in microseconds.
    """

    cycles: int | None = None
    count: int | None = None
    samples: int | None = None
    min: int | None = None
    max: int | None = None
    avg: float | None = None
    cpu: int | None = None
    priority: int = 0
    interval: int = 0
    timeoutcount: int = 0
    duration: float = 0
    histogram: dict[str, int] = {}
    sender: "Thread | None" = None
    receiver: "Thread | None" = None

    @property
    def total(self) -> int:
        """The number of values. UserError if it is missing."""
        total = next((each for each in (self.cycles, self.count, self.samples) if each is not None), None)
        if total is None:
            raise UserError("a thread has no number of values")
        return total

    @property
    def ends(self) -> tuple[int, float, int]:
        """Minimum, mean and maximum. UserError if one is missing."""
        if self.min is None or self.avg is None or self.max is None:
            raise UserError("a thread has no minimum, mean or maximum")
        return self.min, self.avg, self.max

    @property
    def bins(self) -> dict[int, int]:
        """The histogram of all programs but oslat."""
        return {whole_number(value): count for value, count in self.histogram.items()}


class RtTestsResult(msgspec.Struct, frozen=True, kw_only=True):
    """The document. jitterdebugger has ``cpu`` in place of ``thread``, and no further key but ``sysinfo``."""

    command: str = msgspec.field(name="cmdline:", default="")
    version: str = msgspec.field(name="rt_test_version:", default="")
    start_time: str = ""
    end_time: str = ""
    sysinfo: dict[str, str | int] = {}
    resolution_in_ns: int = 0
    num_threads: int | None = None
    thread: dict[int, Thread] = {}
    cpu: dict[int, Thread] = {}

    @property
    def width_ns(self) -> int:
        """Of the bins, which is the unit of the times."""
        return 1 if self.resolution_in_ns else 1_000

    @property
    def times_s(self) -> tuple[int | None, int | None]:
        """When the run began and ended, in seconds since 1970; None where the file does not say."""
        return _time_s(self.start_time), _time_s(self.end_time)

    @property
    def duration_ns(self) -> int | None:
        """How long the run was by its own clock; None if it ended before it began."""
        began, ended = self.times_s
        return None if began is None or ended is None or ended < began else (ended - began) * SECOND_NS

    @property
    def faults(self) -> tuple[str, ...]:
        """A sentence if the run ended before it began, and one if it tells another number of threads than it has."""
        told, found = self.num_threads, len(self.thread)
        other = [] if told in (None, found) else [OTHER_NUMBER.format(told, found)]
        backwards = None not in self.times_s and self.duration_ns is None
        return (*([BACKWARDS] if backwards else []), *other)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The command, the version and the system."""
        said = {key: str(value) for key, value in self.sysinfo.items()}
        told = {"command": self.command, "rt-tests": self.version, **said}
        return tuple((key, value) for key, value in told.items() if value)

    def options(self, letters: str, long_names: Mapping[str, str]) -> dict[str, str]:
        """Those of the command that is told, as ``options_of`` finds them."""
        return options_of(words_of(self.command)[1:], letters, long_names)

    def measurement(self, tool: str, parts: Sequence[PrintedFigures], asked: str, **told: Any) -> ImportedHistogram:
        """The measurement of all threads. asked: the value of the option for the duration; "" without it."""
        return imported_measurement(
            tool,
            self.command,
            parts,
            self.width_ns,
            duration_ns=self.duration_ns,
            asked_duration_ns=option_length_ns(asked),
            started_s=self.times_s[0],
            facts=self.facts,
            faults=self.faults,
            **told,
        )


def decode_result(text: str) -> RtTestsResult:
    """The document with its threads; UserError if it has another form, or no thread."""
    found = decode_json(text, RtTestsResult)
    if not found.thread:
        raise UserError("it has no thread")
    return found


def figures_of(number: int, told: Thread, width_ns: int, scale_ns: int | None = None) -> PrintedFigures:
    """The figures of a thread or of a pair, whose CPU is the receiver's; UserError if they make no sense."""
    sent, got = told.sender, told.receiver
    if (sent is None) != (got is None):
        raise UserError(f"pair {number} has a sender or a receiver only")
    total, figures = (sent or told).total, got or told
    return printed_thread(number, figures.cpu, total, figures.ends, width_ns, bins=figures.bins, scale_ns=scale_ns)


def words_of(command: str) -> list[str]:
    """The words of a command line, also of one that no shell would take."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def looks_like_rt_tests(text: str, *programs: str) -> bool:
    """Whether a text is the JSON of one of these programs."""
    if not text.lstrip().startswith("{") or '"rt_test_version:"' not in text:
        return False
    return any(re.search(rf'"cmdline:":\s*"(?:[^" ]*/)?{program}\b', text[:4_096]) for program in programs)


def option_number(word: str | None) -> int | None:
    """The whole number of an option; None for any other text."""
    return int(word) if word and word.isascii() and word.isdigit() and len(word) < 16 else None


def option_length_ns(word: str) -> int | None:
    """The nanoseconds of a length such as "10", "10s", "5m" or "1h"; None for any other text."""
    digits = word.rstrip("smhdSMHD")
    number, unit = option_number(digits), word[len(digits) :].lower()
    return number * LENGTHS_S[unit] * SECOND_NS if number is not None and unit in LENGTHS_S else None


def _time_s(words: str) -> int | None:
    """Seconds since 1970 of "Fri, 20 Nov 2026 23:20:21 +0000"."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        return round(parsedate_to_datetime(words).timestamp())
    return None
