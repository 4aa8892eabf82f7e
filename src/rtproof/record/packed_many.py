# SPDX-License-Identifier: Apache-2.0
"""Packed arrays of many small chunks, decoded together: numpy takes as long for one of ten elements as for a thousand.

The chunks stand one behind the other in one array of bytes, and whatever is said of them is an array with an element
for each.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtproof.record import Int64Array, packed
from rtproof.record.wire import MalformedError

Bytes = NDArray[np.uint8]

HEAD = np.dtype([("n", "<u4"), ("base", "<i8"), ("width", "u1"), ("size", "u1"), ("exceptions", "<u2")])


class Layouts(NamedTuple):
    """As ``packed.Layout``, of many arrays."""

    n: Int64Array
    base: Int64Array
    width: Int64Array
    value_size: Int64Array
    exceptions: Int64Array
    planes: Int64Array
    positions: Int64Array
    end: Int64Array


def fields(data: Bytes, at: Int64Array, what: np.dtype[np.void]) -> NDArray[np.void]:
    """Fields of fixed width at each of the offsets, which must lie inside the data."""
    rows = data[at[:, None] + np.arange(what.itemsize)]
    return np.ascontiguousarray(rows).view(what)[:, 0]


def layouts(data: Bytes, at: Int64Array, ends: Int64Array) -> Layouts:
    """Heads of the arrays at the offsets; MalformedError if any cannot be one or does not fit its chunk."""
    if (at + HEAD.itemsize > ends).any():
        raise MalformedError("it ends within the head of a packed array")
    head = fields(data, at, HEAD)
    n, base, width, size, exceptions = (head[name].astype(np.int64) for name in HEAD.names or ())
    sizes = ((size == 4) | (size == 8)).all()
    if not sizes or (n > packed.MOST).any() or (width > packed.WIDEST).any() or (exceptions > n).any():
        raise MalformedError("a packed array is impossible")
    planes = at + HEAD.itemsize
    positions = planes + sum((n * p + 7) // 8 * (width & p > 0) for p in packed.PARTS[packed.WIDEST])
    end = positions + exceptions * (2 + size)
    if (end > ends).any():
        raise MalformedError("a packed array ends too early")
    found = Layouts(n, base, width, size, exceptions, planes, positions, end)
    for odd in np.flatnonzero(exceptions).tolist():
        packed.check_exceptions(data.data, one(found, odd))
    return found


def one(many: Layouts, number: int) -> packed.Layout:
    """The head of a single array."""
    return packed.Layout(*(int(column[number]) for column in many))


def decode(data: Bytes, heads: Layouts) -> Int64Array:
    """The integers of all arrays, one behind the other."""
    ends = np.cumsum(heads.n)
    values = np.repeat(heads.base, heads.n)
    kind = heads.n * (packed.WIDEST + 1) + heads.width
    for each in np.unique(kind[(heads.n > 0) & (heads.width > 0)]).tolist():
        n, width = divmod(each, packed.WIDEST + 1)
        mine = np.flatnonzero(kind == each)
        planes = data[heads.planes[mine, None] + np.arange(packed.plane_bytes(n, width))]
        places = ends[mine, None] - n + np.arange(n)
        values[places] += packed.join_planes(planes, n, width).astype(np.int64)
    for odd in np.flatnonzero(heads.exceptions).tolist():
        end = int(ends[odd])
        packed.put_exceptions(data.data, one(heads, odd), values[end - int(heads.n[odd]) : end])
    return values
