# SPDX-License-Identifier: Apache-2.0
"""How many runs a tuning needs, against trying one knob at a time by ABBA, on the same machine with the same answer.

The machine is that of ``tests/test_tuning_simulated.py``: 25 knobs, of which two help and one hurts. An answer is right
if it keeps the two; of both, at most 5 % keep another one. Of ABBA, the least number of blocks counts that is right
in as many trials as the tuning, or in SHARE of them. A run takes as long in both, so the ratio of runs is that of time.
"""

from collections.abc import Iterator
from statistics import mean

import numpy as np
from test_tuning_simulated import KNOBS, METRIC, Drift, machine, steady, steps, tuned, warming

from acceptance import Row, Simulation, at_least
from rtproof.statistics import student_quantile
from rtproof.tune.tuning import ALPHA, Measure

EFFECTS = {"knob0": -0.5, "knob1": -0.4, "knob2": 0.3}
RIGHT = {"knob0", "knob1"}
DRIFTS: dict[str, Drift] = {"steady": steady, "warming": warming, "steps": steps}
MOST_BLOCKS = 16
SHARE = 0.95
OWN, POOLED = "scatter of each knob's own runs", "scatter of all runs"


def ratios(short: bool) -> Iterator[Row]:
    """For each drift: the runs and the right answers of both, and the ratio of the runs."""
    times = 30 if short else 100
    for name, drift in DRIFTS.items():
        found = [tuned(EFFECTS, 0, drift, seed) for seed in range(times)]
        runs = mean(each.runs for each in found)
        right = mean(set(each.kept or ()) >= RIGHT for each in found)
        yield Row(f"{name}: runs of a tuning", runs)
        yield Row(f"{name}: right answers of tunings", right)
        for scatter in (OWN, POOLED):
            blocks, as_right = _blocks_of_abba(drift, times, min(right, SHARE), pooled=scatter == POOLED)
            abba = blocks * 4 * len(KNOBS)
            yield Row(f"{name}: runs of ABBA, {scatter}", abba)
            yield Row(f"{name}: right answers of ABBA, {scatter}", as_right)
            yield at_least(f"{name}: ratio of time, {scatter}", abba / runs, 1)
    together = mean(set(tuned({}, -0.6, steady, seed).kept or ()) == {"knob3", "knob7"} for seed in range(times))
    yield at_least("two that only help together: right answers of tunings", together, 0.8)
    alone = [_kept_by_abba(machine({}, -0.6, steady, seed), MOST_BLOCKS) for seed in range(10 if short else 30)]
    yield Row("two that only help together: right answers of ABBA", mean(each == {"knob3", "knob7"} for each in alone))


def _blocks_of_abba(drift: Drift, times: int, right: float, *, pooled: bool) -> tuple[int, float]:
    """The least number of blocks of each knob that is right as often, and how often it is right."""
    share = 0.0
    for blocks in range(2, MOST_BLOCKS + 1):
        kept = [_kept_by_abba(machine(EFFECTS, 0, drift, seed), blocks, pooled=pooled) for seed in range(times)]
        share = mean(each >= RIGHT for each in kept)
        if share >= right:
            return blocks, share
    return MOST_BLOCKS, share


def _kept_by_abba(measure: Measure, blocks: int, *, pooled: bool = False) -> set[str]:
    """The knobs that lower the metric, tried one after another; all of them err with at most ALPHA, as in a tuning."""
    differences = np.array([[_block(measure, name) for _ in range(blocks)] for name in KNOBS])
    deviation = differences.std(axis=1, ddof=1)
    freedom = blocks - 1
    if pooled:
        deviation[:] = np.sqrt((deviation**2).mean())
        freedom *= len(KNOBS)
    reach = student_quantile(1 - ALPHA / len(KNOBS) / 2, freedom) * deviation / np.sqrt(blocks)
    return {name for name, helps in zip(KNOBS, differences.mean(axis=1) + reach < 0, strict=True) if helps}


def _block(measure: Measure, name: str) -> float:
    """What the knob does, from four runs: off, on, on, off."""
    turns = (frozenset[str](), frozenset({name}), frozenset({name}), frozenset[str]())
    off, on, again, last = (metrics[METRIC] for turn in turns if (metrics := measure(turn)))
    return (on + again - off - last) / 2


SIMULATIONS = (Simulation("17_tuning", "a tuning needs less time than ABBA of one knob at a time", ratios),)
