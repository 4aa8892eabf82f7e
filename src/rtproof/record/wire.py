# SPDX-License-Identifier: Apache-2.0
"""Small pieces of the record's bytes: fixed-width integers, strings, LEB128 numbers."""

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = bytes | memoryview

LENGTH = struct.Struct("<H")
LONGEST_TEXT = 0xFFFF
CONTINUED = 0x80
"""Top bit of a byte of a LEB128 number that another one follows."""
LONGEST_LEB128 = 10
"""Bytes of a 64-bit number at seven bits each."""


class MalformedError(Exception):
    """Bytes that cannot mean anything. Never leaves this package: the reader turns it into a Damage."""


class Cursor:
    """Walks through a payload; every step past its end is a MalformedError."""

    __slots__ = ("at", "data")

    def __init__(self, data: Bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def take(self, fields: struct.Struct) -> tuple[Any, ...]:
        try:
            found = fields.unpack_from(self.data, self.at)
        except struct.error:
            raise MalformedError(f"it ends within the {fields.size} bytes at {self.at}") from None
        self.at += fields.size
        return found

    def raw(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self.data):
            raise MalformedError(f"it ends within the {length} bytes at {self.at}")
        found = bytes(self.data[self.at : end])
        self.at = end
        return found

    def text(self) -> str:
        """A ``str`` of the format page; invalid UTF-8 becomes replacement characters."""
        (length,) = self.take(LENGTH)
        return self.raw(length).decode("utf-8", "replace")

    def finish(self) -> None:
        """Nothing may be left: a length that does not add up is a sign of wrong bytes."""
        if self.at != len(self.data):
            raise MalformedError(f"{len(self.data) - self.at} bytes are left over")


def text_bytes(text: str) -> bytes:
    """A ``str`` of the format page, cut at a whole character if it is too long."""
    raw = text.encode("utf-8", "replace")
    if len(raw) > LONGEST_TEXT:
        raw = raw[:LONGEST_TEXT].decode("utf-8", "ignore").encode()
    return LENGTH.pack(len(raw)) + raw


def leb128_encode(numbers: NDArray[np.uint64]) -> bytes:
    """Seven bits per byte, lowest first; all bytes of a number but its last have the top bit set."""
    shifts = np.arange(0, 7 * LONGEST_LEB128, 7, dtype=np.uint64)
    digits = (numbers[:, None] >> shifts) & np.uint64(0x7F)
    rest = numbers[:, None] >> shifts
    used = rest != 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    return bytes((digits | (more * np.uint64(CONTINUED)))[used].astype(np.uint8))


def leb128_check(data: Bytes, count: int) -> None:
    """MalformedError unless the bytes hold exactly so many numbers; cheap, the numbers are not computed."""
    raw = np.frombuffer(data, dtype=np.uint8)
    if np.count_nonzero(raw < CONTINUED) != count or (raw.size and raw[-1] >= CONTINUED):
        raise MalformedError(f"its {raw.size} bytes of LEB128 are not {count} numbers")


def leb128_decode(data: Bytes, count: int) -> NDArray[np.uint64]:
    """The numbers in the bytes, which must be exactly so many, each below 2^64."""
    leb128_check(data, count)
    raw = np.frombuffer(data, dtype=np.uint8)
    more = np.flatnonzero(raw >= CONTINUED)
    if not more.size:
        return raw.astype(np.uint64)
    begins = np.ones(raw.size, dtype=np.bool_)
    begins[more + 1] = False
    numbers = raw[begins].astype(np.uint64)
    first = more[begins[more]]
    last = np.searchsorted(more, first)
    length = 1 + _run_lengths(more)[last]
    numbers[first - last] = _long_ones(raw, first, length)
    return numbers


def zigzags(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """0, -1, 1, -2, ... as the bits of 0, 1, 2, 3, ..."""
    bits: NDArray[np.int64] = (numbers << 1) ^ (numbers >> 63)
    return bits


def unzigzags(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """What ``zigzags`` made these of."""
    plain: NDArray[np.int64] = (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)
    return plain


def _run_lengths(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many places, from each one on, follow each other without a hole."""
    ends = np.flatnonzero(np.diff(places, append=places[-1] + 2) != 1)
    at = np.arange(places.size)
    return ends[np.searchsorted(ends, at)] - at + 1


def _long_ones(raw: NDArray[np.uint8], first: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Numbers of several bytes, each from its first one on. Most have one byte and are not worth these steps."""
    numbers = np.zeros(first.size, dtype=np.uint64)
    for digit in range(int(length.max())):
        if digit >= LONGEST_LEB128:
            raise MalformedError("a LEB128 number is longer than 64 bits")
        has = np.flatnonzero(length > digit)
        part = (raw[first[has] + digit] & 0x7F).astype(np.uint64)
        if digit == LONGEST_LEB128 - 1 and part.max() > 1:
            raise MalformedError("a LEB128 number is longer than 64 bits")
        numbers[has] |= part << np.uint64(7 * digit)
    return numbers
