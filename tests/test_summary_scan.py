# SPDX-License-Identifier: Apache-2.0
"""Summaries of written records: from samples, from slices, in one process and in several, whole and damaged."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import record_cases
from analysis_records import BEGIN, MS, SECOND, SERIES, block, record
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from stage_records import KERNEL, fields_of, staged

from rtproof.judge.analyse import analyse
from rtproof.record import histogram_bins
from rtproof.record.chunks import ChunkType
from rtproof.record.contents import End, EndReason, Record, Series
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.summary import per_second
from rtproof.summary.counts import Counts
from rtproof.summary.fields import aligned_fields, judged_series, series_by_field
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Summary

OTHER = replace(SERIES, id=1, thread=1, cpu=3, first_due_ns=250_000)
FREE = replace(SERIES, on_grid=False)


def latencies(seed: int, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Latencies with a tail, some of them beyond a period, and the gaps behind those."""
    random = np.random.default_rng(seed)
    values = (random.lognormal(9, 1, n) + 2000).astype(np.int64)
    values[random.integers(0, n, n // 500)] += 7 * MS
    late = np.flatnonzero(values >= MS)
    return values, late, values[late] // MS


def write(path: Path, *series: Series, n: int = 30_000, checkpoint_s: int = 3) -> Record:
    with RecordWriter(str(path)) as writer:
        writer.begin(BEGIN)
        for one in series:
            writer.series(one)
        totals = []
        for one in series:
            feed = SeriesWriter(writer, one, checkpoint_ns=checkpoint_s * SECOND)
            values, late, missed = latencies(one.id, n)
            feed.add(values, late if one.on_grid else (), missed if one.on_grid else ())
            totals.append(feed.finish())
        writer.end(End(40 * SECOND, EndReason.AS_ASKED, "", tuple(totals)))
    return open_record(path)


def on_scale(counts: Counts) -> dict[int, int]:
    """Counts by bin of the record's scale."""
    cells, place = np.unique(histogram_bins.bin_of(counts.lo), return_inverse=True)
    sums = np.zeros(cells.size, np.int64)
    np.add.at(sums, place, counts.n)
    return dict(zip(cells.tolist(), sums.tolist(), strict=True))


def assert_same(a: Summary, b: Summary) -> None:
    """All that does not depend on whether values were counted one by one or in bins."""
    for name in ("expected", "missed", "lost", "span_ns", "first_due_ns", "observed", "charged", "lag"):
        assert getattr(a, name) == getattr(b, name), name
    assert on_scale(a.observed_counts) == on_scale(b.observed_counts)
    assert on_scale(a.schedule_counts) == on_scale(b.schedule_counts)
    for name in ("second", "obtained", "missed", "max"):
        assert np.array_equal(getattr(a.seconds, name), getattr(b.seconds, name)), name
    for name in ("index", "due_ns", "value"):
        assert np.array_equal(getattr(a.top, name)[:64], getattr(b.top, name)[:64]), name


@pytest.mark.parametrize("series", [SERIES, OTHER, FREE], ids=["grid", "phase", "free"])
def test_samples_and_slices_say_the_same(tmp_path: Path, series: Series) -> None:
    whole = write(tmp_path / "a.rtrec", series)
    assert len(whole.slices) > 8
    (from_samples,) = summarise(whole)
    (from_slices,) = summarise(replace(whole, chunk_refs=()))
    assert (from_samples.exact, from_slices.exact) == (True, False)
    assert_same(from_samples, from_slices)
    assert from_samples.obtained == 30_000
    if series.on_grid:
        assert from_samples.missed > 100
        assert from_samples.expected == 30_000 + from_samples.missed


def test_a_cut_off_record_counts_the_samples_behind_its_last_slice(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.rtrec", SERIES)
    last = whole.slices[-1].first_due_ns
    torn = replace(whole, end=None, slices=tuple(s for s in whole.slices if s.first_due_ns < last), seconds={}, top={})
    assert sum(s.count for s in torn.slices) < 60_000
    (complete,), (summary,) = summarise(whole), summarise(torn)
    assert (summary.observed, summary.missed) == (complete.observed, complete.missed)
    assert summary.lag.pairs == complete.lag.pairs


def test_destroyed_samples_are_replaced_by_the_slices(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.rtrec", SERIES)
    (complete,) = summarise(whole)
    (summary,) = summarise(replace(whole, chunk_refs=whole.chunk_refs[:2] + whole.chunk_refs[3:]))
    assert not summary.exact
    assert_same(summary, complete)


def test_what_neither_source_knows_is_lost() -> None:
    blocks = [block(range(10)), block(range(5), first_index=17)]
    (summary,) = summarise(record(blocks))
    assert (summary.expected, summary.obtained, summary.lost, summary.missed) == (22, 22, 7, 0)
    assert summary.observed.count == 15
    assert summary.lag.pairs == 9 + 4


def test_a_gap_at_the_end_belongs_to_the_span() -> None:
    (summary,) = summarise(record([block([5, 6, 3 * MS + 1], {2: 3})]))
    assert (summary.expected, summary.missed, summary.span_ns) == (6, 3, 6 * MS)
    assert summary.schedule_counts.lo.tolist() == [1, 5, 6, MS + 1, 2 * MS + 1, 3 * MS + 1]


def test_the_400_ms_stall() -> None:
    """2 s at a period of 1 ms, stopped once for 400 ms: what SIGSTOP does to a measuring program."""
    values = [30_000 + 10 * (i % 97) for i in range(1600)]
    values[700] = 400_200_000
    (summary,) = summarise(record([block(values[:1000], {700: 400}), block(values[1000:], first_index=1400)]))
    assert (summary.expected, summary.obtained, summary.missed, summary.lost) == (2000, 1600, 400, 0)
    assert summary.charged.count == 400
    assert (summary.charged.min, summary.charged.max) == (200_000, 399_200_000)
    assert summary.observed_counts.exceedances(MS) == (1, 1)
    assert summary.schedule_counts.exceedances(MS) == (400, 400)


BARE = replace(SERIES, has_samples=False, period_ns=10 * MS)


def cut_off(path: Path, series: Series, seconds: int) -> Record:
    """A run of so long whose file ends behind the last chunk before the SUMMARY of its last slice."""
    count = seconds * SECOND // series.period_ns
    values = np.random.default_rng(3).gamma(4.0, 5_000.0, count).astype(np.int64)
    values[-200] = 123 * MS
    with RecordWriter(str(path)) as writer:
        writer.begin(BEGIN)
        writer.series(series)
        feed = SeriesWriter(writer, series, checkpoint_ns=10 * SECOND)
        feed.add(values, [count - 200], [12])
        feed.finish()
    whole = open_record(path)
    last = max(part.first_due_ns for part in whole.slices)
    chunks = list(record_cases.chunks(path))
    summaries = [at for at, chunk in enumerate(chunks) if chunk[8] == ChunkType.SUMMARY]
    gone = sum(part.last_due_ns >= last for part in whole.slices)
    path.write_bytes(b"".join(chunks[: summaries[-gone]]))
    return open_record(path)


def test_of_a_record_without_samples_that_was_cut_off_the_seconds_count(tmp_path: Path) -> None:
    found = cut_off(tmp_path / "cut", BARE, 1_000)
    (summary,) = summarise(found)
    binned = sum(part.count for part in found.slices)
    assert found.end is None
    assert summary.observed.count == binned <= 98_000
    assert summary.obtained == binned + summary.unbinned == 100_000
    assert (summary.missed, summary.lost, summary.expected) == (12, 0, 100_012)
    assert summary.span_ns == 100_012 * 10 * MS
    assert int(summary.seconds.max.max()) == int(summary.top.value[0]) == 123 * MS


def test_off_the_grid_the_last_second_counts_up_to_its_beginning(tmp_path: Path) -> None:
    (summary,) = summarise(cut_off(tmp_path / "cut", replace(BARE, on_grid=False), 1_000))
    assert summary.obtained == 100_000
    assert summary.lost == 0
    assert 1_000 * SECOND < summary.span_ns < 1_004 * SECOND
    assert (summary.span_ns - BARE.period_ns) % SECOND == 0


def test_a_limit_judges_the_last_field_and_nothing_of_the_others_is_in_its_numbers() -> None:
    late_interrupts = staged({"irq": [600_000] * 3, "task": [5] * 3}, {"irq": [600_000] * 4, "task": [6] * 4})
    analysis = analyse(late_interrupts, Requirement(500_000))
    assert [(s.series.field, s.series.thread) for s in analysis.summaries] == [("task", 0), ("task", 1)]
    assert (analysis.pooled.observed.count, analysis.pooled.observed.max, analysis.pooled.expected) == (7, 6, 7)
    assert (analysis.verdict.exceedances_observed, analysis.verdict.episodes) == (0, ())
    assert "6 ns on thread 1" in dict(analysis.verdict.sentences)["MAX"]


def test_a_file_with_several_fields_is_read_back_and_judged(tmp_path: Path) -> None:
    series = [each for thread in (0, 1) for each in fields_of(KERNEL, thread, ("irq", "user"))]
    irq = np.arange(9_000) % 700 + 1_000
    values = [irq, irq + 5_000, irq + 200, irq * 2 + 7_000]
    with RecordWriter(tmp_path / "run.rtrec") as writer:
        writer.begin(BEGIN)
        for each in series:
            writer.series(each)
        feeds = [SeriesWriter(writer, each) for each in series]
        for feed, some in zip(feeds, values, strict=True):
            feed.add(some, [100, 8_000], [3, 1])
        writer.end(End(10_000 * MS, EndReason.AS_ASKED, "", tuple(feed.finish() for feed in feeds)))
    analysis = analyse(open_record(tmp_path / "run.rtrec"), Requirement(9_000, at_most_ns=SECOND))
    assert analysis.doubts == ()
    assert (analysis.pooled.expected, analysis.pooled.missed, analysis.pooled.observed.max) == (18_008, 8, 10_398)
    assert analysis.verdict.exceedances_observed == int((irq * 2 + 7_000 > 9_000).sum())
    (switch,) = analysis.switches
    assert (switch.moments.count, switch.unpaired, switch.backwards) == (18_000, 0, 0)
    assert (switch.moments.min, switch.moments.max) == (5_000, 1_699 + 6_800)


NAMES = ("a", "b", "c")


@given(st.lists(st.sets(st.integers(0, 30)), min_size=3, max_size=3), st.integers(1, 5))
def test_only_activations_that_every_field_has_are_aligned(kept: list[set[int]], longest: int) -> None:
    series = fields_of(KERNEL, 0, NAMES)
    blocks = [
        block([100 * index + each.id], None, index, each)
        for each, some in zip(series, kept, strict=True)
        for index in sorted(some)
    ]
    made = record(blocks, series)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_second, "LONGEST", longest)
        pieces = list(aligned_fields(made, series))
    common = sorted(set.intersection(*kept))
    assert np.concatenate([piece.index for piece in pieces]).tolist() == common
    for number in range(3):
        values = np.concatenate([piece.values[number] for piece in pieces])
        assert values.tolist() == [100 * index + number for index in common]
    assert sum(piece.alone for piece in pieces) == sum(map(len, kept)) - 3 * len(common)


def thread_fields(thread: int, *fields: str) -> list[Series]:
    number = len(fields)
    return [replace(SERIES, id=thread * number + at, thread=thread, field=field) for at, field in enumerate(fields)]


def test_the_last_field_of_each_thread_is_the_one_judged() -> None:
    first, second = thread_fields(0, "irq", "thread", "user"), thread_fields(1, "irq", "thread", "user")
    made = record([], [*first, *second])
    assert series_by_field(made) == tuple(zip(first, second, strict=True))
    assert judged_series(made) == (first[2], second[2])
