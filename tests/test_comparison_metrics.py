# SPDX-License-Identifier: Apache-2.0

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from analysis_records import SECOND, block, record
from comparison_cases import FACTS, latencies, run_of, side

from rtproof.compare.comparison_model import ComparisonFinding
from rtproof.compare.effects import (
    MARGIN,
    ComparedMetric,
    compared_metrics,
    metric_effects,
    overall_finding,
    pooled_counts,
    reference_levels,
)
from rtproof.compare.run_metrics import (
    HOST_CLOCK,
    NO_CLOCK,
    FigureReading,
    RunFigures,
    figures_of,
    figures_of_histogram,
    started_by_host,
)
from rtproof.judge.analyse import analyse
from rtproof.record.contents import View
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
    assert run.quantile(0.9999).ln is None


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
    assert "only values above 0 have a ratio" in run.quantile(0.5).why
    assert run.quantile(0.99).ln == pytest.approx(math.log(100))
    assert "only values above 0 have a ratio" in of([-5] * 1_000 + [10] * 1_000).second_maxima.why


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


# Which metrics runs have, their levels, and the effects that are made of them.


def metric(a: list[float], b: list[float], unit: str = "ratio", width: float = 0.0) -> ComparedMetric:
    """Of these logarithms; ``width``: how much of each its bin leaves open downwards."""
    readings = [tuple(FigureReading(x, x - width, x) for x in some) for some in (a, b)]
    return ComparedMetric("m", "m", unit, (readings[0], readings[1]))


def test_levels_are_of_both_sides_together_whatever_their_order() -> None:
    random = np.random.default_rng(1)
    a, b = ([run_of(latencies(random, 60_000, factor)) for _ in range(3)] for factor in (1.0, 2.0))
    levels, impossible = reference_levels(a, b)
    assert levels == reference_levels(b, a)[0]
    assert impossible == ()
    together = pooled_counts((*a, *b))
    for level, share in zip(levels, (1e-3, 1e-4), strict=True):
        assert together.exceedances(level)[1] / together.total == pytest.approx(share, rel=0.1)


def test_few_values_have_no_far_level() -> None:
    levels, impossible = reference_levels(side(1, 3), side(2, 3))
    assert (len(levels), len(impossible)) == (1, 1)


def test_a_level_is_where_no_bin_of_any_run_is_cut() -> None:
    """Exact values beside bins of a microsecond."""
    exact = run_of(np.arange(1, 20_001) * 7)
    at = np.arange(0, 140_000, 1_000)
    coarse = figures_of_histogram("h", Counts(at, at + 999, np.full(at.size, 143)), FACTS)
    (level, *_), _ = reference_levels([exact], [coarse])
    for run in (exact, coarse):
        least, most = run.above(level)
        assert least == most


def test_every_run_needs_the_metric() -> None:
    a = side(1, 3)
    short = replace(run_of(np.full(50, 9_000)), name="short")
    found, impossible = compared_metrics([*a, short], a, [10_000])
    assert [one.key for one in found] == ["p50", "above_10000", "second_maxima"]
    assert {one.metric: one.why for one in impossible}["p99"] == "short: 50 values do not reach to 99 %"


def test_the_ratio_is_that_of_geometric_means() -> None:
    (effect,) = metric_effects([metric([math.log(2), math.log(8)], [math.log(1), math.log(4)])])
    assert [effect.a, effect.b, effect.ratio] == pytest.approx([4, 2, 2])
    assert effect.run_factor == pytest.approx(math.exp(math.sqrt(2 * 2 * math.log(2) ** 2 / 2)))
    assert effect.margin == pytest.approx(1 + MARGIN)
    assert effect.p is None


def test_bins_widen_the_interval_by_what_they_leave_open() -> None:
    a, b = [1.0, 1.1, 1.2, 1.0, 1.1], [2.0, 2.1, 2.2, 2.0, 2.1]
    (plain,), (coarse,) = metric_effects([metric(a, b)]), metric_effects([metric(a, b, width=0.2)])
    assert plain.low is not None
    assert plain.high is not None
    assert coarse.low == pytest.approx(plain.low * math.exp(-0.2))
    assert coarse.high == pytest.approx(plain.high * math.exp(0.2))
    assert coarse.p == plain.p


def test_bins_hide_what_lies_within_them() -> None:
    """Runs that do not scatter show every difference but for the margin, and no bin tells what lies in it."""
    (found,) = metric_effects([metric([1.0] * 5, [1.0] * 5, width=0.2)])
    assert found.detectable == pytest.approx((1 + MARGIN) * math.exp(0.2))
    least = math.log(found.detectable or 0)
    (shown,) = metric_effects([metric([1.0] * 5, [1.01 + least] * 5, width=0.2)])
    (hidden,) = metric_effects([metric([1.0] * 5, [0.99 + least] * 5, width=0.2)])
    assert (shown.finding, hidden.finding) == (ComparisonFinding.A_BETTER, ComparisonFinding.NO_DIFFERENCE)


def test_holm_makes_each_metric_pay_for_the_others() -> None:
    clear = metric([1.0, 1.1, 1.2, 1.0, 1.1], [2.0, 2.1, 2.2, 2.0, 2.1])
    nothing = metric([1.0, 1.1, 1.2, 1.0, 1.1], [1.0, 1.1, 1.2, 1.0, 1.1])
    (alone,) = metric_effects([clear])
    assert alone.p_holm == pytest.approx(2 / 252)
    six, seven = metric_effects([clear] + [nothing] * 5), metric_effects([clear] + [nothing] * 6)
    assert [six[0].p_holm, seven[0].p_holm] == pytest.approx([12 / 252, 14 / 252])
    assert (overall_finding(six), overall_finding(seven)) == (
        ComparisonFinding.A_BETTER,
        ComparisonFinding.NO_DIFFERENCE,
    )
    assert seven[0].detectable is None
    assert overall_finding(()) is ComparisonFinding.NOT_JUDGED


@pytest.mark.parametrize("year", [1970, 2056])
def test_a_clock_that_nobody_set_tells_no_time_and_run_json_may(year: int) -> None:
    """Each boot of a board without a clock begins in 1970, so its runs seem to take turns."""
    given = record([block([1_000])])
    set_ns = given.begin.origin_realtime_ns
    unset_ns = round(datetime(year, 1, 1, 0, 1, tzinfo=UTC).timestamp()) * SECOND
    kept = figures_of(analyse(given, None, 1))
    lost = figures_of(analyse(replace(given, begin=replace(given.begin, origin_realtime_ns=unset_ns)), None, 1))
    assert (kept.started_ns, kept.unclear) == (set_ns, ())
    assert (lost.started_ns, lost.booted_ns, lost.unclear) == (None, None, (NO_CLOCK,))
    told = started_by_host(lost, "2024-05-06T07:08:09+00:00")
    assert told.started_ns == 1_714_979_289 * SECOND
    assert told.unclear == (HOST_CLOCK,)
    assert started_by_host(kept, "2024-05-06T07:08:09+00:00") == kept
    for wrong in ("1970-01-01T00:00:10+00:00", "yesterday"):
        assert started_by_host(lost, wrong) == lost
