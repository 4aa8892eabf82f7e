# SPDX-License-Identifier: Apache-2.0
"""Compute the ratio of the two sides in each metric, how sure it is, how large it must be, and a rhythm of the runs."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from rtproof import statistics
from rtproof.compare.comparison_model import ComparisonFinding, ImpossibleComparison, MetricEffect, RunTurns
from rtproof.compare.likeness import repeated_part
from rtproof.compare.run_metrics import QUANTILES, FigureReading, RunFigures
from rtproof.core.phrases import percent, value
from rtproof.statistics import Floats, is_exact, permuted_means, rejected_splits, student_quantile, student_two_sided
from rtproof.summary.counts import Counts, merge_counts

LEVELS = (0.999, 0.9999)
"""The reference levels lie above these shares of all values of both sides together.

With more than six metrics, five runs a side could never be significant: the smallest possible p is 2 of 252.
"""
EXPECTED = 5.0
"""Values that the shortest run should have above a level; with fewer, the share above the level says nothing."""
THREE = 3.0
"""If none of n values lies above a level, at most THREE / n of all values do, at 95 % (Hanley, Lippman-Hand 1983)."""
SHARE = "share"
ABOVE = "above_"
"""The name of a metric begins so if it is the share above a level; the level in ns follows."""
_Read = Callable[[RunFigures], FigureReading]
MetricPair = tuple[tuple[FigureReading, ...], tuple[FigureReading, ...]]


@dataclass(frozen=True)
class ComparedMetric:
    """One metric of both sides. readings: of each run, as logarithms. unit: of the exponential. notes: sentences."""

    key: str
    label: str
    unit: str
    readings: MetricPair = ((), ())
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> tuple[list[float], list[float]]:
        a, b = ([reading.ln for reading in side if reading.ln is not None] for side in self.readings)
        return a, b

    @property
    def width(self) -> tuple[float, float]:
        """Return by how much the bins of the histograms may shift the difference of the means, down and up."""
        (a_down, a_up), (b_down, b_up) = (_slack(side) for side in self.readings)
        return a_down + b_up, a_up + b_down


def compared_metrics(
    a: Sequence[RunFigures], b: Sequence[RunFigures], levels: Sequence[int]
) -> tuple[tuple[ComparedMetric, ...], tuple[ImpossibleComparison, ...]]:
    """Return the metrics that all runs have, and the other metrics with the reason."""
    unit = a[0].unit
    every = [
        *(
            _metric(ComparedMetric(f"p{100 * p:g}", percent(p), unit), (a, b), partial(RunFigures.quantile, p=p))
            for p in QUANTILES
        ),
        *(_above(level, a, b) for level in levels),
        _metric(ComparedMetric("second_maxima", "maximum of a second", unit), (a, b), lambda run: run.second_maxima),
    ]
    found = tuple(one for one in every if isinstance(one, ComparedMetric))
    return found, tuple(one for one in every if isinstance(one, ImpossibleComparison))


def reference_levels(
    a: Sequence[RunFigures], b: Sequence[RunFigures]
) -> tuple[tuple[int, ...], tuple[ImpossibleComparison, ...]]:
    """Return the values of LEVELS among all values of both sides together.

    The values of both sides are used because all ways to split the runs then stay equally likely if the sides do not
    differ.
    """
    counts, fewest = pooled_counts((*a, *b)), min(run.n for run in (*a, *b))
    levels, impossible = [], []
    for share in LEVELS:
        rank, why = math.ceil(sum(run.n for run in (*a, *b)) * Fraction(repr(share))), ""
        if not 1 <= rank <= counts.total:
            why = "it lies beyond the scale of the histograms"
        elif fewest * (1 - share) < EXPECTED:
            why = f"the shortest run has {fewest:,} values, of which {fewest * (1 - share):.2g} would lie above it"
        else:
            levels.append(counts.value_at_rank(rank)[1])  # the upper end of the bin, which no run's bin crosses
        if why:
            label = f"share above the value of {percent(share)}"
            impossible.append(ImpossibleComparison(f"above_p{100 * share:g}", label, why))
    return tuple(dict.fromkeys(levels)), tuple(impossible)


def pooled_counts(runs: Sequence[RunFigures]) -> Counts:
    """Return the counts of all runs together."""
    return merge_counts(run.counts for run in runs)


def _above(level: int, a: Sequence[RunFigures], b: Sequence[RunFigures]) -> ComparedMetric | ImpossibleComparison:
    key, label = f"{ABOVE}{level}", f"share above {value(level)}"
    empty = [sum(run.above(level)[1] == 0 for run in side) for side in (a, b)]
    notes = (f"{empty[0]} of {len(a)} and {empty[1]} of {len(b)} runs have no value above it",) if any(empty) else ()
    if empty == [len(a), len(b)]:
        return ImpossibleComparison(key, label, f"no run of either side has a value above {value(level)}")
    found = _metric(ComparedMetric(key, label, SHARE, notes=notes), (a, b), lambda run: run.share_above(level))
    if not isinstance(found, ComparedMetric):
        return found
    sides = list(found.readings)
    for at, runs in enumerate((a, b)):
        if empty[at] == len(runs):  # without values above the level, its share is 0 at least, and THREE / n at most
            most = math.log(THREE / sum(run.n for run in runs))
            sides[at] = tuple(
                replace(one, ln_low=-math.inf, ln_high=max(most, one.ln_high or most)) for one in sides[at]
            )
    return replace(found, readings=(sides[0], sides[1]))


def _metric(
    metric: ComparedMetric, sides: Sequence[Sequence[RunFigures]], read: _Read
) -> ComparedMetric | ImpossibleComparison:
    """Return the metric with its readings, or why the runs do not have it."""
    a, b = (tuple(read(run) for run in side) for side in sides)
    for run, reading in zip((*sides[0], *sides[1]), (*a, *b), strict=True):
        if reading.ln is None:
            return ImpossibleComparison(metric.key, metric.label, f"{run.name}: {reading.why}")
    return replace(metric, readings=(a, b))


def _slack(side: Sequence[FigureReading]) -> tuple[float, float]:
    """Return the mean distances of the readings from the lower and the upper ends of their bins."""
    down = [one.ln - one.ln_low for one in side if one.ln is not None and one.ln_low is not None]
    up = [one.ln_high - one.ln for one in side if one.ln is not None and one.ln_high is not None]
    return sum(down) / len(side), sum(up) / len(side)


# A difference is found where the test rejects at ``alpha`` and the 95 % interval lies beyond the margin. All figures
# are logarithms. The runs are assumed to scatter normally with the given deviation.

POWER = 0.8
LEVEL = 0.05
DRAWN = 2_000
SEED = 20_261_121


def detectable_ratio(deviation: float, n: int, m: int, alpha: float, margin: float) -> float:
    """Return the difference that n and m runs find with probability POWER; infinite where they find none."""
    if is_exact(n, m):
        if not rejected_splits(n, m, alpha):
            return math.inf
        tested, told = _lower_ends(n, m, rejected_splits(n, m, alpha))
        needed = np.maximum(-deviation * tested, margin - deviation * told)
        return float(np.quantile(needed, POWER, method="higher"))
    if min(n, m) < 2:
        return math.inf
    return max(_by_t(deviation, n, m, alpha), margin + _by_t(deviation, n, m, LEVEL))


@lru_cache(maxsize=64)
def _lower_ends(n: int, m: int, left_out: int) -> tuple[Floats, Floats]:
    """Return two arrays for sides drawn from one normal distribution, one element for each drawing.

    The first has the smallest difference that the test by splits does not reject, where it rejects ``left_out`` splits.
    The second has the lower end of the 95 % interval. A shift of one side shifts both, so the two arrays tell for every
    difference how often it is found.
    """
    drawn = np.random.default_rng(SEED).standard_normal((DRAWN, n + m))
    place = left_out - 1
    parts = [np.partition(part @ permuted_means(n, m).T, place)[:, place] for part in np.array_split(drawn, 8)]
    return np.concatenate(parts), _lower_welch(drawn[:, :n], drawn[:, n:])


def _lower_welch(a: Floats, b: Floats) -> Floats:
    """Return the lower ends of Welch's intervals, one for each row. The quantiles of t are read off a table."""
    parts = [side.var(axis=1, ddof=1) / side.shape[1] for side in (a, b)]
    total = parts[0] + parts[1]
    freedom = total**2 / sum(part**2 / (side.shape[1] - 1) for part, side in zip(parts, (a, b), strict=True))
    table = np.linspace(min(a.shape[1], b.shape[1]) - 1, a.shape[1] + b.shape[1] - 2, 50)
    t = np.interp(freedom, table, [student_quantile(1 - LEVEL / 2, f) for f in table.tolist()])
    low: Floats = a.mean(axis=1) - b.mean(axis=1) - t * np.sqrt(total)
    return low


