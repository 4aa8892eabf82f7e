# SPDX-License-Identifier: Apache-2.0
"""Samples on demand: SAMPLES chunks that the scan found, read again from the file."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from rtproof.errors import RecordError
from rtproof.record import Block, ChunkRef, packed
from rtproof.record.framing import HEADER, Window, frame_at
from rtproof.record.layouts import SAMPLES
from rtproof.record.payloads import gaps
from rtproof.record.wire import Cursor


@dataclass(frozen=True)
class BlockReader:
    """Reads blocks of one file. Can be pickled, so that worker processes get it with their share of the refs.

    Each checksum is verified again. It costs less than a tenth of the time, and without it a file that was written
    over since the scan, or a medium that fails now, would give wrong samples.
    """

    path: str

    def __call__(self, refs: tuple[ChunkRef, ...]) -> Iterator[Block]:
        """The samples of some chunks, in the order of the refs; RecordError if the file has changed."""
        with open_regular(self.path) as file:
            window = Window(file.fileno(), os.fstat(file.fileno()).st_size)
            for ref in refs:
                frame = frame_at(window, ref.offset - HEADER.size)
                if frame is None or len(frame.payload) != ref.length:
                    raise RecordError(f"{self.path} has changed since it was opened: samples at {ref.offset} are gone")
                yield block(frame.payload)


def block(payload: memoryview) -> Block:
    """The samples in a payload that the scan has checked."""
    cursor = Cursor(payload)
    series, _, first_index, first_due_ns = cursor.take(SAMPLES)
    values, at = packed.decode(payload, cursor.at)
    position, missed, _ = gaps(payload, at, values.size)
    return Block(series, first_index, first_due_ns, values, position, missed)


def open_regular(path: str) -> FileIO:
    """Open a file to read; RecordError with the reason if that is not possible, or if it is not a file."""
    place = Path(path)
    try:
        # Asked before it is opened: opening a pipe would wait for a writer.
        found = place.stat()
        if not stat.S_ISDIR(found.st_mode) and not stat.S_ISREG(found.st_mode):
            raise RecordError(f"{path} is not a file")
        # A file that the kernel makes up as it is read, such as /proc/kmsg, has no size, and reading it may wait.
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            raise RecordError(f"{path} is empty")
        return place.open("rb", buffering=0)
    except OSError as problem:
        raise RecordError(f"cannot read {path}: {problem.strerror}") from None
