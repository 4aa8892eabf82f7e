# SPDX-License-Identifier: Apache-2.0
"""The packed array of docs/record-format.md: frame of reference, bit planes, exceptions.

Every step works on whole planes, so that numpy decodes at the speed of memory.
"""

import struct
from collections import defaultdict
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rtproof.record import Int64Array
from rtproof.record.wire import Bytes, MalformedError

MOST = 65_536
BYTE = 8
WIDEST = 63
HEAD = struct.Struct("<IqBBH")

PARTS = tuple(tuple(p for p in (32, 16, 8, 4, 2, 1) if width & p) for width in range(WIDEST + 1))
"""Bits of each plane, by width of the element."""

Unsigned = NDArray[np.unsignedinteger]
_HOLDERS = tuple(np.dtype(f"u{size}") for size in (1, 2, 4, 8))
_SHIFTS = {p: np.arange(0, 8, p, dtype=np.uint8)[:, None] for p in (1, 2, 4)}
_WIDTHS = np.arange(WIDEST + 1, dtype=np.uint64)
_RANKS = np.array((0.0, 1 / 4096, 1 / 1024, 1 / 256, 1 / 64, 1 / 16, 1 / 4))
"""Bases that the writer tries, as ranks: a few low outliers cost less as exceptions than as a bit of every element."""


class Layout(NamedTuple):
    """Head of a packed array and where its parts lie; all lengths are checked."""

    n: int
    base: int
    width: int
    value_size: int
    exceptions: int
    planes: int
    positions: int
    end: int


