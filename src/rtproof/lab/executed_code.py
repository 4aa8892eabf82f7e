# SPDX-License-Identifier: Apache-2.0
"""From the blocks of code that a guest ran to a tree of its functions, with the time of each: pure functions.

In virtual time an instruction takes 1 ns. A function that begins at its first address was called; any other change of
the function is a return. That is enough to follow calls, interrupts and switches of tasks on every architecture.
Several processors take turns, so their blocks have one order, and calls are followed on each by itself.
"""

import bisect
import functools
import itertools
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import UserError
from rtproof.summary.trace_text import is_interrupt

BLOCKS_MAGIC = b"RTPB"
BLOCKS_VERSION = 2
_CPU_SHIFT = 56
"""The highest 8 bits of a place are the number of the processor; the others count instructions."""
_HEAD = struct.Struct("=4sIQQ")
IDLE_ADDRESS = (1 << 64) - 1
IDLE = "idle"
USER = "user code"
SOAKER = "the soaker"
"""The program that keeps each processor of a guest busy (soaker/soaker.c). It stands for an idle processor."""
ENTRY = "entry of the kernel"
"""The assembler code through which every way into and out of the kernel leads."""
MODULE = "code of an unknown module"
FARTHEST = 1 << 20
"""No function of a kernel is so long. Code that is farther from the symbol before it has no name."""
_ADDRESS = re.compile(r"[0-9a-f]{1,16}")
_TASK_SWITCHES = ("__switch_to_asm", "cpu_switch_to", "__switch_to")
"""The function that changes the stack: of x86, of 64-bit ARM, of 32-bit ARM. A kernel has the first of these."""
_VECTOR_SIZE, _VECTORS_SIZE = 0x80, 0x800
"""Of the table of exceptions of 64-bit ARM (arch/arm64/kernel/entry.S)."""
_THUNKS = ("__x86_indirect_thunk_", "__x86_return_thunk", "__SCT__", "srso_", "retbleed_")
"""Jumps by way of which the compiler calls a function through a pointer."""


@dataclass(frozen=True)
class ExecutedBlocks:
    """What the recorder of instructions wrote: address and start of each block, in order, and the end.

    dropped: how many earlier blocks it had no room for. cpu: of each block; empty if all are of CPU 0.
    """

    address: NDArray[np.uint64]
    start_ns: NDArray[np.int64]
    end_ns: int
    dropped: int
    cpu: NDArray[np.uint8] = field(default_factory=lambda: np.empty(0, np.uint8))
    end_cpu: int = 0

    @property
    def ends_ns(self) -> NDArray[np.int64]:
        return np.append(self.start_ns[1:], np.int64(self.end_ns))

    def on_cpu(self, cpu: int) -> NDArray[np.bool_]:
        return self.cpu == cpu if len(self.cpu) else np.full(len(self.address), cpu == 0)

    def until(self, place: int) -> "ExecutedBlocks":
        """The blocks before this one, up to its beginning."""
        cpu = int(self.cpu[place]) if len(self.cpu) else 0
        end_ns = int(self.start_ns[place])
        return ExecutedBlocks(self.address[:place], self.start_ns[:place], end_ns, self.dropped, self.cpu[:place], cpu)


def parse_blocks(data: bytes) -> ExecutedBlocks:
    """The blocks of a file of the recorder. UserError if the file is none or is not whole."""
    if len(data) < _HEAD.size or (len(data) - _HEAD.size) % 16:
        raise UserError("the recording of the executed code is not whole")
    magic, version, dropped, end = _HEAD.unpack_from(data)
    if magic != BLOCKS_MAGIC or version != BLOCKS_VERSION:
        raise UserError("this is no recording of executed code of this version")
    rows = np.frombuffer(data, np.uint64, offset=_HEAD.size).reshape(-1, 2)
    places = np.append(rows[:, 1], np.uint64(end))
    cpus = (places >> np.uint64(_CPU_SHIFT)).astype(np.uint8)
    counts = (places & np.uint64((1 << _CPU_SHIFT) - 1)).astype(np.int64)
    several = cpus[:-1] if cpus.any() else cpus[:0]
    return ExecutedBlocks(rows[:, 0], counts[:-1], int(counts[-1]), dropped, several, int(cpus[-1]))


