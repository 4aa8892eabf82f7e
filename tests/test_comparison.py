# SPDX-License-Identifier: Apache-2.0
"""Whole comparisons of runs whose truth is known."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from comparison_cases import FACTS, counted, in_time, latencies, run_of, side
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison, ComparisonFinding
from rtproof.compare.comparison_sentences import comparison_sentences
from rtproof.compare.effects import MIN_RUNS
from rtproof.compare.run_metrics import RunFigures, figures_of_histogram
from rtproof.core.errors import UserError
from rtproof.record.contents import Int64Array
from rtproof.schema.published import comparison_dict
from rtproof.summary.counts import Counts, counts_of_values


def text(said: Comparison, label: str) -> str:
    """All lines of a label."""
    found, now = [], ""
    for head, line in said.sentences:
        now = head or now
        if now == label:
            found.append(line)
    return "\n".join(found)


def test_a_large_difference_is_found_and_named() -> None:
    said = compare_sides(side(1, 5, scatter=0.05), side(2, 5, factor=2, scatter=0.05), ("new", "old"))
    assert said.finding is ComparisonFinding.A_BETTER
    assert "new is better" in text(said, "VERDICT")
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
    assert "no difference shown with 5 and 5 runs" in text(said, "VERDICT")
    assert "cannot be seen with so few" in text(said, "VERDICT")
    assert all(effect.detectable and effect.detectable > 1.05 for effect in said.effects)
    assert "takes, in runs a side" in text(said, "SEEN")


def test_a_sure_difference_that_matters_to_nobody_is_none() -> None:
    """4 % with hardly any scatter: p is as small as can be, and the interval lies within the margin of 5 %."""
    said = compare_sides(side(1, 7, scatter=0.001), side(2, 7, factor=1.04, scatter=0.001))
    p99 = next(effect for effect in said.effects if effect.metric == "p99")
    assert p99.p is not None
    assert p99.p < 0.01
    assert p99.finding is ComparisonFinding.NO_DIFFERENCE
    assert "p99: more than chance, but the interval does not lie wholly beyond a ratio of 1.05" in text(said, "VERDICT")


def test_the_figure_that_decides_is_told_before_those_that_only_differ() -> None:
    said = compare_sides(side(1, 7, scatter=0.001), side(2, 7, factor=1.3, scatter=0.001))
    first, *others = said.effects
    assert first.finding is ComparisonFinding.A_BETTER
    near = replace(first, label="the first", finding=ComparisonFinding.NO_DIFFERENCE, p_holm=0.001)
    told = [text for _, text in comparison_sentences(replace(said, effects=(near, *others)))]
    (place,) = (at for at, text in enumerate(told) if text.startswith("the first: more than chance"))
    better = [at for at, text in enumerate(told) if ": A is better, " in text]
    assert better == list(range(2, place))


def test_a_microsecond_is_a_microsecond() -> None:
    """20 % of 3 us is less than a microsecond."""
    small = side(1, 7, factor=0.15, scatter=0.001), side(2, 7, factor=0.18, scatter=0.001)
    p50 = compare_sides(*small).effects[0]
    assert p50.p is not None
    assert p50.p < 0.01
    assert p50.margin == pytest.approx(1 + 1_000 / p50.b)
    assert p50.finding is ComparisonFinding.NO_DIFFERENCE


def test_one_each_is_never_judged() -> None:
    said = compare_sides(side(1, 1), side(2, 1, factor=5))
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert "one run each cannot separate the kernel from the run" in text(said, "VERDICT")
    assert all(effect.p is None and effect.p_holm is None and effect.low is None for effect in said.effects)
    assert "unknown" in text(said, "SEEN")
    assert said.order.lower == "A"


@pytest.mark.parametrize("runs", [2, 3, 4])
def test_fewer_than_five_are_described_and_not_judged(runs: int) -> None:
    said = compare_sides(side(1, runs), side(2, 9, factor=3))
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert f"takes 5 runs a side, and there are {runs} and 9" in text(said, "VERDICT")
    assert all(effect.p is None and effect.low is not None for effect in said.effects)


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
    assert "the distributions cross" in text(said, "CURVES")


def test_invalid_runs_are_left_out_and_named() -> None:
    a = side(1, 6)
    a[2] = replace(a[2], invalid=("it ran as other and not as fifo",))
    said = compare_sides(a, side(2, 5))
    assert len(said.a.runs) == 5
    assert text(said, "LEFT OUT") == "run 1.2 of A, which is INVALID: it ran as other and not as fifo"
    everything = [replace(run, invalid=("the load died",)) for run in a]
    with pytest.raises(UserError, match=r"no run of A can be compared; of run 1\.0 it says: the load died"):
        compare_sides(everything, side(2, 5))


def test_refusals() -> None:
    with pytest.raises(UserError, match="there is no run of B"):
        compare_sides(side(1, 5), [])
    with pytest.raises(UserError, match="two quantities"):
        compare_sides(side(1, 5), side(2, 5, probe="kernel"))
    with pytest.raises(UserError, match="--although 'load'"):
        compare_sides(side(1, 5), side(2, 5, load="none of ours"))
    same = [replace(run, run_id="abc") for run in side(1, 2)]
    with pytest.raises(UserError, match=r"run 1\.0 and run 1\.1 are one and the same run"):
        compare_sides(same, side(2, 5))
    empty = RunFigures("nothing", side(1, 1)[0].facts, counted(np.empty(0, np.int64)))
    with pytest.raises(UserError, match="nothing was measured"):
        compare_sides([empty], side(2, 5))


def test_what_the_user_says_is_compared_is_labelled() -> None:
    said = compare_sides(side(1, 5), side(2, 5, load="none of ours"), although={"load"})
    assert "load: sched in A, none of ours in B, which you said is compared" in text(said, "DIFFER")


def test_runs_that_did_not_take_turns_are_told() -> None:
    a, b = side(1, 5), side(2, 5)
    one_after_the_other = compare_sides(in_time(a, 0, 1), in_time(b, 10, 1))
    assert "all runs of A came before those of B" in text(one_after_the_other, "CONDITIONS")
    assert "one boot" in text(one_after_the_other, "CONDITIONS")
    turns = compare_sides(in_time(a, 0, 2), in_time(b, 1, 2))
    assert "came before" not in text(turns, "CONDITIONS")
    other_boot = compare_sides(in_time(a, 0, 2), in_time(b, 1, 2, boot_ns=10**15))
    assert "the runs of A are of one boot" in text(other_boot, "CONDITIONS")


def test_missed_activations_are_told() -> None:
    missed = [replace(run, missed=400) for run in side(1, 5)]
    assert "2,000 activations of A never ran (2 % of those due)" in text(
        compare_sides(missed, side(2, 5)), "CONDITIONS"
    )
    assert "never ran" not in text(compare_sides(side(1, 5), side(2, 5)), "CONDITIONS")


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
    assert "no order of time" in text(said, "NOT COMPARED")
    assert "order" in next(one.why for one in said.impossible if one.metric == "second_maxima")
    p50 = said.effects[0]
    assert p50.low is not None
    assert p50.high is not None
    assert p50.high / p50.low > (4.999 / 4.0) ** 2 * 0.99
    assert "bins leave" in p50.notes[0]
    assert p50.finding is ComparisonFinding.NO_DIFFERENCE


def test_beyond_a_saturated_scale_nothing_is_compared() -> None:
    said = compare_sides(histograms(1, 5, 1, saturated_us=100), histograms(2, 5, 2, saturated_us=100))
    assert {effect.metric for effect in said.effects} == {"p50"}
    why = {one.metric: one.why for one in said.impossible}
    assert all("beyond the scale" in why[metric] for metric in ("p99", "p99.9", "above_p99.9"))
    assert said.effects[0].finding is ComparisonFinding.UNKNOWN_ORDER


def test_where_no_metric_is_possible_that_is_said() -> None:
    early = [run_of(np.full(2_000, -5_000), f"early {i}") for i in range(5)]
    said = compare_sides(early, [replace(run, name="other") for run in early])
    assert said.finding is ComparisonFinding.NOT_JUDGED
    assert not said.effects
    assert "none of the metrics is possible" in text(said, "VERDICT")


def test_a_limit_of_the_user_is_a_level() -> None:
    said = compare_sides(side(1, 5, tail=0.01), side(2, 5), levels=[60_000])
    (effect,) = [effect for effect in said.effects if effect.metric == "above_60000"]
    assert effect.label == "share above 60 us"
    assert effect.ratio > 1
    assert effect.notes == ()
    nowhere = compare_sides(side(1, 5), side(2, 5), levels=[10**10])
    assert "no run of either side has a value above 10 s" in text(nowhere, "NOT COMPARED")
    one_side = compare_sides(side(1, 5, tail=0.01), side(2, 5), levels=[300_000])
    assert any("0 of 5 and 5 of 5 runs have no value" in note for effect in one_side.effects for note in effect.notes)


def test_a_side_with_nothing_above_a_level_leaves_the_ratio_open() -> None:
    """Of 100,000 values none: at 95 % at most 3e-5 of them, and perhaps none at all."""
    a, b = side(1, 5, scatter=0.01), side(2, 5, scatter=0.01, tail=0.01)
    (effect,) = [effect for effect in compare_sides(a, b, levels=[200_000]).effects if effect.unit == "share"]
    assert effect.low == 0
    assert effect.high is not None
    assert effect.high >= 3e-5 / effect.b
    assert effect.finding is ComparisonFinding.A_BETTER
    assert "or less; p" in text(compare_sides(a, b, levels=[200_000]), "VERDICT")
    (back,) = [effect for effect in compare_sides(b, a, levels=[200_000]).effects if effect.unit == "share"]
    assert back.high is None
    assert back.low == pytest.approx(1 / effect.high)
    assert back.finding is ComparisonFinding.B_BETTER


def test_the_json_is_json_and_complete() -> None:
    for sides in ((side(1, 1), side(2, 1)), (side(1, 5), side(2, 5, factor=2, governor="powersave"))):
        found = json.loads(json.dumps(comparison_dict(compare_sides(*sides)), allow_nan=False))
        assert (found["schema"], found["version"]) == ("rtproof.comparison", 2)
        assert {"finding", "sentences", "sides", "metrics", "shift", "order", "differences"} <= set(found)
    assert found["finding"] == "A is better"
    assert found["differences"][0]["key"] == "governor"
    assert found["metrics"][0]["a_runs_ns"]
    assert found["shift"]["points"][0]["low_ns"] < found["shift"]["points"][0]["high_ns"]


def test_no_word_promises_more_than_runs_can() -> None:
    for sides in ((side(1, 1), side(2, 1)), (side(1, 5), side(2, 5)), (side(1, 5), side(2, 5, factor=3))):
        said = " ".join(line for _, line in compare_sides(*sides).sentences)
        assert not [word for word in ("worst case", "guaranteed", "safe", "proven") if word in said.lower()]
        assert "the largest latency is compared nowhere" in said


def test_simulated_runs_are_called_so() -> None:
    real = [run_of(latencies(np.random.default_rng(seed), 5_000)) for seed in (1, 2)]
    played = [replace(each, facts={**each.facts, "probe": "simulated"}) for each in real]
    assert text(compare_sides(played[:1], played[1:]), "SIMULATED").startswith("2 runs of a simulated process")
    assert text(compare_sides(real[:1], real[1:]), "SIMULATED") == ""


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
