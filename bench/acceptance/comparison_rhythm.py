# SPDX-License-Identifier: Apache-2.0
"""Benchmark 11: a disturbance of every few runs makes no winner, in an order drawn by chance and in one that repeats.

Checked to fail: without ``with_rhythm``, ABBA has a winner in more than half of the series of 20 and 20 with period 4.
"""

from dataclasses import dataclass, replace
from itertools import compress, product
from math import log

import numpy as np
from numpy.typing import NDArray

from acceptance import Benchmark, Result, Value
from rtproof.compare.effects import BETTER, ComparedMetric, effects_in_turns, metric_effects
from rtproof.compare.likeness import drawn_order, run_turns
from rtproof.compare.run_metrics import FigureReading, RunFigures
from rtproof.compare.run_rhythm import with_rhythm
from rtproof.summary.counts import counts_of_dense_bins

Floats = NDArray[np.float64]
METRICS = 5
OF_RUN, OF_METRIC = 0.2, 0.1
"""Standard deviations of the logarithms: of a run, alike in all metrics, and of each metric of a run by itself."""
LEVEL_LN = log(1e6)
FACTORS = (2.0, 4.0)
"""How much slower the disturbed runs are; the larger share of false winners counts."""
REAL = 1.5
PERIODS = (2, 3, 4, 8)
SURELY_NO_WINNER = 2.3
"""A smaller t in every metric makes no winner, so nothing more is computed."""
RUN = RunFigures("run", {}, counts_of_dense_bins(np.ones(1, np.int64)), started_ns=0)


@dataclass(frozen=True)
class Series:
    """Series of n runs a side. period: of the disturbance, which makes a run slower by factor. real: of B's runs."""

    order: str
    n: int
    period: int = 2
    factor: float = 1.0
    real: float = 1.0


def rhythms(short: bool) -> Result:
    """Shares of series with a winner: by the sides' figures alone, as compare names it, and named without a doubt."""
    random = np.random.default_rng(112)
    times, runs = (40, (8,)) if short else (1_000, (5, 8, 12, 20))
    most = 0.125 if short else 0.05
    value: dict[str, Value] = {}
    holds = True
    for n, order in product(runs, ("ABBA", "ABAB", "drawn")):
        none, real = (_shares(Series(order, n, real=ratio), times, random) for ratio in (1.0, REAL))
        found = {
            period: np.max([_shares(Series(order, n, period, factor), times, random) for factor in FACTORS], axis=0)
            for period in PERIODS
        }
        rows = {"no disturbance": none, f"B slower by {REAL:g}": real}
        rows |= {f"period {period}": shares for period, shares in found.items()}
        value[f"{n} and {n}, {order}"] = {key: [float(share) for share in row] for key, row in rows.items()}
        disturbed = max(float(row[1 if order == "drawn" else 2]) for row in found.values())
        holds = holds and max(float(none[1]), disturbed) <= most and bool(real[1] >= real[0] - most)
    goal = (
        f"of {times:,} series a winner in at most {most} in drawn orders, and in orders that repeat in at most {most} "
        f"without a doubt; at most {most} lose the winner of a difference by {REAL:g}"
    )
    return Result(value, goal, holds)


def _shares(kind: Series, times: int, random: np.random.Generator) -> Floats:
    at = np.arange(2 * kind.n)
    count = np.zeros(3)
    for _ in range(times):
        drawn = kind.order == "drawn"
        order = drawn_order(kind.n, int(random.integers(1 << 32))) if drawn else (kind.order * kind.n)[: at.size]
        of_b = np.array([letter == "B" for letter in order])
        logs = LEVEL_LN + random.normal(0, OF_RUN, at.size) + random.normal(0, OF_METRIC, (METRICS, at.size))
        logs += log(kind.factor) * ((at + random.integers(8)) % kind.period == 0) + log(kind.real) * of_b
        count += _winner(logs, of_b, seed=1 if drawn else None)
    return count / times


def _winner(logs: Floats, of_b: NDArray[np.bool_], seed: int | None) -> tuple[bool, bool, bool]:
    a, b = logs[:, ~of_b], logs[:, of_b]
    error = np.sqrt((a.var(axis=1, ddof=1) + b.var(axis=1, ddof=1)) / a.shape[1])
    if float((abs(a.mean(axis=1) - b.mean(axis=1)) / error).max()) < SURELY_NO_WINNER:
        return False, False, False
    metrics = [_metric(f"metric {at}", *rows) for at, rows in enumerate(zip(a.tolist(), b.tolist(), strict=True))]
    runs = [replace(RUN, started_ns=at, order_seed=seed) for at in range(of_b.size)]
    sides = (list(compress(runs, ~of_b)), list(compress(runs, of_b)))
    effects = metric_effects(metrics)
    turns = with_rhythm(run_turns(*sides), sides, metrics, effects)
    before = any(effect.finding in BETTER for effect in effects)
    after = any(effect.finding in BETTER for effect in effects_in_turns(effects, turns.withheld))
    return before, after, after and not turns.unseen


def _metric(key: str, a: list[float], b: list[float]) -> ComparedMetric:
    sides = [tuple(FigureReading(ln, ln, ln) for ln in side) for side in (a, b)]
    return ComparedMetric(key, key, "ns", (sides[0], sides[1]))


BENCHMARKS = (Benchmark("11_comparison_rhythm", "what disturbs every few runs makes no winner", rhythms),)
