# SPDX-License-Identifier: Apache-2.0
"""Look for a disturbance that comes every few runs, and could meet the runs of one side alone.

A job of each hour meets every fourth run of 15 minutes. If the order repeats A B B A, these runs may all be of one
side, which then looks slower. Within that side, the runs that the job meets differ from the others.

For each position of a period, the runs of the slower side there are compared with its other runs, by a t test of the
logarithms. Positions at which the slower side has no larger share of its runs than the other side cannot make it
slower, and are not tested. Bonferroni's correction for all positions and metrics keeps the error of all tests together
below LEVEL. A sign test or a rank test of five runs could never speak at that level.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtproof.compare.comparison_model import ComparisonFinding, MetricEffect, RunTurns
from rtproof.compare.effects import BETTER, ComparedMetric
from rtproof.compare.likeness import repeated_part
from rtproof.compare.run_metrics import RunFigures
from rtproof.statistics import student_quantile, student_two_sided

Places = NDArray[np.int64]
PERIODS = (2, 3, 4, 8)
LEVEL = 0.05
FEWEST = 3
"""A disturbance that meets fewer runs has no rhythm."""
ROUNDING = 1e-9
"""Runs that are alike differ by less, as logarithms."""
POWER = 0.8
"""With a smaller probability to see a rhythm that makes the whole difference, the runs are too few to see it."""
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
