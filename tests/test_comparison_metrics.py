# SPDX-License-Identifier: Apache-2.0
"""Which metrics runs have, their levels, and the effects that are made of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from comparison_cases import FACTS, latencies, run_of, side

from rtproof.compare.comparison_model import ComparisonFinding
from rtproof.compare.effects import (
    MARGIN,
    MOST_LEVELS,
    ComparedMetric,
    compared_metrics,
    metric_effects,
    overall_finding,
    pooled_counts,
    reference_levels,
)
from rtproof.compare.run_metrics import FigureReading, RunFigures, figures_of_histogram
from rtproof.core.errors import UserError
from rtproof.summary.counts import Counts, counts_of_values


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
    assert len(levels) == 1
    assert "the shortest run has 20,000 values, of which 2 would lie above it" in impossible[0].why


def test_levels_that_were_asked_for_replace_the_others() -> None:
    asked = [300_000, 100_000, 300_000]
    assert reference_levels(side(1, 2), side(2, 2), asked) == ((100_000, 300_000), ())
    with pytest.raises(UserError, match=f"{MOST_LEVELS} levels at most"):
        reference_levels(side(1, 2), side(2, 2), [*asked, 900_000])


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
    assert coarse.notes == ("the histogram's bins leave 22.1 % of the ratio open",)


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


def test_runs_of_a_saturated_histogram_have_no_level_beyond_it() -> None:
    full = [RunFigures(f"f{i}", FACTS, counts_of_values(np.arange(1, 20_000)), overflow=500) for i in range(2)]
    levels, impossible = reference_levels(full, full)
    assert levels == ()
    assert all("beyond the scale" in one.why for one in impossible)
