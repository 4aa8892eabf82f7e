# SPDX-License-Identifier: Apache-2.0
"""Each metric's ratio of the two sides: how large, how sure, and how large it would have to be to be seen."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rtproof.analysis.comparison import holm, inference, power
from rtproof.analysis.comparison.metrics import Metric
from rtproof.analysis.comparison.model import Effect, Finding
from rtproof.analysis.phrases import percent

ALPHA = 0.05
MIN_RUNS = 5
"""Runs a side below which nothing is called significant: of 4 and 4 the smallest p there is is 2 of 70, which is not
below 5 % once six metrics are asked."""
MARGIN = 0.05
MARGIN_NS = 1_000
"""A ratio of less than 5 %, or a difference of less than a microsecond, is none, whatever its p."""
MOST_LN = 100.0
SIZES = (1.5, 2.0)
"""Ratios for which the table says how many runs they take."""
WELCH = "Welch's t test of logarithms"
PERMUTATION = f"{WELCH}, p from all splits of the runs"
NONE = "none, as one side has one run"
UNTURNED = {False: Finding.NOT_INTERLEAVED, None: Finding.UNKNOWN_ORDER}


def effects(metrics: Sequence[Metric]) -> tuple[Effect, ...]:
    """One for each metric, with p adjusted for all of them."""
    found = [_effect(metric, ALPHA / len(metrics)) for metric in metrics]
    if any(effect.p is None for effect in found):
        return tuple(found)
    adjusted = holm.adjusted([effect.p for effect in found if effect.p is not None])
    return tuple(_judged(replace(one, p_holm=p)) for one, p in zip(found, adjusted, strict=True))


def in_turns(found: Sequence[Effect], interleaved: bool | None) -> tuple[Effect, ...]:
    """The same, with nothing called better where the runs were not taken by turns (None: not known)."""
    if interleaved is True:
        return tuple(found)
    better = (Finding.A_BETTER, Finding.B_BETTER)
    return tuple(replace(one, finding=UNTURNED[interleaved]) if one.finding in better else one for one in found)


def overall(found: Sequence[Effect], interleaved: bool | None = True) -> Finding:
    """Of all metrics together. interleaved: whether the runs were taken by turns, None if that is not known."""
    findings = {effect.finding for effect in found} - {Finding.NO_DIFFERENCE}
    if not found or Finding.NOT_JUDGED in findings:
        return Finding.NOT_JUDGED
    if interleaved is not True:
        return UNTURNED[interleaved]
    if len(findings) > 1:
        return Finding.MIXED
    return next(iter(findings), Finding.NO_DIFFERENCE)


def _effect(metric: Metric, strictest: float) -> Effect:
    a, b = metric.values
    n, m = len(a), len(b)
    judged = min(n, m) >= MIN_RUNS
    found = inference.interval(a, b, ALPHA)
    below, above = metric.width
    deviation, margin = _deviation(a, b), _margin(metric, b)
    # What the bins leave open widens the interval, which has to lie beyond the margin all the same.
    beyond = margin + max((width for width in (below, above) if math.isfinite(width)), default=0.0)
    largest = None if deviation is None else power.detectable(deviation, n, m, strictest, beyond)
    return Effect(
        metric=metric.key,
        label=metric.label,
        unit=metric.unit,
        a=math.exp(sum(a) / n),
        b=math.exp(sum(b) / m),
        ratio=math.exp(found.difference),
        low=_exp(found.low - below) if judged or min(n, m) > 1 else None,
        high=_exp(found.high + above),
        p=inference.p_value(a, b) if judged else None,
        p_holm=None,
        method=_method(n, m, judged=judged),
        margin=math.exp(margin),
        run_factor=None if deviation is None else math.exp(deviation),
        detectable=None if largest is None else _exp(largest),
        runs_for=tuple((size, _runs_for(size, deviation, strictest, beyond)) for size in SIZES),
        finding=Finding.NOT_JUDGED,
        a_runs=tuple(map(math.exp, a)),
        b_runs=tuple(map(math.exp, b)),
        notes=(*metric.notes, *_coarse(below, above)),
    )


def _method(n: int, m: int, *, judged: bool) -> str:
    if min(n, m) < 2:
        return NONE
    return PERMUTATION if judged and inference.exact(n, m) else WELCH


def _deviation(a: list[float], b: list[float]) -> float | None:
    """Of the runs of a side around its mean, both sides together; None without a second run on any side."""
    freedom = len(a) + len(b) - 2
    if not freedom:
        return None
    return math.sqrt(sum(float(np.var(side)) * len(side) for side in (a, b)) / freedom)


def _margin(metric: Metric, b: list[float]) -> float:
    """Logarithm of the ratio that is taken for 1."""
    if metric.unit != "ns":
        return math.log1p(MARGIN)
    return math.log1p(max(MARGIN, MARGIN_NS / math.exp(sum(b) / len(b))))


def _runs_for(size: float, deviation: float | None, alpha: float, margin: float) -> int | None:
    if deviation is None:
        return None
    return power.runs_for(math.log(size), deviation, alpha, margin, MIN_RUNS)


def _judged(effect: Effect) -> Effect:
    low, high, p = effect.low, effect.high, effect.p_holm
    finding = Finding.NO_DIFFERENCE
    # All metrics are better if smaller.
    if p is not None and p < ALPHA and high is not None and high < 1 / effect.margin:
        finding = Finding.A_BETTER
    elif p is not None and p < ALPHA and low is not None and low > effect.margin:
        finding = Finding.B_BETTER
    return replace(effect, finding=finding)


def _coarse(below: float, above: float) -> tuple[str, ...]:
    """A word on bins that widen the interval by more than a percent."""
    widths = [math.expm1(width) for width in (below, above) if width < MOST_LN]
    if len(widths) < 2 or max(widths) <= 0.01:
        return ()
    return (f"the histogram's bins leave {percent(round(max(widths), 3))} of the ratio open",)


def _exp(ln: float) -> float | None:
    """None for what is infinite, or as good as that."""
    return math.exp(ln) if ln < MOST_LN else None
