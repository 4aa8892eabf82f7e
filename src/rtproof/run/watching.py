# SPDX-License-Identifier: Apache-2.0
"""Whoever watches a run and may end it: what he is told, in the agent's own lines, and what he answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rtproof.run.words import numbers

PREFIX = "over "


@dataclass(frozen=True)
class Over:
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


def parse_over(line: str) -> Over | None:
    """The line as numbers; None if it is none of ours."""
    return numbers(line, PREFIX, Over)
