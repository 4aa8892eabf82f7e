# SPDX-License-Identifier: Apache-2.0
"""From a record to one Summary for each series, and to one of all threads together.

A series is read from its samples. If the samples are missing or damaged, its SUMMARY slices are read.
"""

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from statistics import harmonic_mean
from typing import Literal, TypeVar

import numpy as np

from rtproof.core.processes import in_threads
from rtproof.record import compiled_scanner, histogram_bins
from rtproof.record.compiled_scanner import Scanner
from rtproof.record.contents import Block, ChunkRef, Int64Array, Record, Seconds, Series, Slice, Top, View
from rtproof.record.histogram_bins import unpack_histograms
from rtproof.record.reading import BlockReader
from rtproof.summary import dependence, moments, native_scan, per_second, tally
from rtproof.summary.counts import NO_COUNTS, Counts, merge_counts
from rtproof.summary.dependence import BlockCounter, BlockCounts, LevelPlan, level_plan
from rtproof.summary.fields import series_by_field
from rtproof.summary.native_scan import TaskScan, scan_task
from rtproof.summary.per_second import NO_SECONDS, SECOND_NS, stretches
from rtproof.summary.summary_model import NO_LAG, Lag, Moments, Summary
from rtproof.summary.tally import NOTHING_TALLIED, Tallied, Tally, array_pieces

SeriesReach = tuple[int, int]
"""The due times in ns of the first and the last activation that a source knows, including missed ones."""


@dataclass(frozen=True)
class SeriesPart:
    """The numbers of some activations of one series. lost: activations whose value the source could not keep."""

    observed: Tallied = NOTHING_TALLIED
    charged: Tallied = NOTHING_TALLIED
    lost: int = 0
    lag: Lag = NO_LAG
    seconds: Seconds = NO_SECONDS
    top: Top = per_second.NO_TOP
    reach: SeriesReach | None = None
    blocks: BlockCounts | None = None


def add_parts(parts: Iterable[SeriesPart]) -> SeriesPart:
    """The sum of all parts of one series."""
    some = list(parts) or [SeriesPart()]
    return SeriesPart(
        tally.add_tallies(part.observed for part in some),
        tally.add_tallies(part.charged for part in some),
        sum(part.lost for part in some),
        moments.merge_lags(part.lag for part in some),
        per_second.merge_seconds(part.seconds for part in some),
        per_second.merge_tops(part.top for part in some),
        hull_of_reaches(part.reach for part in some),
        dependence.merge_block_counts(part.blocks for part in some),
    )


def hull_of_reaches(reaches: Iterable[SeriesReach | None]) -> SeriesReach | None:
    """The reach from the earliest first activation to the latest last one; None without any."""
    known = [reach for reach in reaches if reach]
    if not known:
        return None
    return min(first_ns for first_ns, _ in known), max(last_ns for _, last_ns in known)


def part_of_samples(
    series: Series, blocks: Iterable[Block], slice_starts: Int64Array, k: int, plan: LevelPlan | None = None
) -> SeriesPart:
    """The numbers of some consecutive blocks. RecordError for an impossible stall.

    plan: how to count what is above some levels over time. Without a plan there are no such counts.
    """
    observed, charged = Tally(), Tally()
    counter = BlockCounter(series, plan) if plan else None
    lags, seconds, reaches = [], [], []
    top, before = per_second.empty_top(k), moments.NO_NEIGHBOURS
    for stretch in stretches(series, blocks, slice_starts):
        some, gap = stretch[0], stretch[0].missed > 0
        observed.add(some.value)
        tally.charge_gaps(charged, series.period_ns, some.value[gap], some.missed[gap])
        lag, before = moments.lag_of_stretch(series, stretch, before)
        lags.append(lag)
        seconds.append(per_second.seconds_of(series, some))
        top = per_second.add_to_top(some, top)
        missed_ns = int(some.missed[-1]) * series.period_ns if series.on_grid else 0
        reaches.append((int(some.due_ns[0]), int(some.due_ns[-1]) + missed_ns))
        if counter:
            counter.add(some)
    return SeriesPart(
        observed.result(),
        charged.result(),
        0,
        moments.merge_lags(lags),
        per_second.merge_seconds(seconds),
        top,
        hull_of_reaches(reaches),
        counter.result() if counter else None,
    )


TOGETHER = 200
"""How many slices are added up at once. A long run has tens of thousands, of a thousand bins each."""


def part_of_slices(slices: Iterable[Slice]) -> SeriesPart:
    """The numbers of the slices of one series, in both views. Seconds and largest activations have other chunks."""
    some = list(slices)
    observed, charged = ([s for s in some if s.view is view] for view in View)
    return SeriesPart(
        _tallied(observed),
        _tallied(charged),
        sum(s.lost for s in observed),
        moments.merge_lags(Lag(s.pairs, s.sum_products, s.catch_up_pairs) for s in observed),
    )


