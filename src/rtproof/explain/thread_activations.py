# SPDX-License-Identifier: Apache-2.0
"""Find the activations of any thread in a trace: when each was due, and when it ended.

A thread says nothing of its due times, but the kernel's events do. What woke the thread decides: a timer is due at the
``softexpires`` of its start, an interrupt at its entry, and for all else the due time is the waking itself. The end is
the return from the system call in which the thread slept, where that is traced, or else its switch to the CPU. With
marks, the application or an event of its thread says where each activation begins and ends.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import pairwise
from statistics import median

from rtproof.core.phrases import quantity, value
from rtproof.core.printable import one_line
from rtproof.explain.causes import FAIR_FROM
from rtproof.explain.marks import OWN_EVENT, PRINT, REACHED_OR_LEFT, WRITTEN, Marks
from rtproof.explain.trace_events import FORK, FORK_VALUES, HARDIRQ, IRQS_OFF, LOST, OTHER_CLOCK_NS, VALUES, TraceEvent
from rtproof.summary.trace_text import SYSTEM_CALL, VECTOR

MOST_NAMED = 3
"""So many of several names are told."""
FEWEST_WAKINGS = 3
"""A timer that woke a thread less often than this may have done so by chance."""
LEAST_SHARE = 0.1
"""A timer or an interrupt that makes a smaller share of a thread's wakings is not what the thread waits for."""
LONGEST_NS = 3_600_000_000_000
"""A due time further before the waking than this is damaged, or the timer has a clock that is not known."""


class Start(Enum):
    """What begins an activation, and how a sentence says when it was due."""

    TIMER = "when its timer was set to expire"
    INTERRUPT = "when its interrupt was entered"
    WAKING = "when it was woken"
    MARK = "at the mark that begins"


BY_MARKS = Start.MARK.name.lower()
"""The method of a series whose activations lie between marks."""


@dataclass(slots=True)
class Waking:
    """One waking of a thread. key: of the timer or the name of the interrupt, "" for all else.

    The key of a timer that the thread started itself is its function, since a timer on the stack may lie elsewhere each
    time. That of other timers is the address. function: the address of the timer's function.
    due_ns: None for a timer whose start is not in the trace. ran_ns, returned_ns, slept_ns: when the thread got the
    CPU, when its system call returned, and when it slept again; None if the trace does not tell.
    """

    time_ns: int
    start: Start
    key: int | str
    due_ns: int | None
    ran_ns: int | None = None
    returned_ns: int | None = None
    slept_ns: int | None = None
    function: int = 0


@dataclass
class WatchedThread:
    """What the trace tells of a thread. priority: of the kernel, the most urgent at a waking; below 100 is real-time.

    name: the last one. names: how often it was woken by each name that it had.
    runs: whether it has a CPU now. returns: how many of its wakings have a system call that returned.
    spans: begin and end of each activation between marks, in ns. A begin before the last one has ended takes its place.
    begins, ends: how many marks there were. begun_by: the thread that began it.
    """

    tid: int
    name: str = ""
    priority: int = FAIR_FROM
    cpus: set[int] = field(default_factory=set)
    wakings: list[Waking] = field(default_factory=list)
    runs: bool = False
    returns: int = 0
    names: Counter[str] = field(default_factory=Counter)
    spans: list[tuple[int, int]] = field(default_factory=list)
    open_ns: int | None = None
    begins: int = 0
    ends: int = 0
    begun_by: int | None = None

    @property
    def marked(self) -> bool:
        return self.begins + self.ends > 0

    @property
    def real_time(self) -> bool:
        return self.priority < FAIR_FROM

    def was_called(self, name: str) -> bool:
        """Whether it has this name, or had it for some time. A new thread has the name of its parent at first."""
        return name == self.name or self.names[name] >= FEWEST_WAKINGS


@dataclass(frozen=True)
class ThreadActivations:
    """The activations of a thread, in order, as tuples of equal length. Times in ns by CLOCK_MONOTONIC.

    period_ns: learned from the due times; 0 if they have none. missed: behind each activation, how many due times
    passed for which the thread did not run. sentences: what its latency means, and what is not counted.
    """

    tid: int
    name: str
    cpus: tuple[int, ...]
    start: Start
    period_ns: int
    due_ns: tuple[int, ...]
    latency_ns: tuple[int, ...]
    missed: tuple[int, ...]
    sentences: tuple[str, ...] = ()


