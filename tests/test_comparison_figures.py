# SPDX-License-Identifier: Apache-2.0

import math
from dataclasses import replace

import numpy as np
import pytest
from analysis_records import BEGIN, MS, SECOND, SERIES, block, fact, record

from rtproof.compare.run_metrics import LEAST, RunFigures, figures_of, figures_of_histogram, time_blocks
from rtproof.judge.analyse import analyse
from rtproof.record import histogram_bins
from rtproof.record.contents import Moment, Record, Slice, View
from rtproof.summary.counts import Counts

VALUES = [1_000 + 10 * i for i in range(2_000)]


def of(values: list[int]) -> RunFigures:
    return figures_of(analyse(record([block(values)]), None, 1), "a run")


def histogram(counts: list[int], width: int = 1_000, overflow: int = 0) -> RunFigures:
    at = np.flatnonzero(counts).astype(np.int64) * width
    n = np.array([each for each in counts if each], np.int64)
    return figures_of_histogram("h", Counts(at, at + width - 1, n), {"probe": "cyclictest"}, overflow)


def test_quantiles_are_logarithms_of_nearest_ranks() -> None:
    run = of(VALUES)
    assert run.name == "a run"
    assert run.n == 2_000
    for p, rank in ((0.5, 1_000), (0.99, 1_980), (0.999, 1_998)):
        assert run.quantile(p).ln == pytest.approx(math.log(VALUES[rank - 1]))
    assert "2,000 values do not reach to 99.99 %" in run.quantile(0.9999).why


def test_the_mean_of_the_maxima_of_seconds() -> None:
    values = [1_000] * 3_000
    values[500], values[1_500], values[2_999] = 10_000, 100_000, 5_000
    expected = (math.log(10_000) + math.log(100_000) + math.log(5_000)) / 3
    assert of(values).second_maxima.ln == pytest.approx(expected)


def test_none_above_a_level_still_has_a_logarithm() -> None:
    run = of([1_000] * 99)
    assert run.above(1_000) == (0, 0)
    assert run.share_above(1_000).ln == pytest.approx(math.log(0.5 / 100))
    assert run.share_above(999).ln == pytest.approx(math.log(99.5 / 100))


def test_early_wake_ups_have_no_ratio() -> None:
    run = of([-5_000] * 900 + [100] * 200)
    assert run.quantile(0.5).ln is None
    assert "only what is above 0 has a ratio" in run.quantile(0.5).why
    assert run.quantile(0.99).ln == pytest.approx(math.log(100))
    assert "only what is has a ratio" in of([-5] * 1_000 + [10] * 1_000).second_maxima.why


def test_a_histogram_has_bins_and_no_time() -> None:
    run = histogram([0, 0, 500, 499, 1])
    reading = run.quantile(0.5)
    assert (reading.ln_low, reading.ln) == (math.log(2_000), math.log(2_999))
    assert run.quantile(0.999).ln == pytest.approx(math.log(3_999))
    assert "no order of time" in run.second_maxima.why
    assert run.facts["view"] == "observed"
    assert histogram([600, 400]).quantile(0.5).ln is None


def test_beyond_a_full_scale_there_is_no_quantile() -> None:
    run = histogram([0, 900, 50], overflow=50)
    assert run.n == 1_000
    assert run.quantile(0.5).ln == pytest.approx(math.log(1_999))
    assert "beyond the scale" in run.quantile(0.99).why
    assert run.above(1_999) == (100, 100)


def test_the_views_are_told_apart() -> None:
    stalled = analyse(record([block([5_000] * 500 + [400_000_000] + [5_000] * 500, {500: 399})]), None, 1)
    seen, due = (figures_of(stalled, view=view) for view in (View.OBSERVED, View.CHARGED))
    assert (seen.facts["view"], due.facts["view"]) == ("observed", "schedule")
    assert (seen.n, due.n, seen.missed) == (1_001, 1_400, 399)
    assert (due.quantile(0.99).ln or 0) > 4 + (seen.quantile(0.99).ln or 0)


def test_when_it_was_started_and_booted() -> None:
    begin = replace(BEGIN, origin_realtime_ns=1_700_000_000 * SECOND, origin_monotonic_ns=600 * SECOND)
    run = figures_of(analyse(record([block(VALUES)], begin=begin), None, 1))
    assert (run.started_ns, run.booted_ns) == (1_700_000_000 * SECOND, 1_699_999_400 * SECOND)
    assert of(VALUES).booted_ns is None


def test_why_a_run_is_invalid_is_kept() -> None:
    facts = (fact("policy", "fifo"), fact("priority", "80"), fact("policy", "other", Moment.START, 0))
    run = figures_of(analyse(record([block(VALUES)], facts=facts), None, 1))
    assert run.invalid
    assert "policy" in run.invalid[0]


def slices(seconds: int, lengths_s: int) -> Record:
    """A summary of one value a second, 300 ns and the number of its slice."""
    parts = []
    for number, start in enumerate(range(0, seconds, lengths_s)):
        value, n = 300 + number, lengths_s
        times = (start * SECOND, (start + lengths_s) * SECOND - MS)
        sums = (n, 0, value, value, n * value, n * value * value, 0, 0, 0)
        parts.append(Slice(0, View.OBSERVED, *times, *sums, histogram_bins.bin_of([value]), np.array([n])))
    series = replace(SERIES, has_samples=False)
    return record([], (series,), slices=tuple(parts), end=None)


def test_a_long_run_has_blocks_of_ten_minutes() -> None:
    found = time_blocks(slices(7_200, 10))
    assert (found.length_ns, len(found.counts)) == (600 * SECOND, 12)
    assert [each.total for each in found.counts] == [600] * 12
    assert sum(each.n.size for each in found.counts) == 720


def test_a_shorter_one_has_shorter_blocks() -> None:
    found = time_blocks(slices(1_200, 10))
    assert len(found.counts) >= LEAST
    assert found.length_ns < 600 * SECOND


@pytest.mark.parametrize("seconds", [60, 1_200])
def test_too_few_parts_of_time_are_no_blocks(seconds: int) -> None:
    found = time_blocks(slices(seconds, seconds // 4))
    assert not found.counts
    assert "4 parts of time" in found.why
    assert "no summary" in time_blocks(record([block(VALUES)])).why
