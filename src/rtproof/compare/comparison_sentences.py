# SPDX-License-Identifier: Apache-2.0
"""Write the sentences of a comparison. Each sentence names its number of runs, and claims no more than they show."""

from collections.abc import Callable, Iterator, Sequence

from rtproof.compare.comparison_model import (
    FEW_RUNS,
    WHY,
    Comparison,
    ComparisonFinding,
    DifferenceWeight,
    MetricEffect,
    deterministic_comparison,
)
from rtproof.compare.effects import ALPHA, BETTER, DRAW, MIN_RUNS, SHARE
from rtproof.compare.likeness import measuring_conditions
from rtproof.core.phrases import percent, quantity, value
from rtproof.judge.verdict_sentences import lines_under
from rtproof.summary.recorded_facts import SIMULATED_PROBE

ComparisonLine = tuple[str, str]
MOST_FACTS = 5
ONE_EACH = f"each side has one run, and two runs of one system differ, too; measure each side {MIN_RUNS} times"
EQUAL = "more than chance, but a factor up to {0} counts as equal"
STILL = "the runs of each side do not differ at all, so they do not show how much runs differ"
IF_ALIKE = "if nothing else changed from run to run"
NOT_THE_MAXIMUM = (
    "the largest latencies are not compared: one event decides each, and longer runs have larger ones; judge them by a "
    "limit (rtproof run --limit)"
)


def comparison_sentences(said: Comparison) -> tuple[ComparisonLine, ...]:
    """Return label and text of each line; a line with an empty label continues the line before."""
    a, b = said.a, said.b
    runs = f"{quantity(len(a.runs), 'run')} of {a.name} against {quantity(len(b.runs), 'run')} of {b.name}"
    drawn = "" if said.turns.order_seed is None else f", in an order drawn from seed {said.turns.order_seed}"
    played = sum(run.facts.get("probe") == SIMULATED_PROBE for side in (a, b) for run in side.runs)
    simulated = [f"no machine: {quantity(played, 'run')} of a simulated process"] if played else []
    left_out = [
        f"{one.run} of {one.side}{'' if one.is_copy else ', which is INVALID'}: {one.why}" for one in said.left_out
    ]
    lines = [
        ("COMPARED", f"{runs}{drawn}; ratios are {a.name} to {b.name}: below 1, {a.name} is faster"),
        *lines_under("VERDICT", _verdict(said)),
        *lines_under("SIMULATED", simulated),
        *lines_under("CURVES", _order(said)),
        *lines_under("NOT COMPARED", [f"{one.label}: {one.why}" for one in said.impossible]),
        *lines_under("DIFFER", _differ(said)),
        *lines_under("LEFT OUT", left_out),
        *lines_under("CONDITIONS", measuring_conditions(((a.name, a.runs), (b.name, b.runs)))),
        ("MAX", NOT_THE_MAXIMUM),
    ]
    return tuple(lines)


def figure_text(number: float, unit: str) -> str:
    """Return a latency or a share as text for a reader."""
    if unit == SHARE:
        return percent(float(f"{number:.3g}"))
    return value(int(float(f"{number:.4g}"))) if unit == "ns" else f"{number:.4g} {unit}"


def ratio_text(number: float | None) -> str:
    """Return a ratio with three digits; "unknown" for None."""
    return "unknown" if number is None else f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def interval_text(effect: MetricEffect, written: Callable[[float], str] = ratio_text) -> str:
    """Return both ends of the interval, or the end that is known. written: turns a ratio into text."""
    if effect.low is None:
        return "none"
    if effect.high is None:
        return f"{written(effect.low)} or more"
    return f"{written(effect.low)} to {written(effect.high)}" if effect.low else f"{written(effect.high)} or less"


def _verdict(said: Comparison) -> Iterator[str]:
    if said.effects and deterministic_comparison(said):
        yield f"not judged: {WHY}"
        return
    runs = f"{quantity(len(said.a.runs), 'run')} of {said.a.name} and {len(said.b.runs)} of {said.b.name}"
    if said.finding is ComparisonFinding.NOT_JUDGED:
        fewest, most = sorted((len(said.a.runs), len(said.b.runs)))
        why = STILL if fewest >= MIN_RUNS else f"{runs} are too few; {MIN_RUNS} of each are needed"
        why = ONE_EACH if most == 1 else why
        yield f"not judged: {why if said.effects else 'no figure is known of all of these runs'}"
    elif said.finding is said.turns.withheld:
        yield from _withheld(said)
    elif said.finding is ComparisonFinding.NO_DIFFERENCE:
        yield f"no difference shown with {runs}"
        yield f"smallest difference that would be noticed: {_least(said.effects)}"
    elif said.finding is ComparisonFinding.MIXED:
        yield f"neither is faster in everything ({runs})"
    else:
        # The effect of the rarest latencies among those that have the finding.
        found = [effect for effect in said.effects if effect.finding is said.finding]
        deciding = next((one for one in reversed(found) if one.metric.startswith("p")), found[-1])
        yield f"{_both(deciding)} ({deciding.label}): {_faster(said, said.finding)}"
    if said.finding is not ComparisonFinding.OPEN:
        yield from filter(None, (said.turns.rhythm, said.turns.unseen))
    yield from _told_apart(said)
    if copies := sum(one.is_copy for one in said.left_out):
        yield f"{quantity(copies, 'run')} left out: the values are those of another run"


