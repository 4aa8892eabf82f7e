# SPDX-License-Identifier: Apache-2.0
"""What an agent says about a stretch of activations: SUMMARY and SECONDS (docs/record-format.md)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.record import Int64Array, Seconds, Series, Slice, View, bins

SECOND_NS = 1_000_000_000
LARGEST = (1 << 63) - 1
CLOSE = 1 << 16
SLICE_SHARE = 32
"""A slice ends when it is this part of the run before it,"""
SLICE_MOST_NS = 600 * SECOND_NS
"""or this long; always at a checkpoint."""


@dataclass(frozen=True)
class Activations:
    """Activations that ran, in order; ``missed``: how many due times directly behind each had none."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    missed: Int64Array

    def part(self, start: int, stop: int) -> "Activations":
        return self.where(slice(start, stop))

    def where(self, which: slice | NDArray[np.bool_]) -> "Activations":
        return Activations(self.index[which], self.due_ns[which], self.value[which], self.missed[which])

    def then(self, later: "Activations") -> "Activations":
        return together([self, later])


NONE = Activations(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


def together(parts: list[Activations]) -> Activations:
    """Activations in several pieces, at least one, as one."""
    if len(parts) == 1:
        return parts[0]
    return Activations(
        np.concatenate([part.index for part in parts]),
        np.concatenate([part.due_ns for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.missed for part in parts]),
    )


def activations(series: Series, index: int, due_ns: int, value: Int64Array, missed: Int64Array) -> Activations:
    """Number consecutive activations and give them their due times; the first has the index and due time given."""
    skipped = np.cumsum(missed) - missed
    steps = np.arange(value.size) + skipped
    if series.by_period:
        return Activations(index + steps, due_ns + steps * series.period_ns, value, missed)
    due = due_ns + np.cumsum(value + series.period_ns) - (value + series.period_ns)
    return Activations(index + steps, due, value, missed)


def missed_ones(series: Series, some: Activations) -> tuple[Int64Array, Int64Array]:
    """Due time and lateness of each missed activation: number j behind one with latency v is v - j * period late."""
    before = np.repeat(np.cumsum(some.missed) - some.missed, some.missed)
    number = np.arange(1, before.size + 1) - before
    after_ns = number * series.period_ns
    return np.repeat(some.due_ns, some.missed) + after_ns, np.repeat(some.value, some.missed) - after_ns


def slice_ends(checkpoints: int, before: int, checkpoint_ns: int) -> bool:
    """Whether a slice that began behind ``before`` checkpoints ends with this one, which is that many's last."""
    length = checkpoints - before
    return SLICE_SHARE * length >= before or length * checkpoint_ns >= SLICE_MOST_NS


def slices(series: Series, some: Activations) -> list[Slice]:
    """Both views of a stretch, each only if it holds an activation."""
    pairs = max(some.value.size - 1, 0)
    products = exact_dot(some.value[1:], some.value[:-1])
    observed = _slice(series, View.OBSERVED, some.due_ns, some.value, (pairs, products, catch_up_pairs(series, some)))
    charged = _slice(series, View.CHARGED, *missed_ones(series, some), (0, 0, 0))
    return [part for part in (observed, charged) if part.count]


def _slice(series: Series, view: View, due_ns: Int64Array, value: Int64Array, lag: tuple[int, int, int]) -> Slice:
    pairs, products, catch_up = lag
    places, counts = _counted(bins.index(value))
    return Slice(
        series=series.id,
        view=view,
        first_due_ns=int(due_ns[0]) if value.size else 0,
        last_due_ns=int(due_ns[-1]) if value.size else 0,
        count=value.size,
        lost=0,
        min=int(value.min()) if value.size else 0,
        max=int(value.max()) if value.size else 0,
        sum=int(value.sum()),
        sum_squares=exact_dot(value, value),
        pairs=pairs,
        sum_products=products,
        catch_up_pairs=catch_up,
        bins=places,
        bin_counts=counts,
    )


def _counted(places: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Distinct bins and how often each comes; without sorting where they lie close together, as they usually do."""
    low = int(places.min()) if places.size else 0
    if not places.size or int(places.max()) - low > CLOSE:
        distinct, counts = np.unique(places, return_counts=True)
        return distinct, counts.astype(np.int64)
    dense = np.bincount(places - low)
    at = np.flatnonzero(dense)
    return at + low, dense[at].astype(np.int64)


def exact_dot(a: Int64Array, b: Int64Array) -> int:
    """Sum of products, in integers without a limit where 64 bits could overflow."""
    if not a.size:
        return 0
    reach = max(abs(int(a.min())), abs(int(a.max()))) * max(abs(int(b.min())), abs(int(b.max())))
    if reach * a.size <= LARGEST:
        return int(np.dot(a, b))
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def catch_up_pairs(series: Series, some: Activations) -> int:
    """Cycles longer than 1.2 periods that one shorter than 0.8 follows."""
    cycle = np.diff(some.due_ns + some.value)
    long, short = 5 * cycle > 6 * series.period_ns, 5 * cycle < 4 * series.period_ns
    return int(np.count_nonzero(long[:-1] & short[1:]))


def seconds(series: Series, some: Activations) -> Seconds:
    """Per-second numbers from the first second to the last that anything was due in."""
    ran = some.due_ns // SECOND_NS
    gone = missed_ones(series, some)[0] // SECOND_NS
    both = np.concatenate((ran, gone))
    first, end = int(both.min()), int(both.max()) + 1
    most = np.full(end - first, np.iinfo(np.int64).min)
    np.maximum.at(most, ran - first, some.value)
    obtained = np.bincount(ran - first, minlength=end - first)
    missed = np.bincount(gone - first, minlength=end - first)
    return Seconds(np.arange(first, end), obtained, missed, np.where(obtained > 0, most, 0))
