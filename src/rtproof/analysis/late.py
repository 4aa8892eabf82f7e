# SPDX-License-Identifier: Apache-2.0
"""Late times: when at least one activation waited longer than the limit. Each stretch has bounds for both ends.

An activation that is due at s and runs with a latency v above LIMIT makes the due times from s to s + v - LIMIT late,
also those of the activations that were missed behind it. Where only the second is known, both ends have bounds that
are a second apart. ``analysis.claim`` takes for each rule the bound that can't help it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rtproof.analysis.persecond import SECOND_NS
from rtproof.record import Int64Array


@dataclass(frozen=True, eq=False)
class Late:
    """Late stretches in any order, arrays of equal length in nanoseconds of measured time.

    A stretch begins in [begin_lo, begin_hi] and ends in [end_lo, end_hi]; exact times have equal bounds.
    """

    begin_lo: Int64Array
    begin_hi: Int64Array
    end_lo: Int64Array
    end_hi: Int64Array

    @classmethod
    def exact(cls, begin_ns: ArrayLike, end_ns: ArrayLike) -> "Late":
        """Stretches whose first and last late time are known."""
        begin, end = np.asarray(begin_ns, np.int64), np.asarray(end_ns, np.int64)
        return cls(begin, begin, end, end)

    @classmethod
    def of_seconds(cls, start_ns: ArrayLike, beyond_ns: ArrayLike = 0) -> "Late":
        """Seconds that begin at start_ns and hold a late activation; late by up to beyond_ns more than the limit."""
        start = np.asarray(start_ns, np.int64)
        last = start + np.asarray(beyond_ns, np.int64)
        return cls(start, start + SECOND_NS, last, last + SECOND_NS)

    @classmethod
    def together(cls, some: "Iterable[Late]") -> "Late":
        """All stretches of several."""
        parts = list(some)
        if not parts:
            return NOTHING_LATE
        columns = zip(*((one.begin_lo, one.begin_hi, one.end_lo, one.end_hi) for one in parts), strict=True)
        return cls(*(np.concatenate(column) for column in columns))

    @property
    def size(self) -> int:
        """How many stretches there are."""
        return int(self.begin_lo.size)

    @property
    def is_exact(self) -> bool:
        """Whether every stretch has exact times."""
        return bool(np.all(self.begin_lo == self.begin_hi) and np.all(self.end_lo == self.end_hi))


_NONE = np.empty(0, np.int64)
NOTHING_LATE = Late(_NONE, _NONE, _NONE, _NONE)


def merged(begin_ns: Int64Array, end_ns: Int64Array, gap_ns: int) -> tuple[Int64Array, Int64Array]:
    """Exact stretches that are no further apart than the gap as one, in order: the claim can't tell them apart."""
    if not begin_ns.size:
        return begin_ns, end_ns
    order = np.argsort(begin_ns, kind="stable")
    begin, reach = begin_ns[order], np.maximum.accumulate(end_ns[order])
    first = np.concatenate(([True], begin[1:] - reach[:-1] > gap_ns))
    last = np.append(np.flatnonzero(first)[1:] - 1, begin.size - 1)
    return begin[first], reach[last]
