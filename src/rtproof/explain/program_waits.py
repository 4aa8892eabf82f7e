# SPDX-License-Identifier: Apache-2.0
"""Where in its program a thread waits: the functions that it was in each time that it went to sleep, by frame pointers.

The kernel gives addresses. Which file of the process has code there is in the record; its functions are looked up on
this machine, in a file that is still the same.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rtproof.core.elf_symbols import ElfFile
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.explain.budget import BudgetPart, TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.trace_events import EventDecoder, event_formats
from rtproof.record.contents import Record
from rtproof.summary import kernel_trace

CPU_BUFFER = re.compile(r"waits/cpu(\d+)")
MAPS = "waits/maps"
_MAP = re.compile(
    r"(?m)^([0-9a-f]{1,16})-([0-9a-f]{1,16}) ..x. ([0-9a-f]{1,16}) [0-9a-f]+:[0-9a-f]+ (\d{1,19}) +([/\[].*)$"
)
SLEEPS = (Cause.BLOCKED, Cause.SLEEP, Cause.INTERRUPT_WAIT)
"""Causes of a time in which the late thread, or a thread for which it waits, sleeps."""
SWITCH_NS = 50_000
"""Within this time the two traces of one switch have their events."""


class _Mapped(NamedTuple):
    """A part of a file in the memory of the process, or of what the kernel adds, in brackets.

    offset: in the file, of its first byte.
    """

    first: int
    behind: int
    offset: int
    inode: int
    path: str


class ProgramWaits:
    """The functions in which threads went to sleep, as far as the record has them."""

    def __init__(self, record: Record, origin_ns: int) -> None:
        """origin_ns: what is subtracted from each time."""
        told = kernel_trace.trace_text(record, MAPS)
        self._maps = [
            _Mapped(int(first, 16), int(behind, 16), int(offset, 16), int(inode), path)
            for first, behind, offset, inode, path in _MAP.findall(told)
        ]
        self._waits: dict[int, list[tuple[int, tuple[int, ...]]]] = defaultdict(list)
        for time_ns, tid, addresses in _stacks(record, origin_ns):
            self._waits[tid].append((time_ns, addresses))
        for found in self._waits.values():
            found.sort()

    def functions(self, tid: int, sleeps_ns: int) -> tuple[str, ...]:
        """The functions in which the thread sleeps at this time, innermost first; () if not known."""
        found = self._waits.get(tid, [])
        at = bisect_right(found, sleeps_ns + SWITCH_NS, key=lambda wait: wait[0])
        return tuple(map(self._name, found[at - 1][1])) if at else ()

    def added_to(self, of: TimeBudget) -> TimeBudget:
        """The budget with the functions in which its thread waited."""
        if of.activation.tid not in self._waits:
            return of
        return replace(of, parts=tuple(self._with_functions(of.activation.tid, part) for part in of.parts))

    def _with_functions(self, tid: int, part: BudgetPart) -> BudgetPart:
        waits = part.waits_for or part.cause.cause in SLEEPS
        return replace(part, waits_in=self.functions(tid, part.from_ns)) if waits else part

    def _name(self, address: int) -> str:
        mapped = next((each for each in self._maps if each.first <= address < each.behind), None)
        if mapped is None:
            return f"{address:#x}"
        if mapped.path.startswith("["):
            return one_line(mapped.path)
        offset = address - mapped.first + mapped.offset
        return _function(mapped.path, mapped.inode, offset) or f"{one_line(Path(mapped.path).name)}+{offset:#x}"


def _stacks(record: Record, origin_ns: int) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """When which thread went to sleep, with the addresses of its functions, innermost first."""
    cpus = [int(match[1]) for name in kernel_trace.trace_names(record) if (match := CPU_BUFFER.fullmatch(name))]
    if not cpus:
        return
    decoder = EventDecoder(event_formats(record).values(), kernel_trace.page_layout(record), -origin_ns)
    for cpu in cpus:
        for event in decoder.events(cpu, [kernel_trace.trace_content(record, f"waits/cpu{cpu}")]):
            addresses = event.values.get("caller") if event.name == "user_stack" else None
            if isinstance(addresses, tuple) and addresses:
                yield event.time_ns, event.pid, addresses


@cache
def _function(path: str, inode: int, offset: int) -> str | None:
    """The function at a place of a file; None if the file is another one by now, or does not tell."""
    try:
        if Path(path).stat().st_ino != inode:
            return None
        with ElfFile(Path(path)) as file:
            name = file.function_at(offset)
    except (OSError, UserError):
        return None
    return one_line(name) if name else None