class ThreadWalk:
    """Walks over the events of all CPUs, in order of time, and notes each thread's wakings, or pairs its marks.

    lost: places with missing events. cut: activations between marks that these places cut.
    """

    def __init__(self, sleeping: int, marks: Marks | None = None, paths: Iterable[str] = ()) -> None:
        """sleeping: the bits of ``prev_state`` of a thread that wants to run no more. paths: of the marks' events."""
        self._sleeping, self._marks = sleeping, marks
        self._which = dict(_events_that_mark(marks, paths)) if marks else {}
        self.threads: dict[int, WatchedThread] = {}
        self._ended: list[WatchedThread] = []
        self._functions: dict[int, int] = {}
        self.lost = self.cut = 0
        self.parents: dict[int, int] = {}
        self._timers: dict[int, tuple[int | None, int]] = {}  # when it is due, and who started it
        self._clocks: dict[int, int] = {}
        self._expiring: dict[tuple[int, int, bool], int] = {}
        self._interrupts: dict[int, tuple[int, str]] = {}
        self._handlers: dict[str, Callable[[TraceEvent], None]] = {FORK: self._fork, LOST: self._gap}
        if marks:
            self._handlers["sched_switch"] = self._learn_names
            return
        self._handlers |= {
            "hrtimer_start": self._timer_start,
            "hrtimer_expire_entry": self._expire_entry,
            "hrtimer_expire_exit": self._expire_exit,
            "irq_handler_entry": self._interrupt_entry,
            "irq_handler_exit": self._interrupt_exit,
            "softirq_exit": self._expire_exit,
            "sched_waking": self._waking,
            "sched_wakeup_new": lambda event: self._new(event.number("pid")),
            "sched_switch": self._switch,
            "sys_exit": self._returned,
        }

    def walk(self, events: Iterable[TraceEvent], *, by_wakeup: bool = False) -> None:
        """Take all events. by_wakeup: the kernel has no ``sched_waking``, so ``sched_wakeup`` stands for it."""
        if by_wakeup:
            self._handlers["sched_wakeup"] = self._waking
        for event in events:
            if not event.flags & (HARDIRQ | IRQS_OFF):
                self._runs_by_now(event)
            handler = self._handlers.get(event.name)
            if handler:
                handler(event)
            if self._marks:
                self._mark(event, self._marks)
            elif not handler and (call := SYSTEM_CALL.fullmatch(event.name)) and call["way"] == "exit":
                self._returned(event)
            elif not handler and (vector := VECTOR.fullmatch(event.name)) and vector["way"] == "exit":
                self._expire_exit(event)

    def every(self) -> list[WatchedThread]:
        """All threads by their numbers. The kernel gives the number of one that has ended to another."""
        for thread in self.threads.values():
            thread.begun_by = self.parents.get(thread.tid)
        return sorted([*self._ended, *self.threads.values()], key=lambda thread: thread.tid)

    def _new(self, tid: int) -> None:
        """A thread begins, so the one that had its number before has ended."""
        before = self.threads.pop(tid, None)
        if before and (before.wakings or before.marked):
            before.begun_by = self.parents.get(tid)
            self._ended.append(before)

    def _fork(self, event: TraceEvent) -> None:
        parent, child = (event.values.get(name) for name in FORK_VALUES)
        if isinstance(child, int):
            self._new(child)
            if isinstance(parent, int):
                self.parents[child] = parent

    def process_of(self, thread: WatchedThread, listed: Mapping[int, int]) -> int | None:
        """The process of a thread, or that which began it; None if nothing tells. listed: the processes of threads."""
        if thread.begun_by is None:
            return listed.get(thread.tid)
        return listed.get(self.ancestors(thread.begun_by)[-1])

    def ancestors(self, tid: int) -> list[int]:
        """A thread, who began it, who began that one, and so on."""
        found = [tid]
        while (tid := self.parents.get(tid, tid)) not in found:
            found.append(tid)
        return found

    def _mark(self, event: TraceEvent, marks: Marks) -> None:
        begins = self._which.get(event.name)
        if event.name == PRINT:
            text = str(event.values.get("buf", "")).rstrip()
            begin, end = (mark.fit(text) for mark in marks)
            begins = begin > end if begin or end else None
        if begins is None:
            return
        thread = self._thread(event.pid)
        thread.cpus.add(event.cpu)
        if begins:
            thread.begins += 1
            thread.open_ns = event.time_ns
            return
        thread.ends += 1
        if thread.open_ns is not None:
            thread.spans.append((thread.open_ns, event.time_ns))
            thread.open_ns = None

    def _learn_names(self, event: TraceEvent) -> None:
        for which in ("prev", "next"):
            self._thread(event.number(f"{which}_pid")).name = str(event.values.get(f"{which}_comm", ""))

    def _thread(self, tid: int) -> WatchedThread:
        return self.threads.setdefault(tid, WatchedThread(tid))

    def _runs_by_now(self, event: TraceEvent) -> None:
        """An event of a thread that was woken shows that it runs, where the event of the switch to it is missing."""
        thread = self.threads.get(event.pid)
        if thread and not thread.runs and thread.wakings and thread.wakings[-1].ran_ns is None:
            thread.wakings[-1].ran_ns, thread.runs = event.time_ns, True

    def _timer_start(self, event: TraceEvent) -> None:
        due_ns = event.values.get("softexpires", event.values.get("expires"))
        if isinstance(due_ns, int):
            self._timers[event.number("hrtimer")] = due_ns, event.pid

    def _expire_entry(self, event: TraceEvent) -> None:
        timer = event.number("hrtimer")
        self._expiring[_context(event)] = timer
        self._functions[timer] = event.number("function")
        apart_ns = event.number("now") - event.time_ns
        self._clocks[timer] = apart_ns if abs(apart_ns) > OTHER_CLOCK_NS else 0

    def _expire_exit(self, event: TraceEvent) -> None:
        """The function of a timer ends, or what ran it, where no event ends the function."""
        self._expiring.pop(_context(event), None)

    def _interrupt_entry(self, event: TraceEvent) -> None:
        self._interrupts[event.cpu] = event.time_ns, str(event.values.get("name") or f"irq {event.values.get('irq')}")

    def _interrupt_exit(self, event: TraceEvent) -> None:
        self._interrupts.pop(event.cpu, None)
        self._expire_exit(event)

    def _waking(self, event: TraceEvent) -> None:
        thread = self._thread(event.number("pid"))
        thread.priority = min(thread.priority, event.number("prio"))
        thread.name = str(event.values.get("comm", thread.name))
        thread.names[thread.name] += 1
        waking = self._cause(event)
        last = thread.wakings[-1] if thread.wakings else None
        if last and last.start is Start.TIMER and waking.start is not Start.TIMER and self._in_call(thread, last):
            return
        if thread.runs:  # it was about to sleep, and does not
            waking.ran_ns = event.time_ns
        thread.wakings.append(waking)

    def _in_call(self, thread: WatchedThread, last: Waking) -> bool:
        """Whether the thread is still in the system call in which it slept, where it may have to wait for a lock."""
        return bool(thread.returns) and last.ran_ns is not None and last.returned_ns is None

    def _cause(self, event: TraceEvent) -> Waking:
        timer = self._expiring.get(_context(event))
        if timer is not None:
            started_ns, by = self._timers.get(timer, (None, None))
            if by is not None:
                self._timers[timer] = None, by  # it is due once
            due_ns = None if started_ns is None else started_ns - self._clocks.get(timer, 0)
            function = self._functions.get(timer, 0)
            own = by == event.number("pid")
            return Waking(event.time_ns, Start.TIMER, function if own else timer, due_ns, function=function)
        interrupt = self._interrupts.get(event.cpu) if event.flags & HARDIRQ else None
        if interrupt:
            return Waking(event.time_ns, Start.INTERRUPT, interrupt[1], interrupt[0])
        return Waking(event.time_ns, Start.WAKING, "", event.time_ns)

    def _switch(self, event: TraceEvent) -> None:
        before, after = self._thread(event.number("prev_pid")), self._thread(event.number("next_pid"))
        before.runs, after.runs = False, True
        before.name, after.name = str(event.values.get("prev_comm", "")), str(event.values.get("next_comm", ""))
        after.cpus.add(event.cpu)
        last = before.wakings[-1] if before.wakings else None
        sleeps = event.number("prev_state") & self._sleeping
        if last and sleeps and last.ran_ns is not None and last.slept_ns is None and not self._in_call(before, last):
            last.slept_ns = event.time_ns
        woken = after.wakings[-1] if after.wakings else None
        if woken and woken.ran_ns is None:
            woken.ran_ns = event.time_ns

    def _returned(self, event: TraceEvent) -> None:
        thread = self.threads.get(event.pid)
        last = thread.wakings[-1] if thread and thread.wakings else None
        if thread and last and last.ran_ns is not None and last.returned_ns is None:
            last.returned_ns = event.time_ns
            thread.returns += 1

    def _gap(self, event: TraceEvent) -> None:
        """Events are missing: what was going on is not known any more, on any CPU."""
        self.lost += 1
        self._expiring.clear()
        self._interrupts.clear()
        self._timers.clear()
        for thread in self.threads.values():
            if thread.wakings and (thread.wakings[-1].ran_ns is None or self._in_call(thread, thread.wakings[-1])):
                thread.wakings.pop()
            self.cut += thread.open_ns is not None
            thread.open_ns = None


