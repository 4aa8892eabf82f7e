# SPDX-License-Identifier: Apache-2.0
"""Values that come in bursts: limits from the largest of each second cover, those from all values do not.

The process is X_i = max((1 - theta) X_(i-1), theta Z_i) with Z unit Frechet (Davis and Resnick 1989). Its values above
a high level come in bursts of 1 / theta on average, and P(largest of m <= x) = exp(-(1 + theta (m - 1)) / x) exactly.

Checked to fail: the interval from all values, taken as independent ones, is measured too and covers in about half.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np
from part import Bound
from tail_truths import Floats, Pareto, covers, level_ahead, repeated, share_of

from acceptance import Row, Simulation, at_least, at_most
from rtproof.summary.counts import counts_of_values
from rtproof.tail.pareto_fit import tail_of

THETA = 0.2
"""So bursts of five."""
PER_S = 100
SECONDS = 20_000
AHEAD = 10
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
    limit = level_ahead(counts_of_values(largest), SECONDS, AHEAD * SECONDS)
    return [
        covers(tail_of(counts_of_values(largest), SECONDS, 1), 1 / (AHEAD * SECONDS), level),
        covers(tail_of(counts_of_values(values), SECONDS * PER_S, 1), 1 / (AHEAD * SECONDS * PER_S), level),
        float(limit is not None),
        float((limit or 0) >= level),
    ]


def _09(short: bool) -> Iterator[Row]:
    """Short: 10 repetitions of each margin, judged together.

    Of 20 intervals at 95 %, 15 cover but in 3e-4; of those from all values, at 49 %, in 2 %.
    """
    repetitions, least = (10, 0.75) if short else (240, 0.91)
    rows = {name: repeated(partial(_in_bursts, margin), repetitions, short) for name, margin in MARGINS.items()}
    for name, one in {"both": np.concatenate(list(rows.values()))}.items() if short else rows.items():
        of_seconds, of_all, stated, beyond = one.T
        yield at_least(f"{name}: interval from the largest of each second covers", of_seconds.mean(), least)
        yield at_most(f"{name}: interval from all values covers", of_all.mean(), 0.7)
        yield Row(f"{name}: a limit stated", float(stated.mean()))
        yield Row(f"{name}: of these beyond the level", share_of(beyond > 0, stated > 0), Bound(least))


SIMULATIONS = (Simulation("09_bursts", "limits of values in bursts of five, at ten times the length", _09),)
