# SPDX-License-Identifier: Apache-2.0
"""The chunks of a record's file: their frame, their fixed fields, their sequence, and the walk that finds them all."""

import os
import re
import struct
import zlib
from bisect import bisect_left
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import islice, pairwise
from operator import lt
from pathlib import Path
from typing import NamedTuple

CHUNK_MAGIC = b"RTP\x1a"
CHUNK_HEADER = struct.Struct("<4sIHHII")
CHECKED_BYTES = 16
"""The checksum covers this many bytes of the header, and the whole payload."""
MOST_PAYLOAD = 16 << 20
_PLAUSIBLE_HEAD = re.compile(re.escape(CHUNK_MAGIC) + rb"(?=...\x00|\x00\x00\x00\x01)", re.DOTALL)
_PLAUSIBLE_BYTES = 8
"""The magic and a length of at most ``MOST_PAYLOAD``."""
MOST_CHECKED = 16
"""So many times the size of the file are checked for chunks within damage: a file made to do harm is nothing else."""
WINDOW_BYTES = 1 << 20
"""The window fits the second-level cache, so that checksums read bytes that are still in the cache."""


class ChunkType(IntEnum):
    BEGIN = 1
    FACT = 2
    FILE = 3
    SERIES = 4
    SAMPLES = 5
    SUMMARY = 6
    SECONDS = 7
    TOP = 8
    COUNTER = 9
    TICK = 10
    EVENT = 11
    END = 12
    LEVEL = 13
    ABOVE = 14
    EXCEEDED = 15
    CONDITIONS = 16
    SNAPSHOT = 17


class Frame(NamedTuple):
    """One valid chunk. ``payload`` is valid only until the next chunk is read.

    ``plain_block``: series, first index, due time of the first and count of a block of samples that was already checked
    and in which nothing was missed; () for any other chunk.
    """

    offset: int
    type: int
    sequence: int
    payload: memoryview
    plain_block: tuple[int, ...] = ()


class Hole(NamedTuple):
    """Bytes that belong to no valid chunk."""

    offset: int
    length: int


def checksum(head: bytes | memoryview, payload: bytes | memoryview) -> int:
    """CRC-32 over the checked bytes of a header and the payload."""
    return zlib.crc32(payload, zlib.crc32(head))


def padded(length: int) -> int:
    """The length of a payload together with the zero bytes that pad it to a multiple of four."""
    return (length + 3) & ~3


def is_record(path: Path) -> bool:
    """Whether a file begins like a record. OSError if the file cannot be read."""
    with path.open("rb") as file:
        return file.read(len(CHUNK_MAGIC)) == CHUNK_MAGIC


def frame_bytes(kind: int, sequence: int, payload: bytes) -> bytes:
    """The bytes of a whole chunk in the file: header, payload and padding. ValueError if the payload is too long."""
    if len(payload) > MOST_PAYLOAD:
        raise ValueError(f"a payload of {len(payload)} bytes does not fit a chunk of at most {MOST_PAYLOAD}")
    head = CHUNK_HEADER.pack(CHUNK_MAGIC, len(payload), kind, 0, sequence, 0)[:CHECKED_BYTES]
    check = struct.pack("<I", checksum(head, payload))
    return b"".join((head, check, payload, bytes(padded(len(payload)) - len(payload))))


class FileWindow:
    """A part of the file in memory. It moves to the bytes that a caller asks for."""

    def __init__(self, descriptor: int, size: int) -> None:
        self.size = size
        self.bytes = memoryview(bytearray(WINDOW_BYTES))
        self._descriptor = descriptor
        self._start = 0
        self._filled = 0
        self.checked_in_vain = 0

    def place(self, at: int, length: int) -> int:
        """The place in ``bytes`` of the given length at an offset of the file; -1 if the file ends too early.

        The place is valid until the next call.
        """
        here = at - self._start
        if here >= 0 and here + length <= self._filled:
            return here
        self._fill(at, length)
        return 0 if length <= self._filled else -1

    def view(self, at: int, length: int) -> memoryview:
        """The given number of bytes from an offset, or fewer at the end of the file; valid until the next call."""
        length = min(length, self.size - at)
        here = self.place(at, length)
        return self.bytes[here : here + length] if here >= 0 else self.bytes[: self._filled]

    def here(self, at: int) -> tuple[int, int, memoryview]:
        """The start and end of the window as offsets of the file, and the window's bytes.

        If the offset is outside of the window, the end is the offset itself, so that nothing is left to read.
        """
        inside = self._start <= at < self._start + self._filled
        return self._start, self._start + self._filled if inside else at, self.bytes

    def _fill(self, at: int, length: int) -> None:
        if length > len(self.bytes):
            self.bytes = memoryview(bytearray(length))
        want = min(len(self.bytes), max(self.size - at, 0))
        self._start, self._filled = at, 0
        while self._filled < want:
            got = os.preadv(self._descriptor, [self.bytes[self._filled : want]], at + self._filled)
            if not got:
                break
            self._filled += got


