# SPDX-License-Identifier: Apache-2.0
"""Values that come in bursts: limits from the largest of each second cover, those from all values do not.

The process is X_i = max((1 - theta) X_(i-1), theta Z_i) with Z unit Frechet (Davis and Resnick 1989). Its values above
a high level come in bursts of 1 / theta on average, and P(largest of m <= x) = exp(-(1 + theta (m - 1)) / x) exactly.

Checked to fail: the interval from all values, taken as independent ones, is measured too and covers in about half.
"""

from functools import partial

import numpy as np
from tail_truths import Floats, Pareto, repeated

from acceptance import Benchmark, Result, Value
from rtproof.record.contents import Int64Array
from rtproof.summary.counts import counts_of_values
from rtproof.tail.pareto_fit import SHAPES, TWO_SIDED_95, coarsened_excesses, fit_region, highest_excesses, tail_of
from rtproof.tail.thresholds import tail_limit

THETA = 0.2
"""So bursts of five."""
PER_S = 100
SECONDS = 20_000
AHEAD = 10
LARGEST = 1000
MARGINS = {"gpd 0": Pareto(0.0), "gpd +.2": Pareto(0.2)}


def bursts(margin: Pareto, count: int, generator: np.random.Generator) -> Floats:
    """Values in order, each distributed as the margin says. In logs the recursion is a running maximum."""
    decay = np.log1p(-THETA)
    place = np.arange(count) * decay
    fresh = np.log(THETA) - np.log(generator.exponential(size=count))
    fresh[0] -= np.log(THETA)
    frechet = np.exp(np.maximum.accumulate(fresh - place) + place)
    return margin(-np.expm1(-1 / frechet))


def _in_bursts(margin: Pareto, seed: int) -> list[float]:
    """Whether intervals from seconds and from all values cover the level; whether a limit is stated, and covers."""
    generator = np.random.default_rng([9, seed])
    values = np.floor(bursts(margin, SECONDS * PER_S, generator)).astype(np.int64)
    largest = values.reshape(SECONDS, PER_S).max(axis=1)
    per_horizon = -np.log1p(-1 / (AHEAD * SECONDS)) / (1 + THETA * (PER_S - 1))
    level = float(margin(np.array([-np.expm1(-per_horizon)]))[0])
    covered = [
        _covers(largest, 1 / (AHEAD * SECONDS), level),
        _covers(values, 1 / (AHEAD * SECONDS * PER_S), level),
    ]
    limit = tail_limit(counts_of_values(largest), SECONDS, AHEAD * SECONDS).level
    return [*covered, float(limit is not None), float((limit or 0) >= level)]


def _covers(values: Int64Array, probability: float, level: float) -> float:
    """Of the 95 % interval that takes the values for independent."""
    excesses = highest_excesses(tail_of(counts_of_values(values), values.size, 1), LARGEST)
    assert excesses is not None
    of = fit_region(coarsened_excesses(excesses), TWO_SIDED_95, SHAPES)
    return float(of.level_lower(probability) <= level <= of.level_upper(probability))


def _09(short: bool) -> Result:
    """Short: 10 repetitions of each margin, judged together.

    Of 20 intervals at 95 %, 15 cover but in 3e-4; of those from all values, at 49 %, in 2 %.
    """
    names = ("seconds", "all values", "stated", "stated and beyond")
    repetitions = 10 if short else 240
    rows = {name: repeated(partial(_in_bursts, margin), repetitions, short) for name, margin in MARGINS.items()}
    judged = [np.concatenate(list(rows.values()))] if short else list(rows.values())
    least, blunder = (0.75, 0.7) if short else (0.91, 0.7)
    holds = all(one[:, 0].mean() >= least and one[:, 1].mean() <= blunder for one in judged)
    holds &= all(one[:, 3].sum() >= least * one[:, 2].sum() for one in judged)
    value: dict[str, Value] = {
        margin: {name: round(float(share), 3) for name, share in zip(names, one.mean(axis=0), strict=True)}
        for margin, one in rows.items()
    }
    goal = (
        f"95 % interval of the level at 10 x the length covers it in {least} from one-second maxima and in at most "
        f"{blunder} from all values; limits that are stated lie beyond it in {least}"
    )
    return Result(value, goal, bool(holds))


BENCHMARKS = (Benchmark("09_bursts", "limits of values in bursts of five", _09),)
