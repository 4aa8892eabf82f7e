# SPDX-License-Identifier: Apache-2.0
"""The threads of the whole system, as the agent's probe ``tasks`` lists them, and whether it saw all of them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rtproof.audit.facts import Facts, parse_cpu_list
from rtproof.core.printable import clean

PATH = "tasks"
NAME_MOST = 15
"""The kernel keeps so many characters of a name."""
_LINE = re.compile(
    r"(\d{1,9}) (\d{1,9}) (\d{1,9}) (\S+) (\d{1,3}|-) (-?\d{1,3}|-) (\d{1,9}|-) ([\d,-]+) (?:0x)?([0-9a-f]{1,16}) (.*)"
)
_OF_KERNEL = 0x00200000
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The number that the kernel gives the namespace in which all processes are seen, since 3.8."""


@dataclass(frozen=True)
class Task:
    """A thread. policy: TS, FF, RR, B, ISO, IDL or DLN. cpus: those that it may use, None if nobody knows."""

    process: int
    thread: int
    policy: str
    cpus: frozenset[int] | None
    of_kernel: bool
    name: str

    @property
    def leads(self) -> bool:
        """Whether it is the first thread of its process."""
        return self.process == self.thread


@dataclass(frozen=True)
class Tasks:
    """The threads that were seen. hidden: why there may be others, "" if these are all."""

    seen: tuple[Task, ...]
    hidden: str

    def processes(self, names: Iterable[str]) -> tuple[Task, ...]:
        """The processes of user space with these names, which the kernel may have cut."""
        cut = {name[:NAME_MOST] for name in names}
        return tuple(task for task in self.seen if task.leads and not task.of_kernel and task.name in cut)


def tasks(facts: Facts) -> Tasks:
    """The threads of the system."""
    reading = facts.read(PATH)
    if not reading.here:
        return Tasks((), f"the processes are not known: {reading.reason}")
    seen = tuple(_task(match) for match in map(_LINE.fullmatch, reading.text.splitlines()) if match)
    namespace = facts.read("/proc/self/ns/pid")
    if namespace.here and namespace.word != _FIRST_PID_NAMESPACE:
        return Tasks(seen, "this is a container, which sees only its own processes")
    if not any(task.of_kernel for task in seen):
        why = "no thread of the kernel was seen, so that other processes are hidden, too, as in a container"
        return Tasks(seen, why)
    return Tasks(seen, "")


def in_container(facts: Facts) -> bool:
    """Whether anything says that the agent ran in a container."""
    namespace = facts.read("/proc/self/ns/pid")
    if namespace.here:
        return namespace.word != _FIRST_PID_NAMESPACE
    return any(facts.read(mark).here for mark in CONTAINER_MARKS)


def _task(match: re.Match[str]) -> Task:
    process, thread, _, policy, _, _, _, cpus, flags, name = match.groups()
    of_kernel = bool(int(flags, 16) & _OF_KERNEL)
    return Task(int(process), int(thread), policy, parse_cpu_list(cpus), of_kernel, clean(name))
