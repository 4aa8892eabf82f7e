# SPDX-License-Identifier: Apache-2.0
"""The threads of the target: all at the start, the real-time ones during the run, and those of rtproof."""

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

from rtproof.core.errors import UserError
from rtproof.core.units import parse_cpus
from rtproof.record.contents import Moment, Record
from rtproof.summary import recorded_facts
from rtproof.summary.fields import judged_series
from rtproof.summary.recorded_facts import fact_number

TABLE_PATH = "threads"
_LINE = re.compile(
    r"(?P<process>\d{1,9}) (?P<id>\d{1,9}) (?P<policy>\S+) (?P<priority>\S+) (?P<nice>\S+) (?P<cpu>\d{1,9}) "
    r"(?P<name>.*)"
)
_INTERRUPT = re.compile(r"irq/\d+-.*|IRQ-\d+|irq/\d+")
_REAL_TIME = ("FF", "RR", "DLN")


@dataclass(frozen=True)
class TargetThread:
    """A thread of the target.

    policy: TS, FF, RR, B, ISO, IDL or DLN.
    priority: None without a real-time policy, and for DLN.
    cpu: the CPU on which it ran last.
    of_kernel: whether it is a thread of the kernel, which has no program.
    cpus: the CPUs on which it may run. ran_ns: its CPU time between the first look, before the warm-up, and the last,
    after the run. Only the list of real-time threads tells these two, but not the nice value; None if unknown.
    """

    process: int
    id: int
    policy: str
    priority: int | None
    nice: int | None
    cpu: int
    name: str
    of_kernel: bool
    cpus: frozenset[int] | None = None
    ran_ns: int | None = None

    @property
    def real_time(self) -> bool:
        return self.policy in _REAL_TIME

    @property
    def interrupt(self) -> bool:
        """Whether the thread handles the interrupt of a device."""
        return self.of_kernel and bool(_INTERRUPT.fullmatch(self.name))

    @property
    def urgency(self) -> int:
        """The order in which threads run: the thread with the larger number runs first."""
        return 1_000 if self.policy == "DLN" else self.priority or 0

    @property
    def kernel_priority(self) -> int:
        """As the scheduler's events have it, where less is more urgent."""
        return -1 if self.policy == "DLN" else 99 - (self.priority or 0)

    @property
    def everywhere(self) -> bool:
        """Whether every system has this thread, so that it is a part of what is measured."""
        return self.of_kernel and bool(_EVERYWHERE.fullmatch(self.name))

    def may_run_on(self, measured: frozenset[int]) -> bool:
        """Whether the thread may run on one of the measured CPUs. In ``measured``, -1 stands for any CPU."""
        cpus = frozenset({self.cpu}) if self.cpus is None else self.cpus
        return -1 in measured or bool(cpus & measured)


def target_threads(record: Record) -> tuple[TargetThread, ...]:
    """All threads at the start, in the order of the record. Lines that are no thread are skipped."""
    return _threads_of_table(recorded_facts.file_text(record, TABLE_PATH) or "")


@lru_cache(maxsize=2)
def _threads_of_table(text: str) -> tuple[TargetThread, ...]:
    return tuple(_thread(match.groupdict()) for match in map(_LINE.fullmatch, text.splitlines()) if match)


def _thread(told: dict[str, str]) -> TargetThread:
    """The thread of a line. Each of the two lists tells some things that the other one does not."""
    of_kernel = told["name"].startswith("[") and told["name"].endswith("]")
    cpus = None
    with suppress(UserError, ValueError):
        cpus = frozenset(parse_cpus(told.get("cpus", "")))
    return TargetThread(
        process=int(told["process"]),
        id=int(told["id"]),
        policy=told["policy"],
        priority=_number(told["priority"]),
        nice=_number(told.get("nice", "")),
        cpu=int(told["cpu"]),
        name=told["name"][1:-1] if of_kernel else told["name"],
        of_kernel=of_kernel,
        cpus=cpus,
        ran_ns=_number(told.get("ran", ""), 19),
    )


def _number(word: str, digits: int = 9) -> int | None:
    return int(word) if re.fullmatch(rf"-?\d{{1,{digits}}}", word) else None


AGENT_NAME = "rtproof-agent"
"""The name of the agent's threads that have no name of their own. The kernel keeps 15 characters of a name."""
KERNEL_PREFIXES = ("rtproof", "timerlat")
"""Names of kernel threads that a probe measures or drives begin like this."""


FOREIGN = "foreign"
"""The probe that measures threads of others, by the kernel's trace alone."""


def own_threads(record: Record) -> frozenset[int]:
    """The numbers of rtproof's threads: of the agent and the measured ones, but not of the user's application."""
    agent = fact_number(record, "agent_pid", Moment.START)
    measured = () if record.fact("probe") == FOREIGN else judged_series(record)
    told = {fact_number(record, "tid", Moment.START, series.thread) for series in measured}
    seen = {
        thread.id
        for thread in target_threads(record)
        if (thread.process == agent if agent else thread.name.startswith(AGENT_NAME))
        or (thread.of_kernel and thread.name.startswith(KERNEL_PREFIXES))
    }
    return frozenset(seen | {tid for tid in told if tid} | ({agent} if agent else set()))


REAL_TIME_PATH = "rt-threads"
_REAL_TIME_LINE = re.compile(
    r"(?P<process>\d{1,9}) (?P<id>\d{1,9}) (?P<policy>FF|RR|DLN) (?P<priority>\d{1,2}|-) (?P<cpu>\d{1,9}) "
    r"(?P<ran>\d{1,19}|-) (?P<cpus>\S+) (?P<name>.*)"
)
_EVERYWHERE = re.compile(
    r"(migration|stopper|watchdog|posixcputmr|posix_cpu_timer|rcu\w*|ktimers|ktimersoftd|irq_work|sirq-[\w-]+)(/.*)?|sugov:.*"
)
"""Kernel threads that every system of their kind has. They are part of what is measured."""


def real_time_threads(record: Record) -> tuple[TargetThread, ...]:
    """The real-time threads except rtproof's own, each once, as last seen; without their list, those at the start."""
    own = own_threads(record)
    return tuple(thread for thread in every_real_time_thread(record) if thread.id not in own)


def every_real_time_thread(record: Record) -> tuple[TargetThread, ...]:
    """The same with rtproof's own threads, as far as they are in the lists."""
    files = [file for file in record.files if file.path == REAL_TIME_PATH and not file.errno]
    if not files:
        return tuple(one for one in target_threads(record) if one.real_time)
    first: dict[tuple[int, str], int | None] = {}
    found: dict[tuple[int, str], TargetThread] = {}
    last: set[tuple[int, str]] = set()
    for file in files:
        lines = file.content.decode(errors="replace").splitlines()
        for thread in (_thread(match.groupdict()) for match in map(_REAL_TIME_LINE.fullmatch, lines) if match):
            key = thread.id, thread.name
            before = first.setdefault(key, thread.ran_ns if file.moment is Moment.START else 0)
            ran = None if thread.ran_ns is None or before is None else max(thread.ran_ns - before, 0)
            known = found.get(key)
            found[key] = replace(known if known and known.urgency > thread.urgency else thread, ran_ns=ran)
            if file.moment is Moment.END:
                last.add(key)
    return tuple(each if key in last else replace(each, ran_ns=None) for key, each in found.items())
