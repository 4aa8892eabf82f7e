# SPDX-License-Identifier: Apache-2.0
"""CONDITIONS chunks: laid out by hand from the format page, written and read back, and those that cannot be."""

import struct
from pathlib import Path

import numpy as np
import pytest
from record_cases import BEGIN

from rtproof.record.chunks import ChunkType
from rtproof.record.contents import Condition, Conditions, Deviation
from rtproof.record.decoding import decode_payload
from rtproof.record.encoding import MalformedError
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter

HEAD = struct.pack("<HHI", 2, 1, 2)
SEEN = struct.pack("<BIH", 0, 300, 1) + b"1"
ROWS = bytes([5, 100, 30, 4, 1, 2, 3, 7, 9]) + bytes([0xE8, 0x07, 100, 0, 4, 0, 0, 0, 0, 0])
COLUMNS = (
    *("time_ns", "noted", "elsewhere", "checks", "other_policy", "other_priority", "other_affinity"),
    *("run_delay_ns", "involuntary_switches"),
)


def rows_of(some: Conditions) -> list[list[int]]:
    return [getattr(some, name).tolist() for name in COLUMNS]


def test_by_hand() -> None:
    found = decode_payload(ChunkType.CONDITIONS, memoryview(HEAD + SEEN + ROWS))
    assert isinstance(found, Conditions)
    assert (found.thread, found.deviations) == (2, (Deviation(Condition.CPU, 300, "1"),))
    assert rows_of(found) == [
        *([5_000_000, 1_005_000_000], [100, 100], [30, 0], [4, 4], [1, 0], [2, 0], [3, 0], [7_000, 0], [9, 0]),
    ]


def test_too_long_or_too_short() -> None:
    whole = HEAD + SEEN + ROWS
    for payload in (whole + b"\0", *(whole[:length] for length in range(len(whole)))):
        with pytest.raises(MalformedError):
            decode_payload(ChunkType.CONDITIONS, memoryview(payload))


IMPOSSIBLE = {
    "kind": HEAD + b"\4" + SEEN[1:] + ROWS,
    "elsewhere more often than at all": HEAD + SEEN + bytes([5, 10, 30, *ROWS[3:]]),
    "more policies than checks": HEAD + SEEN + bytes([*ROWS[:4], 5, *ROWS[5:]]),
    "34 years": struct.pack("<HHI", 2, 0, 1) + bytes([*[0xFF] * 5, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0]),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible(name: str) -> None:
    with pytest.raises(MalformedError):
        decode_payload(ChunkType.CONDITIONS, memoryview(IMPOSSIBLE[name]))


def conditions(thread: int, rows: list[list[int]], *deviations: Deviation) -> Conditions:
    columns = dict(zip(COLUMNS, (np.array(column, np.int64) for column in zip(*rows, strict=True)), strict=True))
    return Conditions(thread=thread, deviations=deviations, **columns)


def test_what_is_written_is_read_back_and_put_together(tmp_path: Path) -> None:
    second = 1_000_000_000
    first = conditions(
        1,
        [[second, 1000, 0, 20, 0, 0, 0, 5_000, 1], [2 * second, 1000, 400, 20, 1, 0, 1, 0, 0]],
        *(Deviation(Condition.CPU, 400, "3"), Deviation(Condition.POLICY, 1, "other")),
    )
    later = conditions(1, [[3 * second, 1000, 7, 20, 0, 0, 0, 0, 0]], Deviation(Condition.CPU, 7, "3"))
    other = conditions(0, [[second, 10, 0, 2, 0, 0, 0, 0, 0]])
    with RecordWriter(tmp_path / "record") as writer:
        writer.begin(BEGIN)
        for some in (first, other, later):
            writer.conditions(some)
    found = open_record(tmp_path / "record").conditions
    assert set(found) == {0, 1}
    assert rows_of(found[0]) == rows_of(other)
    assert rows_of(found[1]) == [a + b for a, b in zip(rows_of(first), rows_of(later), strict=True)]
    assert found[1].deviations == (Deviation(Condition.CPU, 407, "3"), Deviation(Condition.POLICY, 1, "other"))


def test_a_wrong_one_is_damage_and_the_rest_is_read(tmp_path: Path) -> None:
    with RecordWriter(tmp_path / "record") as writer:
        writer.begin(BEGIN)
        writer.chunk(ChunkType.CONDITIONS, IMPOSSIBLE["kind"])
        writer.chunk(ChunkType.CONDITIONS, HEAD + SEEN + ROWS)
    record = open_record(tmp_path / "record")
    sentence = record.damage[0].sentence
    assert sentence.startswith("the CONDITIONS chunk at offset ")
    assert sentence.endswith(" was not used: 4 is no Condition")
    assert record.conditions[2].checks.tolist() == [4, 4]
