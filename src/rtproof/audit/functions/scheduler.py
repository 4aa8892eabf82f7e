# SPDX-License-Identifier: Apache-2.0
"""Checks of the scheduler, of limits and of privileges."""

import re

from rtproof.audit import readings
from rtproof.audit.audit_model import Judgement
from rtproof.audit.check import Check
from rtproof.audit.facts import Facts
from rtproof.audit.readings import finding, first_names, good, not_applicable, not_understood, only, unknown
from rtproof.audit.system_threads import (
    PATH,
    AuditedThread,
    all_threads,
    application_threads,
    measuring_processes,
    why_hidden,
)

CAP_SYS_NICE = 23
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
    status, limits = facts.read("/proc/self/status").text, facts.read("/proc/self/limits").text
    capabilities = re.search(r"(?m)^CapEff:\s+([0-9a-fA-F]{1,32})$", status)
    may = capabilities is None or int(capabilities[1], 16) >> CAP_SYS_NICE & 1
    if not may and re.search(r"(?m)^Max realtime priority\s+0{1,20}\s", limits):
        causes.append("The user has neither CAP_SYS_NICE nor a limit RTPRIO above 0.")
    budget = facts.read(_BUDGETS)
    first = budget.word.splitlines()[0].rsplit(maxsplit=2) if budget.here and budget.word else []
    if len(first) == 3 and first[1] == "0":
        causes.append(f"The control group {first[0]} has no budget for real-time threads: cpu.rt_runtime_us is 0.")
    if facts.read("/proc/sys/kernel/sched_rt_runtime_us").number() == 0:
        causes.append("sched_rt_runtime_us is 0, which forbids real-time threads.")
    if not causes and re.search(r"(?m)^Seccomp:\s+2$", status):
        causes.append("A seccomp filter, as containers have it, may refuse the call.")
    return causes


def interrupt_priorities(facts: Facts, check: Check) -> Judgement:
    """The kernel's threads that come before the application's real-time threads."""
    table, threads = facts.read(PATH), all_threads(facts)
    if threads is None:
        return not_understood(table) if table.here else readings.missing(check, [table])
    kernel = [one for one in threads if one.of_kernel and one.real_time and _OF_THE_KERNEL.fullmatch(one.name)]
    none_before = only(table, "0 threads of interrupts before the application")
    if not kernel:
        sentence = "No interrupt of this kernel has a thread with a real-time policy."
        hidden = why_hidden(facts)
        lacking = f"Not every thread is known: {hidden}."
        return unknown((none_before,), lacking) if hidden else not_applicable(sentence, (none_before,))
    own = _real_time_threads(facts, threads)
    if own is None:
        return unknown((facts.read("process/threads"),), "The threads of the application are not known.")
    if not own:
        sentence = "There is no real-time thread to compare the interrupts' threads with."
        return not_applicable(sentence, (table,))
    lowest = min(own, key=lambda one: one.priority)
    cpus = None if any(one.cpus is None for one in own) else frozenset[int]().union(*(one.cpus or () for one in own))
    names = [
        f"{one.name} ({one.priority})"
        for one in kernel
        if one.priority >= lowest.priority and (cpus is None or one.cpus is None or one.cpus & cpus)
    ]
    if names:
        text = f"{lowest.label} has the priority {lowest.priority}, and these threads of the kernel are not below it: "
        return finding(f"{text}{first_names(names)}.", (only(table, first_names(names)),))
    return good(f"All {len(kernel)} threads come after {lowest.label} of priority {lowest.priority}.", (none_before,))


def _real_time_threads(facts: Facts, threads: tuple[AuditedThread, ...]) -> list[AuditedThread] | None:
    """Those of the application, or else of all programs; without SCHED_DEADLINE. None if not known."""
    if facts.record.fact("pid") is not None:
        found = application_threads(facts)
        return None if found is None else [one for one in found if one.priority]
    own = measuring_processes(facts)
    return [one for one in threads if one.priority and not one.of_kernel and one.pid not in own]
