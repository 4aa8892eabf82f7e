# SPDX-License-Identifier: Apache-2.0
"""Check what kept measuring threads from running: other threads on their CPUs, and the kernel's budgets.

A budget lets the kernel stop real-time threads for a part of each period.
"""

import re
from collections.abc import Iterator

import numpy as np

from rtproof.core.phrases import duration, quantity
from rtproof.core.units import format_cpus, whole_number
from rtproof.judge.doubts.case import INVALID, REAL_TIME, WARNING, Check, CheckedRun, sentence_list
from rtproof.record.contents import Int64Array, Moment
from rtproof.summary.recorded_facts import fact_number, signed_number
from rtproof.summary.summary_model import Doubt, Summary
from rtproof.summary.target_threads import (
    FOREIGN,
    REAL_TIME_PATH,
    TargetThread,
    every_real_time_thread,
    real_time_threads,
    target_threads,
)

RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
GROUPS, FAIR_SERVER = "rt-group", "fair-server"
FAIR_SINCE = (6, 12)
FAIR_NS, FAIR_PERIOD_NS = 50_000_000, 1_000_000_000
"""The default budget of the fair server (kernel/sched/fair.c)."""
LEAST_STOPS = 3
LEAST_NS = 2_000_000
"""A shorter stop can have any cause."""
TICK_NS = 10_000_000
"""The kernel checks budgets at each tick. This is the time between two ticks at HZ=100."""
NEAR = 0.05
"""The distance of two stops may differ from a whole number of periods by this share of a period."""
MOSTLY = 0.75
"""This share of the distances has to fit, and this share of the delays must be no longer than the budget allows."""
WHOLE = 0.7
"""If the longest stop reaches this share of the longest possible one, the budget was used up."""
_LONGEST_NAME = 15
"""The kernel's own limit for the names of threads. Some of its own are longer."""
READY = 0.5
"""The thread must have waited for a CPU during this share of the stops, if the kernel reports the waiting time."""


Budget = tuple[str, int, int]
"""A rule of the kernel: its name, and that it may stop real-time threads for up to a number of ns in a period of ns."""


def budget_stops(case: CheckedRun) -> Iterator[Doubt]:
    """Delays that come in step with a budget's period. If they have its full length, the budget is the cause."""
    if case.fact("policy") not in ("fifo", "rr"):
        return
    for summary in case.summaries:
        fitting: list[tuple[int, Budget, int]] = []
        for budget in budgets(case, summary.series.cpu):
            end_ns, length_ns = _stops(summary, budget[1])
            if _fits(end_ns, budget[2]) and _was_ready(case, summary, int(length_ns.sum())):
                fitting.append((int(length_ns.max()), budget, length_ns.size))
        if not fitting:
            continue
        longest, (name, stop_ns, period_ns), times = min(fitting, key=lambda one: abs(one[0] - one[1][1]))
        severity = INVALID if longest >= WHOLE * stop_ns else WARNING
        what = f"a budget stopped thread {summary.series.thread} {times} times, by up to {duration(longest)}"
        detail = (
            f"in step with a period of {duration(period_ns)}: {name} may take up to {duration(stop_ns)} of each; a "
            "real-time thread uses the budget up"
        )
        yield Doubt("budget-stops", severity, what, "raise the budget", detail)


def budgets(case: CheckedRun, cpu: int) -> list[Budget]:
    """Every budget for this CPU that the record shows, or that this version of Linux has by default."""
    found = [*_fair_server(case, cpu), *_groups(case)]
    runtime, period = (case.file(path, Moment.START) or "" for path in (RT_RUNTIME, RT_PERIOD))
    if _version(case) < FAIR_SINCE or case.file(GROUPS, Moment.START) is not None:
        found += _of("the kernel's throttling of real-time threads", runtime, period)
    return found


def _of(name: str, runtime_us: str, period_us: str) -> list[Budget]:
    """A list of one budget; empty if real-time threads may run all the time, which the kernel writes as -1."""
    runs, of = whole_number(runtime_us), whole_number(period_us)
    return [(name, (of - runs) * 1000, of * 1000)] if runs is not None and of and runs < of else []


def _groups(case: CheckedRun) -> Iterator[Budget]:
    for line in (case.file(GROUPS, Moment.START) or "").splitlines():
        path, runtime, period = line.rsplit(" ", 2) if line.count(" ") >= 2 else (line, "", "")
        yield from _of(f"the throttling of the control group {path}", runtime, period)


def _fair_server(case: CheckedRun, cpu: int) -> list[Budget]:
    name = "the kernel's fair server"
    lines = (case.file(FAIR_SERVER, Moment.START) or "").splitlines()
    for words in map(str.split, lines):
        if len(words) == 3 and (words[0] == f"cpu{cpu}" or cpu < 0):
            runtime, period = map(whole_number, words[1:])
            if runtime is not None and period is not None:
                return [(name, runtime, period)] if 0 < runtime < period else []
    return [(name, FAIR_NS, FAIR_PERIOD_NS)] if not lines and _version(case) >= FAIR_SINCE else []


