# SPDX-License-Identifier: Apache-2.0
"""Torn and corrupted records: nothing but RecordError, and never a sample that was not measured."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import record_cases as cases
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.core.errors import RecordError
from rtproof.record.chunks import CHUNK_HEADER, frame_bytes
from rtproof.record.contents import Record
from rtproof.record.reading import open_record

SEEDS = 60
SERIES = (cases.ON_GRID, cases.OFF_GRID)
Corruption = Callable[[random.Random, list[bytes]], bytes]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], dict[int, cases.Truth]]:
    path = tmp_path_factory.mktemp("broken") / "whole.rtrec"
    truth = cases.write_small(path)
    return list(cases.chunks(path)), truth


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken") / "broken.rtrec"


def check_samples(record: Record, truth: dict[int, cases.Truth]) -> int:
    """Every sample is the true one of its activation, none comes twice; returns how many there are."""
    count = 0
    for series in SERIES:
        rows = cases.sample_rows(record, series)
        assert [row[0] for row in rows] == sorted({row[0] for row in rows})
        assert set(rows) <= set(cases.true_rows(truth[series.id]))
        count += len(rows)
    return count


def check_rest(record: Record, truth: dict[int, cases.Truth]) -> None:
    """Nothing else says more than was written, and all of it can be looked at."""
    for damage in record.damage:
        assert damage.sentence
        assert "\n" not in damage.sentence
        assert 0 <= damage.offset <= damage.offset + damage.length <= record.size
    for number, top in record.top.items():
        rows = zip(top.index.tolist(), top.due_ns.tolist(), top.value.tolist(), strict=True)
        assert set(rows) <= set(cases.true_rows(truth[number]))
    for number, seconds in record.seconds.items():
        assert seconds.obtained.sum() <= truth[number].value.size
    for part in record.slices:
        assert int(part.bin_counts.sum()) == part.count <= truth[part.series].value.size
    for number, levels in record.levels.items():
        assert {level.value for level in levels} <= set(cases.LIMITS)
        for level in levels:
            rows = zip(level.index.tolist(), level.due_ns.tolist(), level.above.tolist(), strict=True)
            assert set(rows) <= {row for row in cases.true_rows(truth[number]) if row[2] > level.value}
            assert level.ran.sum() <= np.count_nonzero(truth[number].value > level.value)
    assert set(record.facts) <= set(cases.FACTS)
    assert set(record.files) <= set(cases.FILES)


def test_every_truncation(broken: Path) -> None:
    short = broken.with_name("short.rtrec")
    truth = cases.write_small(short, count=60)
    chunks = list(cases.chunks(short))
    content = b"".join(chunks)
    shortest = len(chunks[0])
    before = 0
    for length in range(len(content)):
        broken.write_bytes(content[:length])
        if length < shortest:
            with pytest.raises(RecordError):
                open_record(broken)
            continue
        record = open_record(broken)
        assert record.end is None
        assert "cut off" in record.damage[-1].sentence
        count = check_samples(record, truth)
        for series in SERIES:
            rows = cases.sample_rows(record, series)
            assert rows == cases.true_rows(truth[series.id])[: len(rows)]
        check_rest(record, truth)
        assert count >= before
        before = count
    assert before == sum(part.value.size for part in truth.values())


def flip_bits(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = bytearray(b"".join(chunks))
    for _ in range(chance.randint(1, 12)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(content)


def zero_a_hole(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = bytearray(b"".join(chunks))
    start, length = chance.randrange(len(content)), chance.randint(1, 900)
    content[start : start + length] = bytes(len(content[start : start + length]))
    return bytes(content)


def insert_garbage(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = b"".join(chunks)
    at = chance.randrange(len(content) + 1)
    return content[:at] + chance.randbytes(chance.randint(1, 300)) + content[at:]


def remove_a_piece(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = b"".join(chunks)
    at = chance.randrange(len(content))
    return content[:at] + content[at + chance.randint(1, 900) :]


def repeat_a_piece(chance: random.Random, chunks: list[bytes]) -> bytes:
    content = b"".join(chunks)
    at, to = chance.randrange(len(content)), chance.randrange(len(content))
    return content[:to] + content[at : at + chance.randint(1, 3000)] + content[to:]


def swap_two_chunks(chance: random.Random, chunks: list[bytes]) -> bytes:
    changed = list(chunks)
    a, b = chance.sample(range(1, len(chunks)), 2)
    changed[a], changed[b] = changed[b], changed[a]
    return b"".join(changed)


def repeat_a_chunk(chance: random.Random, chunks: list[bytes]) -> bytes:
    changed = list(chunks)
    changed.insert(chance.randint(1, len(chunks)), chance.choice(chunks[1:]))
    return b"".join(changed)


def remove_a_chunk(chance: random.Random, chunks: list[bytes]) -> bytes:
    gone = chance.randrange(1, len(chunks))
    return b"".join(chunks[:gone] + chunks[gone + 1 :])


def shuffle_all(chance: random.Random, chunks: list[bytes]) -> bytes:
    return b"".join(chance.sample(chunks, len(chunks)))


CORRUPTIONS: list[Corruption] = [
    flip_bits,
    zero_a_hole,
    insert_garbage,
    remove_a_piece,
    repeat_a_piece,
    swap_two_chunks,
    repeat_a_chunk,
    remove_a_chunk,
    shuffle_all,
]


def test_there_are_at_least_500_corruptions() -> None:
    assert len(CORRUPTIONS) * SEEDS >= 500


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda function: function.__name__)
def test_corrupted(corrupt: Corruption, whole: tuple[list[bytes], dict[int, cases.Truth]], broken: Path) -> None:
    chunks, truth = whole
    all_samples = sum(part.value.size for part in truth.values())
    opened = told = 0
    for seed in range(SEEDS):
        content = corrupt(random.Random(seed), chunks)
        broken.write_bytes(content)
        try:
            record = open_record(broken)
        except RecordError:
            continue
        opened += 1
        told += bool(record.damage)
        count = check_samples(record, truth)
        check_rest(record, truth)
        assert record.damage or count == all_samples
    assert opened >= SEEDS // 2
    assert told >= opened - SEEDS // 10


@pytest.mark.parametrize("corrupt", [swap_two_chunks, repeat_a_chunk, remove_a_chunk], ids=lambda f: f.__name__)
def test_one_chunk_out_of_place_costs_no_other(
    corrupt: Corruption, whole: tuple[list[bytes], dict[int, cases.Truth]], broken: Path
) -> None:
    chunks, truth = whole
    series_chunks = [chunk for chunk in chunks if CHUNK_HEADER.unpack_from(chunk)[2] == 4]
    largest_block = 30
    for seed in range(SEEDS):
        content = corrupt(random.Random(seed), chunks)
        broken.write_bytes(content)
        record = open_record(broken)
        if len(record.series) < len(series_chunks):
            continue
        missing = sum(part.value.size for part in truth.values()) - check_samples(record, truth)
        assert missing <= 2 * largest_block


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_wrong_payloads_behind_valid_checksums(
    whole: tuple[list[bytes], dict[int, cases.Truth]], broken: Path, data: st.DataObject
) -> None:
    """A chunk may lie with a perfect checksum: everything is readable or a RecordError, and the lie is no traceback."""
    changed = list(whole[0])
    place = data.draw(st.integers(0, len(changed) - 1))
    payload = bytearray(cases.payload_of(changed[place]))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(payload)))
        payload[at : at + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    _, _, kind, _, sequence, _ = CHUNK_HEADER.unpack_from(changed[place])
    changed[place] = frame_bytes(kind, sequence, bytes(payload))
    broken.write_bytes(b"".join(changed))
    try:
        record = open_record(broken)
        blocks = list(record.read_blocks(record.chunk_refs))
        totals = [int(part.bin_counts.sum()) - part.count for part in record.slices]
        lists = [level for levels in record.levels.values() for level in levels]
    except RecordError:
        return
    assert set(totals) <= {0}
    for level in lists:
        assert level.index.size == level.due_ns.size == level.above.size
        assert (np.diff(level.second) > 0).all()
        assert (level.ran + level.missed > 0).all()
    assert [block.values.size for block in blocks] == [ref.count for ref in record.chunk_refs]
