# SPDX-License-Identifier: Apache-2.0
"""Functions for the checks of services. A process is known by its name only; a user's program may have the same."""

from collections.abc import Sequence

from rtproof.audit.audit_model import Judgement, Outcome, ReadValue
from rtproof.audit.check import Check
from rtproof.audit.facts import Facts, Reading, State
from rtproof.audit.readings import hidden, read_values
from rtproof.audit.system_threads import PATH, AuditedThread, ThreadsRead, all_threads, container_marks
from rtproof.core.printable import clean

_TIMERS = ("/etc/systemd/system/timers.target.wants/", "/usr/lib/systemd/system/timers.target.wants/")
_GROUPS = ("docker", "kubepods", "containerd", "lxc", "libpod", "machine.slice")


def noise(facts: Facts, check: Check) -> Judgement:
    """Programs and timers of systemd that make work from time to time."""
    seen = all_threads(facts)
    found = seen.processes(check.names["programs"])
    timers = _timers(facts, seen)
    names = [
        name for reading in timers if reading.here for name in reading.text.split() if name in check.names["timers"]
    ]
    if found or names:
        what = ", ".join(filter(None, (_names(found), *sorted(set(names)))))
        read = _read(found) + read_values(_here(timers))
        sentence = f"These make work from time to time: {what}."
        return Judgement(Outcome.FINDING, sentence, read, named=tuple(sorted(set(names))))
    unread = hidden(timers)
    if unread and not seen.hidden:
        sentence = f"The timers are not known: {unread[0].path}: {unread[0].reason}."
        return Judgement(Outcome.UNKNOWN, sentence, read_values(unread))
    return _if_whole(seen, (), "No such program was seen, and no such timer.")


def container(facts: Facts, _: Check) -> Judgement:
    """Whether the facts are those of a container, whose settings are the host's."""
    namespace = facts.read("/proc/self/ns/pid")
    groups = facts.read("/proc/1/cgroup")
    marks = container_marks(facts)
    named = [name for name in _GROUPS if groups.here and name in groups.text]
    read = read_values([*marks, groups, namespace])
    seen = all_threads(facts)
    if namespace.here and seen.hidden.startswith("this is a container"):
        return Judgement(Outcome.FINDING, f"The processes have a namespace of their own: {namespace.word}.", read)
    if named:
        return Judgement(Outcome.FINDING, f"The control group of process 1 is that of a container: {named[0]}.", read)
    if marks and not seen.hidden:
        sentence = (
            f"{marks[0].path} is that of a container, but all threads of the kernel can be seen, as outside of one."
        )
        return Judgement(Outcome.CONFLICTING, sentence, read)
    if marks:
        return Judgement(Outcome.FINDING, f"{marks[0].path} is that of a container.", read)
    if namespace.here or (groups.here and not seen.hidden):
        return Judgement(Outcome.GOOD, "Nothing says that this is a container.", read)
    return Judgement(
        Outcome.UNKNOWN, f"Neither its namespace nor its control group is known: {namespace.reason}.", read
    )


def _timers(facts: Facts, seen: ThreadsRead) -> Sequence[Reading]:
    """The folders of enabled timers. None where systemd is not process 1, which is the one to run them."""
    first = next((task for task in seen.seen if task.pid == task.tid == 1), None)
    if first and first.name != "systemd":
        return ()
    if container_marks(facts):
        why = "it is the container's own folder, not that of the system"
        return tuple(Reading(path, State.UNREADABLE, "", why) for path in _TIMERS)
    return tuple(map(facts.read, _TIMERS))


def _here(readings: Sequence[Reading]) -> list[Reading]:
    return [reading for reading in readings if reading.here]


def _if_whole(seen: ThreadsRead, found: Sequence[AuditedThread], sentence: str) -> Judgement:
    """GOOD if no process was hidden from the agent."""
    if seen.hidden:
        return Judgement(Outcome.UNKNOWN, f"Not every process is known: {seen.hidden}.", _read(found))
    also = f" Seen: {_names(found)}." if found else ""
    return Judgement(Outcome.GOOD, sentence + also, _read(found))


def _names(found: Sequence[AuditedThread]) -> str:
    return ", ".join(f"{clean(task.name)} (process {task.pid})" for task in found)


def _read(found: Sequence[AuditedThread]) -> tuple[ReadValue, ...]:
    return (ReadValue(PATH, _names(found) or "(no process of such a name)"),)
