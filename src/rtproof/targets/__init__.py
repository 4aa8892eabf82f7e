# SPDX-License-Identifier: Apache-2.0
"""Targets: where the agent runs. Each target is one file.

A target module has ``OPTIONS: dict[str, str]`` (name of an option and its help; values arrive as text) and
``open_target(options: dict[str, str]) -> ContextManager[Target]``. Its docstring says what the target is for. It raises
TargetError when the target misbehaves, and UserError for an option that makes no sense. A target on which no built
agent can run has a method ``own_agent() -> Path``, which returns the program file to use as the agent.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from rtproof.boards import ADDED as ADDED
from rtproof.boards import STREAM as STREAM
from rtproof.boards import USUAL_BUFFER as USUAL_BUFFER

HINT = "a machine of yours is --target ssh --target-option host={name}"
"""For who gave a name that no target has."""


class Process(Protocol):
    """A program that runs on a target. Its standard input stays open until the program ends or this host is gone."""

    def lines(self) -> Iterator[str]:
        """The lines of the program's standard error, until the program and everything it started are gone."""

    def interrupt(self) -> None:
        """Ask the program to finish (SIGINT). This and the next two methods do nothing once the program has ended."""

    def terminate(self) -> None:
        """Ask the program to finish once more (SIGTERM)."""

    def kill(self) -> None:
        """End the program and everything it started (SIGKILL)."""

    def wait(self) -> int:
        """Wait for the program's end. Its exit code, or the negative number of the signal that killed it."""


@runtime_checkable
class LastingProcess(Process, Protocol):
    """A program that goes on when this host is gone. Its standard input is empty, and does not end it."""

    def where(self) -> dict[str, str]:
        """What ``LastingTarget.take_up`` needs to find it again, also from another host."""

    def stream_into(self, record: Path) -> bool:
        """Bring the record there while it is measured. False: this target brings it afterwards."""

    def ended_how(self) -> str:
        """What happened to it in a sentence, if nobody could see how it ended; otherwise ""."""


class Target(Protocol):
    """A machine on which programs can be started. Nothing stays behind on it when its context ends."""

    def machine(self) -> str:
        """The target's architecture as ``uname -m`` prints it."""

    def host_name(self) -> str:
        """The target's own host name."""

    def push(self, program: Path) -> str:
        """Make a program of this host runnable on the target, and return its path there."""

    def place(self, file: Path) -> str:
        """The path on the target to which a program must write, so that ``pull`` can make it ``file`` on this host."""

    def pull(self, remote: str, file: Path) -> None:
        """Bring a file that a program wrote to ``place(file)`` to this host."""

    def start(self, arguments: Sequence[str]) -> Process:
        """Start a program. TargetError if the target cannot run the program."""


@runtime_checkable
class LastingTarget(Target, Protocol):
    """A machine whose programs go on when this host is gone."""

    def start(self, arguments: Sequence[str]) -> LastingProcess:
        """As in ``Target``."""

    def where(self, arguments: Sequence[str]) -> dict[str, str]:
        """What ``take_up`` will need once ``start`` has been called with these arguments, however that ends."""

    def take_up(self, where: Mapping[str, str]) -> LastingProcess:
        """A program that was started before, perhaps by another host."""


@runtime_checkable
class AskedTarget(Target, Protocol):
    """A machine on which ``start`` is only for programs that write a record."""

    def ask(self, arguments: Sequence[str]) -> tuple[int, list[str]]:
        """Run a short program to its end: its exit code, and what it printed. It may be run again if the link broke."""


@runtime_checkable
class BootedTarget(Target, Protocol):
    """A machine that can be booted with more words on its command line, and that any other boot leaves as before."""

    def require_boots(self) -> None:
        """UserError if it cannot be booted so."""

    def boot(self, words: str | None) -> None:
        """Boot with these words, or with its own command line alone; nothing if it runs so already.

        BoardLostError if it does not come back, TargetError if it runs with other words.
        """


@runtime_checkable
class LentTarget(Target, Protocol):
    """A machine that others use too, so that this host has it for a time."""

    def options_to_find_it(self, options: dict[str, str]) -> dict[str, str]:
        """The options that find this very machine. They are stored for whoever takes a run up."""

    def keep(self) -> None:
        """Do not give the machine back when its context ends, because a run goes on there."""
