# SPDX-License-Identifier: Apache-2.0
"""Benchmark 11: two sides of one system seldom differ by chance, and one run each is never judged.

Wrong methods in the same simulation show that the check can fail. The test of Mann and Whitney takes each value as
independent evidence: it nearly always finds a difference between identical systems, and even the short form fails.
Without Holm's procedure, some metric differs in about one comparison of seven, and the full form fails.
"""

import math

import numpy as np

from acceptance import Benchmark, Result, Value
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
MANY, FEW = 2_000, 45
FACTOR = 4.0
ALONE = "p99 alone, without Holm and margin"


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
    return RunFigures("run", {}, counts, int(values.max()), seconds=seconds, effective=float(VALUES))


def table(a: list[RunFigures], b: list[RunFigures]) -> tuple[MetricEffect, ...]:
    """The metrics of two sides, as ``compare`` has them."""
    return metric_effects(compared_metrics(a, b, reference_levels(a, b)[0])[0])


def false_alarms(short: bool) -> Result:
    """5 against 5 and 8 against 8 of one system."""
    times = FEW if short else MANY
    random = np.random.default_rng(11)
    found = {f"{n} v {n}": _alarms(random, n, times) for n in (5, 8)}
    one = compare_sides([drawn(random)], [drawn(random, FACTOR)])
    values: dict[str, Value] = {key: {**shares} for key, shares in found.items()}
    values["1 v 1"] = one.finding.value
    most, single = (0.13, 0.20) if short else (0.08, 0.08)
    ruled = all(shares["judged different"] <= most and shares[ALONE] <= single for shares in found.values())
    wrong = all(shares["wrong: every value by itself"] > 0.5 for shares in found.values())
    holds = ruled and wrong and one.finding is ComparisonFinding.NOT_JUDGED and all(e.p is None for e in one.effects)
    goal = (
        f"judged different: at most {most:.2f} of {times} comparisons, p99 alone {single:.2f}; 1 v 1 is not judged; by "
        "values: most are"
    )
    return Result(values, goal, holds, (one.sentences[1][1],))


def _alarms(random: np.random.Generator, n: int, times: int) -> dict[str, float]:
    """How often each way to look tells two sides of one system apart."""
    judged = one_metric = any_metric = by_values = 0
    for _ in range(times):
        a, b = ([drawn(random) for _ in range(n)] for _ in range(2))
        rows = table(a, b)
        judged += overall_finding(rows) is not ComparisonFinding.NO_DIFFERENCE
        below = [row.p is not None and row.p < 0.05 for row in rows]
        one_metric += below[1]
        any_metric += any(below)
        by_values += _mann_whitney(a[0].counts, b[0].counts) < 0.05
    return {
        "judged different": judged / times,
        ALONE: one_metric / times,
        "any metric, without Holm and margin": any_metric / times,
        "wrong: every value by itself": by_values / times,
    }


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


def power(short: bool) -> Result:
    """A real difference is found, and as often as the table says."""
    times = 40 if short else 1_000
    random = np.random.default_rng(13)
    right = wrong = told = 0
    for _ in range(times):
        rows = table([drawn(random) for _ in range(8)], [drawn(random, FACTOR) for _ in range(8)])
        right += rows[0].finding is ComparisonFinding.A_BETTER
        wrong += any(row.finding is ComparisonFinding.B_BETTER for row in rows)
        told += (rows[0].detectable or math.inf) <= FACTOR
    value: dict[str, Value] = {
        f"p50 {FACTOR:g} times as large, found": right / times,
        "the other way round": wrong / times,
        "told to be detectable": told / times,
    }
    goal = f"found in at least 0.9 of {times} comparisons of 8 and 8, never the wrong way round"
    return Result(value, goal, right / times >= 0.9 and wrong <= times * 0.01)


BENCHMARKS = (
    Benchmark("11_comparison_false_alarms", "two sides of one system are told apart as seldom as said", false_alarms),
    Benchmark("11_comparison_power", "a real difference is found", power),
)
