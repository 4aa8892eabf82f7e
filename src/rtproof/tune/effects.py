# SPDX-License-Identifier: Apache-2.0
"""What knobs do to a metric, from the runs of a design.

A metric is a logarithm, so that an effect is a ratio: exp(-0.1) is 10 % less. A run is the unit: its activations are
not independent of each other, so that only runs say how much runs differ.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rtproof import statistics
from rtproof.tune.design import Positions

LEAST_DEVIATION = 0.01
"""Of one run. Runs that are all alike, as in virtual time, must not make a difference of a nanosecond sure."""
HURTS = 0.05
"""A knob that is shown at this level to make things worse counts as off, and not as one without an effect."""


@dataclass(frozen=True)
class Effect:
    """The effect of a change on a metric, as natural logarithms: below 0 the metric falls.

    deviation: the standard error of ``ln``. freedom: its degrees of freedom.
    """

    ln: float
    deviation: float
    freedom: int

    def interval(self, alpha: float) -> tuple[float, float]:
        """The ends of the interval, as logarithms. alpha: the share of such intervals that miss the true effect."""
        reach = statistics.student_quantile(1 - alpha / 2, self.freedom) * self.deviation
        return self.ln - reach, self.ln + reach

    def falls(self, alpha: float) -> bool:
        """Whether the whole interval lies below 0."""
        return self.interval(alpha)[1] < 0


def detectable(deviation: float, freedom: int, alpha: float) -> float:
    """The effect, as a positive logarithm, that an estimate finds with 80 %: the usual sum of two quantiles of t."""
    both = statistics.student_quantile(1 - alpha / 2, freedom) + statistics.student_quantile(0.8, freedom)
    return both * deviation


def screened(pairs: Sequence[tuple[Positions, Positions]], differences: Sequence[float]) -> list[Effect]:
    """The effect of each knob, from the differences (first run minus second) of mirrored pairs, by least squares.

    A constant takes what the second run of a pair has in common with all second runs. ValueError if there are too few
    pairs for the knobs.
    """
    knobs = len(pairs[0][0]) if pairs else 0
    freedom = len(pairs) - knobs - 1
    if freedom < 1:
        raise ValueError(f"{len(pairs)} pairs of runs are too few for {knobs} knobs")
    model = np.array([[1.0, *(1.0 if on else -1.0 for on in first)] for first, _ in pairs])
    found, *_ = np.linalg.lstsq(model, np.array(differences), rcond=None)
    left = np.array(differences) - model @ found
    # The difference of two runs has twice the variance of one.
    variance = max(float(left @ left) / freedom, 2 * LEAST_DEVIATION**2)
    spread = np.linalg.inv(model.T @ model).diagonal()
    return [
        Effect(float(found[1 + knob]), math.sqrt(variance * float(spread[1 + knob])), freedom) for knob in range(knobs)
    ]


@dataclass(frozen=True)
class Factorial:
    """All settings of a few knobs, each measured once in each block.

    means: of the metric, by setting. deviation: the standard deviation of one run. averaged: settings that each mean
    is of.
    """

    means: Mapping[Positions, float]
    deviation: float
    blocks: int
    freedom: int
    averaged: int = 1

    def difference(self, setting: Positions, other: Positions) -> Effect:
        """What ``setting`` does against ``other``."""
        ln = self.means[setting] - self.means[other]
        return Effect(ln, self.deviation * math.sqrt(2 / (self.blocks * self.averaged)), self.freedom)

    def without(self, knob: int) -> "Factorial":
        """The same without a knob: off throughout, or its positions averaged where no effect of it can be measured."""
        everything = max(self.means)
        hurts = self.difference((*everything[:knob], False, *everything[knob + 1 :]), everything).falls(HURTS)
        groups: dict[Positions, list[float]] = {}
        for setting, mean in self.means.items():
            if not (hurts and setting[knob]):
                groups.setdefault(setting[:knob] + setting[knob + 1 :], []).append(mean)
        return replace(
            self,
            means={setting: sum(means) / len(means) for setting, means in groups.items()},
            averaged=self.averaged if hurts else 2 * self.averaged,
        )


def factorial(blocks: Sequence[Mapping[Positions, float]]) -> Factorial:
    """ValueError for fewer than two blocks, or blocks that lack a setting."""
    settings = sorted(blocks[0]) if blocks else []
    if len(blocks) < 2 or any(sorted(block) != settings for block in blocks):
        raise ValueError("a factorial needs two blocks with all settings")
    values = np.array([[block[setting] for setting in settings] for block in blocks])
    level = values - values.mean(axis=1, keepdims=True)
    left = level - level.mean(axis=0)
    freedom = (len(settings) - 1) * (len(blocks) - 1)
    deviation = max(math.sqrt(float((left**2).sum()) / freedom), LEAST_DEVIATION)
    means = values.mean(axis=0)
    return Factorial(dict(zip(settings, map(float, means), strict=True)), deviation, len(blocks), freedom)


def chosen(found: Factorial, alpha: float) -> tuple[int, ...] | None:
    """The knobs to keep; None if no setting is measurably better than the untouched one.

    Knobs are taken away one by one, the one that is missed least first, until each that is left is missed measurably.
    What is left must be better than the untouched system. All the trials together err with at most ``alpha``
    (Bonferroni).
    """
    each = alpha / len(max(found.means, default=()))
    kept = list(range(len(max(found.means))))
    while kept:
        everything = (True,) * len(kept)
        gains = [
            found.difference(everything, (*everything[:knob], False, *everything[knob + 1 :]))
            for knob in range(len(kept))
        ]
        least = max(range(len(kept)), key=lambda knob: gains[knob].ln)
        if gains[least].falls(each):
            break
        found = found.without(least)
        del kept[least]
    return tuple(kept) if kept and found.difference(max(found.means), min(found.means)).falls(alpha) else None
