# SPDX-License-Identifier: Apache-2.0
"""Whether the agent saw all processes of the system, and processes by their names."""

from collections.abc import Iterable
from dataclasses import dataclass

from rtproof.audit.facts import Facts
from rtproof.audit.system_threads import AuditedThread, all_threads

PATH = "tasks"
NAME_MOST = 15
"""The kernel keeps so many characters of a name."""
CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The number that the kernel gives the namespace in which all processes are seen, since 3.8."""


@dataclass(frozen=True)
class Tasks:
    """The threads that were seen. hidden: why there may be others, "" if these are all."""

    seen: tuple[AuditedThread, ...]
    hidden: str

    def processes(self, names: Iterable[str]) -> tuple[AuditedThread, ...]:
        """The processes of user space with these names, which the kernel may have cut."""
        cut = {name[:NAME_MOST] for name in names}
        return tuple(one for one in self.seen if one.pid == one.tid and not one.of_kernel and one.name in cut)


def tasks(facts: Facts) -> Tasks:
    """The threads of the system."""
    read = all_threads(facts)
    if read.threads is None:
        why = read.reading.reason or "their list cannot be understood"
        return Tasks((), f"the processes are not known: {why}")
    if _has_namespace_of_its_own(facts):
        return Tasks(read.threads, "this is a container, which sees only its own processes")
    if not any(thread.of_kernel for thread in read.threads):
        why = "no thread of the kernel was seen, so that other processes are hidden, too, as in a container"
        return Tasks(read.threads, why)
    return Tasks(read.threads, "")


def _has_namespace_of_its_own(facts: Facts) -> bool:
    namespace = facts.read("/proc/self/ns/pid")
    return namespace.here and namespace.word != _FIRST_PID_NAMESPACE


def in_container(facts: Facts) -> bool:
    """Whether anything says that the agent ran in a container."""
    if facts.read("/proc/self/ns/pid").here:
        return _has_namespace_of_its_own(facts)
    return any(facts.read(mark).here for mark in CONTAINER_MARKS)
