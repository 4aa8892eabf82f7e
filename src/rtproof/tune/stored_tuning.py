# SPDX-License-Identifier: Apache-2.0
"""What a tuning leaves: plain data, as ``tuning.json`` has it and as its page shows it."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from rtproof.tune.effects import Effect, detectable
from rtproof.tune.knobs import KnobOnTarget
from rtproof.tune.tuning import ALPHA, Tuning

NO_TIME = "no time in this budget"
LARGEST_LN = 50.0
"""Beyond it a ratio says no more than that nothing is known."""


class MetricEffect(msgspec.Struct, frozen=True):
    """The effect of a change on a metric, as a ratio: below 1 the metric falls.

    metric: its name. ratio: the metric with the change over the metric without it. low_ratio, high_ratio: the ends of
    the interval of ``ratio``.
    """

    metric: str
    ratio: float
    low_ratio: float
    high_ratio: float

    @property
    def falls(self) -> bool:
        """Whether the whole interval lies below 1."""
        return self.high_ratio < 1

    @property
    def rises(self) -> bool:
        """Whether the whole interval lies above 1."""
        return self.low_ratio > 1


class StoredKnob(msgspec.Struct, frozen=True):
    """One knob that was asked for.

    name: as ``--knobs`` takes it. title: what it sets. cost: what it costs, a sentence. settings: what the agent's
    ``--set`` takes; empty for a knob of the command line. boot: words of the kernel's command line that do the same;
    None without any. before: what the first setting was; None if it is not known. why_not_tried: a reason; None if it
    was tried. alone: whether ``effects`` are of the knob alone, against the untouched system; otherwise they are of the
    screening, or there are none. kept: whether the knob belongs to the set to keep. effects: one for each metric that
    all runs have.
    """

    name: str
    title: str
    cost: str
    settings: tuple[str, ...]
    boot: str | None
    before: str | None
    why_not_tried: str | None
    alone: bool
    kept: bool
    effects: tuple[MetricEffect, ...]

    def effect(self, metric: str) -> MetricEffect | None:
        """The effect on this metric; None if it was not measured."""
        return effect_on(self.effects, metric)


class StoredTuning(msgspec.Struct, frozen=True):
    """One tuning.

    command: as typed. seed: what drew the order of the runs. metric: the one that decides. runs_count: the runs that
    were measured. lost_runs_count: those that cannot be judged. run_factor_ratio: what runs of the untouched system
    differ by: exp of the standard deviation of their logarithms; None if nothing was measured. detectable_ratio: the
    factor by which a knob must lower the metric to be found with 80 % probability; None if nothing was measured.
    unfinished: why the tuning ended before its plan; None if it did not. decided: whether enough combinations of knobs
    were measured to judge each of them. untouched_ns: the metric that decides with no knob on, the geometric mean of
    the runs; None if nothing was measured. kept: the names of the knobs to keep; empty if no set of knobs is measurably
    better. together: the effects of these knobs together, against the untouched system. knobs: each knob that was asked
    for. files: the names of the files that make the set permanent, in the folder ``permanent``.
    """

    command: str
    seed: int
    metric: str
    runs_count: int
    lost_runs_count: int
    run_factor_ratio: float | None
    detectable_ratio: float | None
    unfinished: str | None
    decided: bool
    untouched_ns: float | None
    kept: tuple[str, ...]
    together: tuple[MetricEffect, ...]
    knobs: tuple[StoredKnob, ...]
    files: tuple[str, ...]


def effect_on(effects: Sequence[MetricEffect], metric: str) -> MetricEffect | None:
    """The effect on this metric; None if it was not measured."""
    return next((each for each in effects if each.metric == metric), None)


def stored_tuning(
    found: Tuning, knobs: Sequence[KnobOnTarget], files: Sequence[str], command: str, seed: int
) -> StoredTuning:
    """Everything of a tuning that is kept. knobs: all that were asked for."""
    results = {each.name: each for each in found.knobs}

    def stored(knob: KnobOnTarget) -> StoredKnob:
        result = results.get(knob.knob.name)
        unscreened = "the tuning ended before its result" if knob.knob.name in found.plan.knobs else NO_TIME
        return StoredKnob(
            knob.knob.name,
            knob.knob.title,
            knob.knob.cost,
            tuple(knob.settings),
            knob.boot or None,
            knob.before or None,
            knob.missing or (None if result else unscreened),
            bool(result and result.confirmed),
            bool(result and result.kept),
            _effects(result.effects, result.alpha) if result else (),
        )

    return StoredTuning(
        command=command,
        seed=seed,
        metric=found.metric,
        runs_count=found.runs,
        lost_runs_count=found.lost,
        run_factor_ratio=None if found.deviation is None else math.exp(found.deviation),
        detectable_ratio=_detectable_ratio(found),
        unfinished=found.unfinished or None,
        decided=found.blocks > 0,
        untouched_ns=None if found.untouched is None else math.exp(found.untouched),
        kept=found.kept or (),
        together=_effects(found.together, ALPHA),
        knobs=tuple(map(stored, knobs)),
        files=tuple(files),
    )


def _effects(effects: Mapping[str, Effect], alpha: float) -> tuple[MetricEffect, ...]:
    return tuple(
        MetricEffect(metric, *(math.exp(min(ln, LARGEST_LN)) for ln in (effect.ln, *effect.interval(alpha))))
        for metric, effect in effects.items()
    )


def _detectable_ratio(found: Tuning) -> float | None:
    """By what the runs with combinations of knobs differed; before these, by what the first runs differed."""
    tried = next((each for each in found.knobs if each.confirmed), None)
    if tried:
        effect = tried.effects[found.metric]
        return math.exp(min(detectable(effect.deviation, effect.freedom, tried.alpha), LARGEST_LN))
    return found.detectable_ratio()
