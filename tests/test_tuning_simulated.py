# SPDX-License-Identifier: Apache-2.0
"""Tunings of simulated machines whose truth is known: what helps, what does nothing, and how the machine drifts."""

import math
import random
from collections.abc import Callable, Mapping

import pytest

from rtproof.tune import tuning
from rtproof.tune.effects import LEAST_DEVIATION
from rtproof.tune.tuning import Metrics, Tuning, plan, tune

METRIC = "max"
KNOBS = tuple(f"knob{number}" for number in range(25))
TUNINGS = 200
RUNS = 180
SCATTER = 0.15

Drift = Callable[[int, random.Random], float]


def machine(effects: Mapping[str, float], together: float, drift: Drift, seed: int) -> tuning.Measure:
    """A machine on which knob3 and knob7 do something only together, and that is slower or faster from run to run."""
    drawn = random.Random(f"machine {seed}")
    count = 0

    def measure(on: frozenset[str]) -> Metrics:
        nonlocal count
        count += 1
        ln = sum(effects.get(name, 0) for name in on) + together * ({"knob3", "knob7"} <= on)
        return {METRIC: 4 + ln + drift(count, drawn) + drawn.gauss(0, SCATTER)}

    return measure


def tuned(effects: Mapping[str, float], together: float, drift: Drift, seed: int) -> Tuning:
    asked = plan(KNOBS, RUNS)
    assert asked
    return tune(asked, METRIC, machine(effects, together, drift, seed), seed)


def steady(_count: int, _drawn: random.Random) -> float:
    return 0


def warming(count: int, _drawn: random.Random) -> float:
    return 0.02 * count


def rhythm(period: float) -> Drift:
    return lambda count, _: 0.5 * math.sin(2 * math.pi * count / period)


def bursts(_count: int, drawn: random.Random) -> float:
    return drawn.expovariate(1) if drawn.random() < 0.1 else 0


def steps(count: int, _drawn: random.Random) -> float:
    return 0.7 * (count // 40 % 2)


DRIFTS = {
    "steady": steady,
    "warming": warming,
    "every other run": rhythm(2),
    "every 8 runs": rhythm(8),
    "every 17": rhythm(17),
    "bursts": bursts,
    "steps": steps,
}


@pytest.mark.parametrize("drift", DRIFTS.values(), ids=DRIFTS)
def test_knobs_that_do_nothing_win_in_at_most_5_percent(drift: Drift) -> None:
    winners = sum(bool(tuned({}, 0, drift, seed).kept) for seed in range(TUNINGS))
    # 5 % of 200 is 10; 17 or more come with a probability of 1 % if 5 % is the truth.
    assert winners < 17


@pytest.mark.parametrize("drift", [steady, warming, steps])
def test_planted_knobs_are_found_and_others_are_not(drift: Drift) -> None:
    effects = {"knob0": -0.5, "knob1": -0.4, "knob2": 0.3}
    found = [tuned(effects, 0, drift, seed) for seed in range(40)]
    assert sum(set(each.kept or ()) >= {"knob0", "knob1"} for each in found) >= 36
    assert sum(bool(set(each.kept or ()) - {"knob0", "knob1"}) for each in found) <= 6
    covered = [
        low <= effects.get(knob.name, 0) <= high
        for each in found
        for knob in each.knobs
        for low, high in [knob.effects[METRIC].interval(0.05)]
    ]
    assert len(covered) == 40 * len(KNOBS)
    assert sum(covered) / len(covered) > 0.93


def test_two_knobs_that_only_help_together_are_found_together() -> None:
    found = [tuned({}, -0.6, steady, seed) for seed in range(40)]
    assert sum(set(each.kept or ()) == {"knob3", "knob7"} for each in found) >= 36


def test_a_knob_of_the_size_that_was_announced_is_found() -> None:
    announced = [math.log(tuned({}, 0, steady, seed).detectable_ratio() or 1) for seed in range(50)]
    found = [tuned({"knob0": -effect}, 0, steady, seed).kept or () for seed, effect in enumerate(announced)]
    # It is announced for 4 of 5. Fewer than 33 of 50 come with a probability of 0.6 % then.
    assert sum("knob0" in kept for kept in found) >= 33


def test_a_knob_that_hurts_has_its_sign() -> None:
    found = tuned({"knob2": 0.6}, 0, steady, 1)
    hurting = next(knob for knob in found.knobs if knob.name == "knob2")
    assert hurting.effects[METRIC].interval(hurting.alpha)[0] > 0
    assert "knob2" not in (found.kept or ())


@pytest.mark.parametrize("runs", range(8, 400, 7))
def test_a_plan_keeps_to_its_runs(runs: int) -> None:
    asked = plan(KNOBS, runs)
    if asked is None:
        assert runs < tuning.PILOT_RUNS + 2 * tuning.LEAST_BLOCKS
        return
    assert asked.runs <= runs
    assert asked.blocks >= tuning.LEAST_BLOCKS
    assert asked.knobs + asked.left_out == KNOBS


def test_a_budget_that_ends_leaves_what_was_measured() -> None:
    asked = plan(KNOBS, RUNS)
    assert asked
    measure = machine({"knob0": -0.8}, 0, steady, 1)
    for runs in (0, 1, 3, 30, 2 * asked.pairs + 6, 2 * asked.pairs + 40, 2 * asked.pairs + 80):
        left = runs

        def some(on: frozenset[str]) -> Metrics | None:
            nonlocal left
            if not left:
                raise tuning.OutOfTimeError
            left -= 1
            return measure(on)

        found = tune(asked, METRIC, some, 3)
        assert found.runs == runs
        assert found.unfinished
        assert bool(found.kept) == (runs >= 2 * asked.pairs + 80)


def test_runs_that_cannot_be_judged_are_counted_and_left_out() -> None:
    asked = plan(KNOBS, RUNS)
    assert asked
    drawn = random.Random(4)
    measure = machine({"knob0": -0.8}, 0, steady, 1)
    found = tune(asked, METRIC, lambda on: None if drawn.random() < 0.02 else measure(on), 3)
    assert 0 < found.lost < 12
    assert "knob0" in (found.kept or ())
    nothing = tune(asked, METRIC, lambda on: None, 3)
    assert nothing.kept is None
    assert nothing.lost == tuning.PILOT_RUNS
    assert "could not be measured twice" in nothing.unfinished


@pytest.mark.parametrize(("effect", "kept"), [(-0.0002, None), (-0.5, ("knob0",))])
def test_runs_that_are_all_alike_do_not_make_a_nanosecond_sure(effect: float, kept: tuple[str, ...] | None) -> None:
    asked = plan(KNOBS[:2], 40)
    assert asked
    found = tune(asked, METRIC, lambda on: {METRIC: 4 + effect * ("knob0" in on)}, 1)
    assert found.deviation == LEAST_DEVIATION
    assert found.kept == kept
    effects = {knob.name: knob.effects[METRIC].interval(knob.alpha) for knob in found.knobs}
    assert effects["knob0"][0] < effect < effects["knob0"][1]
    assert effects["knob1"][0] < 0 < effects["knob1"][1]
