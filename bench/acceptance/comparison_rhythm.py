# SPDX-License-Identifier: Apache-2.0
"""A disturbance of every few runs makes no winner, in an order drawn by chance and in one that repeats.

Checked to fail: without ``with_rhythm``, ABBA has a winner in more than half of the series of 20 and 20 with period 4.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import compress, product
from math import log, log1p

import numpy as np
from numpy.typing import NDArray

from acceptance import Row, Simulation, at_most
from rtproof.compare.comparison_model import ComparisonFinding, RunTurns
from rtproof.compare.effects import ALPHA, MARGIN, ComparedMetric, metric_effects, with_rhythm
from rtproof.compare.likeness import drawn_order, run_turns
from rtproof.compare.run_metrics import FigureReading, RunFigures
from rtproof.statistics import student_quantile
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
RUN = RunFigures("run", {}, counts_of_dense_bins(np.ones(1, np.int64)), started_ns=0)


@dataclass(frozen=True)
class Series:
    """Series of n runs a side. period: of the disturbance, which makes a run slower by factor. real: of B's runs."""

    order: str
    n: int
    period: int = 2
    factor: float = 1.0
    real: float = 1.0


def rhythms(short: bool) -> Iterator[Row]:
    """Shares of series with a winner: by the sides' figures alone, as compare names it, and named without a doubt."""
    random = np.random.default_rng(112)
    times, runs, most = (40, (8,), 0.125) if short else (1_000, (8, 12, 20), 0.06)
    for n, order in product(runs, ("ABBA", "ABAB", "drawn")):
        where = f"{n} and {n}, {order}"
        none, real = (_shares(Series(order, n, real=ratio), times, random) for ratio in (1.0, REAL))
        yield at_most(f"{where}, no disturbance: a winner", none[1], most)
        yield at_most(f"{where}, B slower by {REAL:g}: winners lost", real[0] - real[1], most)
        named = 1 if order == "drawn" else 2
        for period in PERIODS:
            found = np.max([_shares(Series(order, n, period, factor), times, random) for factor in FACTORS], axis=0)
            yield at_most(f"{where}, period {period}: a winner{' without a doubt' * (named == 2)}", found[named], most)


def _shares(kind: Series, times: int, random: np.random.Generator) -> Floats:
    at = np.arange(2 * kind.n)
    drawn = kind.order == "drawn"
    seeds = random.integers(1 << 32, size=times).tolist()
    orders = [drawn_order(kind.n, seed) if drawn else (kind.order * kind.n)[: at.size] for seed in seeds]
    of_b = np.array([[letter == "B" for letter in order] for order in orders])
    logs = random.normal(LEVEL_LN, OF_METRIC, (times, METRICS, at.size))
    phases = random.integers(8, size=(times, 1))
    logs += (random.normal(0, OF_RUN, of_b.shape) + log(kind.factor) * ((at + phases) % kind.period == 0))[:, None]
    logs += log(kind.real) * of_b[:, None]
    sides = [np.moveaxis(logs, 1, 2)[mask].reshape(times, kind.n, METRICS) for mask in (~of_b, of_b)]
    better = told_apart(*sides)
    count = np.zeros(3)
    for one in np.flatnonzero(better.any(axis=1)):
        turns = _turns(of_b[one], [side[one].T for side in sides], better[one], seed=1 if drawn else None)
        count += (True, not turns.withheld, not turns.withheld and not turns.unseen)
    return count / times


def told_apart(a: Floats, b: Floats) -> NDArray[np.int64]:
    """Return for each series and metric -1 if A is better, 1 if B is, or else 0, as ``metric_effects`` finds it.

    a, b: logarithms by series, run and metric, of more runs than are split in all ways.
    """
    n = a.shape[1]
    parts = [side.var(axis=1, ddof=1) / n for side in (a, b)]
    error = np.sqrt(parts[0] + parts[1])
    freedom = error**4 * (n - 1) / (parts[0] ** 2 + parts[1] ** 2)
    difference = a.mean(axis=1) - b.mean(axis=1)
    t = abs(difference) / error
    place = (-t).argsort(axis=1).argsort(axis=1)
    holm = np.choose(place, [_quantile(ALPHA / (METRICS - step), n, freedom) for step in range(METRICS)])
    missed = np.where(t > holm, METRICS, place).min(axis=1, keepdims=True)
    beyond = abs(difference) - _quantile(ALPHA, n, freedom) * error > log1p(MARGIN)
    return np.where((place < missed) & beyond, np.sign(difference), 0).astype(np.int64)


def _quantile(alpha: float, n: int, freedom: Floats) -> Floats:
    """Return the two-sided quantiles of t, read off a table."""
    table = np.linspace(n - 1, 2 * n - 2, 50)
    return np.interp(freedom, table, [student_quantile(1 - alpha / 2, each) for each in table.tolist()])


def _turns(of_b: NDArray[np.bool_], logs: list[Floats], better: NDArray[np.int64], seed: int | None) -> RunTurns:
    runs = [replace(RUN, started_ns=at, order_seed=seed) for at in range(of_b.size)]
    sides = (list(compress(runs, ~of_b)), list(compress(runs, of_b)))
    metrics = [
        _metric(f"metric {at}", *rows) for at, rows in enumerate(zip(*map(np.ndarray.tolist, logs), strict=True))
    ]
    ratios = np.exp(logs[0].mean(axis=1) - logs[1].mean(axis=1)).tolist()
    effects = [
        replace(EFFECT, ratio=ratio, finding=FINDINGS[found])
        for metric, ratio, found in zip(metrics, ratios, better.tolist(), strict=True)
    ]
    return with_rhythm(run_turns(*sides), sides, metrics, effects)


def _metric(key: str, a: list[float], b: list[float]) -> ComparedMetric:
    sides = [tuple(FigureReading(ln, ln, ln) for ln in side) for side in (a, b)]
    return ComparedMetric(key, key, "ns", (sides[0], sides[1]))


EFFECT = metric_effects([_metric("metric", [1.0], [2.0])])[0]
FINDINGS = {
    -1: ComparisonFinding.A_BETTER,
    0: ComparisonFinding.NO_DIFFERENCE,
    1: ComparisonFinding.B_BETTER,
}
SIMULATIONS = (Simulation("11_comparison_rhythm", "what disturbs every few runs makes no winner", rhythms),)
