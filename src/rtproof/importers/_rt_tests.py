# SPDX-License-Identifier: Apache-2.0
"""What the JSON files of all programs of rt-tests have in common: the head, and options in the command line.

(Format: rt-tests, src/lib/rt-utils.c, rt_write_json.)
"""

import contextlib
import re
import shlex
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime

import msgspec

SECOND_NS = 1_000_000_000
CLOCK = "its beginning and end are given to the second"
OTHER_NUMBER = "it says that it had {0:,} threads, and has the figures of {1:,}"
BACKWARDS = "it ended before it began, by its own clock"
LENGTHS_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_LONG = re.compile(r"--([a-z_-]+)(=?)(.*)", re.S)


class RtTestsResult(msgspec.Struct, frozen=True, kw_only=True):
    """The head of each file. Each program has figures of its own for a ``thread``."""

    command: str = msgspec.field(name="cmdline:", default="")
    version: str = msgspec.field(name="rt_test_version:", default="")
    start_time: str = ""
    end_time: str = ""
    sysinfo: dict[str, str | int] = {}
    resolution_in_ns: int = 0
    num_threads: int | None = None
    thread: Mapping[int, object]

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
        began, ended = self.times_s
        backwards = began is not None and ended is not None and ended < began
        told, found = self.num_threads, len(self.thread)
        other = () if told in (None, found) else (OTHER_NUMBER.format(told, found),)
        return (*([BACKWARDS] if backwards else []), *other)

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """The command, the version and the system."""
        said = {key: str(value) for key, value in self.sysinfo.items()}
        told = {"command": self.command, "rt-tests": self.version, **said}
        return tuple((key, value) for key, value in told.items() if value)

    def options(self, letters: str, long_names: Mapping[str, str]) -> dict[str, str]:
        """Those of the command that is told, as ``options_of`` finds them."""
        return options_of(self.command, letters, long_names)


def options_of(command: str, letters: str, long_names: Mapping[str, str]) -> dict[str, str]:
    """Values of options by their letters; "-qi1000", "-q -i 1000" and "--quiet --interval 1000" mean the same.

    letters: as getopt takes them: "q" has no value, "i:" has one, "t::" may have one. long_names: the letters of long
    options; others keep their name.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return dict(_options(words[1:], _Letters(letters), long_names))


class _Letters:
    """Which options have a value, as getopt's own notation says it."""

    def __init__(self, notation: str) -> None:
        self._must = set(re.findall(r"(\w):(?!:)", notation))
        self._may = set(re.findall(r"(\w)::", notation))

    def has_value(self, letter: str) -> bool:
        return letter in self._must or letter in self._may

    def takes(self, letter: str, following: str) -> bool:
        """Whether the following word is the option's value. One that may lack a value takes no other option."""
        if letter in self._must:
            return True
        # Of a long option without a letter nobody knows whether it has a value. The programs take no other words.
        return (letter in self._may or len(letter) > 1) and not following.startswith("-")


def _options(words: list[str], letters: _Letters, long_names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each option and its value, "" if it has none."""
    at = 0
    while at < len(words):
        word, following = words[at], words[at + 1] if at + 1 < len(words) else ""
        at += 1
        if match := _LONG.fullmatch(word):
            letter, value, told = _letter_of(match[1], long_names), match[3], bool(match[2])
        elif len(word) > 1 and word.startswith("-"):
            flags, letter, value = _cluster(word[1:], letters)
            yield from ((flag, "") for flag in flags)
            told = bool(value)
        else:
            continue
        if not told and letters.takes(letter, following):
            value, at = following, at + 1
        yield letter, value


def _letter_of(name: str, long_names: Mapping[str, str]) -> str:
    """The letter of a long option, which getopt takes in a short form too; its name if it has none."""
    letters = {letter for long_name, letter in long_names.items() if long_name.startswith(name)}
    return long_names.get(name) or (letters.pop() if len(letters) == 1 else name)


def _cluster(word: str, letters: _Letters) -> tuple[str, str, str]:
    """Of a word such as "qi100", the options without a value, the last option, and its value if it stands behind it."""
    last = next((at for at, letter in enumerate(word) if letters.has_value(letter)), len(word) - 1)
    return word[:last], word[last], word[last + 1 :].removeprefix("=")


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
