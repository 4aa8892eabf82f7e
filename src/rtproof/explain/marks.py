# SPDX-License-Identifier: Apache-2.0
"""Activations between two marks: the application, or an event of its thread, says where each begins and ends."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.printable import one_line
from rtproof.explain.thread_activations import Start, ThreadActivations, period_ns_of
from rtproof.explain.trace_events import FORK, FORK_VALUES, LOST, VALUES, TraceEvent, ancestors, note_fork
from rtproof.record.contents import Record

PRINT = "ftrace/print"
"""The event of what a program writes into ``trace_marker``."""
OWN_EVENT = re.compile(r"rtproof_[0-9_]+/(begin|end)")
"""The events of the agent's uprobes."""
WRITTEN, REACHED, LEFT, EVENT = "marker", "uprobe", "uretprobe", "event"
_MARK = re.compile(rf"({WRITTEN}|{REACHED}|{LEFT}|{EVENT}):(.+)", re.DOTALL)
_EVENT = re.compile(r"(?P<path>[\w-]+/[\w-]+)(:(?P<filter>.+))?")


@dataclass(frozen=True)
class Mark:
    """What begins or ends an activation.

    kind: WRITTEN, REACHED, LEFT or EVENT. what: the text; the file and the place in it; or SYSTEM/NAME.
    shown: how a sentence names the mark.
    """

    kind: str
    what: str
    shown: str

    def fit(self, text: str) -> int:
        """How well a written text fits, 0 if not at all. A text fits a whole mark better than the begin of one."""
        if self.kind != WRITTEN:
            return 0
        if self.what.endswith("*"):
            return len(self.what) if text.startswith(self.what[:-1]) else 0
        return 1 << 16 if text == self.what else 0


class Marks(NamedTuple):
    """What begins and what ends each activation."""

    begin: Mark
    end: Mark


def parse_mark(words: str) -> Mark:
    """A mark as the record has it. UserError for what is none."""
    match = _MARK.fullmatch(words)
    event = _EVENT.fullmatch(match[2]) if match and match[1] == EVENT else None
    if not match or (match[1] == EVENT and not event):
        raise UserError(
            f"{one_line(words, 80)!r} is no mark: write marker:TEXT, uprobe:FILE:FUNCTION or event:SYSTEM/NAME"
        )
    kind, what = match[1], event["path"] if event else match[2]
    place, _, name = what.partition(" ") if kind in (REACHED, LEFT) else (what, "", "")
    shown = f"{place.rpartition(':')[0]}:{name}" if name else what if kind != EVENT else match[2]
    return Mark(kind, place, one_line(f"{kind}:{shown}", 120))


def marks_in(record: Record) -> Marks | None:
    """The marks that a run was asked for; None if it was not. UserError if its record is damaged there."""
    begin, end = record.fact("begin_mark"), record.fact("end_mark")
    return Marks(parse_mark(begin), parse_mark(end)) if begin and end else None


