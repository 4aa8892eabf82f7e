# SPDX-License-Identifier: Apache-2.0
"""Threads of the target: all of them at the start, those with a real-time policy, and those of rtproof itself.

Each has its policy and priority as ``ps -eLfc`` shows them. Real-time threads are listed at the start, at the end, and
if they were new in between.
"""

import re
from dataclasses import dataclass, replace

from rtproof.core.errors import UserError
from rtproof.core.units import parse_cpus
from rtproof.record.contents import Moment, Record
from rtproof.summary import recorded_facts
from rtproof.summary.fields import judged_series
from rtproof.summary.recorded_facts import fact_number

TABLE_PATH = "threads"
_LINE = re.compile(r"(\d{1,9}) (\d{1,9}) (\S+) (\S+) (\S+) (\d{1,9}) (.*)")
_INTERRUPT = re.compile(r"irq/\d+-.*|IRQ-\d+|irq/\d+")
_REAL_TIME = ("FF", "RR", "DLN")


@dataclass(frozen=True)
class TargetThread:
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


def target_threads(record: Record) -> tuple[TargetThread, ...]:
    """In the order of the record; empty where it has none. Lines that are no thread are passed over."""
    lines = (recorded_facts.file_text(record, TABLE_PATH) or "").splitlines()
    return tuple(_thread(match) for match in map(_LINE.fullmatch, lines) if match)


def _thread(match: re.Match[str]) -> TargetThread:
    process, thread, policy, priority, nice, cpu, name = match.groups()
    of_kernel = name.startswith("[") and name.endswith("]")
    bare = name[1:-1] if of_kernel else name
    return TargetThread(int(process), int(thread), policy, _number(priority), _number(nice), int(cpu), bare, of_kernel)


def _number(word: str) -> int | None:
    return int(word) if re.fullmatch(r"-?\d{1,9}", word) else None


AGENT_NAME = "rtproof-agent"
"""How the kernel shortens no further than 15 characters; names of threads that have none of their own."""
KERNEL_PREFIXES = ("rtproof", "timerlat")
"""Threads of the kernel that a probe measures or drives."""


def own_threads(record: Record) -> frozenset[int]:
    """Their numbers: those of the agent's process, and the measured ones, which may be threads of the kernel."""
    agent = fact_number(record, "agent_pid", Moment.START)
    told = {fact_number(record, "tid", Moment.START, series.thread) for series in judged_series(record)}
    seen = {
        thread.id
        for thread in target_threads(record)
        if (thread.process == agent if agent else thread.name.startswith(AGENT_NAME))
        or (thread.of_kernel and thread.name.startswith(KERNEL_PREFIXES))
    }
    return frozenset(seen | {tid for tid in told if tid} | ({agent} if agent else set()))


REAL_TIME_PATH = "rt-threads"
_REAL_TIME_LINE = re.compile(r"(\d{1,9}) (\d{1,9}) (FF|RR|DLN) (\d{1,2}|-) (\d{1,9}) (\d{1,19}|-) (\S+) (.*)")
_EVERYWHERE = re.compile(
    r"(migration|stopper|watchdog|posixcputmr|posix_cpu_timer|rcu\w*|ktimers|ktimersoftd|irq_work|sirq-[\w-]+)(/.*)?|sugov:.*"
)
"""Threads of the kernel that every system of their kind has, and that belong to what is measured."""
_INTERRUPT_THREAD = re.compile(r"irq/\d+-.*|IRQ-\d+|irq/\d+")


@dataclass(frozen=True)
class RtThread:
    """``policy``: FF, RR or DLN, which has no priority. ``cpus``: it may run on; None where that is not known.

    ``ran_ns``: CPU time from the first look, before the warm-up, to the last, after the run; None where unknown.
    """

    id: int
    policy: str
    priority: int | None
    cpu: int
    cpus: frozenset[int] | None
    ran_ns: int | None
    name: str
    of_kernel: bool

    @property
    def urgency(self) -> int:
        """Who has the larger one runs first."""
        return 1_000 if self.policy == "DLN" else self.priority or 0

    @property
    def everywhere(self) -> bool:
        """Whether each system has it, so that it is a part of what is measured."""
        return self.of_kernel and bool(_EVERYWHERE.fullmatch(self.name))

    @property
    def interrupt(self) -> bool:
        return self.of_kernel and bool(_INTERRUPT_THREAD.fullmatch(self.name))

    def may_run_on(self, measured: frozenset[int]) -> bool:
        """measured: -1 stands for any CPU."""
        cpus = frozenset({self.cpu}) if self.cpus is None else self.cpus
        return -1 in measured or bool(cpus & measured)


def real_time_threads(record: Record) -> tuple[RtThread, ...]:
    """Each once, as it was seen last; of a record without the list, those of all its threads at the start."""
    own = own_threads(record)
    files = [file for file in record.files if file.path == REAL_TIME_PATH and not file.errno]
    if not files:
        told = [
            RtThread(one.id, one.policy, one.priority, one.cpu, None, None, one.name, one.of_kernel)
            for one in target_threads(record)
            if one.real_time
        ]
        return tuple(thread for thread in told if thread.id not in own)
    first: dict[tuple[int, str], int | None] = {}
    found: dict[tuple[int, str], RtThread] = {}
    for file in files:
        for thread in _read_real_time_thread(file.content.decode(errors="replace")):
            key = thread.id, thread.name
            before = first.setdefault(key, thread.ran_ns if file.moment is Moment.START else 0)
            ran = None if thread.ran_ns is None or before is None else max(thread.ran_ns - before, 0)
            known = found.get(key)
            if known and known.urgency > thread.urgency:
                found[key] = replace(known, ran_ns=ran)
            else:
                found[key] = replace(thread, ran_ns=ran)
    last = {
        (t.id, t.name)
        for f in files
        if f.moment is Moment.END
        for t in _read_real_time_thread(f.content.decode(errors="replace"))
    }
    told = [each if key in last else replace(each, ran_ns=None) for key, each in found.items()]
    return tuple(thread for thread in told if thread.id not in own)


def _read_real_time_thread(text: str) -> list[RtThread]:
    """Lines that are no thread are passed over."""
    return [_real_time_thread(match) for match in map(_REAL_TIME_LINE.fullmatch, text.splitlines()) if match]


def _real_time_thread(match: re.Match[str]) -> RtThread:
    _, thread, policy, priority, cpu, ran, allowed, name = match.groups()
    of_kernel = name.startswith("[") and name.endswith("]")
    return RtThread(
        int(thread),
        policy,
        None if priority == "-" else int(priority),
        int(cpu),
        _cpus(allowed),
        None if ran == "-" else int(ran),
        name[1:-1] if of_kernel else name,
        of_kernel,
    )


def _cpus(text: str) -> frozenset[int] | None:
    try:
        return frozenset(parse_cpus(text))
    except (UserError, ValueError):
        return None
