# SPDX-License-Identifier: Apache-2.0
"""Threads of others as measured ones: a record with a trace gets the activations that the trace tells of as samples."""

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.core.printable import one_line
from rtproof.core.units import whole_number
from rtproof.explain.marks import Marks, mark_events, marks_in
from rtproof.explain.thread_activations import (
    FEWEST_WAKINGS,
    MOST_NAMED,
    ThreadActivations,
    ThreadWalk,
    WatchedThread,
    activations_of,
    marked_activations,
)
from rtproof.explain.trace_events import FORK, FORK_VALUES
from rtproof.explain.trace_source import TraceSource
from rtproof.record.contents import (
    WHOLE_RUN,
    Block,
    End,
    EndReason,
    Event,
    Fact,
    Moment,
    Record,
    Series,
    SeriesTotals,
)
from rtproof.summary.imported_samples import BLOCK_SAMPLES, BlocksInMemory
from rtproof.summary.recorded_facts import IMPORTED_EVENT, probe_options
from rtproof.summary.target_threads import FOREIGN, every_real_time_thread, target_threads

DEFINITION_EVENT = "definition"
"""The kind of an event that is a sentence on what the latency of a thread means."""
MOST_THREADS = 256
_TID = re.compile(r"[0-9]{1,9}")
KERNEL_THREADS = re.compile(
    r"(migration|stopper|watchdog|posixcputmr|rcu\w*|ktimers|ktimersoftd|ksoftirqd|irq_work|idle_inject|cpuhp|kworker)(/.*)?"
    r"|sugov:.*|irq/.*|sirq-.*|swapper.*|rtproof.*|timerlat.*|osnoise.*"
)
"""Names of threads that are no application. A thread that is asked for by its name or number is taken all the same."""


@dataclass(frozen=True)
class WantedThreads:
    """Which threads of a trace are measured: those of a name, those with a number, or else all real-time ones.

    process: the real-time threads of this process and of those that it began, or all if none is real-time.
    marks: between which their activations lie, and then all threads that have them; None for wake-ups.
    """

    names: tuple[str, ...] = ()
    tids: tuple[int, ...] = ()
    marks: Marks | None = None
    process: int | None = None

    @property
    def all_real_time(self) -> bool:
        return not self.names and not self.tids and self.process is None

    def or_else(self, other: "WantedThreads") -> "WantedThreads":
        return replace(other if self.all_real_time else self, marks=self.marks or other.marks)

    def numbered(self, known: Container[int]) -> "WantedThreads":
        """The same with each name that is a number of a known thread as that number."""
        numbers = tuple(int(name) for name in self.names if _TID.fullmatch(name) and int(name) in known)
        names = tuple(name for name in self.names if not _TID.fullmatch(name) or int(name) not in known)
        return replace(self, names=names, tids=(*self.tids, *numbers))

    def may_mark(self, thread: WatchedThread) -> bool:
        if self.all_real_time or self.process is not None:
            return not KERNEL_THREADS.fullmatch(thread.name)
        return thread.tid in self.tids or thread.name in self.names

    def has(self, thread: WatchedThread) -> bool:
        if self.all_real_time:
            return thread.real_time and not KERNEL_THREADS.fullmatch(thread.name)
        return thread.tid in self.tids or any(map(thread.was_called, self.names))


ALL_REAL_TIME = WantedThreads()


def with_activations(record: Record, wanted: WantedThreads) -> Record:
    """The record with the activations of the threads as its samples. UserError if the trace has none of them."""
    source = TraceSource(record, 0)
    if not source.cpus and record.end is None and record.begin.agent_version:
        raise UserError(
            "the record was cut off before it had the events of its trace, which the agent writes at the end"
        )
    found, notes = _between_marks(source, wanted.marks, wanted) if wanted.marks else _by_wakings(source, wanted)
    origin_ns = record.begin.origin_monotonic_ns or min(each.due_ns[0] for each in found)
    series = tuple(_series(number, each, origin_ns) for number, each in enumerate(found))
    blocks = tuple(chain.from_iterable(_blocks(one, each, origin_ns) for one, each in zip(series, found, strict=True)))
    end_ns = max(each.due_ns[-1] + max(each.latency_ns[-1], 0) for each in found) - origin_ns + 1
    totals = tuple(SeriesTotals(at, len(of.due_ns), sum(of.missed), 0) for at, of in enumerate(found))
    # The agent's thread, which only waits, has no part in it.
    of_run = (fact for fact in record.facts if fact.thread == WHOLE_RUN)
    return replace(
        record,
        begin=replace(record.begin, origin_monotonic_ns=origin_ns),
        facts=(*of_run, *_facts(found, imported=not record.begin.agent_version)),
        series=series,
        slices=(),
        seconds={},
        top={},
        levels={},
        conditions={},
        events=(*record.events, *(Event(0, WHOLE_RUN, *note) for note in notes)),
        end=replace(record.end or End(end_ns, EndReason.AS_ASKED, "", ()), totals=totals),
        chunk_refs=BlocksInMemory(blocks).refs,
        read_blocks=BlocksInMemory(blocks),
    )


