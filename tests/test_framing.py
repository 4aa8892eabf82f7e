# SPDX-License-Identifier: Apache-2.0
"""Chunks on the disk: their bytes, and the walk that finds them again."""

import gc
import os
import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record import chunks
from rtproof.record.chunks import FileWindow, Frame, Hole, frame_bytes, garbage_collector_paused, walk_chunks


def walked(path: Path, size: int | None = None) -> list[tuple[int, ...] | tuple[int, int, int, bytes]]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        found: list[tuple[int, ...] | tuple[int, int, int, bytes]] = []
        for part in walk_chunks(FileWindow(descriptor, path.stat().st_size if size is None else size)):
            if isinstance(part, Frame):
                found.append((part.offset, part.type, part.sequence, bytes(part.payload)))
            else:
                found.append(tuple(part))
        return found
    finally:
        os.close(descriptor)


def test_bytes_are_those_of_the_page() -> None:
    head = b"RTP\x1a" + struct.pack("<IHHI", 5, 0x1234, 0, 0x55667788)
    check = zlib.crc32(head + b"hello")
    assert frame_bytes(0x1234, 0x55667788, b"hello") == head + struct.pack("<I", check) + b"hello\0\0\0"


def test_largest_payload() -> None:
    assert len(frame_bytes(1, 0, bytes(chunks.MOST_PAYLOAD))) == chunks.MOST_PAYLOAD + chunks.CHUNK_HEADER.size
    with pytest.raises(ValueError, match="does not fit"):
        frame_bytes(1, 0, bytes(chunks.MOST_PAYLOAD + 1))


@given(st.lists(st.binary(max_size=80), max_size=20), st.integers(64, 300))
def test_walk_finds_all_whatever_the_window(payloads: list[bytes], window: int) -> None:
    path = Path("walk.rtrec")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "WINDOW_BYTES", window)
        path.write_bytes(b"".join(frame_bytes(5, number, payload) for number, payload in enumerate(payloads)))
        found = walked(path)
    assert [part[1:] for part in found] == [(5, number, payload) for number, payload in enumerate(payloads)]


@pytest.fixture(autouse=True)
def _in_tmp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("framing"))


@pytest.mark.parametrize("window", [64, 100, 1 << 20])
@pytest.mark.parametrize("garbage", [1, 3, 59, 200, 5000])
def test_a_hole_is_told_and_the_next_chunk_found(window: int, garbage: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "WINDOW_BYTES", window)
    path = Path("hole.rtrec")
    first, second = frame_bytes(5, 0, b"one"), frame_bytes(5, 1, b"second")
    path.write_bytes(first + b"RTP\x1a"[:garbage] * garbage + second)
    start, length = len(first), len(b"RTP\x1a"[:garbage] * garbage)
    assert walked(path) == [(0, 5, 0, b"one"), Hole(start, length), (start + length, 5, 1, b"second")]


def test_a_chunk_larger_than_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "WINDOW_BYTES", 64)
    path = Path("large.rtrec")
    path.write_bytes(frame_bytes(3, 0, bytes(10_000)) + frame_bytes(3, 1, b"x"))
    assert [part[1:3] for part in walked(path)] == [(3, 0), (3, 1)]


def test_nothing_of_the_length_field_is_believed() -> None:
    path = Path("length.rtrec")
    chunk = bytearray(frame_bytes(5, 0, b"abcd"))
    chunk[4:8] = struct.pack("<I", 2**32 - 1)
    path.write_bytes(bytes(chunk))
    assert walked(path) == [Hole(0, len(chunk))]


def test_a_file_that_shrinks_while_it_is_read_ends_there() -> None:
    path = Path("shrunk.rtrec")
    path.write_bytes(frame_bytes(5, 0, b"abcd"))
    size = path.stat().st_size
    assert walked(path, size + 10**12) == [(0, 5, 0, b"abcd"), Hole(size, 10**12)]


def test_garbage_is_looked_for_again_whatever_happens() -> None:
    @garbage_collector_paused()
    def fail() -> None:
        raise ValueError(f"collecting: {gc.isenabled()}")

    assert gc.isenabled()
    with pytest.raises(ValueError, match="collecting: False"):
        fail()
    assert gc.isenabled()


def test_who_looks_for_no_garbage_is_not_made_to() -> None:
    gc.disable()
    try:
        with garbage_collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
