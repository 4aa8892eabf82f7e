# SPDX-License-Identifier: Apache-2.0
"""Lines that the agent prints during a run: its progress, and seconds above a limit; who watches them may end the run.

Such a line is a prefix and pairs of a name and a number.
"""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Protocol, TypeVar

Kind = TypeVar("Kind")


def parse_numbers(line: str, prefix: str, kind: type[Kind]) -> Kind | None:
    """A line that begins with a prefix, as a dataclass of whole numbers; None if it is none, or lacks one."""
    if not line.startswith(prefix):
        return None
    pairs = dict(word.partition("=")[::2] for word in line.removeprefix(prefix).split())
    known = [field for field in fields(kind) if field.name in pairs or field.default is MISSING]  # type: ignore[arg-type]
    try:
        return kind(**{field.name: int(pairs[field.name]) for field in known})
    except (KeyError, ValueError):
        return None


OVER_PREFIX = "over "


@dataclass(frozen=True)
class OverLine:
    """One ``over`` line of the agent: a thread was above a limit in a second of its due times, at most by worst_ns."""

    thread: int
    limit_ns: int
    second: int
    worst_ns: int


class Watcher(Protocol):
    """Knows when a run has shown what it was to show."""

    def over(self, thread: int, limit_ns: int, second: int, worst_ns: int) -> None:
        """What an ``over`` line says."""

    def progress(self, thread: int, due_ns: int, lost: int = 0, time_ns: int = 0) -> bool:
        """What a progress line says, and when; True: the run may end."""

    def lines(self) -> Sequence[str]:
        """How it stands, for people."""


def parse_over(line: str) -> OverLine | None:
    """The line as numbers; None if it is none of ours."""
    return parse_numbers(line, OVER_PREFIX, OverLine)


@dataclass(frozen=True)
class Progress:
    """One progress line of the agent: a thread so far. ``time_ns`` counts from the start of measuring.

    due_ns: everything that was due before it is in the numbers; 0 from an agent that does not tell.
    """

    time_ns: int
    thread: int
    cpu: int
    obtained: int
    missed: int
    lost: int
    last_ns: int
    min_ns: int
    mean_ns: int
    max_ns: int
    due_ns: int = 0


def parse_progress(line: str) -> Progress | None:
    """The line as numbers; None if it is none of ours."""
    return parse_numbers(line, PROGRESS_PREFIX, Progress)


PROGRESS_PREFIX = "progress "
