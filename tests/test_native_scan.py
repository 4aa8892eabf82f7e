# SPDX-License-Identifier: Apache-2.0
"""The compiled scanner opens records as the Python code does, and counts them as numpy does: records of every kind."""

import pickle
import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_records import BEGIN, MS, SERIES
from hypothesis import given, settings
from hypothesis import strategies as st
from test_record_damaged import flip_bits, insert_garbage, remove_a_piece, repeat_a_piece, zero_a_hole

from rtproof.core.errors import RecordError
from rtproof.record import compiled_scanner, reading
from rtproof.record.chunks import CHECKED_BYTES, CHUNK_HEADER, ChunkType, checksum, padded
from rtproof.record.compiled_scanner import Scanner
from rtproof.record.contents import Block, End, EndReason, Int64Array, Record, Series
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.summary import native_scan, series
from rtproof.summary.series import summarise

GRID = SERIES
FREE = replace(SERIES, on_grid=False)
EXTERNAL = replace(SERIES, on_grid=False, external=True)
GOLDEN = sorted((Path(__file__).parent / "data" / "golden").glob("*.rtrec"))


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    found = compiled_scanner.scanner()
    if found is None:
        pytest.skip("nothing here can compile the scanner")
    return found


@pytest.fixture(autouse=True)
def in_several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that pairs, seconds and largest values cross the borders of tasks and of calls."""
    monkeypatch.setattr(series, "TASK", 3_000)
    monkeypatch.setattr(native_scan, "MOST_SAMPLES", 1_000)


def assert_same(a: Any, b: Any, place: str = "") -> None:
    if isinstance(a, np.ndarray):
        assert np.array_equal(a, b), place
    elif names := getattr(a, "__struct_fields__", getattr(a, "__dataclass_fields__", ())):
        for name in names:
            assert_same(getattr(a, name), getattr(b, name), f"{place}.{name}")
    elif isinstance(a, tuple | list):
        assert len(a) == len(b), place
        for at, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{place}[{at}]")
    else:
        assert a == b, place


def assert_counted_alike(record: Record, scanner: Scanner) -> None:
    for workers in (1, 2):
        assert_same(summarise(record, workers, None), summarise(record, workers, scanner))


def values_of(random: np.random.Generator, n: int, period_ns: int) -> Int64Array:
    """Latencies of one of several shapes: usual ones, few values, early ones, values off the scale, huge ones."""
    kind = random.integers(0, 6)
    shapes: list[Int64Array] = [
        (random.lognormal(9, 1, n) + 2000).astype(np.int64),
        random.integers(0, 3, n),
        random.integers(-period_ns // 3, 2 * period_ns, n),
        random.integers(0, 1 << 23, n),
        np.clip(random.lognormal(14, 4, n), 0, 1e10).astype(np.int64),
        np.full(n, random.integers(0, 1 << 22)),
    ]
    values = shapes[kind]
    late = random.integers(0, n, n // 200 + 1)
    values[late] += random.integers(0, 30) * period_ns
    return values


def blocks_of(random: np.random.Generator, one: Series, values: Int64Array) -> Iterator[Block]:
    """Blocks of one to many samples, with gaps as late as the sample before says, and with holes."""
    at, index, due_ns = 0, int(random.integers(0, 5)), one.first_due_ns
    while at < values.size:
        some = values[at : at + int(random.choice([1, 2, 5, 700, 4096]))]
        behind = np.flatnonzero(some >= one.period_ns)
        missed = some[behind] // one.period_ns
        if one.on_grid:
            due_ns = one.first_due_ns + index * one.period_ns
        yield Block(one.id, index, due_ns, some, behind, missed)
        at, index = at + some.size, index + some.size + int(missed.sum())
        if one.by_period:
            due_ns += (some.size + int(missed.sum())) * one.period_ns + int(random.integers(0, one.period_ns // 16 + 1))
        else:
            due_ns += int((some + one.period_ns).sum())
        index += int(random.integers(1, 50)) if random.random() < 0.1 else 0


def record_of(path: Path, seed: int, one: Series, *, whole: bool) -> Record:
    """A record as an agent writes it, or of blocks without anything else."""
    random = np.random.default_rng(seed)
    one = replace(one, period_ns=int(random.choice([100_000, MS, 333_333, 70 * MS])))
    values = values_of(random, int(random.choice([1, 2, 3, 100, 4_096, 7_000])), one.period_ns)
    values = np.maximum(values, -one.period_ns + 1)
    with RecordWriter(str(path)) as writer:
        writer.begin(BEGIN)
        writer.series(one)
        if whole:
            feed = SeriesWriter(writer, one, checkpoint_ns=1000 * MS)
            behind = np.flatnonzero(values >= one.period_ns)
            feed.add(values, behind, values[behind] // one.period_ns)
            writer.end(End(40_000 * MS, EndReason.AS_ASKED, "", (feed.finish(),)))
        else:
            for block in blocks_of(random, one, values):
                writer.samples(block)
    return open_record(path)


@pytest.mark.parametrize("one", [GRID, FREE, EXTERNAL], ids=["grid", "free", "external"])
@settings(max_examples=15)
@given(seed=st.integers(0, 2**32), whole=st.booleans())
def test_every_number_is_that_of_numpy(
    scanner: Scanner, tmp_path_factory: pytest.TempPathFactory, one: Series, seed: int, whole: bool
) -> None:
    path = tmp_path_factory.mktemp("made") / "run.rtrec"
    assert_counted_alike(record_of(path, seed, one, whole=whole), scanner)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_records_of_every_version_are_counted_alike(scanner: Scanner, path: Path) -> None:
    assert_counted_alike(open_record(path), scanner)


def scan_codes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the scanner returns from now on, task by task."""
    codes: list[int] = []
    before = native_scan.scan_task

    def watched(*arguments: Any) -> int:
        codes.append(before(*arguments))
        return codes[-1]

    monkeypatch.setattr(series, "scan_task", watched)
    return codes


