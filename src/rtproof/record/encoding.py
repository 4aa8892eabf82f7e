# SPDX-License-Identifier: Apache-2.0
"""Encode and decode the bytes of a record: integers, texts, LEB128 numbers and packed arrays.

A packed array (docs/record-format.md) has a base, bit planes and exceptions. Every step works on whole planes, so that
numpy decodes at the speed of memory. Arrays of many small chunks are decoded together, because numpy takes as long for
an array of ten elements as for one of a thousand.
"""

import struct
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Bytes = bytes | memoryview
Int64Array = NDArray[np.int64]

TEXT_LENGTH = struct.Struct("<H")
LONGEST_TEXT = 0xFFFF
CONTINUED = 0x80
"""This top bit is set in each byte of a LEB128 number except the last."""
LONGEST_LEB128 = 10
"""Bytes of the longest 64-bit number, with seven bits in each byte."""


class MalformedError(Exception):
    """The bytes of a payload are wrong. ``reading`` turns this error into a ``Damage`` or a RecordError."""


class Cursor:
    """Reads a payload step by step. A step past the end of the payload raises MalformedError."""

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
        """Read a ``str`` of docs/record-format.md. Invalid UTF-8 becomes replacement characters."""
        (length,) = self.take(TEXT_LENGTH)
        return self.raw(length).decode("utf-8", "replace")

    def finish(self) -> None:
        """Raise MalformedError if bytes are left over, because a wrong length is a sign of wrong bytes."""
        if self.at != len(self.data):
            raise MalformedError(f"{len(self.data) - self.at} bytes are left over")


def text_bytes(text: str) -> bytes:
    """The bytes of a ``str`` of docs/record-format.md. A text that is too long is cut after a whole character."""
    raw = text.encode("utf-8", "replace")
    if len(raw) > LONGEST_TEXT:
        raw = raw[:LONGEST_TEXT].decode("utf-8", "ignore").encode()
    return TEXT_LENGTH.pack(len(raw)) + raw


def leb128_encode(numbers: NDArray[np.uint64]) -> bytes:
    """The LEB128 bytes of unsigned 64-bit numbers: seven bits per byte, lowest first.

    All bytes of a number except its last have the top bit set.
    """
    shifts = np.arange(0, 7 * LONGEST_LEB128, 7, dtype=np.uint64)
    digits = (numbers[:, None] >> shifts) & np.uint64(0x7F)
    rest = numbers[:, None] >> shifts
    used = rest != 0
    used[:, 0] = True
    more = np.zeros_like(used)
    more[:, :-1] = used[:, 1:]
    return bytes((digits | (more * np.uint64(CONTINUED)))[used].astype(np.uint8))


def leb128_check(data: Bytes, count: int) -> None:
    """Raise MalformedError unless the bytes hold exactly ``count`` numbers. This is cheap: no number is computed."""
    raw = np.frombuffer(data, dtype=np.uint8)
    if np.count_nonzero(raw < CONTINUED) != count or (raw.size and raw[-1] >= CONTINUED):
        raise MalformedError(f"its {raw.size} bytes of LEB128 are not {count} numbers")


def leb128_decode(data: Bytes, count: int) -> NDArray[np.uint64]:
    """The numbers in the bytes. MalformedError unless there are exactly ``count`` of them, each below 2^64."""
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
    """Map signed numbers to unsigned ones: 0, -1, 1, -2, ... become the bits of 0, 1, 2, 3, ..."""
    bits: NDArray[np.int64] = (numbers << 1) ^ (numbers >> 63)
    return bits