def _by_t(deviation: float, n: int, m: int, alpha: float) -> float:
    """Return the difference that a t test finds with probability POWER, to a percent or two.

    The error is a few percent for sides of unequal size. Two simplifications cause it: the statistic of the shifted
    sides is also taken for Student's t, and the degrees of freedom are those of sides that scatter alike.
    """
    freedom = (1 / n + 1 / m) ** 2 / (1 / (n * n * (n - 1)) + 1 / (m * m * (m - 1)))
    sure = student_quantile(1 - alpha / 2, freedom) + student_quantile(POWER, freedom)
    return deviation * math.sqrt(1 / n + 1 / m) * sure


ALPHA = 0.05
MIN_RUNS = 5
"""Below this number of runs a side nothing is called significant. With 4 and 4 runs the smallest p is 2 of 70, which is
not below 5 % with six metrics."""
MARGIN = 0.05
MARGIN_NS = 1_000
"""A ratio of less than 5 %, or a difference of less than a microsecond, counts as no difference, whatever its p."""
MOST_LN = 100.0
WELCH = "Welch's t test of logarithms"
PERMUTATION = f"{WELCH}; p: a permutation test over all ways to split the runs into two sides"
NONE = "none, as one side has one run"
BETTER = (ComparisonFinding.A_BETTER, ComparisonFinding.B_BETTER)
NO_SCATTER = 1 + 1e-9
"""Independent runs differ in some metric by a larger factor."""


