# SPDX-License-Identifier: Apache-2.0
"""Chunks of which a long record has tens of thousands: each kind is decoded at once.

Each function takes payloads and answers what all of them say together. MalformedError if any of them is wrong; which
one that is, only the decoder of a single chunk (``payloads``) can tell.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rtproof.record import Int64Array, packed_many
from rtproof.record.levels import MOST as MOST_LEVELS
from rtproof.record.levels import Above, Exceeding
from rtproof.record.packed_many import Bytes
from rtproof.record.wire import CONTINUED, MalformedError, leb128_decode, unzigzags

SECONDS_HEAD = np.dtype([("series", "<u2"), ("reserved", "<u2"), ("first", "<u4")])
TOP_HEAD = np.dtype([("series", "<u2"), ("k", "<u2")])
ABOVE_HEAD = np.dtype([("series", "<u2"), ("reserved", "<u2"), ("first", "<u4"), ("entries", "<u4")])
EXCEEDED_HEAD = np.dtype([("series", "<u2"), ("ended", "<u2"), ("entries", "<u4")])
SAFE = 1 << 62
LARGEST_COUNT = 1 << 42
"""No second has more activations, and no sum of them over a run leaves 64 bits."""
EMPTY = np.zeros(0, dtype=np.int64)


class Largest(NamedTuple):
    """Candidates for the largest values. k: of how many each chunk told, the smallest. number: activation index."""

    k: int
    number: Int64Array
    due_ns: Int64Array
    value: Int64Array


class Parts(NamedTuple):
    """Seconds of many chunks, a row for each; the same second may occur twice."""

    second: Int64Array
    obtained: Int64Array
    missed: Int64Array
    max: Int64Array


class _Joined(NamedTuple):
    """Payloads one behind the other, the heads they begin with, and where what follows the heads begins and ends."""

    data: Bytes
    head: NDArray[np.void]
    at: Int64Array
    ends: Int64Array


def _join(payloads: Sequence[bytes], head: np.dtype[np.void]) -> _Joined:
    data = np.frombuffer(b"".join(payloads), dtype=np.uint8)
    sizes = np.fromiter(map(len, payloads), np.int64, len(payloads))
    if (sizes < head.itemsize).any():
        raise MalformedError(f"it ends within its first {head.itemsize} bytes")
    ends = np.cumsum(sizes)
    return _Joined(data, packed_many.fields(data, ends - sizes, head), ends - sizes + head.itemsize, ends)


def seconds(payloads: Sequence[bytes]) -> Parts:
    """What the SECONDS chunks of one series say."""
    joined = _join(payloads, SECONDS_HEAD)
    columns = _columns(joined)
    n = columns[0].n
    obtained, missed, most = (packed_many.decode(joined.data, column) for column in columns)
    if n.sum() and min(obtained.min(), missed.min()) < 0:
        raise MalformedError("its seconds have negative counts")
    return Parts(_runs(joined.head["first"].astype(np.int64), n), obtained, missed, most)


def top(payloads: Sequence[bytes]) -> Largest:
    """What the TOP chunks of one series say."""
    joined = _join(payloads, TOP_HEAD)
    columns = _columns(joined)
    return Largest(int(joined.head["k"].min()), *(packed_many.decode(joined.data, column) for column in columns))


def _columns(joined: _Joined) -> list[packed_many.Layouts]:
    """Three packed arrays of equal length behind each head."""
    columns, at = [], joined.at
    for _ in range(3):
        columns.append(packed_many.layouts(joined.data, at, joined.ends))
        at = columns[-1].end
    if (at != joined.ends).any() or any((column.n != columns[0].n).any() for column in columns):
        raise MalformedError("the lengths of its arrays do not add up")
    return columns


def _runs(first: Int64Array, n: Int64Array) -> Int64Array:
    """Numbers that go on from each first one, so many each."""
    before = np.cumsum(n) - n
    return np.repeat(first - before, n) + np.arange(int(n.sum()))


def _numbers(joined: _Joined, columns: int) -> NDArray[np.uint64]:
    """The LEB128 numbers behind heads that tell how many rows there are, as such rows."""
    sizes = joined.ends - joined.at
    inside = np.ones(joined.data.size, np.bool_)
    inside[(joined.at - joined.head.dtype.itemsize)[:, None] + np.arange(joined.head.dtype.itemsize)] = False
    raw = joined.data[inside]
    rows = joined.head["entries"].astype(np.int64)
    complete = np.concatenate(([0], np.cumsum(raw < CONTINUED)))
    ends = np.cumsum(sizes)
    found = complete[ends] - complete[ends - sizes]
    if not rows.all() or (sizes < 1).any() or (found != columns * rows).any() or (raw[ends - 1] >= CONTINUED).any():
        raise MalformedError("its numbers are not as many as it says")
    return leb128_decode(raw.data, int(found.sum())).reshape(-1, columns)


def above(payloads: Sequence[bytes]) -> Above:
    """What the ABOVE chunks of one series say, by increasing second and level."""
    joined = _join(payloads, ABOVE_HEAD)
    rows = _numbers(joined, 3)
    if int(rows.max()) >= LARGEST_COUNT:
        raise MalformedError("its counts of what is above levels are impossible")
    key, ran, missed = np.ascontiguousarray(rows.T).astype(np.int64)
    sizes = joined.head["entries"].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    step, level = key // MOST_LEVELS, key % MOST_LEVELS
    follows = np.ones(step.size, np.bool_)
    follows[starts] = False
    ordered = (step > 0) | (np.diff(level, prepend=0) > 0)
    if step[starts].any() or not ordered[follows].all() or not (ran + missed).all():
        raise MalformedError("its counts of what is above levels are out of order or empty")
    since = np.cumsum(step)
    second = since + np.repeat(joined.head["first"].astype(np.int64) - since[starts], sizes)
    if int(second.min()) < 0 or int(second.max()) >= LARGEST_COUNT:
        raise MalformedError("its seconds are beyond any run")
    return _add(second * MOST_LEVELS + level, ran, missed)


def _add(key: Int64Array, ran: Int64Array, missed: Int64Array) -> Above:
    if (np.diff(key) <= 0).any():
        order = np.argsort(key, kind="stable")
        key = key[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        key, ran, missed = key[first], *(np.add.reduceat(count[order], first) for count in (ran, missed))
    return Above(key // MOST_LEVELS, key % MOST_LEVELS, ran, missed)


def exceeding(payloads: Sequence[bytes]) -> Exceeding:
    """What the EXCEEDED chunks of one series say."""
    joined = _join(payloads, EXCEEDED_HEAD)
    index, due_ns, value, lists = np.ascontiguousarray(_numbers(joined, 4).T)
    if int(index.max()) >= SAFE or int(lists.max()) >= 1 << MOST_LEVELS or not lists.all():
        raise MalformedError("what exceeds limits is in no list, or in one that cannot be")
    sizes = joined.head["entries"].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    steps = index.view(np.int64)
    follows = np.ones(steps.size, np.bool_)
    follows[starts] = False
    indices = _sums(steps, starts, sizes)
    if not steps[follows].all() or (indices < 0).any():
        raise MalformedError("what exceeds limits is out of order")
    ended = int(np.bitwise_or.reduce(joined.head["ended"]))
    return Exceeding(indices, _sums(unzigzags(due_ns), starts, sizes), unzigzags(value), lists.view(np.int64), ended)


def _sums(steps: Int64Array, starts: Int64Array, sizes: Int64Array) -> Int64Array:
    """Running sums that begin anew at each start."""
    sums = np.cumsum(steps)
    return sums - np.repeat(sums[starts] - steps[starts], sizes)
