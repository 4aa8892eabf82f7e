# SPDX-License-Identifier: Apache-2.0
"""What an agent says about a stretch of activations: SUMMARY and SECONDS (docs/record-format.md)."""

from dataclasses import dataclass

import numpy as np

from rtproof.record import Int64Array, Seconds, Series, Slice, View, bins

SECOND_NS = 1_000_000_000
LARGEST = (1 << 63) - 1


@dataclass(frozen=True)
class Activations:
    """Activations that ran, in order; ``missed``: how many due times directly behind each had none."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    missed: Int64Array

    def part(self, start: int, stop: int) -> "Activations":
        where = slice(start, stop)
        return Activations(self.index[where], self.due_ns[where], self.value[where], self.missed[where])

    def then(self, later: "Activations") -> "Activations":
        return Activations(
            np.concatenate((self.index, later.index)),
            np.concatenate((self.due_ns, later.due_ns)),
            np.concatenate((self.value, later.value)),
            np.concatenate((self.missed, later.missed)),
        )


NONE = Activations(*(np.zeros(0, dtype=np.int64) for _ in range(4)))


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


def slices(series: Series, some: Activations) -> list[Slice]:
    """Both views of a stretch, each only if it holds an activation."""
    pairs = max(some.value.size - 1, 0)
    products = exact_dot(some.value[1:], some.value[:-1])
    observed = _slice(series, View.OBSERVED, some.due_ns, some.value, (pairs, products, catch_up_pairs(series, some)))
    charged = _slice(series, View.CHARGED, *missed_ones(series, some), (0, 0, 0))
    return [part for part in (observed, charged) if part.count]


def _slice(series: Series, view: View, due_ns: Int64Array, value: Int64Array, lag: tuple[int, int, int]) -> Slice:
    pairs, products, catch_up = lag
    places, counts = np.unique(bins.index(value), return_counts=True)
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
        bin_counts=counts.astype(np.int64),
    )


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