def metric_effects(metrics: Sequence[ComparedMetric]) -> tuple[MetricEffect, ...]:
    """Return one effect for each metric, with p adjusted for all metrics (Holm), unless one has no p."""
    found = [_effect(metric, ALPHA / len(metrics)) for metric in metrics]
    if any(effect.p is None for effect in found):
        return tuple(found)
    adjusted = statistics.holm_adjusted([effect.p for effect in found if effect.p is not None])
    return tuple(_judged(replace(one, p_holm=p)) for one, p in zip(found, adjusted, strict=True))


def lacks_scatter(found: Sequence[MetricEffect]) -> bool:
    """Return whether the runs of each side are alike in every metric, which independent runs never are."""
    return bool(found) and all(one.run_factor is not None and one.run_factor < NO_SCATTER for one in found)


def overall_finding(found: Sequence[MetricEffect], withheld: ComparisonFinding | None = None) -> ComparisonFinding:
    """Return the finding of all metrics. withheld: the finding in place of a better side, or None."""
    findings = {effect.finding for effect in found} - {ComparisonFinding.NO_DIFFERENCE}
    if not found or ComparisonFinding.NOT_JUDGED in findings:
        return ComparisonFinding.NOT_JUDGED
    if withheld:
        return withheld
    if len(findings) > 1:
        return ComparisonFinding.MIXED
    return next(iter(findings), ComparisonFinding.NO_DIFFERENCE)


def _effect(metric: ComparedMetric, strictest: float) -> MetricEffect:
    a, b = metric.values
    n, m = len(a), len(b)
    judged = min(n, m) >= MIN_RUNS
    found = statistics.difference_interval(a, b, ALPHA)
    below, above = metric.width
    deviation = _deviation(a, b)
    microsecond = MARGIN_NS / math.exp(sum(b) / m) if metric.unit == "ns" else 0.0
    margin = math.log1p(max(MARGIN, microsecond))
    # The bins widen the interval. The widened interval has to lie beyond the margin as well.
    beyond = margin + max((width for width in (below, above) if math.isfinite(width)), default=0.0)
    largest = None if deviation is None else detectable_ratio(deviation, n, m, strictest, beyond)
    method = PERMUTATION if judged and statistics.is_exact(n, m) else WELCH
    return MetricEffect(
        metric=metric.key,
        label=metric.label,
        unit=metric.unit,
        a=math.exp(sum(a) / n),
        b=math.exp(sum(b) / m),
        ratio=math.exp(found.difference),
        low=_exp(found.low - below) if judged or min(n, m) > 1 else None,
        high=_exp(found.high + above),
        p=statistics.permutation_p_value(a, b) if judged else None,
        p_holm=None,
        method=method if min(n, m) > 1 else NONE,
        margin=math.exp(margin),
        run_factor=None if deviation is None else math.exp(deviation),
        detectable=None if largest is None else _exp(largest),
        finding=ComparisonFinding.NOT_JUDGED,
        a_runs=tuple(map(math.exp, a)),
        b_runs=tuple(map(math.exp, b)),
        notes=metric.notes,
    )


def _deviation(a: list[float], b: list[float]) -> float | None:
    """Return the standard deviation of runs around the mean of their side; None if each side has one run."""
    freedom = len(a) + len(b) - 2
    if not freedom:
        return None
    return math.sqrt(sum(float(np.var(side)) * len(side) for side in (a, b)) / freedom)


def _judged(effect: MetricEffect) -> MetricEffect:
    low, high, p = effect.low, effect.high, effect.p_holm
    finding = ComparisonFinding.NO_DIFFERENCE
    # In every metric smaller is better.
    if p is not None and p < ALPHA and high is not None and high < 1 / effect.margin:
        finding = ComparisonFinding.A_BETTER
    elif p is not None and p < ALPHA and low is not None and low > effect.margin:
        finding = ComparisonFinding.B_BETTER
    return replace(effect, finding=finding)


