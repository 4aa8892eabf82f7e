# SPDX-License-Identifier: Apache-2.0
"""Compare two sides of runs, and return everything that can be said about them."""

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rtproof import statistics
from rtproof.compare.comparison_model import (
    FEW_RUNS,
    MIN_RUNS_OF_CURVES,
    WHY,
    Comparison,
    ComparisonFinding,
    ComparisonSide,
    LeftOutRun,
    SideCrossing,
    SideOrder,
    deterministic_comparison,
)
from rtproof.compare.comparison_sentences import comparison_sentences
from rtproof.compare.effects import (
    BETTER,
    compared_metrics,
    lacks_scatter,
    metric_effects,
    overall_finding,
    pooled_counts,
    reference_levels,
    with_rhythm,
)
from rtproof.compare.likeness import (
    SIDE_NAMES,
    SeenRuns,
    comparison_refusal,
    fact_differences,
    run_turns,
)
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.errors import UserError
from rtproof.record.contents import Int64Array
from rtproof.summary.counts import Counts

Floats = NDArray[np.float64]


def compare_sides(
    a: Sequence[RunFigures],
    b: Sequence[RunFigures],
    names: tuple[str, str] = SIDE_NAMES,
    although: Collection[str] = (),
) -> Comparison:
    """Return the comparison of side a with side b, the baseline.

    although: facts of MUST_AGREE in which the sides differ on purpose.
    Raises UserError, with one sentence, where the two sides may not be compared.
    """
    ids = Counter(run.run_id for run in (*a, *b) if run.run_id)
    if twice := next((run_id for run_id, n in ids.items() if n > 1), ""):
        same = " and ".join(run.name for run in (*a, *b) if run.run_id == twice)
        raise UserError(f"{same} are one and the same run: each run counts once, on one side")
    for every in (False, True):  # copies of wide runs alone would leave a side its narrow ones
        seen = SeenRuns(every=every)
        able_a, out_of_a = _sorted_out(a, names[0], seen)
        able_b, out_of_b = _sorted_out(b, names[1], seen)
        if not any(one.is_copy for one in (*out_of_a, *out_of_b)):
            break
    sides = able_a, able_b
    refused = comparison_refusal(*sides, names, although)
    if refused:
        raise UserError(refused)
    reference, no_level = reference_levels(*sides)
    asked, impossible = compared_metrics(*sides, reference)
    found = metric_effects(asked) if asked else ()
    taken = with_rhythm(run_turns(*sides, names), sides, asked, found)
    withheld = ComparisonFinding.NOT_JUDGED if lacks_scatter(found) else taken.withheld
    if withheld:
        found = tuple(replace(one, finding=withheld) if one.finding in BETTER else one for one in found)
    made = Comparison(
        a=ComparisonSide(names[0], sides[0]),
        b=ComparisonSide(names[1], sides[1]),
        unit=sides[0][0].unit,
        finding=overall_finding(found, withheld),
        sentences=(),
        effects=found,
        impossible=(*impossible, *no_level),
        levels=reference,
        order=side_order(*sides),
        differences=fact_differences(*sides, although),
        left_out=(*out_of_a, *out_of_b),
        turns=taken,
    )
    if deterministic_comparison(made):
        not_judged = ComparisonFinding.NOT_JUDGED
        effects = tuple(
            replace(one, low=None, high=None, p=None, p_holm=None, detectable=None, finding=not_judged) for one in found
        )
        order = SideOrder(None, None, (), WHY)
        made = replace(made, finding=not_judged, effects=effects, order=order)
    return replace(made, sentences=comparison_sentences(made))


def _sorted_out(
    runs: Sequence[RunFigures], name: str, seen: SeenRuns
) -> tuple[tuple[RunFigures, ...], list[LeftOutRun]]:
    """Return the runs that measured what was asked, without copies, and the others; UserError if no run did."""
    if not runs:
        raise UserError(f"there is no run of {name}: a comparison needs one on each side")
    able, left_out = [], []
    for run in runs:
        if run.invalid or not run.n:
            left_out.append(LeftOutRun(run.name, "; ".join(run.invalid) or "nothing was measured", name))
        elif not (copy := seen.copied_by(run)):
            able.append(run)
        else:
            left_out.append(LeftOutRun(run.name, copy, name, is_copy=True))
    if not able:
        raise UserError(f"no run of {name} can be compared; of {left_out[0].run} it says: {left_out[0].why}")
    return tuple(able), left_out