def _context(event: TraceEvent) -> tuple[int, int, bool]:
    """In what a timer expires: on PREEMPT_RT it may be a thread, which others preempt."""
    return event.cpu, event.pid, bool(event.flags & HARDIRQ)


def _events_that_mark(marks: Marks, paths: Iterable[str]) -> Iterable[tuple[str, bool]]:
    """The names of the events that are marks themselves, and whether each is the one that begins."""
    for which, mark in zip(("begin", "end"), marks, strict=True):
        if mark.kind == WRITTEN:  # its text may be the name of an event
            continue
        own = (path for path in paths if OWN_EVENT.fullmatch(path) and path.endswith(f"/{which}"))
        for path in own if mark.kind in REACHED_OR_LEFT else (mark.what,):
            name = path.rpartition("/")[2]
            yield name if name in VALUES else path, which == "begin"


# From wakings, or marks, to activations.


def marked_activations(thread: WatchedThread) -> ThreadActivations:
    """The activations of a thread with marks, of which it has at least one."""
    begins_ns = tuple(begin_ns for begin_ns, _ in thread.spans)
    return ThreadActivations(
        tid=thread.tid,
        name=one_line(thread.name),
        cpus=tuple(sorted(thread.cpus)),
        start=Start.MARK,
        period_ns=period_ns_of(begins_ns),
        due_ns=begins_ns,
        latency_ns=tuple(end_ns - begin_ns for begin_ns, end_ns in thread.spans),
        missed=(0,) * len(begins_ns),
    )


