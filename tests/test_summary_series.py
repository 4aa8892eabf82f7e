# SPDX-License-Identifier: Apache-2.0
"""Everything that is read off samples, against counting activation by activation."""

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SECOND, SERIES, array, block, count, record, slice_of
from analysis_records import block as block_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.core.errors import RecordError
from rtproof.record import histogram_bins
from rtproof.record.contents import Block, Seconds, Series, View
from rtproof.summary import per_second, series
from rtproof.summary import tally as summary_tally_module
from rtproof.summary.moments import moments_of_counts
from rtproof.summary.quantiles import offset_and_spread
from rtproof.summary.series import SeriesPart, pooled, summarise
from rtproof.summary.summary_model import Summary
from rtproof.summary.tally import Tally

PERIOD = 100 * MS
GRID = replace(SERIES, period_ns=PERIOD, first_due_ns=35 * MS)
FREE = replace(GRID, on_grid=False)
LATENCY = st.integers(-1000, 60_000) | st.integers(0, 3 * PERIOD)


@st.composite
def grid_blocks(draw: st.DrawFn) -> list[Block]:
    """Blocks with missed activations behind late ones, and now and then a hole between blocks."""
    blocks, index = [], draw(st.integers(0, 3))
    for values in draw(st.lists(st.lists(LATENCY, min_size=1, max_size=12), min_size=1, max_size=6)):
        gaps = {at: v // PERIOD for at, v in enumerate(values) if v >= PERIOD}
        blocks.append(block(values, gaps, index, GRID))
        index += len(values) + sum(gaps.values()) + draw(st.sampled_from((0, 0, 0, 5)))
    return blocks


def free_blocks(values: list[list[int]]) -> list[Block]:
    blocks, index, due = [], 0, FREE.first_due_ns
    for some in values:
        blocks.append(Block(0, index, due, np.array(some, np.int64), array(), array()))
        index += len(some)
        due += sum(some) + len(some) * PERIOD
    return blocks


def check(series: Series, blocks: list[Block], starts: list[int], part: SeriesPart) -> None:
    expected = count(series, blocks, starts)
    lo, n = part.observed.counts.lo, part.observed.counts.n
    assert np.repeat(lo, n).tolist() == sorted(expected.observed)
    assert np.repeat(part.charged.counts.lo, part.charged.counts.n).tolist() == sorted(expected.charged)
    assert part.charged.moments.count == len(expected.charged)
    assert (part.lag.pairs, part.lag.sum_products) == (expected.pairs, expected.products)
    assert part.lag.catch_up_pairs == expected.catch_up
    seconds = zip(*(getattr(part.seconds, name).tolist() for name in ("obtained", "missed", "max")), strict=True)
    assert {s: x for s, x in zip(part.seconds.second.tolist(), seconds, strict=True) if any(x)} == {
        s: x for s, x in expected.seconds.items() if any(x)
    }
    top = zip((-part.top.value).tolist(), part.top.index.tolist(), part.top.due_ns.tolist(), strict=True)
    assert list(top) == expected.top[: part.top.k]


@settings(deadline=None)
@given(grid_blocks(), st.data())
def test_on_the_grid(blocks: list[Block], data: st.DataObject) -> None:
    starts = [b.first_due_ns for b in blocks if data.draw(st.booleans())]
    check(GRID, blocks, starts, series.part_of_samples(GRID, blocks, array(*sorted(starts)), k=5))


@settings(deadline=None)
@given(st.lists(st.lists(LATENCY, min_size=1, max_size=9), min_size=1, max_size=6), st.data())
def test_off_the_grid(values: list[list[int]], data: st.DataObject) -> None:
    blocks = free_blocks(values)
    starts = sorted({b.first_due_ns for b in blocks if data.draw(st.booleans())})
    check(FREE, blocks, starts, series.part_of_samples(FREE, blocks, array(*starts), k=5))


@settings(deadline=None)
@given(grid_blocks(), st.integers(1, 40))
def test_long_stretches_change_nothing(blocks: list[Block], longest: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rtproof.summary.per_second.LONGEST", longest)
        check(GRID, blocks, [], series.part_of_samples(GRID, blocks, array(), k=5))


def test_a_long_gap_is_charged_without_being_spelt_out() -> None:
    missed = 3_000_000
    late = block([missed * PERIOD + 7], {0: missed}, series=GRID)
    part = series.part_of_samples(GRID, [late], array(), 5)
    assert part.charged.moments.count == part.charged.counts.total == missed
    assert (part.charged.moments.min, part.charged.moments.max) == (7, (missed - 1) * PERIOD + 7)
    assert int(part.seconds.missed.sum()) == missed


def test_a_stall_of_years_is_refused() -> None:
    with pytest.raises(RecordError, match="claims a stall of 11574 days"):
        series.part_of_samples(GRID, [block([5], {0: 10_000_000_000}, series=GRID)], array(), 5)


def test_a_run_of_years_is_refused() -> None:
    """No sample of it is missing: only its period says how long it would have been."""
    slow = replace(GRID, period_ns=104 * 86_400_000_000_000)
    assert series.part_of_samples(slow, [block([5] * 3, {}, series=slow)], array(), 5).observed.counts.total == 3
    with pytest.raises(RecordError, match="claims a run of 416 days"):
        series.part_of_samples(slow, [block([5] * 4, {}, series=slow)], array(), 5)


VALUES = st.lists(st.integers(-1000, 10**9), min_size=1, max_size=30)


@given(st.lists(VALUES, min_size=1, max_size=6))
def test_slices_add_up_to_the_run(pieces: list[list[int]]) -> None:
    made, due = [], 0
    for values in pieces:
        counted = count(SERIES, [block_of(values)])
        made.append(slice_of(SERIES, View.OBSERVED, values, range(due, due + len(values) * MS, MS), counted))
        due += len(values) * MS
    flat = [value for values in pieces for value in values]
    part = series.part_of_slices(made)
    cells, n = np.unique(histogram_bins.bin_of(np.array(flat)), return_counts=True)
    lo, hi = histogram_bins.bin_edges(cells)
    assert part.observed.counts.lo.tolist() == lo.tolist()
    assert part.observed.counts.hi.tolist() == hi.tolist()
    assert part.observed.counts.n.tolist() == n.tolist()
    assert (part.observed.moments.sum, part.observed.moments.max) == (sum(flat), max(flat))
    assert part.observed.moments.sum_squares == sum(v * v for v in flat)
    assert part.lag.pairs == len(flat) - len(pieces)


OTHER = replace(SERIES, id=1, thread=5, cpu=3)
VALUES_POOL = st.lists(st.integers(0, 10 * MS), min_size=1, max_size=50)


def summaries(a: list[int], b: list[int]) -> tuple[Summary, ...]:
    return summarise(record([block(a), block(b, series=OTHER)], [SERIES, OTHER]), 1)


@settings(deadline=None)
@given(VALUES_POOL, VALUES_POOL)
def test_all_threads_together_are_all_their_values(a: list[int], b: list[int]) -> None:
    whole = pooled(summaries(a, b))
    assert whole.observed_counts.total == len(a) + len(b)
    assert whole.observed == moments_of_counts(whole.observed_counts)
    assert whole.top.value.tolist() == sorted(a + b, reverse=True)[:100]
    assert whole.span_ns == max(len(a), len(b)) * MS
    assert (whole.expected, whole.lag.pairs) == (len(a) + len(b), len(a) + len(b) - 2)
    assert whole.seconds.obtained.tolist() == [len(a) + len(b)]
    assert whole.seconds.max.tolist() == [max(a + b)]


def test_threads_with_periods_of_their_own_have_a_common_rate() -> None:
    faster, slower = summaries([1], [2])
    slower = replace(slower, series=replace(slower.series, period_ns=3 * MS))
    assert pooled((faster, faster)).series.period_ns == MS
    assert pooled((faster, slower)).series.period_ns == 1_500_000
    assert pooled((faster, replace(slower, series=replace(slower.series, period_ns=0)))).series.period_ns == MS


def test_the_largest_values_say_whose_they_are() -> None:
    whole = pooled(summaries([10, 30, 30], [20, 40, 30]))
    assert whole.top.value.tolist() == [40, 30, 30, 30, 20, 10]
    assert whole.top.series is not None
    assert whole.top.series.tolist() == [1, 0, 0, 1, 1, 0]
    assert whole.threads == (0, 5)
    assert whole.series.cpu == -1


def test_a_constant_lateness_is_offset_and_not_jitter() -> None:
    (summary,) = summarise(record([block([360_000 + i for i in range(200)])]))
    found = offset_and_spread(summary)
    assert (found.offset, found.jitter, found.peak_to_peak) == (360_099, 196, 199)
    assert found.deviation == pytest.approx(np.std(np.arange(200), ddof=1))
    assert found.drift_ppm is None


def test_off_the_grid_lateness_adds_up_to_drift() -> None:
    """Each cycle is 60 us longer than its millisecond."""
    free = replace(SERIES, on_grid=False)
    (summary,) = summarise(record([Block(0, 0, 0, np.full(1001, 60_000), array(), array())], [free]))
    assert offset_and_spread(summary).drift_ppm == pytest.approx(60_000)
    assert summary.span_ns == 1000 * (MS + 60_000) + MS


SLOW = replace(SERIES, period_ns=400_000_000, first_due_ns=-400_000_000)


def seconds_of(one: Series, some: Block) -> Seconds:
    return per_second.seconds_of(one, per_second.join_blocks(one, [some])[0])


def as_lists(seconds: Seconds) -> list[tuple[int, int, int, int]]:
    columns = (seconds.second, seconds.obtained, seconds.missed, seconds.max)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_an_activation_belongs_to_the_second_of_its_due_time() -> None:
    """Due at -0.4, 0, 0.4, 0.8, 1.2 and 1.6 s."""
    found = seconds_of(SLOW, block([9, 1, 7, 5, -3, -4], series=SLOW))
    assert as_lists(found) == [(-1, 1, 0, 9), (0, 3, 0, 7), (1, 2, 0, -3)]


def test_seconds_in_which_nothing_ran_have_their_missed_ones() -> None:
    """-0.4 ran; 0 to 1.6 were missed; 2.0 ran; 2.4 was missed; 2.8 ran, and 3.2 to 4.4 were missed."""
    found = seconds_of(SLOW, block([2_000_000_001, 400_000_001, 1_600_000_001], {0: 5, 1: 1, 2: 4}, series=SLOW))
    assert as_lists(found) == [
        (-1, 1, 0, 2_000_000_001),
        (0, 0, 3, 0),
        (1, 0, 2, 0),
        (2, 2, 1, 1_600_000_001),
        (3, 0, 2, 0),
        (4, 0, 2, 0),
    ]


def test_two_sources_on_the_same_activations_are_joined_not_added() -> None:
    torn = Seconds(array(4, 5), array(1000, 400), array(0, 2), array(70, 30))
    whole = Seconds(array(4, 5, 6), array(1000, 998, 10), array(0, 2, 0), array(70, 90, 5))
    assert as_lists(per_second.join_seconds(torn, whole)) == as_lists(whole)


@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(1, 20)), max_size=20))
def test_each_missed_activation_is_charged_until_the_thread_ran(gaps: list[tuple[int, int]]) -> None:
    late, missed = (np.array([gap[i] for gap in gaps], np.int64) for i in (0, 1))
    expected = [v - j * MS for v, m in gaps for j in range(1, m + 1)]
    assert summary_tally_module.lateness_of_missed(late, missed, MS).tolist() == expected


