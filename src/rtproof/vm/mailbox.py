# SPDX-License-Identifier: Apache-2.0
"""The memory that host and guest share: a file here, and a PCI device in the guest, whose end is guest/mailbox.h.

The host writes a job, and the guest writes frames. The memory never interrupts the guest and needs no driver.
"""

import enum
import io
import mmap
import os
import struct
import zlib
from pathlib import Path

from rtproof.core.errors import TargetError

MAILBOX_BYTES = 64 << 20
"""Size of the shared memory. Only bytes that are used take room on the disk."""

_PAGE = 4096
_MAGIC = 0x6D707472
_U32 = struct.Struct("<I")
_STOP, _JOB_LENGTH, _STATE, _WRITTEN = 4, 8, 12, 16


class GuestState(enum.IntEnum):
    """The progress of a guest, from before its boot to the end of its job."""

    NOTHING = 0
    ALIVE = 1
    READY = 2
    RUNNING = 3
    DONE = 4


class _Kind(enum.IntEnum):
    SAID = 1
    ENDED = 2
    RESULT = 3
    RESULT_END = 4
    FAILED = 5


class Mailbox:
    """One guest's shared memory. Call ``feed`` now and then, or once when the guest has ended, to take its frames.

    ``said``: the job's output. ``end``: once the job has ended, its exit code and its length in nanoseconds.
    ``results``: the archive of results. ``complete``: whether it arrived whole. ``failure``: why there is none.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb+", buffering=0)
        self._file.truncate(MAILBOX_BYTES)
        self._memory = mmap.mmap(self._file.fileno(), MAILBOX_BYTES, access=mmap.ACCESS_READ)
        self._put(0, _U32.pack(_MAGIC))
        self._read = 0
        self.said = bytearray()
        self.results = io.BytesIO()
        self.end: tuple[int, int] | None = None
        self.complete = False
        self.failure = ""

    def close(self) -> None:
        self._memory.close()
        self._file.close()

    def stop_when_ready(self) -> None:
        self._put(_STOP, _U32.pack(1))

    def give(self, job: bytes) -> None:
        """Write the job's archive into the memory. TargetError if there is no room for the job and its results."""
        if len(job) > MAILBOX_BYTES // 2:
            raise TargetError(
                f"the job's files have {len(job) >> 20} MiB, and there is room for {MAILBOX_BYTES >> 21} MiB"
            )
        self._put(_PAGE, job)
        self._put(_JOB_LENGTH, _U32.pack(len(job)))

    def _put(self, at: int, data: bytes) -> None:
        """Write data at an offset of the file. TargetError if that fails, for example because the disk is full.

        Writing to the mapped memory on a full disk would end this program with a signal instead.
        """
        try:
            os.pwrite(self._file.fileno(), data, at)
        except OSError as error:
            raise TargetError(f"the memory shared with the guest cannot be written: {error.strerror}") from error

    @property
    def state(self) -> GuestState:
        return GuestState(self._number(_STATE))

    def feed(self) -> bytes:
        """Take the new frames, and return the job's output in them. TargetError if the guest damaged the memory."""
        begin = _PAGE + -(-self._number(_JOB_LENGTH) // _PAGE) * _PAGE
        before = len(self.said)
        written = self._number(_WRITTEN)
        if begin + written > MAILBOX_BYTES:
            raise TargetError("the guest has damaged the memory that it shares with its host")
        while self._read < written:
            at = begin + self._read
            kind, length = self._number(at), self._number(at + 4)
            self._take(kind, self._memory[at + 8 : at + 8 + length])
            self._read += 8 + -(-length // 8) * 8
        return bytes(self.said[before:])

    def _number(self, at: int) -> int:
        return int(_U32.unpack_from(self._memory, at)[0])

    def _take(self, kind: int, payload: bytes) -> None:
        if kind == _Kind.SAID:
            self.said += payload
        elif kind == _Kind.ENDED:
            code, unheard, begin, end = struct.unpack("<iIQQ", payload)
            self.end = code, end - begin
            if unheard:
                self.said += f"\n[there was no room for {unheard} more bytes]\n".encode()
        elif kind == _Kind.RESULT:
            self.results.write(payload)
        elif kind == _Kind.RESULT_END:
            content = self.results.getvalue()
            self.complete = struct.unpack("<II", payload) == (len(content), zlib.crc32(content))
        else:
            self.failure = payload.decode(errors="replace")