def activations_of(thread: WatchedThread, symbol: Callable[[int], str]) -> ThreadActivations | None:
    """The activations of a thread by the first definition that fits; None if it has none. symbol: names an address."""
    ran = [each for each in thread.wakings if each.ran_ns is not None]
    start, own = _what_starts(ran)
    whole, undue = _with_due_times(own)
    if not whole:
        return None
    returned = [each for each in whole if each.returned_ns is not None]
    by_return = 2 * len(returned) > len(whole)
    ended = returned if by_return else whole
    kept = _in_order(ended)
    due_ns = [_known(each.due_ns) for each in kept]
    period_ns = period_ns_of(due_ns)
    # The functions of the timers, or the interrupts, that woke the thread.
    names = {symbol(each.function) if start is Start.TIMER else one_line(str(each.key)) for each in kept}
    by = ", ".join(sorted(names)[:3])
    end = "when its system call returned" if by_return else "when it got the CPU"
    said = [f"an activation is due {start.value}{f' ({by})' if by else ''}, and ends {end}"]
    if start is Start.TIMER and period_ns:
        on_grid = all((due - due_ns[0]) % period_ns == 0 for due in due_ns)
        grid = "all due times are whole periods apart" if on_grid else "the median; due times are no grid"
        said.append(f"its period is {value(period_ns)}, learned from its due times ({grid})")
    former = [one_line(name) for name in thread.names if name != thread.name and thread.was_called(name)]
    said += [f"it was also called {', '.join(former[:MOST_NAMED])}"] if former else []
    others, undue = len(ran) - len(own), undue + len(ended) - len(kept)
    said += [f"not counted: {quantity(others, 'waking')} by something else"] if others else []
    without = "by a timer without a due time in the trace"
    said += [f"not counted: {quantity(undue, 'waking')} {without}"] if undue else []
    response_ns = [each.slept_ns - _known(each.due_ns) for each in kept if each.slept_ns is not None]
    if response_ns:
        rest = f" of {len(kept):,} (the trace shows no sleep of the others)" if len(response_ns) < len(kept) else ""
        middle, largest = value(round(median(response_ns))), value(max(response_ns))
        count = f"n = {len(response_ns):,}{rest}"
        said.append(
            f"response time, from the due time until it slept again: median {middle}, largest {largest}, {count}"
        )
    return ThreadActivations(
        tid=thread.tid,
        name=one_line(thread.name),
        cpus=tuple(sorted(thread.cpus)),
        start=start,
        period_ns=period_ns,
        due_ns=tuple(due_ns),
        latency_ns=tuple(_known(each.returned_ns if by_return else each.ran_ns) - _known(each.due_ns) for each in kept),
        missed=_missed(due_ns, period_ns),
        sentences=tuple(f"{one_line(thread.name)}/{thread.tid}: {sentence}" for sentence in said),
    )