def unzigzags(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The signed numbers from which ``zigzags`` made these."""
    plain: NDArray[np.int64] = (numbers >> np.uint64(1)).view(np.int64) ^ -(numbers & np.uint64(1)).view(np.int64)
    return plain


def _run_lengths(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each place, how many places from it on follow each other without a gap."""
    ends = np.flatnonzero(np.diff(places, append=places[-1] + 2) != 1)
    at = np.arange(places.size)
    return ends[np.searchsorted(ends, at)] - at + 1


def _long_ones(raw: NDArray[np.uint8], first: NDArray[np.int64], length: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Decode the LEB128 numbers of several bytes. ``first``: place of each first byte; ``length``: bytes of each.

    Most numbers have a single byte, so this slower path is only for the others.
    """
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


# Decode and encode one packed array: frame of reference (the base), bit planes and exceptions.


MOST_ELEMENTS = 65_536
BITS_OF_A_BYTE = 8
WIDEST_ELEMENT = 63
ARRAY_HEAD = struct.Struct("<IqBBH")

PLANE_WIDTHS = tuple(tuple(p for p in (32, 16, 8, 4, 2, 1) if width & p) for width in range(WIDEST_ELEMENT + 1))
"""For each width of an element, the bits of each plane."""

Unsigned = NDArray[np.unsignedinteger]
_HOLDERS = tuple(np.dtype(f"u{size}") for size in (1, 2, 4, 8))
_SHIFTS = {p: np.arange(0, 8, p, dtype=np.uint8)[:, None] for p in (1, 2, 4)}
_WIDTHS = np.arange(WIDEST_ELEMENT + 1, dtype=np.uint64)
_RANKS = np.array((0.0, 1 / 4096, 1 / 1024, 1 / 256, 1 / 64, 1 / 16, 1 / 4))
"""Ranks of the values that the writer tries as the base.

A few low outliers cost less as exceptions than as one more bit in every element.
"""


Numbers = TypeVar("Numbers", int, Int64Array)


class ArrayLayout(NamedTuple, Generic[Numbers]):
    """The head of a packed array and the offsets of its parts. All lengths are already checked.

    ``planes``, ``positions``, ``end``: offsets of the planes, of the exceptions' positions, and of the array's end.
    Of many packed arrays, each field is an array with one element for each of them.
    """

    n: Numbers
    base: Numbers
    width: Numbers
    value_size: Numbers
    exceptions: Numbers
    planes: Numbers
    positions: Numbers
    end: Numbers


@lru_cache(maxsize=256)
def plane_bytes(n: int, width: int) -> int:
    """The bytes of all planes of an array. Each plane is filled up to a whole byte."""
    return sum((n * p + 7) // 8 for p in PLANE_WIDTHS[width])


def array_layout(data: Bytes, at: int = 0) -> ArrayLayout[int]:
    """Read and check the head of the packed array at an offset. MalformedError if it is impossible."""
    if at + ARRAY_HEAD.size > len(data):
        raise MalformedError(f"it ends within the head of the packed array at {at}")
    n, base, width, value_size, exceptions = ARRAY_HEAD.unpack_from(data, at)
    if n > MOST_ELEMENTS or width > WIDEST_ELEMENT or value_size not in (4, 8) or exceptions > n:
        raise MalformedError(f"a packed array is impossible: {n} elements of {width} bits with {exceptions} exceptions")
    planes = at + ARRAY_HEAD.size
    positions = planes + plane_bytes(n, width)
    end = positions + exceptions * (2 + value_size)
    if end > len(data):
        raise MalformedError(f"a packed array of {n} elements ends {end - len(data)} bytes too early")
    return ArrayLayout(n, base, width, value_size, exceptions, planes, positions, end)


def decode_array(data: Bytes, at: int = 0) -> tuple[Int64Array, int]:
    """The integers of the packed array at an offset, and the offset after the array. MalformedError if it is wrong."""
    head = array_layout(data, at)
    return decode_array_at(data, head), head.end


def decode_array_at(data: Bytes, head: ArrayLayout[int]) -> Int64Array:
    """The integers of a packed array whose head is already read."""
    if not head.width:
        values = np.empty(head.n, dtype=np.int64)
        values.fill(head.base)
    else:
        planes = np.frombuffer(data, dtype=np.uint8, count=head.positions - head.planes, offset=head.planes)
        values = join_planes(planes, head.n, head.width).astype(np.int64)
        values += head.base
    if head.exceptions:
        put_exceptions(data, head, values)
    return values


def join_planes(planes: NDArray[np.uint8], n: int, width: int) -> Unsigned:
    """The unsigned elements of planes, in the narrowest type that holds them, because narrow types are fast.

    ``planes``: the bytes of one array, or a row of bytes for each of several arrays of equal length and width.
    """
    holder = _holder(width)
    lowest, *others = PLANE_WIDTHS[width]
    at, shift = (n * lowest + 7) // 8, lowest
    joined = _spread(planes[..., :at], n, lowest).astype(holder)
    for p in others:
        end = at + (n * p + 7) // 8
        plane = _spread(planes[..., at:end], n, p).astype(holder)
        plane <<= holder.type(shift)
        joined |= plane
        at, shift = end, shift + p
    return joined


@lru_cache(maxsize=64)
def _holder(width: int) -> np.dtype[np.unsignedinteger]:
    return next(holder for holder in _HOLDERS if 8 * holder.itemsize >= width)


def _spread(plane: NDArray[np.uint8], n: int, p: int) -> Unsigned:
    """The n elements of one plane with p bits each."""
    if p >= BITS_OF_A_BYTE:
        return plane.view(f"<u{p // 8}")
    spread = plane[..., None, :] >> _SHIFTS[p]
    spread &= np.uint8((1 << p) - 1)
    return spread.reshape(*plane.shape[:-1], -1)[..., :n]


def check_exceptions(data: Bytes, head: ArrayLayout[int]) -> NDArray[np.uint16]:
    """Positions of the exceptions; MalformedError unless they increase and lie inside the array."""
    positions = np.frombuffer(data, dtype="<u2", count=head.exceptions, offset=head.positions)
    if head.exceptions and (positions[-1] >= head.n or (positions[1:] <= positions[:-1]).any()):
        raise MalformedError("the positions of a packed array's exceptions are out of order")
    return positions


def put_exceptions(data: Bytes, head: ArrayLayout[int], values: Int64Array) -> None:
    """Set the exceptions in a decoded array: the values that its planes do not hold."""
    positions = check_exceptions(data, head)
    at = head.positions + 2 * head.exceptions
    differences = np.frombuffer(data, dtype=f"<i{head.value_size}", count=head.exceptions, offset=at)
    values[positions] = differences.astype(np.int64) + head.base


def encode_array(values: ArrayLike) -> bytes:
    """Pack at most 65,536 integers of 64 bits, with the base and width that give the fewest bytes.

    ValueError if there are more integers, or more than one dimension.
    """
    array = np.ascontiguousarray(values, dtype=np.int64)
    if array.ndim != 1 or array.size > MOST_ELEMENTS:
        raise ValueError(
            f"a packed array has one dimension and at most {MOST_ELEMENTS} elements, not the shape {array.shape}"
        )
    if not array.size:
        return ARRAY_HEAD.pack(0, 0, 0, 4, 0)
    base, width = _choose_base_and_width(np.sort(array))
    delta = (array - base).view(np.uint64)
    odd = np.flatnonzero(delta >> np.uint64(width))
    differences = delta[odd].view(np.int64)
    delta[odd] = 0
    value_size = 4 if np.array_equal(differences, differences.astype(np.int32)) else 8
    head = ARRAY_HEAD.pack(array.size, base, width, value_size, odd.size)
    tail = odd.astype("<u2").tobytes() + differences.astype(f"<i{value_size}").tobytes()
    planes = []
    for p in PLANE_WIDTHS[width]:
        planes.append(_plane(delta & np.uint64((1 << p) - 1), p))
        delta = delta >> np.uint64(p)
    return b"".join((head, *planes, tail))


def _choose_base_and_width(ordered: Int64Array) -> tuple[np.int64, int]:
    """The base and width that need the fewest bytes, for sorted values.

    A binary search counts the exceptions of each choice.
    """
    bases = ordered[(_RANKS * (ordered.size - 1)).astype(np.int64)][:, None]
    low = np.searchsorted(ordered, bases)
    reach = (np.uint64(1) << _WIDTHS) - np.uint64(1)
    room = (np.int64(2**63 - 1) - bases).view(np.uint64)
    tops = bases + np.minimum(reach, room).view(np.int64)
    high = np.searchsorted(ordered, tops, side="right")
    exceptions = ordered.size - (high - low)
    far_below = (bases - ordered[0]).view(np.uint64) > 2**31
    far_above = ((ordered[-1] - bases).view(np.uint64) >= 2**31) & (high < ordered.size)
    planes = np.array([plane_bytes(ordered.size, width) for width in range(WIDEST_ELEMENT + 1)])
    cost = planes + exceptions * np.where(far_below | far_above, 10, 6)
    row, width = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return bases[row, 0], int(width)


def _plane(bits: NDArray[np.uint64], p: int) -> bytes:
    if p >= BITS_OF_A_BYTE:
        return bits.astype(f"<u{p // 8}").tobytes()
    per_byte = 8 // p
    spread = np.zeros(((bits.size + per_byte - 1) // per_byte) * per_byte, dtype=np.uint8)
    spread[: bits.size] = bits
    shifted = spread.reshape(per_byte, -1) << _SHIFTS[p]
    return bytes(np.bitwise_or.reduce(shifted, axis=0))


# Decode the packed arrays of many small chunks together. The bytes of all chunks are one array, and each property, such
# as the base, is an array with one element for each packed array.


ByteArray = NDArray[np.uint8]

ARRAY_HEAD_TYPE = np.dtype([("n", "<u4"), ("base", "<i8"), ("width", "u1"), ("size", "u1"), ("exceptions", "<u2")])


def fields_at(data: ByteArray, at: Int64Array, what: np.dtype[np.void]) -> NDArray[np.void]:
    """The fields of type ``what`` at each offset, as an array of records. The offsets must lie inside the data."""
    rows = data[at[:, None] + np.arange(what.itemsize)]
    return np.ascontiguousarray(rows).view(what)[:, 0]


def array_layouts(data: ByteArray, at: Int64Array, ends: Int64Array) -> ArrayLayout[Int64Array]:
    """Read the heads of the packed arrays at the offsets. ``ends``: the end of each array's chunk.

    MalformedError if a head is impossible or an array does not fit into its chunk.
    """
    if (at + ARRAY_HEAD_TYPE.itemsize > ends).any():
        raise MalformedError("it ends within the head of a packed array")
    head = fields_at(data, at, ARRAY_HEAD_TYPE)
    n, base, width, size, exceptions = (head[name].astype(np.int64) for name in ARRAY_HEAD_TYPE.names or ())
    sizes = ((size == 4) | (size == 8)).all()
    if not sizes or (n > MOST_ELEMENTS).any() or (width > WIDEST_ELEMENT).any() or (exceptions > n).any():
        raise MalformedError("a packed array is impossible")
    planes = at + ARRAY_HEAD_TYPE.itemsize
    positions = planes + sum((n * p + 7) // 8 * (width & p > 0) for p in PLANE_WIDTHS[WIDEST_ELEMENT])
    end = positions + exceptions * (2 + size)
    if (end > ends).any():
        raise MalformedError("a packed array ends too early")
    found = ArrayLayout(n, base, width, size, exceptions, planes, positions, end)
    for odd in np.flatnonzero(exceptions).tolist():
        check_exceptions(data.data, layout_of_one(found, odd))
    return found


def layout_of_one(many: ArrayLayout[Int64Array], number: int) -> ArrayLayout[int]:
    """The layout of the packed array with this number."""
    return ArrayLayout(*(int(column[number]) for column in many))


def decode_array_batch(data: ByteArray, heads: ArrayLayout[Int64Array]) -> Int64Array:
    """The integers of all packed arrays, one array after the other."""
    ends = np.cumsum(heads.n)
    values = np.repeat(heads.base, heads.n)
    kind = heads.n * (WIDEST_ELEMENT + 1) + heads.width
    for each in sorted(set(kind[(heads.n > 0) & (heads.width > 0)].tolist())):
        n, width = divmod(each, WIDEST_ELEMENT + 1)
        mine = np.flatnonzero(kind == each)
        planes = data[heads.planes[mine, None] + np.arange(plane_bytes(n, width))]
        places = ends[mine, None] - n + np.arange(n)
        values[places] += join_planes(planes, n, width).astype(np.int64)
    for odd in np.flatnonzero(heads.exceptions).tolist():
        end = int(ends[odd])
        put_exceptions(data.data, layout_of_one(heads, odd), values[end - int(heads.n[odd]) : end])
    return values