@dataclass(frozen=True)
class Symbols:
    """Where functions begin, in increasing order of ``addresses``. Code from ``kernel`` on is the kernel's.

    entry_text, soaker: addresses from and to of the kernel's code of entry, and of the soaker's loop. task_switch: the
    function that changes the stack, or "". vectors: the table through which exceptions of 64-bit ARM enter, or 0.
    """

    addresses: tuple[int, ...]
    names: tuple[str, ...]
    kernel: int
    entry_text: tuple[int, int] = (0, 0)
    task_switch: str = ""
    soaker: tuple[int, int] = (0, 0)
    vectors: int = 0

    def at(self, address: int) -> tuple[str, bool]:
        """The name of the function that an address belongs to, and whether the function begins there."""
        if address == IDLE_ADDRESS:
            return IDLE, False
        place = bisect.bisect_right(self.addresses, address) - 1
        # An exception enters at a vector: else one that interrupts the kernel would look like a return from it.
        vectors = range(self.vectors, self.vectors + _VECTORS_SIZE, _VECTOR_SIZE) if self.vectors else ()
        begins = (place >= 0 and self.addresses[place] == address) or address in vectors
        if address < self.kernel:
            return SOAKER if self.soaker[0] <= address < self.soaker[1] else USER, False
        name = self.names[place] if place >= 0 else USER
        if place >= 0 and address - self.addresses[place] >= FARTHEST:
            return MODULE, False
        low, high = self.entry_text
        if low <= address < high and not is_interrupt(name):
            return ENTRY, begins
        return name, begins


def parse_kallsyms(text: str) -> Symbols:
    """The functions of a kernel from its /proc/kallsyms (read by root). UserError if it tells no addresses."""
    found: dict[int, str] = {}
    places: dict[str, int] = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) < 3 or words[1] not in "tTwW" or not _ADDRESS.fullmatch(words[0]):
            continue
        address = int(words[0], 16)
        places.setdefault(words[2], address)
        if address and not words[2].startswith("$"):  # $x and $d mark code and data of ARM
            found.setdefault(address, words[2])
    if not found:
        raise UserError("the guest's kernel does not tell where its functions are (/proc/kallsyms)")
    addresses = tuple(sorted(found))
    entry_text = places.get("__entry_text_start", 0), places.get("__entry_text_end", 0)
    switch = next((name for name in _TASK_SWITCHES if name in places), "")
    names = tuple(found[address] for address in addresses)
    vectors = places.get("vectors", 0) if switch == "cpu_switch_to" else 0
    return Symbols(addresses, names, addresses[0], entry_text, switch, vectors=vectors)


@dataclass(eq=False)
class CalledFunction:
    """One call of a function, or the part of it that was seen. ``parent``: its caller, once that is known."""

    name: str
    parent: "CalledFunction | None" = None

    def callers(self) -> "Iterator[CalledFunction]":
        """The calls around this one, from the innermost outwards."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def stack(self) -> tuple[str, ...]:
        """The names from the outermost function to this one, without the compiler's thunks."""
        names = [call.name for call in (self, *self.callers()) if not call.name.startswith(_THUNKS)]
        return tuple(reversed(names))


@dataclass(frozen=True)
class FunctionSpan:
    """A time in which one function ran without a change. began: it begins with the function's first address."""

    start_ns: int
    end_ns: int
    call: CalledFunction
    began: bool
    cpu: int = 0

    @property
    def name(self) -> str:
        return self.call.name


def function_spans(blocks: ExecutedBlocks, symbols: Symbols) -> list[FunctionSpan]:
    """The spans of all functions on all processors in their order, each with the stack of its callers."""
    parked: list[list[CalledFunction]] = []
    followers: dict[int, _StackFollower] = {}
    begun: list[tuple[int, CalledFunction, bool, int]] = []
    at, last = functools.cache(symbols.at), ("", 0)
    cpus = blocks.cpu.tolist() or itertools.repeat(0, len(blocks.address))
    for address, start_ns, cpu in zip(blocks.address.tolist(), blocks.start_ns.tolist(), cpus, strict=True):
        name, began = at(address)
        if (name, cpu) == last:
            continue
        last = name, cpu
        if cpu not in followers:
            followers[cpu] = _StackFollower(symbols.task_switch, parked)
        begun.append((start_ns, *followers[cpu].go_on(name, began), cpu))
    ends = [start_ns for start_ns, *_ in begun[1:]] + [blocks.end_ns]
    return [
        FunctionSpan(start_ns, end_ns, call, began, cpu)
        for (start_ns, call, began, cpu), end_ns in zip(begun, ends, strict=True)
    ]


MOST_PARKED = 256
LEAST_RETURNS = 3
"""A task is taken for one that was switched out before only after so many returns that fit."""