def _faster(said: Comparison, finding: ComparisonFinding) -> str:
    return f"{(said.a if finding is ComparisonFinding.A_BETTER else said.b).name} is faster"


def _told_apart(said: Comparison) -> Iterator[str]:
    """Yield the metrics in which a side is called faster, then those in which the sides differ by too little."""
    for effect in sorted(said.effects, key=lambda effect: effect.finding not in BETTER):
        apart = (effect.low or 0) > 1 or (effect.high is not None and effect.high < 1)
        if effect.finding in BETTER:
            mixed = f", {_faster(said, effect.finding)}" if said.finding is ComparisonFinding.MIXED else ""
            yield f"{effect.label}: {_effect(effect)}{mixed}"
        elif effect.p_holm is not None and effect.p_holm < ALPHA and apart:
            yield f"{effect.label}: {_effect(effect)}, {EQUAL.format(ratio_text(effect.margin))}"


def _both(effect: MetricEffect) -> str:
    return " against ".join(figure_text(number, effect.unit) for number in (effect.a, effect.b))


def _withheld(said: Comparison) -> Iterator[str]:
    if said.finding is ComparisonFinding.OPEN:
        yield f"open: {said.turns.rhythm}"
        yield f"such a rhythm would look like a difference of the sides, because their order was not drawn: {DRAW}"
    else:
        yield f"not judged: {said.turns.why}"
        yield (
            "a slow change of the machine would look like a difference of the sides: take turns (rtproof run --abba A "
            "B --repeat 5)"
        )
    apart = [effect for effect in said.effects if effect.finding is said.finding]
    for effect in apart:
        yield f"{effect.label}: {_effect(effect)}, {IF_ALIKE}"
    if not apart:
        yield f"smallest difference that would be noticed: {_least(said.effects)}"


def _least(effects: Sequence[MetricEffect]) -> str:
    """Name the smallest differences that would have been noticed: in the surest figure, and in the least sure."""
    known = sorted((effect.detectable, effect.label) for effect in effects if effect.detectable)
    if not known:
        return "no difference, however large"
    (low, best), (high, last) = known[0], known[-1]
    most = f" to {ratio_text(high)} ({last})" if best != last else ""
    return f"a factor of {ratio_text(low)} ({best}){most}"


def _effect(effect: MetricEffect) -> str:
    interval = "" if effect.low is None else f" (95 % interval {interval_text(effect)})"
    return f"{_both(effect)}, a factor of {ratio_text(effect.ratio)}{interval}"


def _order(said: Comparison) -> Iterator[str]:
    if deterministic_comparison(said):
        return
    order, names = said.order, (said.a.name, said.b.name)
    method = order.method
    if method == FEW_RUNS:
        yield f"not told: {FEW_RUNS}"
        return
    if said.turns.interleaved is not True:
        method = f"{method}, {IF_ALIKE}"
    elif said.finding is ComparisonFinding.NOT_JUDGED:
        method = f"{method}, too few runs to judge"
    if order.crossings:
        yield f"the curves cross, so neither is faster everywhere ({method})"
        for crossing in order.crossings:
            below, above = names if crossing.a_lower_below else names[::-1]
            share = percent(float(f"{crossing.share:.2g}"))
            where = f"{figure_text(crossing.value, said.unit)} ({share} of all values are above)"
            yield f"below {where} {below} is faster, above it {above}"
    elif order.lower:
        yield f"{names[0] if order.lower == 'A' else names[1]} is faster where the curves separate ({method})"
    else:
        yield f"the curves do not separate ({method})"


def _differ(said: Comparison) -> Iterator[str]:
    found = said.differences
    if not found:
        yield "no recorded fact differs"
        return
    for one in found[:MOST_FACTS]:
        compared = " (what you compare)" if one.said and one.weight is DifferenceWeight.UNLIKE else ""
        why = f" ({one.why})" if one.why else ""
        yield f"{one.key}: {one.a} in {said.a.name}, {one.b} in {said.b.name}{compared}{why}"
    if len(found) > MOST_FACTS:
        yield f"and in {quantity(len(found) - MOST_FACTS, 'fact')} more, ranked below these"