Notes = list[tuple[str, str]]
"""Kinds and texts of events."""


def _lost(places: int) -> Notes:
    lost = f"events are missing at {quantity(places, 'place')} of the trace, so activations may be missing too"
    return [(IMPORTED_EVENT, lost)] if places else []


def _by_wakings(source: TraceSource, wanted: WantedThreads) -> tuple[list[ThreadActivations], Notes]:
    source.marks = {known.path: FORK_VALUES for known in source.formats.values() if known.path == FORK}
    walk = ThreadWalk(source.meaning.sleeping)
    walk.walk(source.all_events(), by_wakeup="sched_waking" not in source.names)
    found = _measured(walk, source, wanted)
    return found, [*((DEFINITION_EVENT, sentence) for each in found for sentence in each.sentences), *_lost(walk.lost)]


def _between_marks(source: TraceSource, marks: Marks, wanted: WantedThreads) -> tuple[list[ThreadActivations], Notes]:
    source.marks = mark_events(marks, (known.path for known in source.formats.values()))
    walk = ThreadWalk(source.meaning.sleeping, marks, source.marks)
    walk.walk(source.all_events())
    every = [thread for thread in walk.every() if thread.marked]
    wanted = wanted.numbered({thread.tid for thread in every})
    # A run may have been asked for one process, as far as anything tells of which a thread is.
    pid = whole_number(probe_options(source.record).get("pid", ""))
    listed = {
        each.id: each.process for each in (*target_threads(source.record), *every_real_time_thread(source.record))
    }
    own = {None, pid}
    chosen = [one for one in every if wanted.may_mark(one) and (pid is None or walk.process_of(one, listed) in own)]
    found = [marked_activations(one) for one in chosen if one.spans]
    others = len(every) - len(chosen)
    if not found:
        raise _none_found(chosen, marks, others)
    if len(found) > MOST_THREADS:
        raise UserError(f"{len(found):,} threads have the marks: name up to {MOST_THREADS} with --thread or --pid")
    # All threads have the same marks, so one sentence tells it of them all.
    names = ", ".join(f"{each.name}/{each.tid}" for each in found[:MOST_NAMED])
    names += f" and {quantity(len(found) - MOST_NAMED, 'thread')} more" if len(found) > MOST_NAMED else ""
    begin, end = marks
    sentences = [f"{names}: an activation begins with {begin.shown}, and ends with {end.shown}"]
    sentences += mark_sentences(chosen)
    sentences += [f"marks of {quantity(others, 'thread')} others are left out"] if others else []
    sentences += [f"{quantity(walk.cut, 'activation')} are incomplete, because events are missing"] if walk.cut else []
    return found, [*((DEFINITION_EVENT, sentence) for sentence in sentences), *_lost(walk.lost)]


def mark_sentences(threads: Sequence[WatchedThread]) -> Iterator[str]:
    """Which marks had no partner. An application may have thousands of threads, so these are counted."""
    paired = [thread for thread in threads if thread.spans]
    begins = sum(thread.begins - len(thread.spans) for thread in paired)
    ends = sum(thread.ends - len(thread.spans) for thread in paired)
    told = [f"{quantity(begins, 'begin')} without an end"] if begins else []
    told += [f"{quantity(ends, 'end')} without a begin"] if ends else []
    if told:
        yield f"unpaired marks: {' and '.join(told)}"
    if without := len(threads) - len(paired):
        yield f"{quantity(without, 'thread')} had marks, but no activation"


def _none_found(threads: Sequence[WatchedThread], marks: Marks, left_out: int) -> UserError:
    """The refusal of a trace whose marks make no activation. left_out: threads with marks that are not wanted."""
    counts = (sum(one.begins for one in threads), sum(one.ends for one in threads))
    often = [f"came {quantity(count, 'time')}" if count else "never came" for count in counts]
    came = [f"{mark.shown} {times}" for mark, times in zip(marks, often, strict=True)]
    order = "; no end came behind a begin of the same thread" if all(counts) else ""
    others = f" in a thread that is wanted; {quantity(left_out, 'other thread')} had marks" if left_out else ""
    return UserError(f"{' and '.join(came)}{others}{order}")


