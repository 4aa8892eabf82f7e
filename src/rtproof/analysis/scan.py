# SPDX-License-Identifier: Apache-2.0
"""From a record to one Summary per series.

A series is counted from its samples, or from the record's SUMMARY slices where those hold more activations: in a record
without samples, and where blocks of samples were destroyed. Activations of which neither tells, whether the agent could
not keep them or the file lost them, count as ``lost``: they are due times for which nothing may be claimed. Per-second
numbers and the largest values come from both sources joined, so that damage to one hides nothing the other knows.
"""

import multiprocessing
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.analysis import persecond, samples, slices, tops
from rtproof.analysis.counts import merge
from rtproof.analysis.model import Summary
from rtproof.analysis.part import Part, add_up, hull
from rtproof.record import ChunkRef, Int64Array, Record, Series, Slice, View

TASK = 4_000_000
"""Samples that one process takes at a time; a record with fewer is not worth a second process."""


@dataclass(frozen=True)
class Task:
    """Consecutive chunks of one series; the first ``lead`` are another task's, read for the pairs that cross over."""

    series: Series
    refs: tuple[ChunkRef, ...]
    lead: int


def summarise(record: Record, workers: int | None = None) -> tuple[Summary, ...]:
    """One Summary per series, in the order of the record. workers: processes for large records, else one per CPU."""
    sampled = [series for series in record.series if _samples_hold_more(record, series.id)]
    tasks = [task for series in sampled for task in _tasks(record, series)]
    scanned = _run(record, tasks, workers if workers is not None else len(os.sched_getaffinity(0)))
    return tuple(_summary(record, series, scanned.get(series.id)) for series in record.series)


def slice_starts(record: Record, series: int) -> Int64Array:
    """Sorted due times at which the slices of a series begin."""
    return np.array(sorted(s.first_due_ns for s in _observed(record, series)), np.int64)


def _samples_hold_more(record: Record, series: int) -> bool:
    sampled = sum(ref.count for ref in record.chunk_refs if ref.series == series)
    return sampled > 0 and sampled >= sum(s.count for s in _observed(record, series))


def _observed(record: Record, series: int) -> list[Slice]:
    return [s for s in record.slices if s.series == series and s.view is View.OBSERVED]


def _tasks(record: Record, series: Series) -> Iterator[Task]:
    refs = [ref for ref in record.chunk_refs if ref.series == series.id]
    number = np.cumsum([ref.count for ref in refs]) // TASK
    starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(refs)], strict=True):
        lead = min(start, 2)
        yield Task(series, tuple(refs[start - lead : end]), lead)


def _run(record: Record, tasks: list[Task], workers: int) -> dict[int, Part]:
    """Parts of each series; processes are forked, so that they find the record and its file already open."""
    parts: dict[int, list[Part]] = {}
    if min(workers, len(tasks)) <= 1 or "fork" not in multiprocessing.get_all_start_methods():
        for task in tasks:
            parts.setdefault(task.series.id, []).append(_scan(record, task))
    else:
        with multiprocessing.get_context("fork").Pool(min(workers, len(tasks)), _adopt, (record,)) as pool:
            for task, part in zip(tasks, pool.imap(_scan_adopted, tasks), strict=True):
                parts.setdefault(task.series.id, []).append(part)
    return {series: add_up(some) for series, some in parts.items()}


_adopted: list[Record] = []


def _adopt(record: Record) -> None:
    _adopted.append(record)


def _scan_adopted(task: Task) -> Part:
    return _scan(_adopted[-1], task)


def _scan(record: Record, task: Task) -> Part:
    top = record.top.get(task.series.id)
    starts = slice_starts(record, task.series.id)
    return samples.part_of(
        task.series, record.read_blocks(task.refs), starts, top.k if top else tops.DEFAULT_K, lead=task.lead
    )


def _summary(record: Record, series: Series, scanned: Part | None) -> Summary:
    from_slices = slices.part_of(s for s in record.slices if s.series == series.id)
    part = scanned or from_slices
    seconds = persecond.join(part.seconds, record.seconds.get(series.id, persecond.NONE))
    reach = hull((part.reach, from_slices.reach))
    missed = part.charged.moments.count
    known = part.observed.moments.count + missed
    span = reach.last_due_ns - reach.first_due_ns + series.period_ns if reach else 0
    expected = span // series.period_ns if series.on_grid and series.period_ns else known + from_slices.lost
    return Summary(
        series=series,
        threads=(series.thread,),
        expected=expected,
        missed=missed,
        lost=max(expected - known, 0),
        span_ns=span,
        observed=part.observed.moments,
        charged=part.charged.moments,
        observed_counts=part.observed.counts,
        schedule_counts=merge((part.observed.counts, part.charged.counts)),
        lag=part.lag,
        seconds=seconds,
        top=tops.merge((part.top, record.top.get(series.id, part.top))),
        exact=scanned is not None and part.observed.counts.exact and part.charged.counts.exact,
    )
