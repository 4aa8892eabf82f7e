# SPDX-License-Identifier: Apache-2.0
"""A series written from arrays reads back with sums that are those of the arrays, however it was cut into pieces."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import recompute
import record_cases as cases
from analysis_records import MS, SECOND, SERIES, block, record
from hypothesis import given
from hypothesis import strategies as st

from rtproof.judge.analyse import analyse
from rtproof.record.contents import End, EndReason, Record, Series, View
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.summary.per_second import join_blocks

COUNT = 25_000
GAPS = {0: 2, 4095: 1, 4096: 5, 9_997: 7, 20_000: 1500, COUNT - 1: 3}


def written(path: Path, pieces: list[int], series: Series = cases.ON_GRID, *, summary: bool = True) -> Record:
    values = cases.latencies(3, COUNT)
    with RecordWriter(path) as writer:
        writer.begin(cases.BEGIN)
        writer.series(series)
        feed = SeriesWriter(writer, series, summary=summary)
        for start, stop in zip([0, *pieces], [*pieces, COUNT], strict=True):
            inside = {at - start: missed for at, missed in GAPS.items() if start <= at < stop}
            feed.add(values[start:stop], list(inside), list(inside.values()))
        totals = feed.finish()
        writer.end(End((COUNT + totals.missed) * MS, EndReason.AS_ASKED, "", (totals,)))
    assert (totals.obtained, totals.missed) == (COUNT, sum(GAPS.values()))
    return open_record(path)


def test_however_it_is_cut(tmp_path: Path) -> None:
    written(tmp_path / "whole.rtrec", [])
    written(tmp_path / "pieces.rtrec", [1, 1, 4096, 9_998, 20_001])
    assert (tmp_path / "pieces.rtrec").read_bytes() == (tmp_path / "whole.rtrec").read_bytes()


def test_blocks_of_4096_and_checkpoints_of_10_s(tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", [])
    assert [ref.count for ref in record.chunk_refs][:3] == [4096, 4096, 10_000 - 8 - 2 * 4096]
    observed = [part for part in record.slices if part.view is View.OBSERVED]
    assert [part.first_due_ns // 10**10 for part in observed] == [0, 1, 2]
    assert record.damage == ()


@pytest.mark.parametrize("series", [cases.ON_GRID, cases.OFF_GRID], ids=["on the grid", "off the grid"])
def test_parts_add_up_to_the_whole(series: Series, tmp_path: Path) -> None:
    recompute.check(written(tmp_path / "a.rtrec", [7_000], series))


LONG = replace(cases.ON_GRID, has_samples=True)
LIMITS = (20_000, 3_600_000_000_000, 5_000)


def write_long(path: Path, pieces: list[int], count: int = 90_000, limits: tuple[int, ...] = LIMITS) -> Record:
    """A minute and a half with many above the lowest limit, and one stall."""
    values = np.random.default_rng(8).gamma(3.0, 900.0, count).astype(np.int64)
    values[70_000] = 4_321_000_000
    with RecordWriter(path) as writer:
        writer.begin(replace(cases.BEGIN, minor=2))
        writer.series(LONG)
        feed = SeriesWriter(writer, LONG, limits_ns=limits)
        for start, stop in zip([0, *pieces], [*pieces, count], strict=True):
            inside = start <= 70_000 < stop
            feed.add(values[start:stop], [70_000 - start] if inside else (), [4321] if inside else ())
        totals = feed.finish()
        writer.end(End(count * cases.MS, EndReason.AS_ASKED, "", (totals,)))
    return open_record(path)


def test_levels_are_those_of_the_samples(tmp_path: Path) -> None:
    record = write_long(tmp_path / "a.rtrec", [])
    levels = record.levels[0]
    assert [(level.number, level.learned, level.share) for level in levels] == [(at, False, 0) for at in range(3)]
    assert all(level.ran.sum() > 0 and level.missed.sum() > 0 for level in (*levels[:1], *levels[2:]))
    assert levels[1].second.size == 0
    recompute.check(record)


def test_a_list_ends_and_a_count_does_not(tmp_path: Path) -> None:
    record = write_long(tmp_path / "a.rtrec", [40_000], limits=(1, 5_000))
    many, few = record.levels[0][:2]
    assert (many.index.size, many.list_ended, many.ran.sum()) == (65_536, True, 90_000)
    assert few.index.size == few.ran.sum()
    assert not few.list_ended
    assert record.exceeded(0, 1) == many
    assert record.exceeded(0, many.value + 1) is None
    recompute.check(record)


def test_slices_grow_with_the_run_up_to_ten_minutes(tmp_path: Path) -> None:
    second = 1_000_000_000
    series = replace(cases.ON_GRID, period_ns=second, first_due_ns=0, has_samples=False)
    path = tmp_path / "a.rtrec"
    with RecordWriter(path) as writer:
        writer.begin(cases.BEGIN)
        writer.series(series)
        feed = SeriesWriter(writer, series)
        feed.add(np.arange(30_000))
        feed.finish()
    slices = open_record(path).slices
    starts = [part.first_due_ns // second for part in slices]
    lengths = [part.count for part in slices]
    assert starts[:33] == list(range(0, 330, 10))
    assert all(length % 10 == 0 for length in lengths)
    assert all(
        start / 32 <= length < start / 32 + 10
        for start, length in zip(starts[33:], lengths[33:-1], strict=False)
        if start < 19_000
    )
    assert set(lengths[-8:-1]) == {600}
    assert sum(lengths) == 30_000


LOOSE = replace(SERIES, on_grid=False)
OUTSIDE = replace(LOOSE, external=True)


def test_a_due_time_follows_from_the_wake_up_before() -> None:
    one = replace(block([5, 7, 9], series=LOOSE), first_due_ns=100)
    assert join_blocks(LOOSE, [one])[0].due_ns.tolist() == [100, 100 + MS + 5, 100 + 2 * MS + 12]


def test_from_outside_it_follows_from_the_due_time_before_and_what_was_missed() -> None:
    one = replace(block([5, 7, 9], {0: 2, 2: 4}, series=OUTSIDE), first_due_ns=100)
    assert join_blocks(OUTSIDE, [one])[0].due_ns.tolist() == [100, 100 + 3 * MS, 100 + 4 * MS]


@given(st.lists(st.lists(st.integers(-50, 90_000), min_size=1, max_size=4), min_size=1, max_size=9), st.data())
def test_what_a_block_tells_holds_until_the_next_one(parts: list[list[int]], data: st.DataObject) -> None:
    told = [data.draw(st.integers(0, SECOND)) for _ in parts]
    expected = []
    for values, due in zip(parts, told, strict=True):
        expected += [due + at * MS + sum(values[:at]) for at in range(len(values))]
    blocks = [replace(block(values, series=LOOSE), first_due_ns=due) for values, due in zip(parts, told, strict=True)]
    joined, starts = join_blocks(LOOSE, blocks)
    assert joined.due_ns.tolist() == expected
    assert starts.tolist() == [sum(map(len, parts[:at])) for at in range(len(parts))]


def test_a_record_of_events_from_outside_keeps_their_due_times() -> None:
    """One event every 700 ms where 1 ms was announced: none of them may end up near the first."""
    blocks = [
        replace(block([1_000 + at], first_index=at, series=OUTSIDE), first_due_ns=at * 700 * MS) for at in range(20)
    ]
    pooled = analyse(record(blocks, [OUTSIDE])).pooled
    assert pooled.span_ns == 19 * 700 * MS + MS
    assert pooled.seconds.second.tolist() == [at * 700 // 1000 for at in range(20) if at % 10 not in (1, 4, 7)]
    assert int(pooled.top.due_ns[0]) == 19 * 700 * MS
    assert int(pooled.seconds.obtained.sum()) == 20
