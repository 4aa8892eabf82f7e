# SPDX-License-Identifier: Apache-2.0
"""Pieces of a board's files on their way to the host, as ``agent/background/frames.c`` sends them.

A frame is a line ``=rtproof TYPE OFFSET LENGTH CRC`` and the bytes behind it; as text, base64 in the same line. What
stands between frames is from others, such as the kernel's messages on a console, and is skipped.
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
LINE_END = len(b"\r\n")
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
        while (frame := self._next()) is not None:
            if isinstance(frame, LinkFrame):
                yield frame

    def _next(self) -> LinkFrame | bool | None:
        """A frame; False if something was skipped; None if more must come first."""
        at = self._rest.find(START)
        if at < 0:
            self._rest = self._rest[-len(START) :]
            return None
        self._rest = self._rest[at:]
        head = HEAD.match(self._rest)
        if not head:
            return None if len(self._rest) < LONGEST_HEAD else self._skip()
        end = self._end(head)
        if end is None:
            return None
        content = _decoded(self._rest[head.end() : end], is_text=head[5] == b" ")
        if len(content) != int(head[3]) or binascii.crc32(content) != int(head[4], 16):
            return self._skip()
        self._rest = self._rest[end:]
        return LinkFrame(FrameType(head[1].decode()), int(head[2]), content)

    def _end(self, head: re.Match[bytes]) -> int | None:
        """Where the frame ends, or a little behind its head if it is damaged; None if more must come first."""
        begin, length = head.end(), int(head[3])
        if length > LARGEST:
            return begin
        if head[5] == b"\n":
            return begin + length if len(self._rest) >= begin + length else None
        text = TEXT.match(self._rest, begin)
        if text:
            return text.end()
        most = 4 * -(-length // 3)
        return None if len(self._rest) < begin + most + LINE_END else begin

    def _skip(self) -> bool:
        self.damaged += 1
        self._rest = self._rest[1:]
        return False


def _decoded(content: bytes, *, is_text: bool) -> bytes:
    if not is_text:
        return content
    try:
        return base64.b64decode(content.strip(), validate=True)
    except binascii.Error:
        return b""