@pytest.mark.parametrize("pending", [1, 3, 1000])
def test_batches_and_long_gaps_charge_the_same(pending: int, monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = {0: 7, 1: 2, 3: 4}
    values = [7 * MS + 1, 2 * MS + 2, 5, 4 * MS + 3]
    monkeypatch.setattr(summary_tally_module, "PENDING", pending)
    tally = Tally()
    late, missed = array(*(values[at] for at in gaps)), array(*gaps.values())
    summary_tally_module.charge_gaps(tally, MS, late, missed)
    counts = tally.result().counts
    expected = sorted(values[at] - j * MS for at, m in gaps.items() for j in range(1, m + 1))
    assert np.repeat(counts.lo, counts.n).tolist() == expected


@pytest.mark.parametrize("period_ns", [300_000_000, SECOND, 2_300_000_000])
def test_many_missed_activations_are_counted_as_few_are(period_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    off = replace(SERIES, period_ns=period_ns, on_grid=False, external=True)
    some = block([7, 8, 9, 10], {0: 11, 1: 1, 3: 40}, series=off)
    one_by_one = as_lists(seconds_of(off, some))
    monkeypatch.setattr(per_second, "MOST_AT_ONCE", 0)
    assert as_lists(seconds_of(off, some)) == one_by_one
    assert sum(missed for _, _, missed, _ in one_by_one) == 52
