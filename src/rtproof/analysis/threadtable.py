# SPDX-License-Identifier: Apache-2.0
"""Every thread of the target with its policy and priority, as ``ps -eLfc`` shows them, at the start of the run."""

import re
from dataclasses import dataclass

from rtproof.analysis import systemfiles
from rtproof.record import Record

PATH = "threads"
_LINE = re.compile(r"(\d{1,9}) (\d{1,9}) (\S+) (\S+) (\S+) (\d{1,9}) (.*)")
_INTERRUPT = re.compile(r"irq/\d+-.*|IRQ-\d+|irq/\d+")
_REAL_TIME = ("FF", "RR", "DLN")


@dataclass(frozen=True)
class Thread:
    """``policy``: TS, FF, RR, B, ISO, IDL or DLN. ``cpu``: it ran on last. ``of_kernel``: it has no program."""

    process: int
    id: int
    policy: str
    priority: int | None
    nice: int | None
    cpu: int
    name: str
    of_kernel: bool

    @property
    def real_time(self) -> bool:
        return self.policy in _REAL_TIME

    @property
    def interrupt(self) -> bool:
        """Whether it is the handler of a device's interrupt."""
        return self.of_kernel and bool(_INTERRUPT.fullmatch(self.name))


def threads(record: Record) -> tuple[Thread, ...]:
    """In the order of the record; empty where it has none. Lines that are no thread are passed over."""
    lines = (systemfiles.text(record, PATH) or "").splitlines()
    return tuple(_thread(match) for match in map(_LINE.fullmatch, lines) if match)


def _thread(match: re.Match[str]) -> Thread:
    process, thread, policy, priority, nice, cpu, name = match.groups()
    of_kernel = name.startswith("[") and name.endswith("]")
    bare = name[1:-1] if of_kernel else name
    return Thread(int(process), int(thread), policy, _number(priority), _number(nice), int(cpu), bare, of_kernel)


def _number(word: str) -> int | None:
    return int(word) if re.fullmatch(r"-?\d{1,9}", word) else None
