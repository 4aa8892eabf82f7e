# SPDX-License-Identifier: Apache-2.0
"""Runs of any shape: a comparison says something that can be printed and written, or refuses in one sentence."""

import json
import math
from dataclasses import replace

import numpy as np
from comparison_cases import FACTS, latencies, run_of
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison, ComparisonFinding
from rtproof.compare.effects import MIN_RUNS
from rtproof.compare.run_metrics import RunFigures, figures_of_histogram
from rtproof.core.errors import UserError
from rtproof.schema.comparison_json import comparison_dict
from rtproof.summary.counts import counts_of_values

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
    assert all(point.difference == 0 for point in said.shift.points)


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
    assert {point.low for point in found.shift.points} == {None}
    said = " ".join(text for _, text in found.sentences)
    assert "not judged: the runs are deterministic (virtual time)" in said
    assert "95 %" not in said
    assert "power" not in said
