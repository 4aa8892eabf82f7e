# SPDX-License-Identifier: Apache-2.0
"""One tuning: how much runs differ, a screening of all knobs, then the few that may help, each alone and all together.

The same steps serve a target and a simulated machine: a run is a function from the names of the knobs that are on to
the metrics of the run.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev

from rtproof.tune import design
from rtproof.tune.design import Positions
from rtproof.tune.effects import LEAST_DEVIATION, Effect, Factorial, chosen, detectable, factorial, screened

Metrics = Mapping[str, float]
"""Natural logarithms by the name of the metric."""
MAXIMA, TAIL, MEDIAN = "maximum of a second", "99.9 %", "median"
ABOVE, WORK, ENERGY = "share above the limit", "work of the loads", "energy of the processor"
COSTS = (WORK, ENERGY)
"""Metrics that show what a knob costs."""
Measure = Callable[[frozenset[str]], Metrics | None]
"""Measures one run with these knobs on; None if the run cannot be judged."""

ALPHA = 0.05
EARLY_ALPHA = 0.01
"""Of ALPHA, for the look at half of the blocks. The rest is for the end."""
PILOT_RUNS = 6
SMALL = math.log(1.1)
"""A knob that surely lowers the metric by less than this need not be looked at any longer."""
LEAST_BLOCKS, MOST_BLOCKS = 4, 24
MOST_TOGETHER = 4
LEAST_RUNS = PILOT_RUNS + 2 * LEAST_BLOCKS
"""For a single knob."""
SCREENING_SHARE = 0.5
"""Of the budget. The rest is for the few knobs that may help."""


class OutOfTimeError(Exception):
    """There is no next run. Its text says why; without one, the budget ends first."""


BUDGET_ENDED = "the budget ended first"


@dataclass(frozen=True)
class Plan:
    """How many runs a budget allows.

    knobs: the names of those that are screened. left_out: those for which there is no time. pairs: of the screening, 0
    without one. most_together: knobs that are tried together afterwards. blocks: of 2^most_together runs.
    """

    knobs: tuple[str, ...]
    left_out: tuple[str, ...]
    pairs: int
    most_together: int
    blocks: int

    @property
    def runs(self) -> int:
        return PILOT_RUNS + 2 * self.pairs + self.blocks * (1 << self.most_together)


def plan(knobs: Sequence[str], runs: int) -> Plan | None:
    """The plan for so many runs; None if they are too few for a single knob. knobs: the most promising one first."""
    for count in range(min(len(knobs), design.MOST_KNOBS), 0, -1):
        pairs = design.screening_pairs(count) if count > MOST_TOGETHER else 0
        for together in range(min(count, MOST_TOGETHER), 0, -1):
            blocks = min((runs - PILOT_RUNS - 2 * pairs) // 2**together, MOST_BLOCKS)
            enough = not pairs or 2 * pairs <= SCREENING_SHARE * runs or blocks >= 2 * LEAST_BLOCKS
            if blocks >= LEAST_BLOCKS and enough and (pairs or together == count):
                return Plan(tuple(knobs[:count]), tuple(knobs[count:]), pairs, together, blocks)
    return None


@dataclass(frozen=True)
class KnobResult:
    """What a tuning says of one knob. effects: by metric; of the factorial where it was one of the few, else screened.

    alpha: the share of such intervals that may miss the truth, for each effect. confirmed: whether the effects are of
    the knob alone against the untouched system; otherwise screened. kept: whether it belongs to the set.
    """

    name: str
    effects: Mapping[str, Effect]
    alpha: float
    confirmed: bool
    kept: bool


@dataclass
class Tuning:
    """Everything that was measured and found.

    deviation, untouched: of the metric that decides, a logarithm: how much one run differs, and the mean with no knob
    on; None if nothing was measured. kept: the names of the set to keep, None if no set is measurably better. together:
    the effect of that set by metric. lost: runs that could not be judged. unfinished: why it ended before its plan, ""
    if it did not.
    """

    plan: Plan
    metric: str
    deviation: float | None = None
    untouched: float | None = None
    knobs: tuple[KnobResult, ...] = ()
    kept: tuple[str, ...] | None = None
    together: Mapping[str, Effect] = field(default_factory=dict)
    blocks: int = 0
    runs: int = 0
    lost: int = 0
    unfinished: str = ""

    def detectable_ratio(self) -> float | None:
        """The least factor by which a knob must lower the metric to be kept with 80 %; None: nothing was measured."""
        if self.deviation is None:
            return None
        together, blocks = self.plan.most_together, self.plan.blocks
        error = self.deviation * math.sqrt(2 / blocks)
        return math.exp(detectable(error, (2**together - 1) * (blocks - 1), ALPHA / together))


def tune(
    asked: Plan, metric: str, measure: Measure, seed: int, say: Callable[[str, Tuning], None] = lambda *_: None
) -> Tuning:
    """Measure and decide. ``measure`` may raise OutOfTimeError. say: is told when a stage begins, with what is known.

    seed: what draws the order of the runs.
    """
    found = Tuning(asked, metric)
    drawn = random.Random(seed)  # noqa: S311 - it draws an order, and no secret

    def run(names: frozenset[str]) -> Metrics | None:
        metrics = measure(names)
        found.runs += 1
        found.lost += metrics is None
        return metrics

    try:
        say("pilot", found)
        untouched = [metrics[metric] for _ in range(PILOT_RUNS) if (metrics := run(frozenset()))]
        if len(untouched) < 2:
            found.unfinished = "the untouched system could not be measured twice"
            return found
        found.deviation = max(stdev(untouched), LEAST_DEVIATION)
        found.untouched = mean(untouched)
        say("screening", found)
        few = _screen(found, run, drawn) if asked.pairs else asked.knobs
        if few:
            say("few", found)
            _try_together(found, few, run, drawn)
    except OutOfTimeError as reason:
        found.unfinished = str(reason) or BUDGET_ENDED
    return found


def _screen(found: Tuning, run: Measure, drawn: random.Random) -> tuple[str, ...]:
    """Screen all knobs. The names of the few that seem to help, the most promising one first."""
    names = found.plan.knobs
    pairs, measured = [], []
    for pair in design.screening(len(names), drawn):
        metrics = [run(_on(names, positions)) for positions in pair]
        if metrics[0] and metrics[1]:
            pairs.append(pair)
            measured.append((metrics[0], metrics[1]))
    if len(pairs) < len(names) + 2:
        found.unfinished = f"only {len(pairs)} pairs of runs of the screening can be judged"
        return ()
    common = [name for name in measured[0][0] if all(name in a and name in b for a, b in measured)]
    effects = {name: screened(pairs, [a[name] - b[name] for a, b in measured]) for name in common}
    found.knobs = tuple(
        KnobResult(name, {of: effects[of][at] for of in common}, ALPHA / len(names), confirmed=False, kept=False)
        for at, name in enumerate(names)
    )
    helping = [knob for knob in found.knobs if knob.effects[found.metric].ln < 0]
    helping.sort(key=lambda knob: knob.effects[found.metric].ln)
    return tuple(knob.name for knob in helping[: found.plan.most_together])


def _try_together(found: Tuning, few: Sequence[str], run: Measure, drawn: random.Random) -> None:
    """Measure blocks of all combinations, and decide which knobs to keep."""
    blocks: list[dict[Positions, Metrics]] = []
    planned = found.plan.blocks * 2 ** (found.plan.most_together - len(few))
    order = design.factorial_blocks(len(few), drawn)
    try:
        for number in range(1, planned + 1):
            block = {positions: metrics for positions in next(order) if (metrics := run(_on(few, positions)))}
            if len(block) == 2 ** len(few):
                blocks.append(block)
            half = number == max(LEAST_BLOCKS, planned // 2) < planned and len(blocks) >= LEAST_BLOCKS
            if half and _is_clear(_of_metric(blocks, found.metric)):
                _decide(found, few, blocks, EARLY_ALPHA)
                return
    except OutOfTimeError as reason:
        found.unfinished = str(reason) or BUDGET_ENDED
    if len(blocks) >= LEAST_BLOCKS:
        _decide(found, few, blocks, ALPHA - EARLY_ALPHA)
    else:
        found.unfinished = found.unfinished or "too many runs could not be judged"


def _is_clear(results: Factorial) -> bool:
    """Whether each knob is either kept by now, or surely lowers the metric by less than SMALL."""
    everything = max(results.means)
    kept = chosen(results, EARLY_ALPHA)
    gains = [
        results.difference(everything, (*everything[:knob], False, *everything[knob + 1 :]))
        for knob in range(len(everything))
        if knob not in (kept or ())
    ]
    return bool(kept) and all(gain.interval(EARLY_ALPHA)[0] > -SMALL for gain in gains)


def _decide(found: Tuning, few: Sequence[str], blocks: Sequence[Mapping[Positions, Metrics]], alpha: float) -> None:
    every = [metrics for block in blocks for metrics in block.values()]
    common = [name for name in every[0] if all(name in metrics for metrics in every)]
    by_metric = {name: _of_metric(blocks, name) for name in common}
    kept = chosen(by_metric[found.metric], alpha)
    nothing = (False,) * len(few)

    def against_untouched(setting: Positions) -> dict[str, Effect]:
        return {name: results.difference(setting, nothing) for name, results in by_metric.items()}

    found.blocks = len(blocks)
    found.untouched = by_metric[found.metric].means[nothing]
    found.kept = None if kept is None else tuple(few[at] for at in kept)
    if kept is not None:
        found.together = against_untouched(tuple(at in kept for at in range(len(few))))
    tried = {
        name: KnobResult(
            name,
            against_untouched(tuple(at == own for at in range(len(few)))),
            alpha / len(few),
            confirmed=True,
            kept=own in (kept or ()),
        )
        for own, name in enumerate(few)
    }
    others = [knob for knob in found.knobs if knob.name not in tried]
    found.knobs = (*tried.values(), *others)


def _of_metric(blocks: Sequence[Mapping[Positions, Metrics]], metric: str) -> Factorial:
    return factorial([{setting: metrics[metric] for setting, metrics in block.items()} for block in blocks])


def _on(names: Sequence[str], positions: Positions) -> frozenset[str]:
    return frozenset(name for name, on in zip(names, positions, strict=True) if on)