def _tallied(slices: list[Slice]) -> Tallied:
    """The counts of all slices. All slices have the same bins, so counts add up bin by bin."""
    sums = moments.merge_moments(Moments(s.count, s.min, s.max, s.sum, s.sum_squares) for s in slices)
    packed = [(part.stored, part.count) for part in slices]
    parts = [unpack_histograms(packed[at : at + TOGETHER])[1:] for at in range(0, len(packed), TOGETHER)]
    if not parts:
        return Tallied(NO_COUNTS, sums)
    places, place = np.unique(np.concatenate([bin_ for bin_, _ in parts]), return_inverse=True)
    counts = np.zeros(places.size, np.int64)
    np.add.at(counts, place, np.concatenate([count for _, count in parts]))
    return Tallied(Counts(*histogram_bins.bin_edges(places), counts), sums)


TASK = 4_000_000
"""A thread of its own is worth its cost from this many samples on."""
TASKS_EACH = 4
"""Tasks for each thread. With several, no thread waits long for the others."""
ScanItem = TypeVar("ScanItem", ChunkRef, Slice)
LEAD = 2
"""Blocks before those of a task. They hold the samples with which the task's first pairs begin."""


@dataclass(frozen=True)
class SampleSource:
    """All chunks of samples of one series, and how to count them. slice_starts: due times at which slices begin."""

    series: Series
    refs: tuple[ChunkRef, ...]
    slice_starts: Int64Array
    k: int
    plan: LevelPlan | None = None


def summarise(
    record: Record, workers: int | None = None, scanner: Scanner | Literal["auto"] | None = "auto"
) -> tuple[Summary, ...]:
    """One Summary for each series, in the order of the record.

    workers: how many threads of the compiled scanner work at once; by default one for each CPU, and one on a small
    record. scanner: the compiled scanner, or None for numpy; by default numpy counts small records and those of many
    short series.
    """
    refs, parts = by_series(record.chunk_refs), by_series(record.slices)
    samples = sum(ref.count for ref in record.chunk_refs)
    workers = workers or (len(os.sched_getaffinity(0)) if samples >= TASK else 1)
    size = max(TASK, samples // (TASKS_EACH * workers))
    sources = list(_sources(record, refs, parts))
    tasks = [
        (source, piece)
        for source in sources
        for piece in array_pieces(np.array([ref.count for ref in source.refs], np.int64), size)
    ]
    if scanner == "auto":
        large = samples >= native_scan.WORTH_SAMPLES * max(len(tasks), 2)
        scanner = compiled_scanner.scanner() if large and isinstance(record.read_blocks, BlockReader) else None
    found: dict[int, list[SeriesPart | None]] = defaultdict(list)
    if scanner:
        scanned = in_threads(partial(_scan_natively, record, scanner), tasks, workers)
        for (source, _), part in zip(tasks, scanned, strict=True):
            found[source.series.id].append(part)
    counted = {}
    for source in sources:
        scanned_parts = found[source.series.id]
        known = [part for part in scanned_parts if part is not None]
        if known and len(known) == len(scanned_parts):
            counted[source.series.id] = add_parts(known)
        else:  # numpy counts what the scanner left a part of
            blocks = record.read_blocks(source.refs)
            part = part_of_samples(source.series, blocks, source.slice_starts, source.k, source.plan)
            counted[source.series.id] = part
    return tuple(_summary(record, series, counted.get(series.id), parts[series.id]) for series in record.series)


def _sources(record: Record, refs: dict[int, list[ChunkRef]], parts: dict[int, list[Slice]]) -> Iterator[SampleSource]:
    """The series whose samples are as many as its slices hold. All of a field have one plan, so their counts add up."""
    observed = {id_: [part for part in some if part.view is View.OBSERVED] for id_, some in parts.items()}
    for field in series_by_field(record):
        told = []
        for series in field:
            in_slices = sum(part.count for part in observed.get(series.id, ()))
            if refs[series.id] and sum(ref.count for ref in refs[series.id]) >= in_slices:
                told.append(series)
        plan = level_plan(record, tuple(told), refs)
        for series in told:
            starts = np.array(sorted({part.first_due_ns for part in observed.get(series.id, ())}), np.int64)
            k = record.top[series.id].k if series.id in record.top else per_second.DEFAULT_K
            yield SampleSource(series, tuple(refs[series.id]), starts, k, plan)


def by_series(items: Iterable[ScanItem]) -> dict[int, list[ScanItem]]:
    """Chunks by the number of their series, in the order of the record. Any other series has an empty list."""
    found: dict[int, list[ScanItem]] = defaultdict(list)
    for item in items:
        found[item.series].append(item)
    return found


def _scan_natively(record: Record, scanner: Scanner, task: tuple[SampleSource, slice]) -> SeriesPart | None:
    """The numbers of some consecutive chunks of a series. None for due times that go back, or an impossible stall."""
    source, piece = task
    series = source.series
    if not 0 < series.period_ns <= native_scan.LONGEST_PERIOD_NS:
        return None
    lead = min(piece.start, LEAD)
    scan = TaskScan(series, source.slice_starts, source.k, source.plan, per_second.LONGEST_GAP_NS)
    if scan_task(scan, record.path, source.refs[piece.start - lead : piece.stop], lead, scanner) != native_scan.DONE:
        return None
    charged = Tally()
    _, late, missed = scan.gaps()
    tally.charge_gaps(charged, series.period_ns, late, missed)
    state = scan.state
    return SeriesPart(
        scan.observed(),
        charged.result(),
        0,
        scan.lag(),
        scan.seconds(),
        scan.top(),
        (state.first_due_ns, state.last_due_ns) if state.has_reach else None,
        scan.blocks(),
    )


def _summary(record: Record, series: Series, scanned: SeriesPart | None, parts: list[Slice]) -> Summary:
    part = scanned or part_of_slices(parts)
    seconds = per_second.join_seconds(part.seconds, record.seconds.get(series.id, per_second.NO_SECONDS))
    ran = max(part.observed.moments.count, int(seconds.obtained.sum()))
    missed = max(part.charged.moments.count, int(seconds.missed.sum()))
    told_lost = sum(one.lost for one in parts)
    reaches = (part.reach, *((one.first_due_ns, one.last_due_ns) for one in parts if one.count))
    reach = _reach_of_series(series, hull_of_reaches(reaches), seconds, ran + missed + told_lost)
    span = reach[1] - reach[0] + series.period_ns if reach else 0
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
        schedule_counts=merge_counts((part.observed.counts, part.charged.counts)),
        lag=part.lag,
        seconds=seconds,
        top=per_second.merge_tops((part.top, record.top.get(series.id, part.top))),
        exact=scanned is not None and part.observed.counts.exact and part.charged.counts.exact,
        first_due_ns=reach[0] if reach else None,
        unbinned=ran - part.observed.moments.count,
        blocks=part.blocks,
    )


