# SPDX-License-Identifier: Apache-2.0
"""Where in its program a thread waits: the functions that it was in each time that it went to sleep, by frame pointers.

The kernel gives addresses. Which file of the process has code there is in the record; its functions are looked up on
this machine, in a file that is still the same.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import groupby
from pathlib import Path

from rtproof.core.elf_symbols import ElfFile
from rtproof.core.errors import UserError
from rtproof.core.printable import one_line
from rtproof.explain.budget import BudgetPart, TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.trace_events import EventDecoder, TraceEvent
from rtproof.record.contents import Record
from rtproof.summary import kernel_trace

CPU_BUFFER = re.compile(r"waits/cpu(\d+)")
MAPS = "waits/maps"
EXEC = "sched/sched_process_exec"
_HEAD = re.compile(r"process (\d{1,19}) (\d{1,19})\n")
_MAP = re.compile(
    r"(?m)^([0-9a-f]{1,16})-([0-9a-f]{1,16}) ..(.). ([0-9a-f]{1,16}) "
    r"([0-9a-f]{1,8}):([0-9a-f]{1,8}) (\d{1,19}) +([/\[].*)$"
)
SLEEPS = (Cause.BLOCKED, Cause.SLEEP, Cause.INTERRUPT_WAIT)
"""Causes of a time in which the late thread, or a thread for which it waits, sleeps."""
SWITCH_NS = 50_000
"""Within this time the two traces of one switch have their events."""


Wait = tuple[int, tuple[int, ...], bool]
"""When a thread went to sleep, in which functions by their addresses, whether the map is of its program."""


class ProgramWaits:
    """The functions in which threads went to sleep, as far as the record has them."""

    def __init__(self, record: Record, origin_ns: int) -> None:
        """origin_ns: what is subtracted from each time."""
        told = kernel_trace.trace_text(record, MAPS)
        # From which address to which, the place in the file of the first one, the file's inode and its path; or in
        # brackets what the kernel adds.
        self._maps = [
            (int(first, 16), int(behind, 16), int(offset, 16), int(inode), path)
            for first, behind, executed, offset, _, _, inode, path in _MAP.findall(told)
            if executed == "x"
        ]
        head = _HEAD.match(told)
        process, seen_ns = (int(head[1]), int(head[2]) - origin_ns) if head else (-1, 0)
        events = list(_events(record, origin_ns))
        replaced_ns = [event.time_ns for event in events if event.name == EXEC and event.values["pid"] == process]
        self._waits: dict[int, list[Wait]] = defaultdict(list)
        for event in events:
            addresses = event.values.get("caller")
            if isinstance(addresses, tuple) and addresses:
                between = sorted((event.time_ns, seen_ns))
                known = not any(between[0] <= each <= between[1] for each in replaced_ns)
                self._waits[event.pid].append((event.time_ns, addresses, known and event.values["tgid"] == process))
        for found in self._waits.values():
            found.sort()

    def added_to(self, of: TimeBudget) -> TimeBudget:
        """The budget with the functions in which its thread waited."""
        tid, due_ns = of.activation.tid, of.activation.due_ns
        if tid not in self._waits:
            return of
        parts: list[BudgetPart] = []
        for waits, group in groupby(of.parts, key=lambda part: bool(part.waits_for) or part.cause.cause in SLEEPS):
            sleep = list(group)
            begins_ns = sleep[0].from_ns
            functions = self._functions(tid, begins_ns, before=begins_ns == due_ns) if waits else ()
            parts += [replace(part, waits_in=functions) for part in sleep]
        return replace(of, parts=tuple(parts))

    def _functions(self, tid: int, begins_ns: int, *, before: bool) -> tuple[str, ...]:
        """The functions of the sleep that begins then, or may have begun before; innermost first, () if not known."""
        found = self._waits[tid]
        at = bisect_right(found, begins_ns, key=lambda wait: wait[0])
        near = [wait for wait in found[max(0, at - 1) : at + 1] if abs(wait[0] - begins_ns) <= SWITCH_NS]
        if not near and before and at:
            near = [found[at - 1]]
        _, addresses, known = min(near, key=lambda wait: abs(wait[0] - begins_ns), default=(0, (), False))
        return tuple(self._name(address, known) for address in addresses)

    def _name(self, address: int, known: bool) -> str:
        for first, behind, offset, inode, path in self._maps if known else ():
            if first <= address < behind and path.startswith("["):
                return one_line(path)
            if first <= address < behind:
                place = address - first + offset
                return _function(path, inode, place) or f"{one_line(Path(path).name)}+{place:#x}"
        return f"{address:#x}"


def file_namer(record: Record) -> Callable[[str, int], str]:
    """Names a file by its device, such as 254:1, and its inode: by its path where the program had it in its memory."""
    found = _MAP.findall(kernel_trace.trace_text(record, MAPS))
    paths = {(f"{int(major, 16)}:{int(minor, 16)}", int(inode)): path for *_, major, minor, inode, path in found}

    def name(device: str, inode: int) -> str:
        path = paths.get((device, inode))
        return f"{one_line(path)} on {device}" if path else f"with inode {inode} on {device}"

    return name


def _events(record: Record, origin_ns: int) -> Iterator[TraceEvent]:
    """The stacks of threads that went to sleep, and when processes began to run another program."""
    cpus = [int(match[1]) for name in kernel_trace.trace_names(record) if (match := CPU_BUFFER.fullmatch(name))]
    if not cpus:
        return
    layout, formats = kernel_trace.page_layout(record), kernel_trace.event_formats(record).values()
    decoder = EventDecoder(formats, layout, -origin_ns, {EXEC: ("pid",)})
    for cpu in cpus:
        found = decoder.events(cpu, [kernel_trace.trace_content(record, f"waits/cpu{cpu}")])
        yield from (event for event in found if event.name in ("user_stack", EXEC))


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
