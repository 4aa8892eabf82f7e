# SPDX-License-Identifier: Apache-2.0
"""The windows of the flight recorder in a record: as they were written, or refused."""

import zlib
from pathlib import Path

import pytest
import record_cases as cases
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rtproof.core.errors import RecordError
from rtproof.record import reading
from rtproof.record.chunks import ChunkType
from rtproof.record.contents import End, EndReason, Moment, Record, Snapshot, SnapshotPages, SnapshotReason, SystemFile
from rtproof.record.decoding import decode_payload
from rtproof.record.encoding import MalformedError
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter

PAGES = (SnapshotPages(0, True, (1_000, 2**64 - 1)), SnapshotPages(3, False, ()))
LATE = Snapshot(0, SnapshotReason.THRESHOLD, 7, 7_250_000, 900_000, 5_250_000, 9_150_000, PAGES)
OTHERS = (
    structs.replace(LATE, reason=SnapshotReason.TOP, index=8, value=-5, pages=()),
    structs.replace(LATE, reason=SnapshotReason.ORDINARY, from_ns=-10, pages=PAGES[:1]),
)


def written(path: Path, *parts: Snapshot | SystemFile) -> Record:
    with RecordWriter(path) as writer:
        writer.begin(cases.BEGIN)
        writer.series(cases.ON_GRID)
        for part in parts:
            if isinstance(part, Snapshot):
                writer.snapshot(part)
            else:
                writer.file(part)
        writer.end(End(10, EndReason.AS_ASKED, "", ()))
    return open_record(path)


def packed_file(content: bytes) -> SystemFile:
    return SystemFile(5, Moment.DURING, "trace/cpu0/raw.deflate", 0, False, content)


def test_snapshots_read_back_as_they_were_written(tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", LATE, *OTHERS)
    assert record.damage == ()
    assert record.snapshots == (LATE, *OTHERS)
    assert [one.whole for one in record.snapshots] == [False, True, True]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (structs.replace(LATE, to_ns=LATE.from_ns - 1), "a window from 5250000 ns to 5249999 ns"),
        (structs.replace(LATE, index=1 << 62), "of the activation 4611686018427387904 is impossible"),
        (structs.replace(LATE, pages=(PAGES[1], PAGES[0])), "its CPUs are out of order"),
    ],
)
def test_what_cannot_be_is_damage(wrong: Snapshot, why: str, tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", wrong, LATE)
    assert record.snapshots == (LATE,)
    (damage,) = record.damage
    assert damage.sentence.startswith("the SNAPSHOT chunk at offset ")
    assert why in damage.sentence


@given(st.binary(max_size=200))
def test_any_bytes_are_a_snapshot_or_damage(content: bytes) -> None:
    try:
        found = decode_payload(ChunkType.SNAPSHOT, memoryview(content))
    except MalformedError:
        return
    assert isinstance(found, Snapshot)


def packed(content: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packing.compress(content) + packing.flush()


@pytest.mark.parametrize("content", [b"", b"x", bytes(131_072), bytes(range(256)) * 256], ids=len)
def test_a_packed_file_reads_as_the_file_itself(content: bytes, tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", packed_file(packed(content)))
    assert record.damage == ()
    assert [(file.path, file.content) for file in record.files] == [("trace/cpu0/raw", content)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (packed(bytes(100_000_000)), "its content is longer than 131072 bytes when it is unpacked"),
        (packed(b"abc" * 99)[:-2], "its packed content ends in the wrong place"),
        (packed(b"abc") + b"more", "its packed content ends in the wrong place"),
        (b"\xff\xff\xff", "its content cannot be unpacked"),
    ],
)
def test_what_cannot_be_unpacked_is_damage(content: bytes, why: str, tmp_path: Path) -> None:
    record = written(tmp_path / "a.rtrec", packed_file(content))
    assert record.files == ()
    (damage,) = record.damage
    assert why in damage.sentence


def test_files_that_unpack_to_too_much_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_BYTES", 65 << 20)
    part = packed_file(packed(bytes(131_072)))
    assert len(written(tmp_path / "fits", *[part] * 512).files) == 512, "64 MiB"
    with pytest.raises(RecordError, match=r"bomb is damaged or too large: .* more than 65 MiB"):
        written(tmp_path / "bomb", *[part] * 550)
    assert (tmp_path / "bomb").stat().st_size < 131_072, "what it takes is much more than what it has"
