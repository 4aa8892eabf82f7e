# SPDX-License-Identifier: Apache-2.0
"""Payloads of many chunks together say what each of them says; one that is wrong makes all of them wrong."""

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from analysis_records import BEGIN
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import decoding, encoding
from rtproof.record.activations import AboveCounts, ExceedingLists
from rtproof.record.chunks import ChunkType, FileWindow, Frame, walk_chunks
from rtproof.record.contents import Int64Array
from rtproof.record.encoding import MalformedError
from rtproof.record.writing import RecordWriter

COUNTS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15), st.integers(0, 300), st.integers(0, 3)), min_size=1)


def array(values: Sequence[int]) -> Int64Array:
    return np.array(values, dtype=np.int64)


def payloads(folder: Path, kind: ChunkType, write: Callable[[RecordWriter], None]) -> list[bytes]:
    """What a writer puts into the chunks of a kind."""
    path = folder / "chunks"
    path.unlink(missing_ok=True)
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        write(writer)
    with path.open("rb") as file:
        parts = walk_chunks(FileWindow(file.fileno(), path.stat().st_size))
        return [bytes(part.payload) for part in parts if isinstance(part, Frame) and part.type == kind]


def write_above(writer: RecordWriter, some: list[AboveCounts]) -> None:
    for one in some:
        writer.above(3, one)


def write_parts(writer: RecordWriter, whole: ExceedingLists) -> None:
    for at in range(whole.value.size):
        writer.exceeded(3, whole.part(at, at + 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many")


@given(pieces=st.lists(COUNTS, min_size=1, max_size=4))
def test_counts_above_levels_add_up(pieces: list[list[tuple[int, int, int, int]]], folder: Path) -> None:
    expected: dict[tuple[int, int], tuple[int, int]] = {}
    some = []
    for piece in pieces:
        rows = {(second, level): (ran, missed) for second, level, ran, missed in piece if ran + missed}
        for key, (ran, missed) in rows.items():
            before = expected.get(key, (0, 0))
            expected[key] = before[0] + ran, before[1] + missed
        if rows:
            columns = zip(*((*key, *rows[key]) for key in sorted(rows)), strict=True)
            some.append(AboveCounts(*map(array, map(list, columns))))
    if not some:
        return
    stored = payloads(folder, ChunkType.ABOVE, lambda writer: write_above(writer, some))
    found = decoding.decode_above(stored)
    rows_found = zip(
        found.second.tolist(), found.level.tolist(), found.ran.tolist(), found.missed.tolist(), strict=True
    )
    assert [((second, level), (ran, missed)) for second, level, ran, missed in rows_found] == sorted(expected.items())


def test_exceedances_of_several_chunks(folder: Path) -> None:
    whole = ExceedingLists(
        array([3, 4, 900]), array([-5, 10, 2**62]), array([2**62, 7, 8]), array([1, 3, 65_535]), ended=4
    )
    stored = payloads(folder, ChunkType.EXCEEDED, lambda writer: write_parts(writer, whole))
    found = decoding.decode_exceeding(stored)
    for name in ("index", "due_ns", "value", "lists"):
        assert getattr(found, name).tolist() == getattr(whole, name).tolist()
    assert (len(stored), found.ended) == (3, 4)


def seconds(first: int, *columns: Sequence[int]) -> bytes:
    return struct.pack("<HHI", 3, 0, first) + b"".join(map(encoding.encode_array, columns))


def test_seconds_of_several_chunks() -> None:
    found = decoding.decode_seconds(
        [seconds(5, [1, 2], [0, 0], [9, -8]), seconds(40, [], [], []), seconds(6, [3], [1], [7])]
    )
    assert found.second.tolist() == [5, 6, 6]
    assert found.obtained.tolist() == [1, 2, 3]
    assert (found.missed.tolist(), found.max.tolist()) == ([0, 0, 1], [9, -8, 7])


WRONG: dict[str, tuple[Callable[[Sequence[bytes]], Any], bytes, bytes]] = {
    "seconds": (decoding.decode_seconds, seconds(5, [1], [0], [9]), seconds(5, [1], [0], [9, 9])),
    "negative": (decoding.decode_seconds, seconds(5, [1], [0], [9]), seconds(5, [1], [-1], [9])),
    "too short": (decoding.decode_top, struct.pack("<HH", 3, 2) + 3 * encoding.encode_array([1]), b"\3"),
    "above": (
        decoding.decode_above,
        struct.pack("<HHII", 3, 0, 7, 1) + bytes([1, 5, 0]),
        struct.pack("<HHII", 3, 0, 7, 2) + bytes([1, 5, 0]),
    ),
    "numbers of the neighbour": (
        decoding.decode_above,
        struct.pack("<HHII", 3, 0, 7, 1) + bytes([1, 5, 0, 1, 5, 0]),
        struct.pack("<HHII", 3, 0, 7, 2) + bytes([1]),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_one_that_is_wrong_makes_all_wrong(name: str) -> None:
    decode, one, wrong = WRONG[name]
    with pytest.raises(MalformedError):
        decode([one, wrong])
