# SPDX-License-Identifier: Apache-2.0
"""Opening records: what was written comes back; what is no record gets one sentence."""

import os
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import record_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st
from record_cases import ON_GRID, latencies
from run_folders import write_record

from rtproof.core.errors import RecordError
from rtproof.experiment import stored_runs
from rtproof.record import encoding, histogram_bins
from rtproof.record.chunks import ChunkType
from rtproof.record.contents import Block, Damage, Int64Array, Moment, Seconds, Series, SeriesTotals, Slice, Top, View
from rtproof.record.encoding import MalformedError, leb128_encode
from rtproof.record.histogram_bins import histogram_arrays, histogram_bytes, unpack_histograms
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.record.writing import RecordWriter
from rtproof.summary.recorded_facts import requested_limits_ns

pytestmark = pytest.mark.usefixtures("_in_tmp")
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
    assert record.fact("policy", Moment.START, thread=1) == "other", "the later one counts"
    assert record.end is not None
    assert record.end.totals == (SeriesTotals(0, 120, 6, 0), SeriesTotals(1, 120, 0, 0))
    times = [60 * cases.MS, 120 * cases.MS]
    readings = {counter.name: (counter.time_ns.tolist(), counter.value.tolist()) for counter in record.counters}
    assert readings == {"load.sched": (times, [60, 120]), "temperature.0": (times, [-60, -120])}
    assert record.series == (cases.ON_GRID, cases.OFF_GRID)
    for series in record.series:
        assert cases.sample_rows(record, series) == cases.true_rows(truth[series.id])


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


def told(block: Block) -> tuple[int, int, list[int], list[int], list[int]]:
    columns = (block.values.tolist(), block.gap_position.tolist(), block.gap_missed.tolist())
    return block.first_index, block.first_due_ns, *columns


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
    assert [told(block) for block in record.blocks(0)] == [told(block) for block in written]
    assert [damage.length for damage in record.damage] == [0]


@pytest.fixture
def _in_tmp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("rtrec"))


def refusal(path: Path) -> str:
    with pytest.raises(RecordError) as caught:
        open_record(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert str(path) in sentence
    return sentence


def test_what_is_no_record_is_refused(small: tuple[Path, dict[int, cases.Truth]]) -> None:
    assert "No such file" in refusal(Path("missing.rtrec"))
    Path("folder").mkdir()
    assert "directory" in refusal(Path("folder"))
    os.mkfifo("pipe")
    assert "is not a file" in refusal(Path("pipe"))
    headless = b"".join(list(cases.chunks(small[0]))[1:])
    foreign = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(5000), b"x", b"RTP\x1a", b"RTP\x1a" * 3000, bytes(100_000))
    for content, sentence in ((b"", "is empty"), *((each, "no valid BEGIN") for each in (headless, *foreign))):
        Path("foreign.rtrec").write_bytes(content)
        assert sentence in refusal(Path("foreign.rtrec"))


def test_newer_major_names_both_versions() -> None:
    path = Path("newer.rtrec")
    with RecordWriter(path) as writer:
        writer.chunk(ChunkType.BEGIN, struct.pack("<HH16sqq", 2, 7, b"", 0, 0) + b"whatever comes then")
    assert "format 2.7" in refusal(path)
    assert "up to 1.7" in refusal(path)


def series_of(minor: int, *written: Series) -> tuple[Series, ...]:
    path = Path(f"minor{minor}.rtrec")
    with RecordWriter(path) as writer:
        writer.begin(replace(cases.BEGIN, minor=minor))
        for number, series in enumerate(written):
            writer.series(replace(series, id=number, thread=number))
    return open_record(path).series


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


def test_what_belongs_to_no_series_is_told_once() -> None:
    sketch = Sketch()
    sketch.writer.samples(block_at(0, np.arange(10)))
    sketch.writer.samples(block_at(10, np.arange(10)))
    sketch.writer.seconds(0, Seconds(*(np.ones(1, dtype=np.int64) for _ in range(4))))
    sketch.writer.top(0, Top(1, *(np.ones(1, dtype=np.int64) for _ in range(3))))
    (damage,) = sketch.damage()
    assert "series 0 is described nowhere" in damage.sentence
    record = open_record(sketch.path)
    assert (record.chunk_refs, record.seconds, record.top) == ((), {}, {})


def test_a_second_series_of_the_same_values_is_not_counted() -> None:
    again = replace(cases.ON_GRID, id=cases.ON_GRID.id + 5)
    sketch = Sketch(cases.ON_GRID, again)
    sketch.writer.samples(block_at(0, np.arange(10)))
    sketch.writer.samples(replace(block_at(0, np.arange(10)), series=again.id))
    assert "has the same thread and field as series 0" in sketch.damage()[0].sentence
    assert [ref.series for ref in open_record(sketch.path).chunk_refs] == [cases.ON_GRID.id]


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


