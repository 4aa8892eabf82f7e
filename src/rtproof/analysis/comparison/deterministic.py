# SPDX-License-Identifier: Apache-2.0
"""A comparison of runs in virtual time, which has no interval, no p-value and no power.

Such runs are deterministic: run again they give the same bytes. How runs of one system differ is then not chance, and
nothing that rests on chance may be said of them. The figures themselves and their ratios stay.
"""

from collections.abc import Iterable
from dataclasses import replace

from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.model import Comparison, Effect, Finding, Order, Shift

WHY = "the runs are deterministic (virtual time): each gives the same bytes again, and nothing in them is chance"
FACT = "virtual time"


def deterministic(said: Comparison) -> bool:
    """Whether a run of either side was made in virtual time."""
    return any(in_virtual_time(side.runs) for side in (said.a, said.b))


def in_virtual_time(runs: Iterable[RunFigures]) -> bool:
    """Whether one of the runs was made in virtual time."""
    return any(run.facts.get(FACT, "no") != "no" for run in runs)


def without_chance(said: Comparison) -> Comparison:
    """The same with figures and ratios only; nothing is called better."""
    return replace(
        said,
        finding=Finding.NOT_JUDGED,
        effects=tuple(_seen(effect) for effect in said.effects),
        shift=_without_band(said.shift),
        order=Order(None, None, (), WHY),
    )


def _seen(effect: Effect) -> Effect:
    return replace(
        effect,
        low=None,
        high=None,
        p=None,
        p_holm=None,
        detectable=None,
        runs_for=tuple((size, None) for size, _ in effect.runs_for),
        finding=Finding.NOT_JUDGED,
    )


def _without_band(shift: Shift) -> Shift:
    points = tuple(replace(point, low=None, high=None) for point in shift.points)
    return Shift(points, "", f"no band: {WHY}")