def _in_order(wakings: Sequence[Waking]) -> list[Waking]:
    """The wakings whose due times increase; one that goes back behind any before it is left out."""
    kept: list[Waking] = []
    for each in wakings:
        if not kept or _known(each.due_ns) > _known(kept[-1].due_ns):
            kept.append(each)
    return kept


def _known(time_ns: int | None) -> int:
    assert time_ns is not None
    return time_ns


def _what_starts(ran: Sequence[Waking]) -> tuple[Start, list[Waking]]:
    """What the thread waits for, by what woke it often enough, and the wakings by it."""
    often = {key for key, count in Counter((each.start, each.key) for each in ran).items() if count >= FEWEST_WAKINGS}
    for start in (Start.TIMER, Start.INTERRUPT):
        own = [each for each in ran if each.start is start and (start, each.key) in often]
        if len(own) >= LEAST_SHARE * len(ran) and own:
            return start, own
    return Start.WAKING, [replace(each, start=Start.WAKING, due_ns=each.time_ns) for each in ran]


def _with_due_times(own: Sequence[Waking]) -> tuple[list[Waking], int]:
    """The wakings that have a due time, and how many have none.

    A timer that its own function starts again has no event for it. It is due a whole number of periods after the last.
    """
    known = [each.due_ns for each in own if each.due_ns is not None and _possible(each.time_ns - each.due_ns)]
    period_ns = period_ns_of(known)
    found: list[Waking] = []
    undue = 0
    for each in own:
        due_ns = each.due_ns
        if due_ns is None and period_ns and found and found[-1].due_ns is not None:
            before_ns = found[-1].due_ns
            due_ns = before_ns + (each.time_ns - before_ns) // period_ns * period_ns
        if due_ns is None or not _possible(each.time_ns - due_ns):
            undue += 1
        else:
            found.append(each if each.due_ns is not None else replace(each, due_ns=due_ns))
    return found, undue


def _possible(late_ns: int) -> bool:
    """Whether a timer may wake so late. None expires early; what seems so by far is damaged, or of another clock."""
    return -OTHER_CLOCK_NS <= late_ns <= LONGEST_NS


def period_ns_of(due_ns: Sequence[int]) -> int:
    """The median of the differences of due times; 0 with fewer than two."""
    steps = [after - before for before, after in pairwise(due_ns) if after > before]
    return round(median(steps)) if steps else 0


def _missed(due_ns: Sequence[int], period_ns: int) -> tuple[int, ...]:
    """How many due times of the grid lie between one activation and the next; none if the due times are no grid."""
    steps = [after - before for before, after in pairwise(due_ns)]
    grid = bool(period_ns) and all(step % period_ns == 0 for step in steps)
    return (*(step // period_ns - 1 if grid else 0 for step in steps), 0)
