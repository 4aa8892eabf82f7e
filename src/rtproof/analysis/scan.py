# SPDX-License-Identifier: Apache-2.0
"""From a record to one Summary per series.

A series is counted from its samples, or from the record's SUMMARY slices where those hold more activations: in a record
without samples, and where blocks of samples were destroyed. Activations of which neither tells, whether the agent could
not keep them or the file lost them, count as ``lost``: they are due times for which nothing may be claimed. Per-second
numbers and the largest values come from both sources joined, so that damage to one hides nothing the other knows.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from rtproof.analysis import persecond, samples, slices, tops
from rtproof.analysis.blockcounts import Plan, plan_of
from rtproof.analysis.counts import merge
from rtproof.analysis.fields import by_field
from rtproof.analysis.forked import in_processes
from rtproof.analysis.model import Summary
from rtproof.analysis.part import Part, Reach, add_up, hull
from rtproof.analysis.persecond import SECOND_NS
from rtproof.analysis.runs import pieces
from rtproof.record import ChunkRef, Int64Array, Record, Seconds, Series, Slice, View

TASK = 4_000_000
"""Samples that are worth a process."""
TASKS_EACH = 4
"""Tasks for each process, so that none waits long for the others."""
Item = TypeVar("Item", ChunkRef, Slice)
LEAD = 2
"""Blocks in front of a task's own that hold the samples its first pairs begin with."""


@dataclass(frozen=True)
class Task:
    """Consecutive chunks of one series; the first ``lead`` are another task's, read for the pairs that cross over."""

    series: Series
    refs: tuple[ChunkRef, ...]
    lead: int
    slice_starts: Int64Array
    k: int
    plan: Plan | None = None


