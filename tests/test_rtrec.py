# SPDX-License-Identifier: Apache-2.0
"""Opening records: what was written comes back; what is no record gets one sentence."""

import os
import pickle
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import record_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.core.errors import RecordError
from rtproof.record import encoding
from rtproof.record.chunks import ChunkType
from rtproof.record.contents import Block, Damage, EndReason, Int64Array, Moment, Seconds, Series, SeriesTotals, Top
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter

INT64 = st.integers(-(2**63), 2**63 - 1)
GAPS = st.dictionaries(st.integers(0, 39), st.integers(1, 2**20), max_size=5)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[int, cases.Truth]]:
    path = tmp_path_factory.mktemp("record") / "small.rtrec"
    return path, cases.write_small(path)


def test_everything_comes_back(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    path, truth = small
    record = open_record(path)
    assert (record.path, record.size, record.damage) == (str(path), path.stat().st_size, ())
    assert record.begin == cases.BEGIN
    assert record.facts == cases.FACTS
    assert record.files == cases.FILES
    assert record.events == cases.EVENTS
    assert record.series == (cases.ON_GRID, cases.OFF_GRID)
    for series in record.series:
        assert cases.sample_rows(record, series) == cases.true_rows(truth[series.id])


def test_end_and_counters(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    record = open_record(small[0])
    assert record.end is not None
    assert record.end.reason is EndReason.AS_ASKED
    assert record.end.totals == (SeriesTotals(0, 120, 6, 0), SeriesTotals(1, 120, 0, 0))
    readings = {counter.name: (counter.time_ns.tolist(), counter.value.tolist()) for counter in record.counters}
    times = [60 * cases.MS, 120 * cases.MS]
    assert readings == {"load.sched": (times, [60, 120]), "temperature.0": (times, [-60, -120])}


def test_a_later_fact_replaces_an_earlier_one(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    record = open_record(small[0])
    assert record.fact("policy", Moment.START, thread=1) == "other"
    assert record.fact("policy", Moment.END, thread=1) is None


def test_chunk_refs_know_their_samples(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    record = open_record(small[0])
    blocks = list(record.read_blocks(record.chunk_refs))
    told = [(ref.series, ref.first_index, ref.count) for ref in record.chunk_refs]
    assert told == [(block.series, block.first_index, block.values.size) for block in blocks]


def test_largest_values(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    path, truth = small
    for number, top in open_record(path).top.items():
        rows = sorted(cases.true_rows(truth[number]), key=lambda row: (-row[2], row[0]))[: top.k]
        assert list(zip(top.index.tolist(), top.due_ns.tolist(), top.value.tolist(), strict=True)) == rows


@st.composite
def blocks(draw: st.DrawFn) -> list[Block]:
    made, index = [], 0
    for values in draw(st.lists(st.lists(INT64, min_size=1, max_size=40), max_size=6)):
        gaps = {at: missed for at, missed in draw(GAPS).items() if at < len(values)}
        index += draw(st.integers(0, 1000))
        position, missed = (
            np.array(column, dtype=np.int64) for column in (sorted(gaps), [gaps[k] for k in sorted(gaps)])
        )
        due_ns = cases.ON_GRID.first_due_ns + index * cases.ON_GRID.period_ns
        made.append(Block(0, index, due_ns, np.array(values, dtype=np.int64), position, missed))
        index += len(values) + sum(gaps.values())
    return made


@given(blocks())
@settings(max_examples=60)
def test_any_blocks_come_back(written: list[Block]) -> None:
    path = Path("any.rtrec")
    path.unlink(missing_ok=True)
    with RecordWriter(path) as writer:
        writer.begin(cases.BEGIN)
        writer.series(cases.ON_GRID)
        for block in written:
            writer.samples(block)
    record = open_record(path)
    read = [
        (b.first_index, b.first_due_ns, b.values.tolist(), b.gap_position.tolist(), b.gap_missed.tolist())
        for b in record.blocks(0)
    ]
    assert read == [
        (b.first_index, b.first_due_ns, b.values.tolist(), b.gap_position.tolist(), b.gap_missed.tolist())
        for b in written
    ]
    assert [damage.length for damage in record.damage] == [0]


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("rtrec"))


def refusal(path: Path) -> str:
    with pytest.raises(RecordError) as caught:
        open_record(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(path) in sentence
    return sentence


def test_no_file() -> None:
    assert "No such file" in refusal(Path("missing.rtrec"))


def test_no_regular_file() -> None:
    Path("folder").mkdir()
    assert "directory" in refusal(Path("folder"))
    os.mkfifo("pipe")
    assert "is not a file" in refusal(Path("pipe"))


def test_empty_file() -> None:
    Path("empty.rtrec").touch()
    assert "is empty" in refusal(Path("empty.rtrec"))


@pytest.mark.parametrize(
    "content",
    [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(5000), b"x", b"RTP\x1a", b"RTP\x1a" * 3000, bytes(100_000)],
    ids=["PNG", "one byte", "magic alone", "magic only", "zeros"],
)
def test_foreign_file(content: bytes) -> None:
    path = Path("foreign.rtrec")
    path.write_bytes(content)
    assert "no valid BEGIN" in refusal(path)


def test_record_without_its_beginning(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    path = Path("headless.rtrec")
    path.write_bytes(b"".join(list(cases.chunks(small[0]))[1:]))
    assert "no valid BEGIN" in refusal(path)


def write_begin(path: Path, payload: bytes) -> None:
    with RecordWriter(path) as writer:
        writer.chunk(ChunkType.BEGIN, payload)


def test_newer_major_names_both_versions() -> None:
    path = Path("newer.rtrec")
    write_begin(path, struct.pack("<HH16sqq", 2, 7, b"", 0, 0) + b"whatever comes then")
    assert "format 2.7" in refusal(path)
    assert "up to 1.3" in refusal(path)


def test_newer_minor_is_read() -> None:
    path = Path("minor.rtrec")
    with RecordWriter(path) as writer:
        writer.begin(replace(cases.BEGIN, minor=9))
    assert open_record(path).begin.minor == 9


def series_of(minor: int, *written: Series) -> tuple[Series, ...]:
    path = Path(f"minor{minor}.rtrec")
    with RecordWriter(path) as writer:
        writer.begin(replace(cases.BEGIN, minor=minor))
        for number, series in enumerate(written):
            writer.series(replace(series, id=number))
    return open_record(path).series


def test_flags_of_a_series_are_read_as_they_were_written() -> None:
    written = (
        replace(cases.OFF_GRID, external=True),
        replace(cases.ON_GRID, loop=True),
        replace(cases.OFF_GRID, probe="gpio"),
        replace(cases.ON_GRID, method="loop"),
    )
    assert series_of(1, *written) == tuple(replace(one, id=number) for number, one in enumerate(written))


def test_in_a_record_of_1_0_the_names_stand_for_the_flags() -> None:
    written = (
        replace(cases.OFF_GRID, probe="gpio"),
        replace(cases.OFF_GRID, probe="timerlat"),
        replace(cases.OFF_GRID, probe="kernel", method="timerlat"),
        replace(cases.ON_GRID, probe="gpio"),
        cases.OFF_GRID,
        replace(cases.ON_GRID, probe="kernel", method="loop"),
    )
    read = series_of(0, *written)
    assert [one.external for one in read] == [True, True, True, False, False, False]
    assert [one.chained for one in read] == [True, True, True, False, False, False]
    assert [one.loop for one in read] == [False] * 5 + [True]
    assert [one.by_period for one in read] == [False, False, False, True, False, True]


def test_major_zero_never_was() -> None:
    path = Path("zero.rtrec")
    write_begin(path, struct.pack("<HH16sqq", 0, 7, b"", 0, 0) + bytes(8))
    assert "no valid BEGIN" in refusal(path)


class Sketch:
    """A record of a few chunks; ``damage`` opens it without an END, so that one entry tells that it was cut off."""

    def __init__(self, *series: Series) -> None:
        self.path = Path("sketch.rtrec")
        self.writer = RecordWriter(self.path)
        self.writer.begin(cases.BEGIN)
        for one in series:
            self.writer.series(one)

    def damage(self) -> list[Damage]:
        self.writer.close()
        *others, cut_off = open_record(self.path).damage
        assert "there is no END" in cut_off.sentence
        return others


def block_at(index: int, values: Int64Array, due_ns: int | None = None) -> Block:
    grid_ns = cases.ON_GRID.first_due_ns + index * cases.ON_GRID.period_ns
    return Block(0, index, grid_ns if due_ns is None else due_ns, values, cases.NONE, cases.NONE)


@pytest.mark.parametrize(
    "second",
    [block_at(9, np.arange(3)), block_at(0, np.arange(10)), block_at(10, np.arange(3), due_ns=5)],
    ids=["overlaps", "again", "off the grid"],
)
def test_samples_that_contradict_others_are_not_used(second: Block) -> None:
    sketch = Sketch(cases.ON_GRID)
    sketch.writer.samples(block_at(0, np.arange(10)))
    sketch.writer.samples(second)
    (damage,) = sketch.damage()
    assert "contradict" in damage.sentence
    assert [block.values.size for block in open_record(sketch.path).blocks(0)] == [10]


def test_samples_beyond_all_times_are_not_used() -> None:
    sketch = Sketch(cases.ON_GRID)
    last = (2**63 - 1 - cases.ON_GRID.first_due_ns) // cases.ON_GRID.period_ns
    sketch.writer.samples(block_at(last, np.arange(10)))
    assert len(sketch.damage()) == 1


def test_what_belongs_to_no_series_is_told_once() -> None:
    sketch = Sketch()
    sketch.writer.samples(block_at(0, np.arange(10)))
    sketch.writer.samples(block_at(10, np.arange(10)))
    sketch.writer.seconds(0, Seconds(*(np.ones(1, dtype=np.int64) for _ in range(4))))
    sketch.writer.top(0, Top(1, *(np.ones(1, dtype=np.int64) for _ in range(3))))
    (damage,) = sketch.damage()
    assert "series 0 is nowhere described" in damage.sentence
    record = open_record(sketch.path)
    assert (record.chunk_refs, record.seconds, record.top) == ((), {}, {})


def test_a_series_described_twice_keeps_its_first_meaning() -> None:
    sketch = Sketch(cases.ON_GRID, cases.ON_GRID, replace(cases.ON_GRID, period_ns=7))
    (damage,) = sketch.damage()
    assert "described twice" in damage.sentence
    assert open_record(sketch.path).series == (cases.ON_GRID,)


def test_an_impossible_payload_is_damage() -> None:
    sketch = Sketch(cases.ON_GRID)
    sketch.writer.chunk(ChunkType.SAMPLES, struct.pack("<HHQq", 0, 0, 0, 0), encoding.ARRAY_HEAD.pack(9, 0, 70, 4, 0))
    sketch.writer.chunk(ChunkType.EVENT, b"\0")
    first, second = sketch.damage()
    assert first.sentence.startswith(f"the SAMPLES chunk at offset {first.offset} was not used: ")
    assert second.sentence.startswith(f"the EVENT chunk at offset {second.offset} was not used: ")


def test_a_growing_record_is_one_that_was_cut_off(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    path = Path("growing.rtrec")
    pieces = list(cases.chunks(small[0]))
    path.write_bytes(b"".join(pieces[:9]) + pieces[9][:30])
    record = open_record(path)
    assert record.end is None
    assert [damage.offset for damage in record.damage] == [path.stat().st_size - 30, path.stat().st_size]
    with path.open("ab") as file:
        file.write(b"".join(pieces[9:])[30:])
    assert open_record(path).damage == ()


def test_a_record_goes_to_other_processes(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    path, truth = small
    record = pickle.loads(pickle.dumps(open_record(path)))
    assert cases.sample_rows(record, cases.OFF_GRID) == cases.true_rows(truth[1])
    assert sum(int(part.bin_counts.sum()) for part in record.slices) == 240 + 6
