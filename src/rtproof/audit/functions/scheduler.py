# SPDX-License-Identifier: Apache-2.0
"""Checks of the scheduler, of limits and of privileges."""

import re

from rtproof.audit import readings
from rtproof.audit.answers import first_names, no_threads, only
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check
from rtproof.audit.facts import Facts, Reading
from rtproof.audit.readings import finding, good, not_applicable, not_understood, unknown
from rtproof.audit.system_threads import AuditedThread, all_threads, application_threads, measuring_processes

CAP_IPC_LOCK, CAP_SYS_NICE = 14, 23
_BUDGETS = "rt-group"
_OF_THE_KERNEL = re.compile(
    r"(irq/\d+-|irq/\d+-s-|ktimers/|ktimersoftd/|ksoftirqd/|rcuc/|rcuop?/|rcuob/|rcub/|rcuog/).*"
)


def permitted(facts: Facts, check: Check) -> Judgement:
    """Whether the user of the audit may have a real-time policy, and what refuses it."""
    tried = facts.read("rt-permitted")
    if not tried.here:
        return readings.missing(check, [tried])
    if tried.word == "yes":
        return good("A thread that asked for SCHED_FIFO got it.", (tried,))
    if not tried.word.startswith("no"):
        return not_understood(tried)
    causes = _why_refused(facts)
    why = " ".join(causes) if causes else "Neither a capability, a limit nor a control group explains it."
    return finding(f"SCHED_FIFO was refused: {tried.word.removeprefix('no: ')}. {why}", (tried,))


def _why_refused(facts: Facts) -> list[str]:
    """The causes, the one that is to be removed first before the others."""
    causes = []
    limit = limit_of(facts.read("/proc/self/limits"), "Max realtime priority")
    if has_capability(facts, CAP_SYS_NICE) is False and limit == 0:
        causes.append("The user has neither CAP_SYS_NICE nor a limit RTPRIO above 0.")
    budget = facts.read(_BUDGETS)
    first = budget.word.splitlines()[0].rsplit(maxsplit=2) if budget.here and budget.word else []
    if len(first) == 3 and first[1] == "0":
        causes.append(f"The control group {first[0]} has no budget for real-time threads: cpu.rt_runtime_us is 0.")
    if facts.read("/proc/sys/kernel/sched_rt_runtime_us").number() == 0:
        causes.append("sched_rt_runtime_us is 0, which forbids real-time threads.")
    if not causes and re.search(r"(?m)^Seccomp:\s+2$", facts.read("/proc/self/status").text):
        causes.append("A seccomp filter, as containers have it, may refuse the call.")
    return causes


def has_capability(facts: Facts, number: int) -> bool | None:
    """Whether the user of the audit has a capability; None if not known."""
    found = re.search(r"(?m)^CapEff:\s+([0-9a-fA-F]{1,32})$", facts.read("/proc/self/status").text)
    return bool(int(found[1], 16) >> number & 1) if found else None


def limit_of(reading: Reading, name: str) -> int | None:
    """The soft limit of this name; -1 for unlimited, None if not known."""
    found = re.search(rf"(?m)^{name}\s+(unlimited|\d{{1,20}})\s", reading.text)
    return None if not found else -1 if found[1] == "unlimited" else int(found[1])


def interrupt_priorities(facts: Facts, check: Check) -> Judgement:
    """The kernel's threads that come before the application's real-time threads."""
    system = all_threads(facts)
    if system.threads is None:
        return no_threads(check, system)
    kernel = [one for one in system.threads if one.of_kernel and one.real_time and _OF_THE_KERNEL.fullmatch(one.name)]
    if not kernel:
        sentence = "No interrupt of this kernel has a thread with a real-time policy."
        shown = _count(system.reading, 0)
        hidden = f"Not every thread is known: {system.hidden}."
        return unknown((shown,), hidden) if system.hidden else not_applicable(sentence, (shown,))
    own = _real_time_threads(facts, system.threads)
    if own is None:
        return unknown((facts.read("process/threads"),), "The threads of the application are not known.")
    if not own:
        return not_applicable(
            "There is no real-time thread to compare the interrupts' threads with.", (system.reading,)
        )
    lowest = min(own, key=lambda one: one.priority)
    before = [one for one in kernel if one.priority >= lowest.priority and _may_meet(one, own)]
    if not before:
        return good(
            f"All {len(kernel)} threads come after {lowest.label} of priority {lowest.priority}.",
            (_count(system.reading, 0),),
        )
    names = first_names(f"{one.name} ({one.priority})" for one in before)
    text = (
        f"{lowest.label} has the priority {lowest.priority}, and these threads of the kernel are not below it: {names}."
    )
    return finding(text, (only(system.reading, names),))


def _count(reading: Reading, number: int) -> Reading:
    return only(reading, f"{number} threads of interrupts before the application")


def _real_time_threads(facts: Facts, threads: tuple[AuditedThread, ...]) -> list[AuditedThread] | None:
    """Those of the application, or else of all programs; without SCHED_DEADLINE. None if not known."""
    if facts.record.fact("pid") is not None:
        found = application_threads(facts).threads
        return None if found is None else [one for one in found if one.priority]
    own = measuring_processes(facts)
    return [one for one in threads if one.priority and not one.of_kernel and one.pid not in own]


def _may_meet(thread: AuditedThread, own: list[AuditedThread]) -> bool:
    """Whether a thread may run on a CPU of the application."""
    if thread.cpus is None or any(one.cpus is None for one in own):
        return True
    return any(thread.cpus & (one.cpus or frozenset()) for one in own)
