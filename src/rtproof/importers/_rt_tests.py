# SPDX-License-Identifier: Apache-2.0
"""What the JSON files of all programs of rt-tests have in common: the head, and options in the command line.

(Format: rt-tests, src/lib/rt-utils.c, rt_write_json.)
"""

import contextlib
import re
import shlex
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Generic, TypeVar

import msgspec

from rtproof.core.command_options import options_of
from rtproof.core.errors import UserError
from rtproof.importers._tool_output import decode_json

SECOND_NS = 1_000_000_000
CLOCK = "its beginning and end are given to the second"
OTHER_NUMBER = "it says that it had {0:,} threads, and has the figures of {1:,}"
BACKWARDS = "it ended before it began, by its own clock"
LENGTHS_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


ThreadKind = TypeVar("ThreadKind")


class RtTestsResult(msgspec.Struct, Generic[ThreadKind], frozen=True, kw_only=True):
    """The head of each file. Each program has figures of its own for a ``thread``."""

    command: str = msgspec.field(name="cmdline:", default="")
    version: str = msgspec.field(name="rt_test_version:", default="")
    start_time: str = ""
    end_time: str = ""
    sysinfo: dict[str, str | int] = {}
    resolution_in_ns: int = 0
    num_threads: int | None = None
    thread: dict[int, ThreadKind]

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


def decode_result(text: str, kind: type[ThreadKind]) -> RtTestsResult[ThreadKind]:
    """The document with its threads; UserError if it has another form, or no thread."""
    found: RtTestsResult[ThreadKind] = decode_json(text, RtTestsResult[kind])  # type: ignore[valid-type]
    if not found.thread:
        raise UserError("it has no thread")
    return found


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
