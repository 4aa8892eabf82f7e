# SPDX-License-Identifier: Apache-2.0
"""Which threads of the target were rtproof's own: its measuring threads, its guard, its writer."""

from rtproof.analysis.asked import number
from rtproof.analysis.fields import judged
from rtproof.analysis.threadtable import threads
from rtproof.record import Moment, Record

AGENT = "rtproof-agent"
"""How the kernel shortens no further than 15 characters; names of threads that have none of their own."""
KERNEL_PREFIXES = ("rtproof", "timerlat")
"""Threads of the kernel that a probe measures or drives."""


def own_threads(record: Record) -> frozenset[int]:
    """Their numbers: those of the agent's process, and the measured ones, which may be threads of the kernel."""
    agent = number(record, "agent_pid", Moment.START)
    told = {number(record, "tid", Moment.START, series.thread) for series in judged(record)}
    seen = {
        thread.id
        for thread in threads(record)
        if (thread.process == agent if agent else thread.name.startswith(AGENT))
        or (thread.of_kernel and thread.name.startswith(KERNEL_PREFIXES))
    }
    return frozenset(seen | {tid for tid in told if tid} | ({agent} if agent else set()))
