# SPDX-License-Identifier: Apache-2.0
"""Pieces of a board's files on their way to the host, as ``agent/background/frames.c`` sends them.

A frame is a line ``=rtproof TYPE OFFSET LENGTH CRC`` and the bytes behind it; as text, base64 in the same line. What
stands between frames is from others, such as the kernel's messages on a console, and is skipped. A frame into which the
kernel printed is skipped, too, and is asked for again.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

START = b"=rtproof "
LONGEST_HEAD = 64
LARGEST = 16384
HEAD = re.compile(rb"=rtproof ([SLR]) (\d{1,19}) (\d{1,6}) ([0-9a-f]{8})([ \n])")
TEXT = re.compile(rb"([A-Za-z0-9+/]*={0,2})\r?\n")


class FrameType(Enum):
    """What a frame carries: how the run stands, a piece of its log, a piece of its record."""

    STANDING = "S"
    LOG = "L"
    RECORD = "R"


@dataclass(frozen=True)
class LinkFrame:
    """A piece of a file, from this offset in bytes on."""

    type: FrameType
    offset: int
    content: bytes


class FrameReader:
    """Finds the whole frames in what a connection brings. ``damaged``: how many began and were not what they say."""

    def __init__(self) -> None:
        self._rest = b""
        self.damaged = 0

    def feed(self, content: bytes) -> Iterator[LinkFrame]:
        """The frames that are whole now. Only a frame whose CRC fits is given."""
        self._rest += content
        while (at := self._rest.find(START)) >= 0:
            self._rest = self._rest[at:]
            if found := _read(self._rest):
                frame, end = found
                self._rest = self._rest[end:]
                yield frame
            elif self._may_become_whole():
                return
            else:
                self.damaged += 1
                self._rest = self._rest[1:]
        self._rest = self._rest[-len(START) :]

    def _may_become_whole(self) -> bool:
        head = HEAD.match(self._rest)
        if not head:
            return len(self._rest) < LONGEST_HEAD and b"\n" not in self._rest
        length = int(head[3])
        if length > LARGEST:
            return False
        if head[5] == b"\n":
            return len(self._rest) < head.end() + length
        return b"\n" not in self._rest[head.end() :] and len(self._rest) <= head.end() + 4 * -(-length // 3) + 1


def _read(text: bytes) -> tuple[LinkFrame, int] | None:
    """The frame at the beginning of a text, and where it ends; None if it is not whole or damaged."""
    head = HEAD.match(text)
    if not head or int(head[3]) > LARGEST:
        return None
    begin, length, crc = head.end(), int(head[3]), int(head[4], 16)
    content, end = text[begin : begin + length], begin + length
    if head[5] == b" ":
        line = TEXT.match(text, begin)
        if not line:
            return None
        try:
            content, end = base64.b64decode(line[1], validate=True), line.end()
        except binascii.Error:
            return None
    if len(content) != length or binascii.crc32(content) != crc:
        return None
    return LinkFrame(FrameType(head[1].decode()), int(head[2]), content), end
