# SPDX-License-Identifier: Apache-2.0
"""Evidence: every thread of the target with its policy, as ``ps -eLfc`` shows it: who could be in whose way."""

from rtproof.analysis.model import Analysis
from rtproof.analysis.threadtable import Thread, threads
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text

HEADER = ("PID", "TID", "class", "priority", "nice", "CPU", "name")
NUMERIC = (0, 1, 3, 4, 5)


def render(analysis: Analysis) -> list[Block]:
    every = threads(analysis.record)
    if not every:
        return []
    urgent = sorted((t for t in every if t.real_time), key=lambda t: (t.policy != "DLN", -(t.priority or 0), t.id))
    return [
        Text((_count(every, urgent),)),
        _table("Threads with a real-time policy, the most urgent first", urgent, folded=False),
        _table("All threads at the start of the run, loads and this tool included", every, folded=True),
    ]


def _count(every: tuple[Thread, ...], urgent: list[Thread]) -> str:
    handlers = [thread for thread in every if thread.interrupt]
    levels = sorted({thread.priority for thread in handlers if thread.priority}, reverse=True)
    words = f"{figures.count(len(every))} threads, {figures.count(len(urgent))} of them with a real-time policy; "
    if not handlers:
        return f"{words}no interrupt has a thread of its own."
    at = ", ".join(map(str, levels)) or "none"
    return f"{words}{figures.count(len(handlers))} are handlers of interrupts, with priority {at}."


def _table(caption: str, rows: list[Thread] | tuple[Thread, ...], *, folded: bool) -> Table:
    return Table(caption, HEADER, tuple(map(_row, rows)), NUMERIC, folded=folded)


def _row(thread: Thread) -> tuple[str, ...]:
    name = f"[{thread.name}]" if thread.of_kernel else thread.name
    numbers = ("-" if n is None else str(n) for n in (thread.priority, thread.nice))
    return (str(thread.process), str(thread.id), thread.policy, *numbers, str(thread.cpu), name)