# Histograms in their stored form, unpacked when they are asked for.


PLACES = st.integers(-1 - histogram_bins.LAST_BIN, histogram_bins.LAST_BIN)
COUNTS = st.integers(1, 2**40)


def stored_slice(stored: bytes, count: int) -> Slice:
    numbers = dict.fromkeys(("lost", "min", "max", "sum", "sum_squares", "pairs", "sum_products", "catch_up_pairs"), 0)
    return Slice(series=3, view=View.OBSERVED, first_due_ns=0, last_due_ns=1, count=count, stored=stored, **numbers)


def numbers(*values: int) -> bytes:
    return leb128_encode(np.array(values, dtype=np.uint64))


@given(st.dictionaries(PLACES, COUNTS))
def test_round_trip(histogram: dict[int, int]) -> None:
    places = np.array(sorted(histogram), dtype=np.int64)
    counts = np.array([histogram[place] for place in sorted(histogram)], dtype=np.int64)
    part = stored_slice(histogram_bytes(places, counts), sum(histogram.values()))
    assert part.bins.tolist() == places.tolist()
    assert part.bin_counts.tolist() == counts.tolist()


@given(st.integers(-(2**40), 2**40))
def test_zigzag(number: int) -> None:
    assert encoding.unzigzags(encoding.zigzags(np.array([number])).view(np.uint64)).tolist() == [number]


def zigzag(number: int) -> int:
    return int(encoding.zigzags(np.array([number]))[0])


@pytest.mark.parametrize(
    "stored",
    [
        numbers(0, 1, 0, 2),
        numbers(0, 0, 1, 3),
        numbers(0, 4),
        numbers(zigzag(histogram_bins.LAST_BIN), 1, 1, 2),
        numbers(zigzag(-2 - histogram_bins.LAST_BIN), 3),
        numbers(0, 2**63, 1, 2**63 + 3),
        numbers(0, 1, 2**63, 2),
        numbers(0, 3, 1),
    ],
    ids=["same bin twice", "empty bin", "wrong total", "above", "below", "huge counts", "huge step", "no count"],
)
def test_impossible_histograms(stored: bytes) -> None:
    with pytest.raises(MalformedError):
        histogram_arrays(stored, 3)
    with pytest.raises(RecordError, match="summary of series 3 is wrong"):
        _ = stored_slice(stored, 3).bins


HISTOGRAM = st.dictionaries(PLACES, st.one_of(st.integers(1, 200), COUNTS), max_size=8)


@given(st.lists(HISTOGRAM, max_size=6))
def test_many_are_unpacked_at_once_like_each_alone(many: list[dict[int, int]]) -> None:
    ordered = [sorted(each.items()) for each in many]
    columns = [np.array(each, dtype=np.int64).reshape(-1, 2).T for each in ordered]
    parts = [stored_slice(histogram_bytes(*column), int(column[1].sum())) for column in columns]
    sizes, places, counts = unpack_histograms([(part.stored, part.count) for part in parts])
    assert sizes.tolist() == [len(each) for each in many]
    assert list(zip(places.tolist(), counts.tolist(), strict=True)) == [pair for each in ordered for pair in each]


# A record alone, whose agent was given limits by hand: those were fixed before the run, and are judged.


HOUR_NS = 3_600 * 10**9


def written(path: Path, limits: str) -> Path:
    return write_record(path, latencies(1, 3_000), {"limits_ns": limits}, ON_GRID)


def test_its_limits_are_never_to_be_exceeded(tmp_path: Path) -> None:
    found = stored_runs.read_run(written(tmp_path / "a.rtrec", "500000,1000000")).analysis
    asked = [verdict.requirement for verdict in found.verdicts]
    assert asked == [Requirement(limit) for limit in (500_000, 1_000_000)]
    assert [verdict.chosen_after for verdict in found.verdicts] == [False, False]


def test_a_time_that_is_given_later_was_chosen_after_the_data(tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", "500000")
    later = (Requirement(500_000), Requirement(500_000, HOUR_NS // 60))
    assert [v.chosen_after for v in stored_runs.read_run(record, later).analysis.verdicts] == [False, True]


@pytest.mark.parametrize("limits", ["", "x", "-5", "0", "9" * 30, "1e9", ","])
def test_what_is_no_limit_is_none(tmp_path: Path, limits: str) -> None:
    record = written(tmp_path / "a.rtrec", limits)
    assert requested_limits_ns(open_record(record)) == ()
    found = stored_runs.read_run(record).analysis
    assert [verdict.requirement for verdict in found.verdicts] == [None]
    assert "limit-of-record" not in [doubt.code for doubt in found.doubts]
