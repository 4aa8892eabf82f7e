# SPDX-License-Identifier: Apache-2.0
"""The threads and the interrupts of the audited system, also as rows of tables for rules."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from rtproof.audit.facts import THREADS_MISSING, Facts, Reading, State, parse_cpu_list, parse_cpu_mask
from rtproof.audit.readings import cpu_words
from rtproof.core.units import format_cpus, whole_number
from rtproof.record.contents import Moment

PATH, APPLICATION_PATH = "tasks", "process/threads"
_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_FIRST_PID_NAMESPACE = "pid:[4026531836]"
"""The number that the kernel gives the namespace in which all processes are seen, since 3.8."""
REAL_TIME = ("FF", "RR", "DLN")
"""The short names of the policies that come before all others."""
BOUND, OF_KERNEL = 0x04000000, 0x00200000
"""Flags of a thread: the kernel lets nobody move it; it is a thread of the kernel."""
_KNOWN = ("PID", "TID", "PPID", "CLS", "RTPRIO", "NICE", "CPU", "CPUS", "FLAGS", "COMM")


@dataclass(frozen=True)
class AuditedThread:
    """A thread. policy: as TS, FF, RR, DLN. priority: 0 without a real-time policy.

    cpus: where it may run, None if not known. slack_ns: None if not known. name: without brackets.
    """

    pid: int
    tid: int
    parent: int
    policy: str
    priority: int
    cpu: int | None
    cpus: frozenset[int] | None
    flags: int
    slack_ns: int | None
    name: str
    of_kernel: bool

    @property
    def real_time(self) -> bool:
        return self.policy in REAL_TIME

    @property
    def bound(self) -> bool:
        """Whether nobody can move it."""
        return bool(self.flags & BOUND)

    @property
    def label(self) -> str:
        """Its name and number."""
        return f"{self.name}/{self.tid}"


Threads = tuple[AuditedThread, ...] | None
"""None if they could not be read or understood."""


def all_threads(facts: Facts) -> Threads:
    """All threads of the system."""
    return parse_threads(facts.read(PATH).text)


def why_hidden(facts: Facts) -> str:
    """Why there may be more threads than all that were read; "" if there are no others."""
    threads = all_threads(facts)
    if threads is None:
        return f"the processes are not known: {facts.read(PATH).reason or 'their list cannot be understood'}"
    missing = facts.record.fact(THREADS_MISSING)
    if missing:
        return missing
    if _has_namespace_of_its_own(facts):
        return "this is a container, which sees only its own processes"
    if not any(thread.of_kernel for thread in threads):
        return "no thread of the kernel was seen, so that other processes are hidden, too, as in a container"
    return ""


def _has_namespace_of_its_own(facts: Facts) -> bool:
    namespace = facts.read("/proc/self/ns/pid")
    return namespace.here and namespace.word != _FIRST_PID_NAMESPACE


def in_container(facts: Facts) -> bool:
    """Whether anything says that the agent ran in a container."""
    if facts.read("/proc/self/ns/pid").here:
        return _has_namespace_of_its_own(facts)
    return bool(container_marks(facts))


def container_marks(facts: Facts) -> list[Reading]:
    """The files that mark the root folder of a container, where that is no disk of the machine's own."""
    marks = [reading for reading in map(facts.read, _CONTAINER_MARKS) if reading.here]
    first = facts.read("/proc/self/ns/pid").word == _FIRST_PID_NAMESPACE
    own_disk = re.search(r"(?m)^/dev/\S+ / ", facts.read("/proc/mounts").text)
    return [] if first and own_disk else marks


def application_threads(facts: Facts) -> Threads:
    """The threads of the application."""
    return parse_threads(facts.read(APPLICATION_PATH).text)


def measuring_processes(facts: Facts) -> frozenset[int]:
    """The numbers of the processes that collected the facts. They are no part of the audited system."""
    status = dict(re.findall(r"(?m)^(P?Pid):\s+(\d{1,10})$", facts.read("/proc/self/status").text))
    own = {status.get("Pid"), status.get("PPid") if "Pid" in status else None, facts.record.fact("agent_pid")}
    numbers = (whole_number(text or "") for text in own)
    return frozenset(number for number in numbers if number is not None and number > 1)