def frame_at(window: FileWindow, at: int) -> Frame | None:
    """The chunk at an offset, or None unless the chunk is valid, whole and has its padding."""
    here = window.place(at, CHUNK_HEADER.size)
    if here < 0:
        return None
    magic, length, kind, _, sequence, check = CHUNK_HEADER.unpack_from(window.bytes, here)
    if magic != CHUNK_MAGIC or length > MOST_PAYLOAD:
        return None
    here = window.place(at, CHUNK_HEADER.size + padded(length))
    if here < 0:
        return None
    start = here + CHUNK_HEADER.size
    payload = window.bytes[start : start + length]
    if checksum(window.bytes[here : here + CHECKED_BYTES], payload) != check:
        window.checked_in_vain += length
        return None
    return Frame(at, kind, sequence, payload)


FramesIn = Callable[[FileWindow, int], Iterator[Frame]]


def walk_chunks(window: FileWindow, frames_in: FramesIn | None = None, start: int = 0) -> Iterator[Frame | Hole]:
    """Every valid chunk of a file and every hole between chunks, in the order of the file.

    ``frames_in``: gives the consecutive valid chunks from an offset on that are in memory, or some of the first.
    ``start``: offset of the chunk to begin with.
    """
    at = start
    while at < window.size:
        last = None
        for last in frames_in(window, at) if frames_in else ():
            yield last
        if last:
            at = last.offset + CHUNK_HEADER.size + padded(len(last.payload))
        if at >= window.size:
            break
        frame = frame_at(window, at)
        if frame is None:
            end = _next_frame(window, at + 1)
            yield Hole(at, end - at)
            at = end
        else:
            at += CHUNK_HEADER.size + padded(len(frame.payload))
            yield frame


def _next_frame(window: FileWindow, at: int) -> int:
    """Offset of the next valid chunk from an offset on, or the size of the file.

    It is also the size of the file once the search has computed ``MOST_CHECKED`` of it in wrong checksums.
    """
    while at < window.size:
        view = bytes(window.view(at, WINDOW_BYTES // 4))
        if not view:
            break
        for found in _PLAUSIBLE_HEAD.finditer(view):
            if frame_at(window, at + found.start()):
                return at + found.start()
            if window.checked_in_vain > MOST_CHECKED * (window.size + WINDOW_BYTES):
                return window.size
        # A head may lie across the end of the view, so its last bytes are searched again.
        at += max(len(view) - _PLAUSIBLE_BYTES + 1, 1)
    return window.size


MAJOR = 1
MINOR = 7

BEGIN_FIELDS = struct.Struct("<HH16sqq")
FACT_FIELDS = struct.Struct("<qHB")
FILE_FIELDS = struct.Struct("<qBBH")
SERIES_FIELDS = struct.Struct("<HHiBqq")
SAMPLES_FIELDS = struct.Struct("<HHQq")
SUMMARY_FIELDS = struct.Struct("<HBBqqQQqqqQQQQQQ")
SECONDS_FIELDS = struct.Struct("<HHI")
TOP_FIELDS = struct.Struct("<HH")
COUNTER_FIELDS = struct.Struct("<HBB")
TICK_FIELDS = struct.Struct("<qH")
TICK_ENTRY_FIELDS = struct.Struct("<Hq")
EVENT_FIELDS = struct.Struct("<qH")
END_FIELDS = struct.Struct("<qB")
TOTALS_FIELDS = struct.Struct("<HQQQ")
LEVEL_FIELDS = struct.Struct("<HBBqqIQ")
ABOVE_FIELDS = struct.Struct("<HHI")
EXCEEDED_FIELDS = struct.Struct("<HH")
CONDITIONS_FIELDS = struct.Struct("<HHI")
DEVIATION_FIELDS = struct.Struct("<BI")
SNAPSHOT_FIELDS = struct.Struct("<HBBQqqqqH")
SNAPSHOT_CPU_FIELDS = struct.Struct("<HBBH")
SHORT_COUNT = struct.Struct("<H")
LONG_COUNT = struct.Struct("<I")

SERIES_ON_GRID = 1
SERIES_HAS_SAMPLES = 2
SERIES_EXTERNAL = 4
SERIES_OF_LOOP = 8
"""Flags of a SERIES chunk."""


def places_in_order(sequences: list[int]) -> list[int]:
    """The places of the longest strictly increasing subsequence of the sequence numbers.

    So one moved chunk drops out alone, and the chunks after it stay. The method is patience sorting: ``ends[n]`` is
    the place of the last number in the increasing run of n + 1 numbers whose last number is smallest.
    """
    if all(map(lt, sequences, islice(sequences, 1, None))):
        return list(range(len(sequences)))
    ends: list[int] = []
    smallest: list[int] = []
    before: list[int] = []
    for place, sequence in enumerate(sequences):
        length = bisect_left(smallest, sequence)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        smallest[length : length + 1] = [sequence]
    run, place = [], ends[-1]
    while place >= 0:
        run.append(place)
        place = before[place]
    return run[::-1]


def missing_sequences(sequences: list[int]) -> list[tuple[int, int, int]]:
    """The gaps in an increasing list, each as (place, first, last).

    ``place``: where the list goes on after the gap. ``first`` and ``last``: the first and last missing number.
    """
    if not sequences or sequences[-1] == len(sequences) - 1:
        return []
    starts = [-1, *sequences]
    return [(place, a + 1, b - 1) for place, (a, b) in enumerate(pairwise(starts)) if b > a + 1]


DEFLATED = ".deflate"
"""At the end of the path of a FILE whose content is one stream of raw DEFLATE (RFC 1951)."""
DEFLATED_MOST = 131_072
"""Bytes that such a stream holds at most."""