class _StackFollower:
    """Follows calls and returns on one processor. stack: the calls that are open, the outermost first.

    parked: the stacks of tasks that were switched out, on any processor. returned: the functions to which the present
    task has returned and whose callers were not seen. joined: the outermost function that this task was seen in, once
    its callers were taken from a parked stack. last: the call that ran last.
    """

    def __init__(self, task_switch: str, parked: list[list[CalledFunction]]) -> None:
        self.task_switch = task_switch
        self.parked = parked
        self.stack: list[CalledFunction] = []
        self.returned: list[str] = []
        self.joined: CalledFunction | None = None
        self.last: CalledFunction | None = None

    def go_on(self, name: str, began: bool) -> tuple[CalledFunction, bool]:
        """The call that runs now, and whether it began now. It may be the one before the turn of another processor."""
        if self.last is not None and self.last.name == name:
            return self.last, False
        if began:
            self._call(name)
        else:
            self._return_to(name)
        self.last = self.stack[-1]
        if name == self.task_switch:  # another task goes on, on a stack of its own
            del self.parked[: 1 - MOST_PARKED]
            self.parked.append(self.stack[:-1])
            self.stack, self.returned, self.joined = [], [], None
        return self.last, began

    def _call(self, name: str) -> None:
        self.stack.append(CalledFunction(name, self.stack[-1] if self.stack else None))

    def _return_to(self, name: str) -> None:
        names = [call.name for call in self.stack]
        if name in names:
            while self.stack[-1].name != name:
                if self.stack.pop() is self.joined:
                    self.joined = None  # the task did return to its callers
            return
        # With all callers known, it is a jump.
        whole = bool(self.stack) and (self.stack[0].name in (USER, SOAKER, IDLE) or name in (ENTRY, IDLE))
        if self.joined is None and whole:
            self._call(name)
            return
        # It was called before it could be seen. A parked stack that does not fit is dropped.
        outer = CalledFunction(name)
        inner = self.joined or (self.stack[0] if self.stack else None)
        if inner is not None:
            inner.parent = outer
        self.stack, self.joined = [outer], None
        self.returned.append(name)
        self._join_parked(outer)

    def _join_parked(self, outer: CalledFunction) -> None:
        """Take the callers from a parked stack, if there is one that fits and all that fit have the same callers."""
        if len(self.returned) < LEAST_RETURNS or self.returned[-1] in _WAYS_TO_WAIT:
            return
        fitting = [(place, parked) for parked in self.parked if (place := place_of_returns(parked, self.returned))]
        if len({tuple(call.name for call in parked[:place]) for place, parked in fitting}) != 1:
            return
        place, parked = fitting[-1]
        self.parked.remove(parked)
        outer.parent = parked[place - 1]
        self.stack, self.joined = [*parked[:place], outer], outer


_WAYS_TO_WAIT = ("__schedule", "schedule", "schedule_idle", "preempt_schedule_common", "preempt_schedule")
"""Functions of the scheduler through which every task waits, so that they tell no task from another."""


def place_of_returns(parked: Sequence[CalledFunction], returned: Sequence[str]) -> int:
    """Where in a parked stack the last of these functions is, if the task returned to all of them; 0: nowhere.

    A function that jumps to another at its end is not returned to, so the stack may have functions between.
    """
    place = len(parked)
    for name in returned:
        place = next((at for at in range(place - 1, -1, -1) if parked[at].name == name), -1)
        if place < 0:
            return 0
    return place


def time_by_function(spans: Iterable[FunctionSpan]) -> dict[str, int]:
    """Nanoseconds that each function itself ran, without what it called; the longest first."""
    found: dict[str, int] = {}
    for span in spans:
        if not span.name.startswith(_THUNKS):
            found[span.name] = found.get(span.name, 0) + span.end_ns - span.start_ns
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def main_path(spans: Sequence[FunctionSpan], least_share: float = 0.5) -> tuple[str, ...]:
    """The stack of functions, the outermost first, as long as one callee has ``least_share`` of the whole time."""
    stacks = [(span.call.stack(), span.end_ns - span.start_ns) for span in spans]
    whole_ns = sum(length_ns for _, length_ns in stacks)
    path: tuple[str, ...] = ()
    while True:
        inner: dict[str, int] = {}
        for stack, length_ns in stacks:
            if len(stack) > len(path) and stack[: len(path)] == path:
                inner[stack[len(path)]] = inner.get(stack[len(path)], 0) + length_ns
        name = max(inner, key=lambda each: inner[each], default=None)
        if name is None or inner[name] < least_share * whole_ns:
            return path
        path = (*path, name)


def within(spans: Iterable[FunctionSpan], start_ns: int, end_ns: int) -> list[FunctionSpan]:
    return [
        FunctionSpan(max(span.start_ns, start_ns), min(span.end_ns, end_ns), span.call, span.began, span.cpu)
        for span in spans
        if span.start_ns < end_ns and span.end_ns > start_ns
    ]


def of_cpu(spans: Iterable[FunctionSpan], cpu: int) -> list[FunctionSpan]:
    return [span for span in spans if span.cpu == cpu]


def length_ns(spans: Iterable[FunctionSpan]) -> int:
    return sum(span.end_ns - span.start_ns for span in spans)


def last_begun(spans: Sequence[FunctionSpan], fits: Callable[[str], bool]) -> FunctionSpan | None:
    """The last span that begins a function whose name fits; None if there is none."""
    return next((span for span in reversed(spans) if span.began and fits(span.name)), None)
