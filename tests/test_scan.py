# SPDX-License-Identifier: Apache-2.0
"""Summaries of written records: from samples, from slices, in one process and in several, whole and damaged."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import record_cases
from analysis_records import BEGIN, MS, SECOND, SERIES, array, block, end, record
from numpy.typing import NDArray

from rtproof.core.errors import RecordError, RtproofError
from rtproof.record import histogram_bins
from rtproof.record.chunks import ChunkType
from rtproof.record.contents import Block, ChunkRef, End, EndReason, Record, Series
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.summary import series
from rtproof.summary.counts import Counts
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


def assert_identical(a: Summary, b: Summary) -> None:
    assert_same(a, b)
    assert np.array_equal(a.observed_counts.lo, b.observed_counts.lo)
    assert np.array_equal(a.observed_counts.n, b.observed_counts.n)
    assert np.array_equal(a.schedule_counts.n, b.schedule_counts.n)
    assert a.blocks
    assert b.blocks
    for name in ("ran", "missed", "ran_above", "missed_above"):
        assert np.array_equal(getattr(a.blocks, name), getattr(b.blocks, name)), name


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


def test_the_seconds_and_top_of_the_samples_are_those_of_the_record(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.rtrec", SERIES)
    (without,) = summarise(replace(whole, seconds={}, top={}))
    (with_them,) = summarise(whole)
    assert_same(without, with_them)


def test_parts_in_several_processes_are_the_whole_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = write(tmp_path / "a.rtrec", SERIES, OTHER)
    one = summarise(whole, workers=1)
    monkeypatch.setattr(series, "TASK", 5000)
    for workers in (1, 3):
        for summary, expected in zip(summarise(whole, workers), one, strict=True):
            assert_identical(summary, expected)


def test_a_process_that_is_killed_ends_the_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parent = write(tmp_path / "a.rtrec", SERIES), os.getpid()

    def kill(refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole.read_blocks(refs)

    monkeypatch.setattr(series, "TASK", 5000)
    with pytest.raises(RtproofError, match="was killed"):
        summarise(replace(whole, read_blocks=kill), workers=2)


def test_an_unreadable_block_is_said_in_one_sentence_from_any_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write(tmp_path / "a.rtrec", SERIES)
    monkeypatch.setattr(series, "TASK", 5000)
    (tmp_path / "a.rtrec").write_bytes(b"something else")
    with pytest.raises(RecordError, match="has changed since it was opened"):
        summarise(whole, workers=2)


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


def test_due_times_before_the_first_activation_are_not_expected() -> None:
    (summary,) = summarise(record([block(range(10), first_index=3)]))
    assert (summary.expected, summary.lost, summary.first_due_ns) == (10, 0, 3 * MS)


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


def test_a_series_without_anything() -> None:
    (summary,) = summarise(record([], end=end([])))
    assert (summary.expected, summary.obtained, summary.span_ns, summary.first_due_ns) == (0, 0, 0, None)
    assert summary.observed.mean is None


def test_events_without_a_period_have_no_grid() -> None:
    events = replace(SERIES, period_ns=0)
    blocks = [replace(block([7, 9, 8], series=events), gap_position=array(), gap_missed=array())]
    (summary,) = summarise(record(blocks, [events]))
    assert (summary.expected, summary.obtained, summary.observed.max) == (3, 3, 9)


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


def test_a_record_that_was_cut_off_before_its_first_slice(tmp_path: Path) -> None:
    (summary,) = summarise(cut_off(tmp_path / "cut", BARE, 8))
    assert (summary.observed.count, summary.unbinned, summary.missed) == (0, 800, 12)
    assert (summary.span_ns, summary.first_due_ns, summary.lost) == (8_120 * MS, 0, 0)