@lru_cache(maxsize=4)
def parse_threads(text: str) -> tuple[AuditedThread, ...] | None:
    """The threads in a table with a line of titles; None if any line of it cannot be understood."""
    lines = [line for line in text.splitlines() if line.strip()]
    titles = lines[0].split() if lines else []
    if len(lines) < 2 or titles[-1] != "COMM" or not {"PID", "TID", "CLS"} <= set(titles):
        return None
    threads = tuple(filter(None, (_parse_thread(line.split(maxsplit=len(titles) - 1), titles) for line in lines[1:])))
    return threads if len(threads) == len(lines) - 1 else None


def _parse_thread(words: list[str], titles: list[str]) -> AuditedThread | None:
    if len(words) not in (len(titles) - 1, len(titles)):
        return None
    row = dict(zip(titles, words, strict=False))
    pid, tid = whole_number(row["PID"]), whole_number(row["TID"])
    if pid is None or tid is None:
        return None
    name, told = row.get("COMM", ""), row.get("FLAGS", "")
    flags = int(told, 16) if re.fullmatch(r"(0x)?[0-9a-fA-F]{1,16}", told) else 0
    slack = next((row.get(title, "") for title in titles if title not in _KNOWN), "")
    brackets = name.startswith("[") and name.endswith("]")
    return AuditedThread(
        pid,
        tid,
        whole_number(row.get("PPID", "")) or 0,
        row["CLS"],
        whole_number(row.get("RTPRIO", "")) or 0,
        whole_number(row.get("CPU", "")),
        parse_cpu_list(row["CPUS"]) or None if "CPUS" in row else None,
        flags,
        whole_number(slack),
        name[1:-1] if brackets else name,
        bool(flags & OF_KERNEL) or (brackets and not flags),
    )


# The threads as rows of a table, for rules.

YES = {True: "yes", False: "no"}


def thread_rows(facts: Facts, path: str) -> tuple[Reading, ...]:
    """A row for each thread of a table; of all threads, a last reading says why rows may be missing."""
    reading = facts.read(path)
    threads = parse_threads(reading.text)
    if threads is None:
        reason = "it holds what this version does not understand" if reading.here else reading.reason
        return (Reading(path, State.UNREADABLE if reading.here else reading.state, "", reason),)
    fields = _thread_fields(facts)
    rows = tuple(
        Reading(
            path,
            State.HERE,
            f"{one.label} {one.policy} {one.priority}" if one.real_time else one.label,
            fields=fields(one),
        )
        for one in threads
    )
    hidden = why_hidden(facts) if path == PATH else ""
    return (*rows, Reading(path, State.UNREADABLE, "", hidden)) if hidden else rows


def _thread_fields(facts: Facts) -> Callable[[AuditedThread], dict[str, str]]:
    """measures: the thread collects the facts. of-measuring: or what it was started by does.

    belongs-there: it is of the application; if none is named, it is bound to isolated CPUs with a policy.
    """
    measuring, pid = measuring_processes(facts), facts.request.pid
    application = {one.pid for one in application_threads(facts) or ()} | {pid}

    def fields(thread: AuditedThread) -> dict[str, str]:
        known = {
            "tid": thread.tid,
            "pid": thread.pid,
            "name": thread.name,
            "label": thread.label,
            "policy": thread.policy,
            "priority": thread.priority,
            "mover": thread.tid if thread.of_kernel else thread.pid,
            "cpu": thread.cpu,
            "slack": thread.slack_ns,
            "cpus": None if thread.cpus is None else format_cpus(thread.cpus),
        }
        bound_there = thread.real_time and thread.cpus is not None and thread.cpus <= (facts.isolated or frozenset())
        flags = {
            "real-time": thread.real_time,
            "of-kernel": thread.of_kernel,
            "bound": thread.bound,
            "first": thread.pid == thread.tid,
            "measures": thread.pid in measuring,
            "of-measuring": thread.pid in measuring or thread.parent in measuring,
            "of-application": thread.pid in application,
            "belongs-there": bound_there if pid is None else thread.pid == pid,
        }
        texts = {name: str(value) for name, value in known.items() if value is not None}
        return texts | {name: YES[flag] for name, flag in flags.items()}

    return fields