@lru_cache(maxsize=256)
def plane_bytes(n: int, width: int) -> int:
    """Size of all planes: each is filled up to a whole byte."""
    return sum((n * p + 7) // 8 for p in PARTS[width])


def layout(data: Bytes, at: int = 0) -> Layout:
    """Read and check the head of the array at an offset; MalformedError if it cannot be one."""
    if at + HEAD.size > len(data):
        raise MalformedError(f"it ends within the head of the packed array at {at}")
    n, base, width, value_size, exceptions = HEAD.unpack_from(data, at)
    if n > MOST or width > WIDEST or value_size not in (4, 8) or exceptions > n:
        raise MalformedError(f"a packed array claims {n} elements of {width} bits with {exceptions} exceptions")
    planes = at + HEAD.size
    positions = planes + plane_bytes(n, width)
    end = positions + exceptions * (2 + value_size)
    if end > len(data):
        raise MalformedError(f"a packed array of {n} elements ends {end - len(data)} bytes too early")
    return Layout(n, base, width, value_size, exceptions, planes, positions, end)


def decode(data: Bytes, at: int = 0) -> tuple[Int64Array, int]:
    """The integers of the array at an offset, and the offset behind it."""
    head = layout(data, at)
    return decode_at(data, head), head.end


def decode_at(data: Bytes, head: Layout) -> Int64Array:
    """The integers of an array whose head is read already."""
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


def decode_all(arrays: list[tuple[Bytes, Layout]]) -> Int64Array:
    """Many arrays, one behind the other. Those alike are decoded together, as numpy takes its time with small ones."""
    ends = np.cumsum([head.n for _, head in arrays], dtype=np.int64)
    values = np.empty(int(ends[-1]) if arrays else 0, dtype=np.int64)
    alike: dict[tuple[int, int], list[int]] = defaultdict(list)
    for number, (_, head) in enumerate(arrays):
        if head.n:
            alike[head.n, head.width].append(number)
    for (n, width), numbers in alike.items():
        some = [arrays[number] for number in numbers]
        planes = b"".join(data[head.planes : head.positions] for data, head in some)
        rows = np.frombuffer(planes, dtype=np.uint8).reshape(len(some), -1)
        bases = np.array([head.base for _, head in some], dtype=np.int64)[:, None]
        places = ends[numbers][:, None] - n + np.arange(n)
        values[places] = bases + join_planes(rows, n, width).astype(np.int64) if width else bases
    for (data, head), end in zip(arrays, ends.tolist(), strict=True):
        if head.exceptions:
            put_exceptions(data, head, values[end - head.n : end])
    return values


def join_planes(planes: NDArray[np.uint8], n: int, width: int) -> Unsigned:
    """The unsigned elements, in the narrowest type that holds them: narrow types are what makes this fast.

    ``planes``: the bytes of one array, or of several alike as rows.
    """
    holder = _holder(width)
    lowest, *others = PARTS[width]
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
    """Elements of one plane."""
    if p >= BYTE:
        return plane.view(f"<u{p // 8}")
    spread = plane[..., None, :] >> _SHIFTS[p]
    spread &= np.uint8((1 << p) - 1)
    return spread.reshape(*plane.shape[:-1], -1)[..., :n]


def check_exceptions(data: Bytes, head: Layout) -> NDArray[np.uint16]:
    """Positions of the exceptions; MalformedError unless they increase and lie inside the array."""
    positions = np.frombuffer(data, dtype="<u2", count=head.exceptions, offset=head.positions)
    if head.exceptions and (positions[-1] >= head.n or (positions[1:] <= positions[:-1]).any()):
        raise MalformedError("the positions of a packed array's exceptions are out of order")
    return positions


def put_exceptions(data: Bytes, head: Layout, values: Int64Array) -> None:
    """Set those values of a decoded array that its planes do not hold."""
    positions = check_exceptions(data, head)
    at = head.positions + 2 * head.exceptions
    differences = np.frombuffer(data, dtype=f"<i{head.value_size}", count=head.exceptions, offset=at)
    values[positions] = differences.astype(np.int64) + head.base


def encode(values: ArrayLike) -> bytes:
    """Pack at most 65,536 integers of 64 bits, with the base and width that give the smallest array."""
    array = np.ascontiguousarray(values, dtype=np.int64)
    if array.ndim != 1 or array.size > MOST:
        raise ValueError(f"a packed array has one dimension and at most {MOST} elements, not the shape {array.shape}")
    if not array.size:
        return HEAD.pack(0, 0, 0, 4, 0)
    base, width = _choose(np.sort(array))
    delta = (array - base).view(np.uint64)
    odd = np.flatnonzero(delta >> np.uint64(width))
    differences = delta[odd].view(np.int64)
    delta[odd] = 0
    value_size = 4 if np.array_equal(differences, differences.astype(np.int32)) else 8
    head = HEAD.pack(array.size, base, width, value_size, odd.size)
    tail = odd.astype("<u2").tobytes() + differences.astype(f"<i{value_size}").tobytes()
    return head + _planes(delta, width) + tail


def _choose(ordered: Int64Array) -> tuple[np.int64, int]:
    """Base and width with the fewest bytes; in sorted values, a binary search counts the exceptions of each choice."""
    bases = ordered[(_RANKS * (ordered.size - 1)).astype(np.int64)][:, None]
    low = np.searchsorted(ordered, bases)
    reach = (np.uint64(1) << _WIDTHS) - np.uint64(1)
    room = (np.int64(2**63 - 1) - bases).view(np.uint64)
    tops = bases + np.minimum(reach, room).view(np.int64)
    high = np.searchsorted(ordered, tops, side="right")
    exceptions = ordered.size - (high - low)
    far_below = (bases - ordered[0]).view(np.uint64) > 2**31
    far_above = ((ordered[-1] - bases).view(np.uint64) >= 2**31) & (high < ordered.size)
    planes = np.array([plane_bytes(ordered.size, width) for width in range(WIDEST + 1)])
    cost = planes + exceptions * np.where(far_below | far_above, 10, 6)
    row, width = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return bases[row, 0], int(width)


def _planes(delta: NDArray[np.uint64], width: int) -> bytes:
    parts = []
    for p in PARTS[width]:
        parts.append(_plane(delta & np.uint64((1 << p) - 1), p))
        delta = delta >> np.uint64(p)
    return b"".join(parts)


def _plane(bits: NDArray[np.uint64], p: int) -> bytes:
    if p >= BYTE:
        return bits.astype(f"<u{p // 8}").tobytes()
    per_byte = 8 // p
    spread = np.zeros(((bits.size + per_byte - 1) // per_byte) * per_byte, dtype=np.uint8)
    spread[: bits.size] = bits
    shifted = spread.reshape(per_byte, -1) << _SHIFTS[p]
    return bytes(np.bitwise_or.reduce(shifted, axis=0))
