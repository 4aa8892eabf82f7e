# SPDX-License-Identifier: Apache-2.0
"""What a record must say about its own samples, worked out from the samples alone and slowly."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from rtproof.record import histogram_bins
from rtproof.record.contents import Int64Array, Record, Series, Slice, View

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Ran:
    """Every activation of a series that ran; ``follows``: nothing is unknown between it and the one before."""

    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    missed: Int64Array
    follows: Int64Array


def ran(record: Record, series: Series) -> Ran:
    """The samples of a series, one row each: index, due time, value, missed directly after it, whether it follows."""
    rows: list[tuple[int, int, int, int, int]] = []
    expected = expected_due_ns = 0
    for block in record.blocks(series.id):
        gaps = dict(zip(block.gap_position.tolist(), block.gap_missed.tolist(), strict=True))
        index, due_ns = block.first_index, block.first_due_ns
        assert not rows or index != expected or due_ns == expected_due_ns or series.external
        for place, value in enumerate(block.values.tolist()):
            missed = gaps.get(place, 0)
            rows.append((index, due_ns, value, missed, int(bool(rows) and index == expected)))
            expected = index = index + 1 + missed
            due_ns += series.period_ns * (1 + missed) if series.by_period else series.period_ns + value
            expected_due_ns = due_ns
    columns = np.array(rows, np.int64).reshape(-1, 5).T
    return Ran(*columns)


def charged(series: Series, samples: Ran) -> tuple[Int64Array, Int64Array]:
    """Due time and lateness of every missed activation."""
    which = np.repeat(np.arange(samples.missed.size), samples.missed)
    ends = np.cumsum(samples.missed)
    number = np.arange(which.size) - (ends - samples.missed)[which] + 1
    return (samples.due_ns[which] + number * series.period_ns, samples.value[which] - number * series.period_ns)


def check(record: Record) -> None:
    """Assert that slices, seconds, largest values and totals of every series are those of its samples."""
    for series in record.series:
        samples = ran(record, series)
        check_slices(record, series, samples)
        check_seconds(record, series, samples)
        check_top(record, series, samples)
        check_totals(record, series, samples)
        check_levels(record, series, samples)


def check_slices(record: Record, series: Series, samples: Ran) -> None:
    late_due_ns, lateness = charged(series, samples)
    slices = [one for one in record.slices if one.series == series.id]
    for one in slices:
        if one.view is View.OBSERVED:
            inside = _within(one, samples.due_ns)
            check_numbers(one, samples.value[inside])
            check_pairs(one, series, samples, inside)
        else:
            check_numbers(one, lateness[_within(one, late_due_ns)])
            assert (one.lost, one.pairs, one.sum_products, one.catch_up_pairs) == (0, 0, 0, 0)
    for view, size in ((View.OBSERVED, samples.value.size), (View.CHARGED, lateness.size)):
        assert sum(one.count for one in slices if one.view is view) == size


def _within(one: Slice, due_ns: Int64Array) -> Int64Array:
    return np.flatnonzero((due_ns >= one.first_due_ns) & (due_ns <= one.last_due_ns) & (one.count > 0))


def check_numbers(one: Slice, values: Int64Array) -> None:
    numbers: list[int] = values.tolist()
    assert one.count == len(numbers)
    assert (one.min, one.max) == ((min(numbers), max(numbers)) if numbers else (0, 0))
    assert one.sum == sum(numbers)
    assert one.sum_squares == sum(number * number for number in numbers)
    counted = Counter(histogram_bins.bin_of(values).tolist())
    assert dict(zip(one.bins.tolist(), one.bin_counts.tolist(), strict=True)) == counted


def check_pairs(one: Slice, series: Series, samples: Ran, inside: Int64Array) -> None:
    values, follows = samples.value[inside].tolist(), samples.follows[inside].tolist()
    wakes = (samples.due_ns[inside] + samples.value[inside]).tolist()
    second = [at for at in range(1, len(values)) if follows[at]]
    third = [at for at in second if at > 1 and follows[at - 1]]
    catching_up = [
        at
        for at in third
        if 5 * (wakes[at - 1] - wakes[at - 2]) > 6 * series.period_ns
        and 5 * (wakes[at] - wakes[at - 1]) < 4 * series.period_ns
    ]
    assert one.pairs == len(second)
    assert one.sum_products == sum(values[at - 1] * values[at] for at in second)
    assert one.catch_up_pairs == len(catching_up)


def check_seconds(record: Record, series: Series, samples: Ran) -> None:
    told = record.seconds[series.id]
    obtained = Counter((samples.due_ns // SECOND).tolist())
    missed = Counter((charged(series, samples)[0] // SECOND).tolist())
    largest: dict[int, int] = {}
    for second, value in zip((samples.due_ns // SECOND).tolist(), samples.value.tolist(), strict=True):
        largest[second] = max(value, largest.get(second, value))
    rows = zip(told.second.tolist(), told.obtained.tolist(), told.missed.tolist(), told.max.tolist(), strict=True)
    for second, n, lacking, most in rows:
        assert (n, lacking) == (obtained.pop(second, 0), missed.pop(second, 0))
        assert n == 0 or most == largest[second]
    assert (obtained.total(), missed.total()) == (0, 0)


def check_top(record: Record, series: Series, samples: Ran) -> None:
    told = record.top[series.id]
    where = np.searchsorted(samples.index, told.index)
    assert np.array_equal(samples.index[where], told.index)
    assert np.array_equal(samples.due_ns[where], told.due_ns)
    assert np.array_equal(samples.value[where], told.value)
    assert told.value.tolist() == sorted(samples.value.tolist(), reverse=True)[: told.k]


def check_levels(record: Record, series: Series, samples: Ran) -> None:
    """Counts above each level, and the first 65,536 above each limit; of a learned level also where it lies."""
    late_due_ns, lateness = charged(series, samples)
    levels = record.levels.get(series.id, ())
    for level in levels:
        rows = zip(level.second.tolist(), level.ran.tolist(), level.missed.tolist(), strict=True)
        told = {second: (n, gone) for second, n, gone in rows}
        high = (samples.value > level.value) & (samples.due_ns >= level.since_ns)
        late = (lateness > level.value) & (late_due_ns >= level.since_ns)
        ran = Counter((samples.due_ns[high] // SECOND).tolist())
        missed = Counter((late_due_ns[late] // SECOND).tolist())
        assert told == {second: (ran[second], missed[second]) for second in {*ran, *missed}}
        listed = np.flatnonzero(high)[:65_536] if not level.learned else high[:0]
        assert level.index.tolist() == samples.index[listed].tolist()
        assert level.due_ns.tolist() == samples.due_ns[listed].tolist()
        assert level.above.tolist() == samples.value[listed].tolist()
        assert level.list_ended == (listed.size == 65_536)
    asked = [int(word) for word in (record.fact("limits_ns") or "").split(",") if word]
    assert not asked or [level.value for level in levels if not level.learned] in (asked, [])
    check_learned(record, series, samples)


def check_learned(record: Record, series: Series, samples: Ran) -> None:
    learned = [level for level in record.levels.get(series.id, ()) if level.learned]
    first_minute = samples.due_ns < series.first_due_ns + 60 * SECOND
    taught = np.sort(samples.value[first_minute])
    expected = [share for share in (0.001, 0.0001) if round(taught.size * share, 6) >= 5 and not first_minute.all()]
    assert [level.share for level in learned] in (expected, [])
    for level in learned:
        at_most = int(round(taught.size * level.share, 6))
        assert level.taught == taught.size
        assert level.value == histogram_bins.bin_edges(histogram_bins.bin_of(taught[taught.size - at_most - 1]))[1]
        assert level.since_ns == samples.due_ns[~first_minute][0]


def check_totals(record: Record, series: Series, samples: Ran) -> None:
    assert record.end is not None
    totals = next(one for one in record.end.totals if one.series == series.id)
    lost = sum(one.lost for one in record.slices if one.series == series.id)
    assert (totals.obtained, totals.missed, totals.lost) == (samples.value.size, samples.missed.sum(), lost)
    if samples.value.size:
        last = samples.index[-1] + samples.missed[-1]
        assert samples.value.size + samples.missed.sum() <= last + 1 <= totals.obtained + totals.missed + totals.lost
