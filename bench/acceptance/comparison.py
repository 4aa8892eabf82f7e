# SPDX-License-Identifier: Apache-2.0
"""Two sides of one system seldom differ by chance, and one run each is never judged.

Wrong methods in the same simulation show that the check can fail. The test of Mann and Whitney takes each value as
independent evidence: it nearly always finds a difference between identical systems, and even the short form fails.
Without Holm's procedure, some metric differs in about one comparison of seven, and the full form fails.
"""

import math
from collections.abc import Iterator

import numpy as np

from acceptance import Row, Simulation, at_least, at_most
from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import ComparisonFinding, MetricEffect
from rtproof.compare.effects import compared_metrics, metric_effects, overall_finding, reference_levels
from rtproof.compare.run_metrics import RunFigures
from rtproof.record import histogram_bins
from rtproof.record.contents import Int64Array, Seconds
from rtproof.summary.counts import Counts

RUN_EFFECT = 0.5
"""Standard deviation of the logarithm of what a run is slower or faster than another of the same system."""
TAIL_EFFECT = 1.0
"""The same of how many values of a run are in its tail: real runs differ by 2.7 in that, and by 1.6 in p99.9."""
VALUES = 60_000
SECONDS = 60
TAIL = 0.003
FACTOR = 4.0


def drawn(random: np.random.Generator, factor: float = 1.0) -> RunFigures:
    """A run: log-normal around 20 us, a tail ten times as late, and a factor and a tail of its own."""
    own = factor * math.exp(random.normal(0, RUN_EFFECT))
    values = 20_000 * own * np.exp(random.normal(0, 0.5, VALUES))
    values[random.random(VALUES) < TAIL * math.exp(random.normal(0, TAIL_EFFECT))] *= 10
    return figures(values.astype(np.int64))


def figures(values: Int64Array) -> RunFigures:
    """Of VALUES values in the order of time."""
    n = np.bincount(histogram_bins.bin_of(values))
    places = np.flatnonzero(n)
    zeros = np.zeros(SECONDS, np.int64)
    seconds = Seconds(np.arange(SECONDS), zeros + VALUES // SECONDS, zeros, values.reshape(SECONDS, -1).max(axis=1))
    counts = Counts(*histogram_bins.bin_edges(places), n[places].astype(np.int64))
    return RunFigures("run", {}, counts, int(values.max()), seconds=seconds)


def effects_of(a: list[RunFigures], b: list[RunFigures]) -> tuple[MetricEffect, ...]:
    """The metrics of two sides, as ``compare`` has them."""
    return metric_effects(compared_metrics(a, b, reference_levels(a, b)[0])[0])


def false_alarms(short: bool) -> Iterator[Row]:
    """5 against 5 and 8 against 8 of one system."""
    times, judged, single = (45, 0.13, 0.20) if short else (2_000, 0.08, 0.08)
    random = np.random.default_rng(11)
    for n in (5, 8):
        judged_apart, p99_alone, any_metric, by_values = np.mean([_told_apart(random, n) for _ in range(times)], axis=0)
        yield at_most(f"{n} and {n}: judged different", judged_apart, judged)
        yield at_most(f"{n} and {n}: p99 alone, without Holm and margin", p99_alone, single)
        yield Row(f"{n} and {n}: any metric, without Holm and margin", float(any_metric))
        yield at_least(f"{n} and {n}: wrong, every value by itself", by_values, 0.5)
    one = compare_sides([drawn(random)], [drawn(random, FACTOR)])
    not_judged = one.finding is ComparisonFinding.NOT_JUDGED and all(effect.p is None for effect in one.effects)
    yield at_least("1 and 1: not judged", not_judged, 1)


def _told_apart(random: np.random.Generator, n: int) -> list[bool]:
    """Which ways to look tell two sides of one system apart: all metrics, p99, any metric, every value by itself."""
    a, b = ([drawn(random) for _ in range(n)] for _ in range(2))
    rows = effects_of(a, b)
    below = [row.p is not None and row.p < 0.05 for row in rows]
    by_values = _mann_whitney(a[0].counts, b[0].counts) < 0.05
    return [overall_finding(rows) is not ComparisonFinding.NO_DIFFERENCE, below[1], any(below), by_values]


def _mann_whitney(a: Counts, b: Counts) -> float:
    """p of the usual test of two runs, as if their values were all that there is; normal, without ties."""
    values = np.union1d(a.hi, b.hi)
    n = [np.zeros(values.size) for _ in range(2)]
    for counts, each in zip((a, b), n, strict=True):
        each[np.searchsorted(values, counts.hi)] = counts.n
    below = np.cumsum(n[1]) - n[1] / 2
    u, sizes = float((n[0] * below).sum()), (a.total, b.total)
    error = math.sqrt(sizes[0] * sizes[1] * (sum(sizes) + 1) / 12)
    return math.erfc(abs(u - sizes[0] * sizes[1] / 2) / error / math.sqrt(2))


def power(short: bool) -> Iterator[Row]:
    """A real difference is found, and as often as the table says."""
    times = 40 if short else 1_000
    random = np.random.default_rng(13)
    right = wrong = told = 0
    for _ in range(times):
        rows = effects_of([drawn(random) for _ in range(8)], [drawn(random, FACTOR) for _ in range(8)])
        right += rows[0].finding is ComparisonFinding.A_BETTER
        wrong += any(row.finding is ComparisonFinding.B_BETTER for row in rows)
        told += (rows[0].detectable or math.inf) <= FACTOR
    yield at_least(f"8 and 8, p50 {FACTOR:g} times as large: found", right / times, 0.9)
    yield at_most("the other way round", wrong / times, 0.01)
    yield Row("told to be detectable", told / times)


SIMULATIONS = (
    Simulation("11_comparison_false_alarms", "two sides of one system are told apart as seldom as said", false_alarms),
    Simulation("11_comparison_power", "a real difference is found", power),
)