def test_the_scanner_does_count_such_records(scanner: Scanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = scan_codes(monkeypatch)
    summarise(record_of(tmp_path / "a", 4, GRID, whole=True), 1, scanner)
    assert codes
    assert set(codes) == {native_scan.DONE}


def write_blocks(path: Path, one: Series, *blocks: Block) -> Record:
    with RecordWriter(str(path)) as writer:
        writer.begin(BEGIN)
        writer.series(one)
        for block in blocks:
            writer.samples(block)
    return open_record(path)


def block(index: int, due_ns: int, values: list[int], gaps: tuple[tuple[int, int], ...] = ()) -> Block:
    position, missed = np.array(gaps, np.int64).reshape(-1, 2).T
    return Block(0, index, due_ns, np.array(values, np.int64), position, missed)


def test_due_times_that_go_back_are_left_to_numpy(
    scanner: Scanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = scan_codes(monkeypatch)
    record = write_blocks(tmp_path / "a", EXTERNAL, block(0, 5 * MS, [1, 2]), block(2, 1 * MS, [3, 4]))
    assert_counted_alike(record, scanner)
    assert native_scan.UNSORTED in codes


def test_an_impossible_stall_is_refused_in_the_same_words(scanner: Scanner, tmp_path: Path) -> None:
    record = write_blocks(tmp_path / "a", GRID, block(0, GRID.first_due_ns, [1, 2], ((0, 500 * 86_400_000),)))
    with pytest.raises(RecordError, match="claims a stall of 500 days"):
        summarise(record, 1, scanner)


def test_a_file_that_changed_meanwhile_is_an_error(scanner: Scanner, tmp_path: Path) -> None:
    record = record_of(tmp_path / "a", 4, GRID, whole=True)
    changed = bytearray((tmp_path / "a").read_bytes())
    changed[record.chunk_refs[0].offset + 60] ^= 1
    (tmp_path / "a").write_bytes(changed)
    with pytest.raises(RecordError, match="has changed since it was opened"):
        summarise(record, 1, scanner)
    (tmp_path / "a").write_bytes(changed[: record.chunk_refs[-1].offset])
    with pytest.raises(RecordError, match="has changed since it was opened"):
        summarise(record, 1, scanner)


def walked(path: Path, monkeypatch: pytest.MonkeyPatch, library: Scanner | None) -> bytes:
    """All that opening the record gives, or why it is refused."""
    monkeypatch.setattr(reading, "WORTH_BYTES", 0)
    monkeypatch.setattr(compiled_scanner, "scanner", lambda: library)
    try:
        return pickle.dumps(open_record(path))
    except RecordError as problem:
        return str(problem).encode()


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, left out, inserted or repeated."""
    return chance.choice((flip_bits, zero_a_hole, insert_garbage, remove_a_piece, repeat_a_piece))(chance, [content])


def with_right_checksums(content: bytes, chance: random.Random) -> bytes:
    """A few bytes of payloads changed behind right checksums, so that only a look into the payload finds them."""
    data, at, places = bytearray(content), 0, []
    while at < len(data):
        (length,) = struct.unpack_from("<I", data, at + 4)
        places.append((at, length))
        at += CHUNK_HEADER.size + padded(length)
    samples = [place for place in places if struct.unpack_from("<H", data, place[0] + 8) == (ChunkType.SAMPLES,)]
    for at, length in chance.sample(samples or places, min(3, len(samples or places))):
        begin = at + CHUNK_HEADER.size
        # Mostly the heads, where every byte has a meaning.
        data[begin + chance.randrange(min(length, chance.choice((20, 36, length))))] = chance.choice(
            (0, 1, 4, 8, 64, 255)
        )
        check = checksum(bytes(data[at : at + CHECKED_BYTES]), bytes(data[begin : begin + length]))
        struct.pack_into("<I", data, at + CHECKED_BYTES, check)
    return bytes(data)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.name)
def test_a_record_is_opened_alike_however_it_is_damaged(
    scanner: Scanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    chance, copy = random.Random(path.name), tmp_path / "copy"
    for spoil in (lambda content, _: content, *[damaged, with_right_checksums] * 5):
        copy.write_bytes(spoil(path.read_bytes(), chance))
        assert walked(copy, monkeypatch, scanner) == walked(copy, monkeypatch, None)


@pytest.mark.parametrize("one", [GRID, EXTERNAL], ids=["grid", "external"])
def test_a_record_longer_than_the_window_is_opened_alike(
    scanner: Scanner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: Series
) -> None:
    path, chance = tmp_path / "a", random.Random(7)
    whole = record_of(path, 4, one, whole=True)
    content = path.read_bytes()
    assert walked(path, monkeypatch, scanner) == walked(path, monkeypatch, None)
    assert whole.chunk_refs
    for spoil in (damaged, with_right_checksums) * 3:
        path.write_bytes(spoil(content, chance))
        assert walked(path, monkeypatch, scanner) == walked(path, monkeypatch, None)