def application_cpus(facts: Facts) -> frozenset[int]:
    """The isolated CPUs to which the application is bound; none if it is bound to none."""
    wanted = facts.isolated or frozenset()
    bound = [one.cpus for one in application_threads(facts) or () if one.cpus and one.cpus <= wanted]
    return frozenset[int]().union(*bound)


# Interrupts.

TABLE, SOFTIRQS = "/proc/interrupts", "/proc/softirqs"
WANTED, EFFECTIVE = "/proc/irq/*/smp_affinity_list", "/proc/irq/*/effective_affinity_list"
_PER_CPU = re.compile(
    r"arch_timer|arch_mem_timer|(kvm|vgic|kvm guest)\b.*|arm-pmu|riscv-(timer|pmu).*|sbi-timer|local_timer|twd"
    r"|mct_tick\d+|IPI.*|ipi.*|xen-percpu.*|timer\d+|cpu-timer"
)
"""Actions of interrupts of which each CPU has one of its own."""
_MANAGED = re.compile(
    r"nvme\d+q[1-9]\d*|virtio\d+-(req|requests)\.\d+|megasas\d*-msix\d+|mpt\dsas\d+-msix\d+|hisi_sas.*cq.*"
)
"""Actions of drivers that let the kernel spread their interrupts over all CPUs."""
_NO_ACTION = re.compile(r"\S*-(edge|level|fasteoi)|Edge|Level|\d+|None")


@dataclass(frozen=True)
class Interrupt:
    """An interrupt. wanted: the CPUs that may serve it. serving: those that do, as far as the kernel tells.

    Both are None if they are not known. Old kernels, and some chips, only tell which CPUs may serve it. per_cpu: each
    CPU has its own, so that nobody can move it. managed: the kernel alone places it. reading: what tells serving.
    """

    number: int
    actions: tuple[str, ...]
    wanted: frozenset[int] | None
    serving: frozenset[int] | None
    per_cpu: bool
    managed: bool
    reading: Reading

    @property
    def label(self) -> str:
        return f"{self.number} ({', '.join(self.actions) or 'no name'})"

    def is_bound_within(self, cpus: frozenset[int]) -> bool:
        """Whether somebody bound it to CPUs, as one does with the interrupt of the application's device."""
        return bool(self.wanted) and (self.wanted or frozenset()) <= cpus


def read_interrupts(facts: Facts) -> tuple[tuple[Interrupt, ...], tuple[Reading, ...]]:
    """The interrupts that have a handler, in the order of their numbers; and what was read, or why nothing was."""
    lists, masks = (_by_number(facts, f"/proc/irq/*/smp_affinity{kind}") for kind in ("_list", ""))
    effective, details = (_by_number(facts, pattern) for pattern in (EFFECTIVE, "/sys/kernel/debug/irq/irqs/*"))
    actions = _actions(facts)
    numbers = sorted(lists.keys() | masks.keys())
    if not numbers:
        return (), facts.match(WANTED)
    found, read = [], []
    for number in numbers:
        listed, masked, told = lists.get(number), masks.get(number), effective.get(number)
        read.append(told if told and told.here else listed or masks[number])
        # The kernel has the list since 2.6.38, and the mask always.
        wanted = parse_cpu_mask(masked.word) if masked and masked.here else None
        wanted = parse_cpu_list(listed.word) if listed and listed.here else wanted
        serving = wanted
        if told and not told.absent:
            cpus = parse_cpu_list(told.word) if told.here else None
            serving = wanted if cpus is not None and not cpus else cpus
        if handlers := actions.get(number, ()) if actions is not None else ("",):
            own = tuple(filter(None, handlers))
            flags = details[number].text if number in details else ""
            per_cpu = "IRQD_PER_CPU" in flags or (bool(own) and all(map(_PER_CPU.fullmatch, own)))
            managed = "IRQD_AFFINITY_MANAGED" in flags or (not flags and any(map(_MANAGED.fullmatch, own)))
            found.append(Interrupt(number, own, wanted, serving, per_cpu, managed, read[-1]))
    return tuple(found), tuple(read)


