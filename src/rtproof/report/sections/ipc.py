# SPDX-License-Identifier: Apache-2.0
"""Who woke each measuring thread, by the probe's own account: where it ran, how late it was, what it posted."""

from rtproof.analysis.accounts import accounts, number
from rtproof.analysis.model import Analysis
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text

COUNTS = ("posts", "answered", "skipped")
SAME = (
    "Where the thread that posts runs on the CPU of the one that it wakes, its way to sleep is in each value, as in "
    "rt-tests; sender=other leaves that out, and puts in the other CPU's way out of idle."
)
LATENESS = (
    "How late it was itself is in no value: each counts from just before its post. Due times at which it was a period "
    "late had no post (skipped) and are lost. Counts include the warm-up."
)


def render(analysis: Analysis) -> list[Block]:
    told = accounts(analysis.record, "ipc")
    if not told:
        return []
    cpus = {series.thread: series.cpu for series in analysis.record.series}
    header = (
        "",
        "CPU woken",
        "CPU of the sender",
        "policy",
        "priority",
        *COUNTS,
        *figures.headings(figures.US, "latest post"),
    )
    rows = tuple((f"thread {thread}", str(cpus[thread]), *_sender(account)) for thread, account in told.items())
    caption = "The threads that posted, one for each measuring thread"
    return [Table(caption, header, rows, (1, 2, *range(4, 9))), Text((SAME, LATENESS))]


def _sender(account: dict[str, str]) -> tuple[str, ...]:
    who = (account.get(f"sender_{word}", figures.UNKNOWN) for word in ("cpu", "policy", "priority"))
    counts = (figures.count(number(account, word)) for word in COUNTS)
    return (*who, *counts, figures.US.show(number(account, "sender_latest_ns")))