def _reach_of_series(
    series: Series, known: SeriesReach | None, seconds: Seconds, activations: int
) -> SeriesReach | None:
    """The reach, extended to the seconds that go further, as in a record that was cut off.

    Within the last second, only the number of activations tells when the last one was due. Off the grid that number
    does not tell it. The last second then counts only up to its beginning.
    """
    ends = np.flatnonzero(seconds.obtained + seconds.missed > 0)
    if not ends.size:
        return known
    first_begin_ns, begin_ns = (int(seconds.second[ends[at]]) * SECOND_NS for at in (0, -1))
    first_ns, last_ns = known or (max(series.first_due_ns, first_begin_ns), None)
    if known and first_begin_ns + SECOND_NS <= first_ns:
        # The seconds begin before it: in a damaged file the first slice may be missing.
        behind_ns, period_ns = max(first_begin_ns - series.first_due_ns, 0), series.period_ns
        steps_ns = -(-behind_ns // period_ns) * period_ns if series.on_grid and period_ns else behind_ns
        first_ns = min(series.first_due_ns + steps_ns, first_ns)
    if last_ns is not None and begin_ns <= last_ns:
        return first_ns, last_ns
    counted_ns = first_ns + (activations - 1) * series.period_ns if series.on_grid else begin_ns
    return first_ns, min(max(counted_ns, begin_ns), begin_ns + SECOND_NS - 1)


def pooled(summaries: tuple[Summary, ...]) -> Summary:
    """One Summary of all threads: sums, the longest span, and of each second the largest value of all threads."""
    if not summaries:
        # The record was cut off before it named a thread.
        return Summary(Series(0, 0, -1, False, False, 0, 0, "", "", "latency", "ns"))
    # The common period, or that with which they would have as many activations together.
    periods_ns = [s.series.period_ns for s in summaries]
    alike = len(set(periods_ns)) == 1 or not all(periods_ns)
    return Summary(
        series=replace(
            summaries[0].series,
            thread=0,
            cpu=-1,
            has_samples=all(s.series.has_samples for s in summaries),
            period_ns=periods_ns[0] if alike else round(harmonic_mean(periods_ns)),
        ),
        threads=tuple(sorted({thread for s in summaries for thread in s.threads})),
        expected=sum(s.expected for s in summaries),
        missed=sum(s.missed for s in summaries),
        lost=sum(s.lost for s in summaries),
        span_ns=max(s.span_ns for s in summaries),
        observed=moments.merge_moments(s.observed for s in summaries),
        charged=moments.merge_moments(s.charged for s in summaries),
        observed_counts=merge_counts(s.observed_counts for s in summaries),
        schedule_counts=merge_counts(s.schedule_counts for s in summaries),
        lag=moments.merge_lags(s.lag for s in summaries),
        seconds=per_second.merge_seconds(s.seconds for s in summaries),
        top=per_second.top_of_series({s.series.id: s.top for s in summaries}),
        exact=all(s.exact for s in summaries),
        first_due_ns=min((s.first_due_ns for s in summaries if s.first_due_ns is not None), default=None),
        unbinned=sum(s.unbinned for s in summaries),
        stalled=sum(s.stalled for s in summaries),
        stalled_ns=max(s.stalled_ns for s in summaries),
        blocks=dependence.merge_block_counts(s.blocks for s in summaries),
    )
