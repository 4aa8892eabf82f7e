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
LONGEST_MESSAGE = 1024
"""What the kernel prints into a frame at most, as far as frames are mended."""
MESSAGES_IN_FRAME = 8
HEAD = re.compile(rb"=rtproof ([SLR]) (\d{1,19}) (\d{1,6}) ([0-9a-f]{8})([ \n])")
TEXT = re.compile(rb"([A-Za-z0-9+/]*={0,2})\r?\n")
MESSAGE = re.compile(rb"\[ *\d+\.\d{6}\][^\n]*\n")
"""Of the kernel, with its time."""


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
    """Finds the whole frames in what a connection brings. ``damaged``: how many began and were not what they say.

    A frame into which the kernel printed is mended if it can be: the CRC says whether it could.
    """

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
        for text, removed in _without_messages(self._rest):
            if found := _read(text):
                frame, end = found
                self._rest = self._rest[end + removed :]
                return frame
        if self._may_become_whole():
            return None
        self.damaged += 1
        self._rest = self._rest[1:]
        return False

    def _may_become_whole(self) -> bool:
        head = HEAD.match(self._rest)
        length = int(head[3]) if head else 0
        if length > LARGEST:
            return False
        if head and head[5] == b"\n":
            return len(self._rest) < head.end() + length
        # The board sends one frame behind the other, so nothing of the first comes after the next one's beginning.
        if self._rest.find(START, len(START)) >= 0:
            return False
        return len(self._rest) < LONGEST_HEAD + _characters(length) + LONGEST_MESSAGE


def _characters(length: int) -> int:
    """How long so many bytes are in base64."""
    return 4 * -(-length // 3)


def _without_messages(text: bytes) -> Iterator[tuple[bytes, int]]:
    """The text as it is, and without the first, the first two ... of the kernel's messages; how much was removed."""
    yield text, 0
    left, removed = text, 0
    for _ in range(MESSAGES_IN_FRAME):
        message = MESSAGE.search(left)
        if not message or left.find(START, len(START), message.start()) >= 0:
            return
        removed += len(message[0])
        left = left[: message.start()] + left[message.end() :]
        yield left, removed


def _read(text: bytes) -> tuple[LinkFrame, int] | None:
    """The frame at the beginning of a text, and where it ends; None if it is not whole or damaged."""
    head = HEAD.match(text)
    if not head or int(head[3]) > LARGEST:
        return None
    begin, length, crc = head.end(), int(head[3]), int(head[4], 16)
    bodies = [(text[begin : begin + length], begin + length)] if head[5] == b"\n" else _texts(text, begin, length)
    for content, end in bodies:
        if len(content) == length and binascii.crc32(content) == crc:
            return LinkFrame(FrameType(head[1].decode()), int(head[2]), content), end
    return None


def _texts(text: bytes, begin: int, length: int) -> Iterator[tuple[bytes, int]]:
    """What a frame's base64 may be: the line as it is, or the line that something was printed into.

    What was printed ends with a line. How much of the frame comes after that, and how long it is, say where it began.
    """
    if whole := TEXT.match(text, begin):
        yield _decoded(whole[1]), whole.end()
    line_end = text.find(b"\n", begin) + 1
    rest = TEXT.match(text, line_end) if line_end else None
    if rest and len(rest[1]) <= _characters(length):
        first = text[begin : begin + _characters(length) - len(rest[1])]
        yield _decoded(first + rest[1]), rest.end()


def _decoded(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