def wanted_in(record: Record) -> WantedThreads:
    """The threads that a run of the probe was asked for."""
    options, marks = probe_options(record), marks_in(record)
    names = tuple(name for name in options.get("thread", "").split("+") if name)
    tids = tuple(int(word) for word in options.get("tid", "").split("+") if _TID.fullmatch(word))
    alone = not names and not tids and not marks
    return WantedThreads(names, tids, marks, whole_number(options.get("pid", "")) if alone else None)


def _threads_of(pid: int, walk: ThreadWalk, record: Record) -> tuple[int, ...]:
    """The threads of a process, as the record lists them and as the trace tells who began whom. Those that it has."""
    family = {tid for tid in walk.threads if tid and pid in walk.ancestors(tid)}
    listed = {each.id for each in every_real_time_thread(record) if each.process == pid}
    urgent = listed | {tid for tid in family if walk.threads[tid].real_time}
    every = family | {each.id for each in target_threads(record) if each.process == pid}
    return tuple(sorted((urgent or every) & walk.threads.keys())) or (pid,)


def _measured(walk: ThreadWalk, source: TraceSource, wanted: WantedThreads) -> list[ThreadActivations]:
    if wanted.process is not None:
        wanted = WantedThreads(tids=_threads_of(wanted.process, walk, source.record))
    wanted = wanted.numbered(walk.threads)
    every = [thread for thread in walk.every() if thread.tid]
    often = [one for one in sorted(every, key=lambda one: -len(one.wakings))[:5] if one.wakings]
    named = ", ".join(f"{one_line(one.name)}/{one.tid}" for one in often)
    instead = f"; most often it woke {named}: name one with --thread or --pid" if named else ""
    chosen = [thread for thread in every if wanted.has(thread)]
    tids = {each.tid for each in chosen}
    missing = [f"thread {name!r}" for name in wanted.names if not any(each.was_called(name) for each in chosen)]
    missing += [f"thread {tid}" for tid in wanted.tids if tid not in tids]
    if missing:
        more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
        raise UserError(f"the trace has no {' and no '.join(missing[:MOST_NAMED])}{more}{instead}")
    found = [activations_of(thread, source.meaning.symbol) for thread in chosen]
    told = [each for each in found if each and (len(each.due_ns) >= FEWEST_WAKINGS or not wanted.all_real_time)]
    if not told:
        words = " or ".join([*map(repr, wanted.names), *map(str, wanted.tids)])
        words = words or f"a real-time thread that was woken {FEWEST_WAKINGS} times or more"
        raise UserError(f"the trace has no activation of {words}{instead}")
    if len(told) > MOST_THREADS:
        raise UserError(
            f"the trace has {len(told):,} real-time threads: name up to {MOST_THREADS} with --thread or --pid"
        )
    return told


def _series(number: int, of: ThreadActivations, origin_ns: int) -> Series:
    return Series(
        id=number,
        thread=number,
        cpu=of.cpus[0] if len(of.cpus) == 1 else -1,
        on_grid=False,
        has_samples=True,
        period_ns=of.period_ns or 1,
        first_due_ns=of.due_ns[0] - origin_ns,
        probe=FOREIGN,
        method=of.start.name.lower(),
        field="latency",
        unit="ns",
        external=True,
    )


def _blocks(series: Series, of: ThreadActivations, origin_ns: int) -> Iterator[Block]:
    """The samples. A new block begins where the due time is not one period after the last one."""
    due_ns, value_ns = np.array(of.due_ns, np.int64) - origin_ns, np.array(of.latency_ns, np.int64)
    missed = np.array(of.missed, np.int64)
    index = np.arange(due_ns.size) + np.cumsum(missed) - missed
    step_ns = (1 + missed[:-1]) * series.period_ns
    odd = np.flatnonzero(np.diff(due_ns) != step_ns) + 1
    starts = np.unique(np.concatenate(([0], odd, np.arange(0, due_ns.size, BLOCK_SAMPLES))))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), due_ns.size], strict=True):
        part = missed[start:stop]
        gaps = np.flatnonzero(part)
        yield Block(series.id, int(index[start]), int(due_ns[start]), value_ns[start:stop], gaps, part[gaps])


def _facts(found: Sequence[ThreadActivations], *, imported: bool) -> Iterator[Fact]:
    if imported:
        yield Fact(0, WHOLE_RUN, Moment.ASKED, "probe", FOREIGN)
    yield Fact(0, WHOLE_RUN, Moment.ASKED, "threads", str(len(found)))
    for number, each in enumerate(found):
        yield Fact(0, number, Moment.START, "tid", str(each.tid))
        yield Fact(0, number, Moment.START, "name", each.name)