def summarise(record: Record, workers: int | None = None) -> tuple[Summary, ...]:
    """One Summary per series, in the order of the record. workers: processes for large records, else one per CPU."""
    refs, parts = by_series(record.chunk_refs), by_series(record.slices)
    workers = workers or len(os.sched_getaffinity(0))
    size = max(TASK, sum(ref.count for ref in record.chunk_refs) // (TASKS_EACH * workers))
    plans = _plans(record, refs, parts)
    tasks = [
        replace(task, plan=plans[series.id])
        for series in record.series
        for task in _tasks(record, series, refs[series.id], parts[series.id], size)
    ]
    scanned: dict[int, Part] = {}
    for task, part in zip(tasks, in_processes(partial(_scan, record), tasks, workers), strict=True):
        known = scanned.get(task.series.id)
        scanned[task.series.id] = add_up((known, part)) if known else part
    return tuple(_summary(record, series, scanned.get(series.id), parts[series.id]) for series in record.series)


def _plans(record: Record, refs: dict[int, list[ChunkRef]], parts: dict[int, list[Slice]]) -> dict[int, Plan | None]:
    """One plan for all series of a field, so that their counts add; None where the samples do not tell all."""
    plans: dict[int, Plan | None] = {}
    for field in by_field(record):
        told = tuple(s for s in field if samples_tell_all(refs[s.id], _observed(parts[s.id])))
        plan = plan_of(record, told, refs)
        plans |= {series.id: plan if series in told else None for series in field}
    return {series.id: plans.get(series.id) for series in record.series}


def _observed(parts: list[Slice]) -> list[Slice]:
    return [part for part in parts if part.view is View.OBSERVED]


def by_series(items: Iterable[Item]) -> dict[int, list[Item]]:
    """Chunks by the number of their series, in the order of the record; an empty list for any other series."""
    found: dict[int, list[Item]] = defaultdict(list)
    for item in items:
        found[item.series].append(item)
    return found


def _tasks(record: Record, series: Series, refs: list[ChunkRef], parts: list[Slice], size: int) -> Iterator[Task]:
    """How to read the samples of a series; nothing if the slices hold more activations."""
    observed = _observed(parts)
    if not samples_tell_all(refs, observed):
        return
    sizes = np.array([ref.count for ref in refs], np.int64)
    starts = np.unique(np.array([part.first_due_ns for part in observed], np.int64))
    k = record.top[series.id].k if series.id in record.top else tops.DEFAULT_K
    for piece in pieces(sizes, size):
        lead = min(piece.start, LEAD)
        yield Task(series, tuple(refs[piece.start - lead : piece.stop]), lead, starts, k)


def samples_tell_all(refs: list[ChunkRef], observed: list[Slice]) -> bool:
    """Whether the samples of a series are at least as many activations as its slices hold."""
    return sum(ref.count for ref in refs) >= sum(part.count for part in observed)


def _scan(record: Record, task: Task) -> Part:
    return samples.part_of(
        task.series, record.read_blocks(task.refs), task.slice_starts, task.k, lead=task.lead, plan=task.plan
    )


def _summary(record: Record, series: Series, scanned: Part | None, parts: list[Slice]) -> Summary:
    part = scanned or slices.part_of(parts)
    seconds = persecond.join(part.seconds, record.seconds.get(series.id, persecond.NONE))
    ran = max(part.observed.moments.count, int(seconds.obtained.sum()))
    missed = max(part.charged.moments.count, int(seconds.missed.sum()))
    told_lost = sum(one.lost for one in parts)
    reach = _reach(series, hull((part.reach, slices.reach_of(parts))), seconds, ran + missed + told_lost)
    span = reach.last_due_ns - reach.first_due_ns + series.period_ns if reach else 0
    on_grid = series.on_grid and series.period_ns > 0
    expected = span // series.period_ns if on_grid else ran + missed + told_lost
    return Summary(
        series=series,
        threads=(series.thread,),
        expected=expected,
        missed=missed,
        lost=max(expected - ran - missed, 0),
        span_ns=span,
        observed=part.observed.moments,
        charged=part.charged.moments,
        observed_counts=part.observed.counts,
        schedule_counts=merge((part.observed.counts, part.charged.counts)),
        lag=part.lag,
        seconds=seconds,
        top=tops.merge((part.top, record.top.get(series.id, part.top))),
        exact=scanned is not None and part.observed.counts.exact and part.charged.counts.exact,
        first_due_ns=reach.first_due_ns if reach else None,
        unbinned=ran - part.observed.moments.count,
        blocks=part.blocks,
    )


def _from_the_first(series: Series, known: Reach | None, seconds: Seconds, hit: Int64Array) -> Reach | None:
    """Also from where the seconds begin before all else, where the first slice is gone from a damaged file."""
    if not hit.size or known is None:
        return known
    begin_ns = int(seconds.second[hit[0]]) * SECOND_NS
    if begin_ns + SECOND_NS > known.first_due_ns:
        return known
    behind_ns = max(begin_ns - series.first_due_ns, 0)
    steps = -(-behind_ns // series.period_ns) * series.period_ns if series.on_grid and series.period_ns else behind_ns
    return Reach(min(series.first_due_ns + steps, known.first_due_ns), known.last_due_ns)


def _reach(series: Series, known: Reach | None, seconds: Seconds, activations: int) -> Reach | None:
    """How far the seconds go where they go further than all else: to the end of a record that was cut off.

    Within the last second nothing but the number of activations tells when the last one was due; off the grid it does
    not, and the last second counts only as far as its beginning.
    """
    ends = np.flatnonzero(seconds.obtained + seconds.missed > 0)
    known = _from_the_first(series, known, seconds, ends)
    if not ends.size or (known and int(seconds.second[ends[-1]]) * SECOND_NS <= known.last_due_ns):
        return known
    first_ns = known.first_due_ns if known else max(series.first_due_ns, int(seconds.second[ends[0]]) * SECOND_NS)
    begin_ns = int(seconds.second[ends[-1]]) * SECOND_NS
    counted_ns = first_ns + (activations - 1) * series.period_ns if series.on_grid else begin_ns
    return Reach(first_ns, min(max(counted_ns, begin_ns), begin_ns + SECOND_NS - 1))