def _exp(ln: float) -> float | None:
    """Return the exponential; None for what is infinite or too large to print."""
    return math.exp(ln) if ln < MOST_LN else None


# A disturbance that comes every few runs could meet the runs of one side alone: a job of each hour meets every fourth
# run of 15 minutes, and if the order repeats A B B A, these may all be of one side. For each position of a period,
# the runs of the slower side there are compared with its other runs, by a t test of the logarithms, unless the other
# side has as large a share of its runs there. Bonferroni's correction keeps the error of all tests below LEVEL.

Places = NDArray[np.int64]
PERIODS = (2, 3, 4, 8)
FEWEST = 3
"""A disturbance that meets fewer runs has no rhythm."""
ROUNDING = 1e-9
"""Runs that are alike differ by less, as logarithms."""
DRAW = "measure again (rtproof run --abba draws the order)"


@dataclass(frozen=True)
class _Position:
    """The runs of the slower side at one position of a period, against its other runs, in one metric.

    first: the first of these runs in the series, from 1. step: by how much they are slower, as a logarithm.
    error: the standard error of the step; infinite if all its runs are there. freedom: its degrees of freedom.
    t: Student's t of the step; the slower these runs are, the larger.
    faked: the step that would make the whole difference of the sides.
    """

    period: int
    first: int
    label: str
    step: float
    error: float
    freedom: int
    t: float
    faked: float


def with_rhythm(
    turns: RunTurns,
    sides: tuple[Sequence[RunFigures], Sequence[RunFigures]],
    metrics: Sequence[ComparedMetric],
    effects: Sequence[MetricEffect],
) -> RunTurns:
    """Return the turns with what a rhythm of the runs means for the sides that the effects call better."""
    told_apart = [pair for pair in zip(metrics, effects, strict=True) if pair[1].finding in BETTER]
    if not turns.interleaved or not told_apart:
        return turns
    ranks = np.argsort(np.argsort([run.started_ns or 0 for side in sides for run in side]))
    places = ranks[: len(sides[0])], ranks[len(sides[0]) :]
    found = [each for metric, effect in told_apart for each in _positions(metric, effect, places)]
    if not found:
        return turns
    slowest = max(found, key=lambda each: each.t)
    if slowest.t > 0 and student_two_sided(slowest.t, slowest.freedom) / 2 * len(found) <= LEVEL:
        rhythm = (
            f"{_every(slowest.period)}, from run {slowest.first} on, is slower than the other runs of its side, by a "
            f"factor of {math.exp(slowest.step):.3g} ({slowest.label})"
        )
        return replace(turns, rhythm=rhythm)
    # A step that makes the whole difference is seen where it is found with a probability of POWER in some metric.
    unseen = {(each.period, each.first) for each in found}
    for each in found:
        needed = student_quantile(1 - LEVEL / len(found), each.freedom) + student_quantile(POWER, each.freedom)
        if each.faked >= needed * each.error:
            unseen.discard((each.period, each.first))
    part = repeated_part(turns.order)
    if turns.order_seed is not None or not part or not unseen:
        return turns
    clause = (
        f"the order {' '.join(part)} repeats, and these runs cannot tell a disturbance of {_every(min(unseen)[0])} "
        f"from a difference of the sides: {DRAW}"
    )
    return replace(turns, unseen=clause)


def _positions(metric: ComparedMetric, effect: MetricEffect, places: Sequence[Places]) -> Iterator[_Position]:
    slower = 1 if effect.finding is ComparisonFinding.A_BETTER else 0
    logs = np.array(metric.values[slower])
    logs -= logs.mean()
    for period in PERIODS:
        for first in range(period):
            there, others = (places[side] % period == first for side in (slower, 1 - slower))
            share, other = float(there.mean()), float(others.mean())
            if share <= other or there.sum() < FEWEST:
                continue
            apart = there - share
            spread, freedom = float(apart @ apart), logs.size - 2
            step = float(apart @ logs) / spread if spread else 0.0
            rest = max(float(logs @ logs) - step * step * spread, 0.0)
            error = math.sqrt(rest / freedom / spread) if spread else math.inf
            faked = abs(math.log(effect.ratio)) / (share - other)
            t = step / max(error, ROUNDING)
            yield _Position(period, first + 1, effect.label, step, error, freedom, t, faked)


def _every(period: int) -> str:
    return {2: "every 2nd run", 3: "every 3rd run"}.get(period, f"every {period}th run")
