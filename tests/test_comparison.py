# SPDX-License-Identifier: Apache-2.0
"""Whole comparisons of runs whose truth is known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from comparison_cases import FACTS, counted, latencies, run_of, side
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison, ComparisonFinding, MetricEffect
from rtproof.compare.effects import MIN_RUNS, SHARE, compared_metrics, metric_effects
from rtproof.compare.run_metrics import RunFigures, figures_of_histogram
from rtproof.core.errors import UserError
from rtproof.record.contents import Int64Array
from rtproof.schema.published import comparison_dict
from rtproof.summary.counts import Counts, counts_of_values


def test_a_large_difference_is_found_and_named() -> None:
    said = compare_sides(side(1, 5, scatter=0.05), side(2, 5, factor=2, scatter=0.05), ("new", "old"))
    assert said.finding is ComparisonFinding.A_BETTER
    p99 = next(effect for effect in said.effects if effect.metric == "p99")
    assert p99.low is not None
    assert p99.high is not None
    assert p99.low < 0.5 < p99.high
    assert p99.p_holm is not None
    assert p99.p_holm < 0.05
    back = compare_sides(side(2, 5, factor=2, scatter=0.05), side(1, 5, scatter=0.05))
    assert back.finding is ComparisonFinding.B_BETTER
    assert next(e.ratio for e in back.effects if e.metric == "p99") == pytest.approx(1 / p99.ratio)


def test_without_a_difference_it_says_what_could_have_been_seen() -> None:
    said = compare_sides(side(1, 5), side(2, 5))
    assert said.finding is ComparisonFinding.NO_DIFFERENCE
    assert all(effect.detectable and effect.detectable > 1.05 for effect in said.effects)


def test_a_sure_difference_that_matters_to_nobody_is_none() -> None:
    """4 % with hardly any scatter: p is as small as can be, and the interval lies within the margin of 5 %."""
    said = compare_sides(side(1, 7, scatter=0.001), side(2, 7, factor=1.04, scatter=0.001))
    p99 = next(effect for effect in said.effects if effect.metric == "p99")
    assert p99.p is not None
    assert p99.p < 0.01
    assert p99.finding is ComparisonFinding.NO_DIFFERENCE
    back = compare_sides(side(2, 7, factor=1.04, scatter=0.001), side(1, 7, scatter=0.001))
    assert next(effect for effect in back.effects if effect.metric == "p99").finding is ComparisonFinding.NO_DIFFERENCE


def test_a_microsecond_is_a_microsecond() -> None:
    """20 % of 3 us is less than a microsecond."""
    small = side(1, 7, factor=0.15, scatter=0.001), side(2, 7, factor=0.18, scatter=0.001)
    p50 = compare_sides(*small).effects[0]
    assert p50.p is not None
    assert p50.p < 0.01
    assert p50.margin == pytest.approx(1 + 1_000 / p50.b)
    assert p50.finding is ComparisonFinding.NO_DIFFERENCE


@pytest.mark.parametrize(("runs", "others"), [(1, 1), (1, 9), (2, 9), (3, 9), (4, 9)])
def test_fewer_than_five_are_described_and_not_judged(runs: int, others: int) -> None:
    said = compare_sides(side(1, runs), side(2, others, factor=3))
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert all(effect.p is None and (effect.low is None) == (runs == 1) for effect in said.effects)


def test_each_better_in_something() -> None:
    """A is later as a rule, and B has the heavier tail."""
    said = compare_sides(side(1, 7, factor=1.6, scatter=0.02), side(2, 7, scatter=0.02, tail=0.02))
    assert said.finding is ComparisonFinding.MIXED
    assert {e.finding for e in said.effects if e.metric in ("p50", "p99.9")} == {
        ComparisonFinding.A_BETTER,
        ComparisonFinding.B_BETTER,
    }
    (crossing,) = said.order.crossings
    assert 40_000 < crossing.value < 150_000
    assert not crossing.a_lower_below


def test_invalid_runs_are_left_out_and_named() -> None:
    a = side(1, 6)
    a[2] = replace(a[2], invalid=("it ran as other and not as fifo",))
    said = compare_sides(a, side(2, 5))
    assert len(said.a.runs) == 5
    everything = [replace(run, invalid=("the load died",)) for run in a]
    with pytest.raises(UserError, match=r"no run of A can be compared; of run 1\.0 it says: the load died"):
        compare_sides(everything, side(2, 5))


SAME_RUN = [replace(run, run_id="abc") for run in side(1, 2)]
EMPTY = RunFigures("nothing", side(1, 1)[0].facts, counted(np.empty(0, np.int64)))


@pytest.mark.parametrize(
    ("a", "b", "names"),
    [
        (side(1, 5), [], "no run of B"),
        (SAME_RUN, side(2, 5), r"run 1\.0 and run 1\.1"),
        ([EMPTY], side(2, 5), "nothing was measured"),
    ],
)
def test_refusals(a: list[RunFigures], b: list[RunFigures], names: str) -> None:
    with pytest.raises(UserError, match=names):
        compare_sides(a, b)


def histograms(seed: int, runs: int, factor: float, saturated_us: int | None = None) -> list[RunFigures]:
    """As cyclictest prints them: microseconds, up to the end of its scale."""
    random = np.random.default_rng(seed)
    return [_histogram(latencies(random, 20_000, factor, tail=0.01), f"h{seed}.{i}", saturated_us) for i in range(runs)]


def _histogram(values: Int64Array, name: str, end_us: int | None) -> RunFigures:
    us, n = np.unique(values // 1_000, return_counts=True)
    kept = us < (end_us or np.inf)
    counts = Counts(us[kept] * 1_000, us[kept] * 1_000 + 999, n[kept].astype(np.int64))
    return figures_of_histogram(name, counts, {"probe": "cyclictest"}, int(n[~kept].sum()), int(values.max()))


def test_histograms_have_no_maxima_of_seconds_and_wider_intervals() -> None:
    said = compare_sides(histograms(1, 5, 0.2), histograms(2, 5, 0.2))
    assert "order" in next(one.why for one in said.impossible if one.metric == "second_maxima")
    p50 = said.effects[0]
    assert p50.low is not None
    assert p50.high is not None
    assert p50.high / p50.low > (4.999 / 4.0) ** 2 * 0.99
    assert p50.finding is ComparisonFinding.NO_DIFFERENCE


def test_beyond_a_saturated_scale_nothing_is_compared() -> None:
    said = compare_sides(histograms(1, 5, 1, saturated_us=100), histograms(2, 5, 2, saturated_us=100))
    assert {effect.metric for effect in said.effects} == {"p50"}
    why = {one.metric: one.why for one in said.impossible}
    assert all("beyond the scale" in why[metric] for metric in ("p99", "p99.9", "above_p99.9"))
    assert said.effects[0].finding is ComparisonFinding.UNKNOWN_ORDER


def effects_above(level: int, a: list[RunFigures], b: list[RunFigures]) -> list[MetricEffect]:
    """The share of values above a level, beside the other metrics."""
    return [effect for effect in metric_effects(compared_metrics(a, b, [level])[0]) if effect.unit == SHARE]


def test_the_share_above_a_level() -> None:
    (effect,) = effects_above(60_000, side(1, 5, tail=0.01), side(2, 5))
    assert effect.label == "share above 60 us"
    assert effect.ratio > 1
    assert effect.notes == ()
    assert effects_above(10**10, side(1, 5), side(2, 5)) == []
    (effect,) = effects_above(300_000, side(1, 5, tail=0.01), side(2, 5))
    assert effect.notes == ("0 of 5 and 5 of 5 runs have no value above it",)


def test_a_side_with_nothing_above_a_level_leaves_the_ratio_open() -> None:
    """Of 100,000 values none: at 95 % at most 3e-5 of them, and perhaps none at all."""
    a, b = side(1, 5, scatter=0.01), side(2, 5, scatter=0.01, tail=0.01)
    (effect,) = effects_above(200_000, a, b)
    assert effect.low == 0
    assert effect.high is not None
    assert effect.high >= 3e-5 / effect.b
    assert effect.finding is ComparisonFinding.A_BETTER
    (back,) = effects_above(200_000, b, a)
    assert back.high is None
    assert back.low == pytest.approx(1 / effect.high)
    assert back.finding is ComparisonFinding.B_BETTER


# Runs of any shape: a comparison says something that can be printed and written, or refuses in one sentence.


values = st.lists(st.one_of(st.integers(-50, 50), st.integers(0, 10**6), st.integers(10**9, 2**62)), max_size=12)
repeats = st.sampled_from([1, 7, 2_000])


@st.composite
def runs(draw: st.DrawFn) -> RunFigures:
    some = np.repeat(np.array(draw(values), np.int64), draw(repeats))
    if draw(st.booleans()) and some.size:
        return run_of(some)
    return figures_of_histogram("h", counts_of_values(some), FACTS, overflow=draw(st.sampled_from([0, 0, 3, 10**6])))


sides = st.lists(runs(), min_size=1, max_size=7)


@given(sides, sides)
@settings(deadline=None, max_examples=150)
def test_any_runs_are_compared_or_refused(a: list[RunFigures], b: list[RunFigures]) -> None:
    try:
        said = compare_sides(a, b)
    except UserError:
        return
    json.dumps(comparison_dict(said), allow_nan=False)
    assert said.sentences[0][0] == "COMPARED"
    check(said)


def check(said: Comparison) -> None:
    """What holds for every comparison."""
    n = min(len(said.a.runs), len(said.b.runs))
    assert (said.finding is ComparisonFinding.NOT_JUDGED) == (n < MIN_RUNS or not said.effects)
    for effect in said.effects:
        assert effect.ratio > 0
        assert math.isfinite(effect.ratio)
        assert (effect.p is None) == (n < MIN_RUNS)
        assert effect.low is None or effect.low <= effect.ratio * (1 + 1e-9)
        assert effect.high is None or effect.high >= effect.ratio * (1 - 1e-9)
        assert (effect.p_holm or 1) >= (effect.p or 0)
        if effect.finding is ComparisonFinding.A_BETTER:
            assert effect.high is not None
            assert effect.high < 1 / effect.margin
    assert [c.value for c in said.order.crossings] == sorted(c.value for c in said.order.crossings)


@given(sides)
@settings(deadline=None, max_examples=40)
def test_a_side_against_itself_is_never_better(some: list[RunFigures]) -> None:
    """Histograms have no number of their run, so nobody can tell that they are the same."""
    try:
        said = compare_sides(some, some)
    except UserError:
        return
    assert said.finding in (
        ComparisonFinding.NO_DIFFERENCE,
        ComparisonFinding.NOT_JUDGED,
        ComparisonFinding.NOT_INTERLEAVED,
        ComparisonFinding.UNKNOWN_ORDER,
    )
    assert said.order.lower is None
    assert not said.order.crossings


def test_runs_in_virtual_time_have_ratios_and_no_chance() -> None:
    """The same runs with a clock that shows time have intervals and p-values, which this test would see."""
    random = np.random.default_rng(5)
    sides = [[run_of(latencies(random, 5_000, factor), f"{factor}-{n}") for n in range(6)] for factor in (1.0, 2.0)]
    real = compare_sides(sides[0], sides[1])
    assert any(effect.p_holm is not None and effect.low is not None for effect in real.effects)
    virtual = [[replace(run, facts={**run.facts, "virtual time": "QEMU"}) for run in side] for side in sides]
    found = compare_sides(virtual[0], virtual[1])
    assert found.finding is ComparisonFinding.NOT_JUDGED
    assert [effect.ratio for effect in found.effects] == [effect.ratio for effect in real.effects]
    for effect in found.effects:
        assert (effect.low, effect.high, effect.p, effect.p_holm, effect.detectable) == (None,) * 5
