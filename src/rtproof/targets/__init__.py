# SPDX-License-Identifier: Apache-2.0
"""Targets: where the agent runs, one file each.

A target module has ``OPTIONS: dict[str, str]`` (name of an option and its help; values arrive as text) and
``open_target(options: dict[str, str]) -> ContextManager[Target]``. Its docstring says what it is for. TargetError when
the target misbehaves, UserError for an option that makes no sense. A target that no agent of ours fits has a method
``own_agent() -> Path``, the program file that it takes for one.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol


class Process(Protocol):
    """A program running on a target. Its standard input stays open until it has ended or this host has gone."""

    def lines(self) -> Iterator[str]:
        """What it says on standard error, line by line, until it and everything it started are gone."""

    def interrupt(self) -> None:
        """Ask it to finish (SIGINT). This and the next two do nothing once it has ended."""

    def terminate(self) -> None:
        """Ask it once more (SIGTERM)."""

    def kill(self) -> None:
        """End it and everything it started (SIGKILL)."""

    def wait(self) -> int:
        """Its exit code once it has ended; the negative number of the signal that killed it."""


class Target(Protocol):
    """A machine on which programs can be started. Nothing stays behind on it when its context ends."""

    def machine(self) -> str:
        """Its architecture as ``uname -m`` prints it."""

    def host_name(self) -> str:
        """What it calls itself."""

    def push(self, program: Path) -> str:
        """Make a program of this host runnable on the target; its path there."""

    def place(self, file: Path) -> str:
        """The path on the target at which a program shall write what is to become ``file`` on this host."""

    def pull(self, remote: str, file: Path) -> None:
        """Bring a file that was written at ``place(file)`` to this host."""

    def start(self, arguments: Sequence[str]) -> Process:
        """Start a program. TargetError if the target cannot run it."""