def _by_number(facts: Facts, pattern: str) -> dict[int, Reading]:
    """The files of a pattern by the number of the interrupt in its path."""
    found = {}
    for reading in facts.match(pattern):
        number = re.search(r"/(?:irq|irqs)/(\d{1,6})(?:/|$)", reading.path)
        if number and reading.path != pattern:
            found[int(number[1])] = reading
    return found


def _actions(facts: Facts) -> dict[int, tuple[str, ...]] | None:
    """The names of the handlers of each interrupt that has any; None if nothing tells."""
    files = _by_number(facts, "/sys/kernel/irq/*/actions")
    if any(reading.here for reading in files.values()):
        named = {number: tuple(filter(None, reading.word.split(","))) for number, reading in files.items()}
        return {number: names for number, names in named.items() if names}
    table = read_table(facts.read(TABLE))
    return None if table is None else table[1]


Counts = dict[str, dict[int, int]]
"""Of a table, by the row's name and CPU."""


def read_table(reading: Reading) -> tuple[Counts, dict[int, tuple[str, ...]]] | None:
    """The counts of /proc/interrupts or /proc/softirqs, and the handlers of numbered rows; None if it is none."""
    lines = reading.text.splitlines() if reading.here else []
    cpus = re.findall(r"CPU(\d{1,5})", lines[0]) if lines else []
    if not cpus:
        return None
    counts: Counts = {}
    actions: dict[int, tuple[str, ...]] = {}
    for line in lines[1:]:
        name, colon, rest = line.strip().partition(":")
        if not colon:
            continue
        words = rest.split(maxsplit=len(cpus))
        numbers = [whole_number(word) for word in words[: len(cpus)]]
        counts[name] = {int(cpu): number for cpu, number in zip(cpus, numbers, strict=False) if number is not None}
        number = whole_number(name)
        if number is not None and len(words) > len(cpus):
            names = re.split(r"\s{2,}", words[-1].strip())[-1]
            if not _NO_ACTION.fullmatch(names):
                actions[number] = tuple(names.split(", "))
    return counts, actions


def counted(facts: Facts, path: str) -> Counts | Reading:
    """How much each row of a table grew on each CPU between the two looks; or the reading that is missing."""
    tables = []
    for moment in (Moment.START, Moment.END):
        reading = facts.read(path, moment)
        table = read_table(reading)
        if table is None:
            return reading
        tables.append(table[0])
    start, end = tables
    return {
        name: {cpu: number - start.get(name, {}).get(cpu, 0) for cpu, number in row.items()}
        for name, row in end.items()
    }


NO_HANDLER = "no interrupt has a handler, as far as was read, and no system is like that"


def interrupt_rows(facts: Facts) -> tuple[Reading, ...]:
    """The interrupts with a handler as rows of a table; the rows of none at all are what was read in place of them."""
    interrupts, read = read_interrupts(facts)
    if not any(one.here for one in read):
        return read
    own = application_cpus(facts)
    rows = []
    for one in interrupts:
        lists = {"cpus": one.serving, "wanted": one.wanted}
        flags = {"per-cpu": one.per_cpu, "managed": one.managed, "own": one.is_bound_within(own)}
        fields = {
            "irq": str(one.number),
            "label": one.label,
            "served": f"{one.label} on {cpu_words(one.serving or ())}",
            "handlers": str(len(one.actions)),
            **{name: format_cpus(cpus) for name, cpus in lists.items() if cpus is not None},
            **{name: YES[flag] for name, flag in flags.items()},
        }
        rows.append(Reading(one.reading.path, State.HERE, one.reading.word or one.label, fields=fields))
    if not rows:
        files = facts.match("/sys/kernel/irq/*/actions")
        names = next((reading for reading in files if reading.here), facts.read(TABLE))
        return (Reading(names.path, State.UNREADABLE, "", NO_HANDLER),)
    # Why there may be more interrupts than were read.
    patterns = (one for pattern in (WANTED, EFFECTIVE) for one in facts.match(pattern) if one.path == pattern)
    return (*rows, *(one for one in patterns if one.state is State.UNREADABLE))