def _version(case: CheckedRun) -> tuple[int, int]:
    numbers = re.match(r"(\d{1,9})\.(\d{1,9})", case.record.begin.kernel_release)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _stops(summary: Summary, stop_ns: int) -> tuple[Int64Array, Int64Array]:
    """Ends and lengths of a thread's stops in ns, from its largest latencies. Delays that ended together are one stop.

    A stop is as long as its longest delay. A delay that is longer than the budget allows has another cause, or a second
    one such as a hypervisor that took the CPU too. Such delays are left out. If too many delays are longer, there are
    no stops of this budget.
    """
    most_ns = stop_ns + TICK_NS
    end_ns, length_ns = summary.top.due_ns + summary.top.value, summary.top.value
    longest = int(length_ns[length_ns <= most_ns].max(initial=0))
    order = np.argsort(end_ns, kind="stable")
    order = order[length_ns[order] >= max(LEAST_NS, longest / 4)]
    if not order.size:
        return end_ns[order], length_ns[order]
    first = np.flatnonzero(np.concatenate(([True], np.diff(end_ns[order]) > TICK_NS)))
    end_ns, length_ns = end_ns[order][first], np.maximum.reduceat(length_ns[order], first)
    keep = length_ns <= most_ns
    keep &= keep.mean() >= MOSTLY
    return end_ns[keep], length_ns[keep]


def _fits(end_ns: Int64Array, period_ns: int) -> bool:
    if end_ns.size < LEAST_STOPS:
        return False
    periods = np.diff(end_ns) / period_ns
    fits = (np.abs(periods - np.round(periods)) <= NEAR) & (np.round(periods) >= 1)
    return bool(fits.mean() >= MOSTLY)


def _was_ready(case: CheckedRun, summary: Summary, stopped_ns: int) -> bool:
    """Whether the thread waited for a CPU during the stops; True if the kernel does not report how long it waited."""
    found = case.record.conditions.get(summary.series.thread)
    if found is None or case.fact("run_delay", Moment.START, summary.series.thread) != "schedstat":
        return True
    return int(found.run_delay_ns.sum()) >= READY * stopped_ns


BUDGET_CHECKS: tuple[Check, ...] = (budget_stops,)


def rivals(case: CheckedRun) -> Iterator[Doubt]:
    """Other real-time threads that could run before the measuring threads on the same CPU.

    Threads of the same priority count too: under SCHED_FIFO they run until they sleep. Measuring threads without a
    real-time policy run after all others, as the user asked. A thread that used no CPU time delayed nothing.
    """
    threads = [summary.series.thread for summary in case.summaries]
    urgencies = [each for each in (_urgency(case, thread) for thread in threads) if each]
    own = {fact_number(case.record, "tid", Moment.START, thread) for thread in threads}
    measured = frozenset(summary.series.cpu for summary in case.summaries)
    others = [each for each in real_time_threads(case.record) if each.id not in own and not each.everywhere]
    first = [each for each in others if urgencies and each.urgency >= min(urgencies) and each.may_run_on(measured)]
    yield from rival_doubt(list(filter(thread_ran, first)))


def rival_doubt(found: list[TargetThread]) -> Iterator[Doubt]:
    """A doubt that names these threads; none without any."""
    if found:
        found = sorted(found, key=lambda thread: (-(thread.ran_ns or 0), -thread.urgency, thread.id))
        first = found[0]
        name = f"{first.name} ({_scheduled(first)})" if len(first.name) <= _LONGEST_NAME else "a thread"
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        what = f"{name}{more} could run first"
        detail = (
            f"{quantity(len(found), 'thread')} of the same or a higher real-time priority could run on a measured CPU: "
            f"{sentence_list(map(_named, found))}; a lower priority helps, too; else they are a part of the result"
        )
        yield Doubt("rt-threads", WARNING, what, "move them away" if more else "move it to another CPU", detail)


def hidden(case: CheckedRun) -> Iterator[Doubt]:
    """Every kernel has threads of its own. If a record shows none, the agent could not see other threads."""
    every = target_threads(case.record)
    looked = any(file.path == REAL_TIME_PATH and not file.errno for file in case.record.files)
    if looked and every and not any(thread.of_kernel for thread in every):
        detail = "so no thread of a higher priority can be named; a container or hidepid hides them"
        yield Doubt(
            "threads-hidden", WARNING, "threads of other programs are hidden", "run outside the container", detail
        )


def _urgency(case: CheckedRun, thread: int) -> int | None:
    """How urgent a thread is to the scheduler; None without a real-time policy.

    The policy that the thread had counts; if it is unknown, the policy that was asked for. A thread of the user's own
    application has that of the list of real-time threads.
    """
    if case.record.fact("probe") == FOREIGN:
        tid = fact_number(case.record, "tid", Moment.START, thread)
        return next((each.urgency for each in every_real_time_thread(case.record) if each.id == tid), None)
    policy = case.fact("policy", Moment.START, thread) or case.fact("policy")
    priority = case.fact("priority", Moment.START, thread) or case.fact("priority")
    if policy not in REAL_TIME:
        return None
    return 1_000 if policy == "deadline" else signed_number(priority) or 1


def thread_ran(thread: TargetThread) -> bool:
    """Whether a thread ran. If the CPU time of a kernel thread is unknown, only interrupt handlers count."""
    if thread.ran_ns is None:
        return thread.interrupt or not thread.of_kernel
    return thread.ran_ns > 0


def _scheduled(thread: TargetThread) -> str:
    """Such as "fifo 90"."""
    policy = {"FF": "fifo", "RR": "rr", "DLN": "deadline"}[thread.policy]
    return policy if thread.priority is None else f"{policy} {thread.priority}"


def _named(thread: TargetThread) -> str:
    allowed = "" if thread.cpus is None else f", allowed on {format_cpus(tuple(sorted(thread.cpus)))}"
    ran = "" if thread.ran_ns is None else f", ran for {duration(thread.ran_ns)}"
    return f"{thread.name} (TID {thread.id}, {_scheduled(thread)}, last on CPU {thread.cpu}{allowed}{ran})"


RIVAL_CHECKS: tuple[Check, ...] = (rivals, hidden)
