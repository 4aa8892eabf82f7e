# SPDX-License-Identifier: Apache-2.0
"""Tables that rules read as rows: the threads of the system and of the application, and the interrupts.

A table that may lack rows ends with a reading that says why, as a pattern does of which files were left out.
"""

from collections.abc import Callable, Collection

from rtproof.audit.answers import cpu_words
from rtproof.audit.conditions import isolated_cpus
from rtproof.audit.facts import Facts, Reading, State
from rtproof.audit.interrupts import Interrupt, read_interrupts
from rtproof.audit.system_threads import (
    AuditedThread,
    ThreadsRead,
    all_threads,
    application_threads,
    measuring_processes,
)
from rtproof.core.units import format_cpus

NO_HANDLER = "no interrupt has a handler, as far as was read, and no system is like that"
_YES = {True: "yes", False: "no"}


def _cpus(cpus: Collection[int] | None) -> dict[str, str]:
    return {} if cpus is None else {"cpus": format_cpus(cpus)}


def _thread_rows(facts: Facts, read: ThreadsRead) -> tuple[Reading, ...]:
    if read.threads is None:
        reading = read.reading
        reason = "it holds what this version does not understand" if reading.here else reading.reason
        state = State.UNREADABLE if reading.here else reading.state
        return (Reading(reading.path, state, "", reason),)
    measuring = measuring_processes(facts)
    application = {one.pid for one in application_threads(facts).seen} | {facts.request.pid}
    path = read.reading.path
    rows = tuple(
        Reading(path, State.HERE, _shown(one), fields=_fields(facts, one, measuring, application))
        for one in read.threads
    )
    return (*rows, Reading(path, State.UNREADABLE, "", read.hidden)) if read.hidden else rows


def _shown(thread: AuditedThread) -> str:
    return f"{thread.label} {thread.policy} {thread.priority}" if thread.real_time else thread.label


def _fields(
    facts: Facts, thread: AuditedThread, measuring: Collection[int], application: Collection[int | None]
) -> dict[str, str]:
    """measures: the thread collects the facts. of-measuring: or what it was started by does."""
    numbers = {"cpu": thread.cpu, "slack": thread.slack_ns}
    return {
        "tid": str(thread.tid),
        "pid": str(thread.pid),
        "name": thread.name,
        "label": thread.label,
        "policy": thread.policy,
        "priority": str(thread.priority),
        "mover": str(thread.tid if thread.of_kernel else thread.pid),
        **{name: str(number) for name, number in numbers.items() if number is not None},
        **_cpus(thread.cpus),
        "real-time": _YES[thread.real_time],
        "of-kernel": _YES[thread.of_kernel],
        "bound": _YES[thread.bound],
        "first": _YES[thread.pid == thread.tid],
        "measures": _YES[thread.pid in measuring],
        "of-measuring": _YES[thread.pid in measuring or thread.parent in measuring],
        "of-application": _YES[thread.pid in application],
        "belongs-there": _YES[_belongs_there(facts, thread)],
    }


def _belongs_there(facts: Facts, thread: AuditedThread) -> bool:
    """Whether a thread is of the application; if none is named, whether it is bound to isolated CPUs with a policy."""
    if facts.request.pid is not None:
        return thread.pid == facts.request.pid
    return thread.real_time and thread.cpus is not None and thread.cpus <= (isolated_cpus(facts) or frozenset())


def _interrupt_rows(facts: Facts) -> tuple[Reading, ...]:
    """The interrupts with a handler; the rows of none at all are what was read in place of them."""
    read = read_interrupts(facts)
    if not any(one.here for one in read.readings):
        return read.readings
    own = _application_cpus(facts)
    rows = tuple(
        Reading(one.reading.path, State.HERE, one.reading.word or one.label, fields=_interrupt_fields(one, own))
        for one in read.interrupts
    )
    if not rows:
        return (Reading(read.names.path, State.UNREADABLE, "", NO_HANDLER),)
    return (*rows, *read.left_out)


def _interrupt_fields(interrupt: Interrupt, own: frozenset[int]) -> dict[str, str]:
    """own: somebody bound the interrupt to the application's CPUs, as one does with that of its device."""
    wanted = {} if interrupt.wanted is None else {"wanted": _cpus(interrupt.wanted)["cpus"]}
    return {
        "irq": str(interrupt.number),
        "label": interrupt.label,
        "served": f"{interrupt.label} on {cpu_words(interrupt.serving or ())}",
        "handlers": str(len(interrupt.actions)),
        **_cpus(interrupt.serving),
        **wanted,
        "per-cpu": _YES[interrupt.per_cpu],
        "managed": _YES[interrupt.managed],
        "own": _YES[bool(interrupt.wanted) and (interrupt.wanted or frozenset()) <= own],
    }


def _application_cpus(facts: Facts) -> frozenset[int]:
    """The isolated CPUs to which the application is bound; none if it is bound to none."""
    wanted = isolated_cpus(facts) or frozenset()
    bound = [one.cpus for one in application_threads(facts).seen if one.cpus and one.cpus <= wanted]
    return frozenset[int]().union(*bound)


TABLES: dict[str, Callable[[Facts], tuple[Reading, ...]]] = {
    "threads": lambda facts: _thread_rows(facts, all_threads(facts)),
    "application": lambda facts: _thread_rows(facts, application_threads(facts)),
    "interrupts": _interrupt_rows,
}
"""The rows of each table, by the name of its term."""


def rows_of(facts: Facts, table: str) -> tuple[Reading, ...]:
    """The rows of the table of this name."""
    if table not in facts.rows:
        facts.rows[table] = TABLES[table](facts)
    return facts.rows[table]
