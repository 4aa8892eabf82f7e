# SPDX-License-Identifier: Apache-2.0
"""Could other threads run before the measuring ones on their CPUs? Then latencies are of those threads' work too."""

from collections.abc import Iterator

from rtproof.analysis.asked import whole
from rtproof.analysis.checks.case import REAL_TIME, WARNING, Case, Check, sentence_list
from rtproof.analysis.model import Doubt
from rtproof.analysis.phrases import duration, quantity
from rtproof.analysis.rtthreads import PATH, RtThread, rt_threads
from rtproof.analysis.threadtable import threads
from rtproof.record import Moment
from rtproof.units import format_cpus


def rivals(case: Case) -> Iterator[Doubt]:
    """Other threads of the same priority count as well: under SCHED_FIFO they go on until they sleep.

    Without a real-time policy everything else runs first, as asked. A thread that used no CPU time delayed nothing.
    """
    urgencies = [each for each in (_urgency(case, summary.series.thread) for summary in case.summaries) if each]
    measured = frozenset(summary.series.cpu for summary in case.summaries)
    if not urgencies:
        return
    found = [
        thread
        for thread in rt_threads(case.record)
        if thread.urgency >= min(urgencies) and thread.may_run_on(measured) and not thread.everywhere and _ran(thread)
    ]
    if found:
        found.sort(key=lambda thread: (-(thread.ran_ns or 0), -thread.urgency, thread.id))
        count = quantity(len(found), "other thread")
        what = f"{count} of the same or a higher real-time priority could run on a measured CPU: "
        remedy = "move these threads to other CPUs, or give them a lower priority; else they are a part of the result"
        yield Doubt("rt-threads", WARNING, what + sentence_list(map(_named, found)), remedy)


def hidden(case: Case) -> Iterator[Doubt]:
    """Every kernel has threads of its own. A record that shows none was made where others' threads are not seen."""
    every = threads(case.record)
    looked = any(file.path == PATH and not file.errno for file in case.record.files)
    if looked and every and not any(thread.of_kernel for thread in every):
        what = "threads of the rest of the system can't be seen from here, so none of a higher priority would be named"
        remedy = "run the agent outside of the container, or where /proc is not mounted with hidepid"
        yield Doubt("threads-hidden", WARNING, what, remedy)


def _urgency(case: Case, thread: int) -> int | None:
    """None without a real-time policy. What the thread had counts, else what was asked for."""
    policy = case.fact("policy", Moment.START, thread) or case.fact("policy")
    priority = case.fact("priority", Moment.START, thread) or case.fact("priority")
    if policy not in REAL_TIME:
        return None
    return 1_000 if policy == "deadline" else whole(priority) or 1


def _ran(thread: RtThread) -> bool:
    """Of a thread of the kernel whose CPU time is not known, only interrupt handlers are known to have work."""
    if thread.ran_ns is None:
        return thread.interrupt or not thread.of_kernel
    return thread.ran_ns > 0


def _named(thread: RtThread) -> str:
    policy = {"FF": "fifo", "RR": "rr", "DLN": "deadline"}[thread.policy]
    priority = f" {thread.priority}" if thread.priority is not None else ""
    allowed = "" if thread.cpus is None else f", allowed on {format_cpus(tuple(sorted(thread.cpus)))}"
    ran = "" if thread.ran_ns is None else f", ran for {duration(thread.ran_ns)}"
    return f"{thread.name} (TID {thread.id}, {policy}{priority}, last on CPU {thread.cpu}{allowed}{ran})"


CHECKS: tuple[Check, ...] = (rivals, hidden)