def mark_events(marks: Marks, paths: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The events of a trace that the marks need, with their fields. UserError if the trace lacks one.

    paths: of all events in the trace, as SYSTEM/NAME.
    """
    there = set(paths)
    own = {path.rpartition("/")[2]: path for path in there if OWN_EVENT.fullmatch(path)}
    found: dict[str, tuple[str, ...]] = {FORK: FORK_VALUES} if FORK in there else {}
    for which, mark in zip(("begin", "end"), marks, strict=True):
        path = PRINT if mark.kind == WRITTEN else mark.what if mark.kind == EVENT else own.get(which, "")
        if path not in there:
            raise UserError(f"the trace has no event of the mark {mark.shown}")
        found[path] = ("buf",) if path == PRINT else found.get(path, ())
    if len(found) == 1 + (FORK in found) and PRINT not in found:
        raise UserError(f"the two marks are the same event, {marks.begin.shown}")
    return found


@dataclass
class MarkedThread:
    """What the trace tells of a thread with marks.

    spans: begin and end of each activation, in ns. A begin before the last one has ended takes its place. begins, ends:
    how many marks there were. begun_by: the thread that began it.
    """

    tid: int
    name: str = ""
    cpus: set[int] = field(default_factory=set)
    spans: list[tuple[int, int]] = field(default_factory=list)
    open_ns: int | None = None
    begins: int = 0
    ends: int = 0
    begun_by: int | None = None


class MarkWalk:
    """Walks over the events of all CPUs, in order of time, and pairs the marks of each thread."""

    def __init__(self, marks: Marks, events: Mapping[str, tuple[str, ...]]) -> None:
        """events: as ``mark_events`` has them."""
        self._marks = marks
        self._which = dict(self._by_event(events))
        self.threads: dict[int, MarkedThread] = {}
        self._ended: list[MarkedThread] = []
        self._names: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self.lost = 0
        self.cut = 0

    def _by_event(self, events: Mapping[str, tuple[str, ...]]) -> Iterable[tuple[str, bool]]:
        """The names of the events that are marks themselves, and whether each is the one that begins."""
        for which, mark in zip(("begin", "end"), self._marks, strict=True):
            if mark.kind == WRITTEN:  # its text may be the name of an event
                continue
            own = (path for path in events if OWN_EVENT.fullmatch(path) and path.endswith(f"/{which}"))
            for path in own if mark.kind in (REACHED, LEFT) else (mark.what,):
                name = path.rpartition("/")[2]
                yield name if name in VALUES else path, which == "begin"

    def walk(self, events: Iterable[TraceEvent]) -> None:
        for event in events:
            if event.name == "sched_switch":
                self._switch(event)
            if event.name == LOST:
                self._gap()
                continue
            if event.name == FORK:
                self._fork(event)
            begins = self._meaning(event)
            if begins is not None:
                self._mark(event, begins)

    def _meaning(self, event: TraceEvent) -> bool | None:
        """Whether an event begins an activation or ends one; None if it is no mark."""
        if event.name != PRINT:
            return self._which.get(event.name)
        text = str(event.values.get("buf", "")).rstrip()
        begin, end = (mark.fit(text) for mark in self._marks)
        return begin > end if begin or end else None

    def _mark(self, event: TraceEvent, begins: bool) -> None:
        thread = self.threads.setdefault(event.pid, MarkedThread(event.pid))
        thread.cpus.add(event.cpu)
        if begins:
            thread.begins += 1
            thread.open_ns = event.time_ns
            return
        thread.ends += 1
        if thread.open_ns is not None:
            thread.spans.append((thread.open_ns, event.time_ns))
            thread.open_ns = None

    def _switch(self, event: TraceEvent) -> None:
        """Learn the names of threads."""
        for which in ("prev", "next"):
            self._names[event.number(f"{which}_pid")] = str(event.values.get(f"{which}_comm", ""))

    def _fork(self, event: TraceEvent) -> None:
        """Learn who began a thread. The one that had its number before has ended."""
        child = event.values.get("child_pid")
        before = self.threads.pop(child, None) if isinstance(child, int) else None
        if before:
            self._ended.append(self._named(before))
        note_fork(event, self.parents)

    def process_of(self, thread: MarkedThread, listed: Mapping[int, int]) -> int | None:
        """The process of a thread, or that which began it; None if nothing tells. listed: the processes of threads."""
        if thread.begun_by is None:
            return listed.get(thread.tid)
        return listed.get(ancestors(thread.begun_by, self.parents)[-1])

    def _gap(self) -> None:
        """Events are missing, and an end may be among them: what has begun counts no more."""
        self.lost += 1
        for thread in self.threads.values():
            self.cut += thread.open_ns is not None
            thread.open_ns = None

    def named(self) -> list[MarkedThread]:
        """The threads with marks, by their numbers, with their names."""
        every = [*self._ended, *map(self._named, self.threads.values())]
        return sorted(every, key=lambda thread: thread.tid)

    def _named(self, thread: MarkedThread) -> MarkedThread:
        thread.name, thread.begun_by = self._names.get(thread.tid, ""), self.parents.get(thread.tid)
        return thread


def marked_activations(thread: MarkedThread) -> ThreadActivations | None:
    """The activations of a thread; None if it has none."""
    spans = thread.spans
    if not spans:
        return None
    begins_ns = [begin_ns for begin_ns, _ in spans]
    return ThreadActivations(
        tid=thread.tid,
        name=one_line(thread.name),
        cpus=tuple(sorted(thread.cpus)),
        start=Start.MARK,
        period_ns=period_ns_of(begins_ns),
        due_ns=tuple(begins_ns),
        latency_ns=tuple(end_ns - begin_ns for begin_ns, end_ns in spans),
        missed=(0,) * len(spans),
    )


def mark_sentences(threads: Iterable[MarkedThread]) -> Iterable[str]:
    """Which marks had no partner. Threads without an activation are counted: an application may have thousands."""
    without = 0
    for thread in threads:
        begins, ends = thread.begins - len(thread.spans), thread.ends - len(thread.spans)
        told = [f"{quantity(begins, 'begin')} without an end"] if begins else []
        told += [f"{quantity(ends, 'end')} without a begin"] if ends else []
        without += not thread.spans
        if told and thread.spans:
            yield f"{one_line(thread.name)}/{thread.tid}: {' and '.join(told)}"
    if without:
        yield f"{quantity(without, 'thread')} had marks, but no activation"


def none_found(threads: Iterable[MarkedThread], marks: Marks, left_out: int) -> UserError:
    """The refusal of a trace whose marks make no activation. left_out: threads with marks that are not wanted."""
    some = list(threads)
    counts = (sum(one.begins for one in some), sum(one.ends for one in some))
    often = [f"came {quantity(count, 'time')}" if count else "never came" for count in counts]
    came = [f"{mark.shown} {times}" for mark, times in zip(marks, often, strict=True)]
    order = "; no end came behind a begin of the same thread" if all(counts) else ""
    others = f" in a thread that is wanted; {quantity(left_out, 'other thread')} had marks" if left_out else ""
    return UserError(f"{' and '.join(came)}{others}{order}")