# Each value of a grid is tested by itself: how many of each run's values lie above it? The sides surely differ there if
# the mean log odds of their runs differ by more than run-to-run scatter explains, at 5 % for all values together
# (Bonferroni), and by more than 5 %. With many runs, differences become sure that matter to nobody; few runs may by
# chance scatter so little that a factor of 1.05 looks sure.

POINTS = 48
ORDER_BEYOND = 10
"""Values above the last value of the grid, in all runs of both sides together."""
ORDER_ALPHA = 0.05
MARGIN = math.log(1.05)
BY_RUNS = "95 % for all values together, by the scatter of the runs"


def side_order(a: Sequence[RunFigures], b: Sequence[RunFigures]) -> SideOrder:
    """Return whether one side's values lie below the other's throughout, or where the sides cross."""
    if min(len(a), len(b)) < MIN_RUNS_OF_CURVES:
        return SideOrder(None, None, (), FEW_RUNS)
    together = pooled_counts((*a, *b))
    values = _grid(together, sum(run.overflow for run in (*a, *b)))
    if not values.size:
        return SideOrder(None, None, (), BY_RUNS)
    above = [np.array([_above(run.counts, values) + run.overflow for run in side]) for side in (a, b)]
    totals = [np.array([[run.n] for run in side]) for side in (a, b)]
    odds = [np.log((k + 0.5) / (n - k + 0.5)) for k, n in zip(above, totals, strict=True)]
    apart = odds[0].mean(axis=0) - odds[1].mean(axis=0)
    sure = np.flatnonzero((np.abs(apart) > MARGIN) & (np.abs(apart) > _threshold(odds, values.size)))
    if not sure.size:
        return SideOrder(None, None, (), BY_RUNS)
    signs = np.sign(apart[sure])
    turns = np.flatnonzero(signs[1:] != signs[:-1])
    share = _above(together, values) / max(together.total, 1)
    crossings = tuple(_crossing(values, share, apart, (int(sure[at]), int(sure[at + 1]))) for at in turns)
    lower = None if crossings else ("A" if signs[0] < 0 else "B")
    return SideOrder(lower, (int(values[sure[0]]), int(values[sure[-1]])), crossings, BY_RUNS)


def _grid(together: Counts, overflow: int) -> Int64Array:
    """Return upper ends of bins that lie inside no run's bin.

    They are spaced evenly in the log odds of the share of values above them, from both ends inwards.
    """
    n = together.total + overflow
    if n < 4 * ORDER_BEYOND or together.n.size < 2:
        return np.empty(0, np.int64)
    most = math.log(n / ORDER_BEYOND - 1)
    wanted = 1 / (1 + np.exp(-np.linspace(-most, most, POINTS)))
    below = np.cumsum(together.n)
    at = np.searchsorted(below, wanted * n)
    at = np.unique(at[at < below.size])
    inside = (below[at] >= ORDER_BEYOND) & (n - below[at] >= ORDER_BEYOND)
    values: Int64Array = together.hi[at[inside]]
    return values


def _above(counts: Counts, values: Int64Array) -> Floats:
    below = np.concatenate(([0], np.cumsum(counts.n)))
    above: Floats = (counts.total - below[np.searchsorted(counts.hi, values, side="right")]).astype(float)
    return above


def _threshold(odds: list[Floats], points: int) -> Floats:
    """Return how far apart the means have to be at each value: Welch's t, with its freedom rounded down to halves."""
    parts = [side.var(axis=0, ddof=1) / len(side) for side in odds]
    each = sum(part**2 / (len(side) - 1) for part, side in zip(parts, odds, strict=True))
    total = parts[0] + parts[1]
    freedom = np.where(each > 0, total**2 / np.where(each > 0, each, 1), 1)
    sure = [statistics.student_quantile(1 - ORDER_ALPHA / 2 / points, math.floor(2 * f) / 2) for f in freedom.tolist()]
    limit: Floats = np.array(sure) * np.sqrt(total)
    return limit


def _crossing(values: Int64Array, share: Floats, apart: Floats, ends: tuple[int, int]) -> SideCrossing:
    first, last = ends
    turned = np.flatnonzero(np.sign(apart[first : last + 1]) == np.sign(apart[last]))
    at = first + int(turned[0])
    return SideCrossing(
        int(values[at]), float(share[at]), (int(values[first]), int(values[last])), bool(apart[first] < 0)
    )
