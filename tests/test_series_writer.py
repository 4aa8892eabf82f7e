# SPDX-License-Identifier: Apache-2.0
"""A series written from arrays reads back with sums that are those of the arrays, however it was cut into pieces."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import record_cases as cases

from rtproof.record import Record, Series, View, slicing
from rtproof.record.rtrec import open_record
from rtproof.record.series_writer import SeriesWriter, write_series_samples
from rtproof.record.top_writer import TOP_K
from rtproof.record.writer import RecordWriter

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
    assert [damage.length for damage in record.damage] == [0]


@pytest.mark.parametrize("series", [cases.ON_GRID, cases.OFF_GRID], ids=["on the grid", "off the grid"])
def test_parts_add_up_to_the_whole(series: Series, tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", [7_000], series)
    values = cases.latencies(3, COUNT)
    missed = np.zeros_like(values)
    missed[list(GAPS)] = list(GAPS.values())
    everything = slicing.activations(series, 0, series.first_due_ns, values, missed)
    for whole in slicing.slices(series, everything):
        parts = [part for part in record.slices if part.view is whole.view]
        for name in ("count", "sum", "sum_squares"):
            assert sum(getattr(part, name) for part in parts) == getattr(whole, name)
        histogram = np.repeat(np.concatenate([p.bins for p in parts]), np.concatenate([p.bin_counts for p in parts]))
        assert np.sort(histogram).tolist() == np.repeat(whole.bins, whole.bin_counts).tolist()
    seconds, found = slicing.seconds(series, everything), record.seconds[series.id]
    for name in ("second", "obtained", "missed", "max"):
        assert getattr(found, name).tolist() == getattr(seconds, name).tolist()
    order = np.lexsort((everything.index, -values))[:TOP_K]
    assert record.top[series.id].index.tolist() == everything.index[order].tolist()


def test_without_summary_there_are_only_samples(tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", [], summary=False)
    assert (record.slices, record.seconds, record.top) == ((), {}, {})
    assert sum(ref.count for ref in record.chunk_refs) == COUNT


def test_without_samples_there_is_only_the_summary(tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", [], replace(cases.ON_GRID, has_samples=False))
    assert record.chunk_refs == ()
    assert sum(part.count for part in record.slices) == COUNT + sum(GAPS.values())


def test_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.rtrec"
    with RecordWriter(path) as writer:
        writer.begin(cases.BEGIN)
        writer.series(cases.ON_GRID)
        totals = write_series_samples(writer, cases.ON_GRID, np.array([5, 6, 7]), ([1], [2]))
    (block,) = open_record(path).blocks(0)
    assert (totals.obtained, totals.missed) == (3, 2)
    assert cases.block_rows(cases.ON_GRID, block) == [(0, 250_000, 5), (1, 1_250_000, 6), (4, 4_250_000, 7)]


def test_nothing_at_all(tmp_path: Path) -> None:
    path = tmp_path / "a.rtrec"
    with RecordWriter(path) as writer:
        writer.begin(cases.BEGIN)
        writer.series(cases.ON_GRID)
        totals = write_series_samples(writer, cases.ON_GRID, cases.NONE)
    assert (totals.obtained, open_record(path).chunk_refs) == (0, ())
