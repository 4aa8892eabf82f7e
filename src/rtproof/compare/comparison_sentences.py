# SPDX-License-Identifier: Apache-2.0
"""Write the sentences of a comparison. Each sentence names its number of runs, and claims no more than they show."""

from collections.abc import Callable, Iterator, Sequence

from rtproof.compare.comparison_model import (
    WHY,
    Comparison,
    ComparisonFinding,
    ComparisonSide,
    DifferenceWeight,
    FactDifference,
    MetricEffect,
    SideCrossing,
    deterministic_comparison,
)
from rtproof.compare.distributions import BY_RUNS
from rtproof.compare.effects import ALPHA, MIN_RUNS, SHARE, SIZES
from rtproof.compare.likeness import measuring_conditions
from rtproof.core.phrases import percent, quantity, value
from rtproof.summary.recorded_facts import SIMULATED_PROBE

ComparisonLine = tuple[str, str]
MOST_FACTS = 5
ONE_EACH = (
    "one run each cannot separate the kernel from the run, because two runs of one system differ too; what follows "
    "describes these two runs only"
)
TOO_SMALL = "the interval does not lie wholly beyond a ratio of {0}, up to which both sides count as equal"
NOT_THE_MAXIMUM = (
    "the largest latency is compared nowhere: it grows with the length of a run, and one event decides it; "
    "whether a limit holds is what a verdict on one system says (rtproof run --limit)"
)


def comparison_sentences(said: Comparison) -> tuple[ComparisonLine, ...]:
    """Return label and text of each line; a line with an empty label continues the line before."""
    a, b = said.a, said.b
    runs = f"{quantity(len(a.runs), 'run')} of {a.name} against {quantity(len(b.runs), 'run')} of {b.name}"
    lines = [
        ("COMPARED", f"{runs}; a ratio is {a.name} to {b.name}, so below 1 {a.name} is less late"),
        *_carried("VERDICT", _verdict(said)),
        *_carried("SIMULATED", _simulated(said)),
        *_carried("SEEN", _seen(said)),
        *_carried("CURVES", _order(said)),
        *_carried("NOT COMPARED", [f"{one.label}: {one.why}" for one in said.impossible]),
        *_carried("DIFFER", _differ(said)),
        *_carried("VARIES", [*_varies(a), *_varies(b)]),
        *_carried("LEFT OUT", [f"{one.run} of {one.side}, which is INVALID: {one.why}" for one in said.left_out]),
        *_carried("CONDITIONS", measuring_conditions(((a.name, a.runs), (b.name, b.runs)))),
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


def _carried(label: str, texts: Sequence[str] | Iterator[str]) -> list[ComparisonLine]:
    return [(label if number == 0 else "", text) for number, text in enumerate(texts)]


def _simulated(said: Comparison) -> Iterator[str]:
    played = sum(run.facts.get("probe") == SIMULATED_PROBE for side in (said.a, said.b) for run in side.runs)
    if played:
        yield f"{quantity(played, 'run')} of a simulated process: these figures are of no machine"


def _verdict(said: Comparison) -> Iterator[str]:
    if said.effects and deterministic_comparison(said):
        n, m = len(said.a.runs), len(said.b.runs)
        yield f"not judged: {WHY}; what follows is what these runs gave ({n} and {m} runs)"
    else:
        yield from _judged(said)


def _judged(said: Comparison) -> Iterator[str]:
    n, m = len(said.a.runs), len(said.b.runs)
    names = {ComparisonFinding.A_BETTER: said.a.name, ComparisonFinding.B_BETTER: said.b.name}
    if not said.effects:
        yield "not judged: none of the metrics is possible for all of these runs"
    elif n == m == 1:
        yield f"not judged: {ONE_EACH}"
    elif said.finding is ComparisonFinding.NOT_JUDGED:
        yield (
            f"not judged: to tell a difference from chance takes {MIN_RUNS} runs a side, and there are {n} and "
            f"{m}; what follows describes them"
        )
    elif said.finding in (ComparisonFinding.NOT_INTERLEAVED, ComparisonFinding.UNKNOWN_ORDER):
        yield from _unturned(said)
    elif said.finding is ComparisonFinding.NO_DIFFERENCE:
        yield (
            f"no difference shown with {n} and {m} runs, which is not the same as none: "
            f"differences below {_least(said.effects)} cannot be seen with so few"
        )
    elif said.finding is ComparisonFinding.MIXED:
        yield f"neither is better in everything: each is better in something ({n} and {m} runs)"
    else:
        yield f"{names[said.finding]} is better, in what follows ({n} and {m} runs)"
    for effect in sorted(said.effects, key=lambda effect: effect.finding not in names):
        if effect.finding in names:
            yield f"{effect.label}: {names[effect.finding]} is better, {_effect(effect)}"
        elif effect.p_holm is not None and effect.p_holm < ALPHA:
            yield (
                f"{effect.label}: more than chance, but "
                f"{TOO_SMALL.format(ratio_text(effect.margin))}; {_effect(effect)}"
            )


def _unturned(said: Comparison) -> Iterator[str]:
    """Yield the sentences for runs that were not taken by turns: no side is called better, the figures stay."""
    yield (
        f"{said.finding.value}, so neither side is called better: {said.turns.why} "
        f"({len(said.a.runs)} and {len(said.b.runs)} runs)"
    )
    yield (
        "a slow change of the machine would look like a difference of the sides, or hide one: take turns "
        "(rtproof run --abba A B --repeat 5)"
    )
    apart = [effect for effect in said.effects if effect.finding is said.finding]
    for effect in apart:
        yield f"{effect.label}: {_effect(effect)}, if nothing else changed from run to run"
    if not apart:
        yield f"no difference shown either: differences below {_least(said.effects)} cannot be seen with so few runs"


def _least(effects: Sequence[MetricEffect]) -> str:
    """Name the metrics in which the smallest and the largest difference could have been found."""
    known = sorted((effect.detectable, effect.label) for effect in effects if effect.detectable)
    if not known:
        return "any ratio"
    (low, best), (high, last) = known[0], known[-1]
    return f"a ratio of {ratio_text(low)} ({best})" + (f" to {ratio_text(high)} ({last})" if best != last else "")


def _effect(effect: MetricEffect) -> str:
    return (
        f"{figure_text(effect.a, effect.unit)} against {figure_text(effect.b, effect.unit)}, "
        f"ratio {ratio_text(effect.ratio)} "
        f"(95 %: {interval_text(effect)}; p = {effect.p_holm:.2g} after Holm)"
    )


def _seen(said: Comparison) -> Iterator[str]:
    """Yield which differences could have been found, and how many runs it takes to find others."""
    n, m = len(said.a.runs), len(said.b.runs)
    if not said.effects or deterministic_comparison(said):
        return
    if all(effect.run_factor is None for effect in said.effects):
        yield "how small a difference could be seen is unknown, because one run each shows no scatter"
        return
    limits = [f"{effect.label} {ratio_text(effect.detectable)}" for effect in said.effects if effect.detectable]
    if limits:
        yield (
            f"differences below these ratios cannot be seen with {n} and {m} runs (80 % power, each way, "
            f"by the scatter of these runs): {'; '.join(limits)}"
        )
    else:
        yield f"with {n} and {m} runs no difference, however large, can be told from chance"
    for size in SIZES:
        yield f"to find a ratio of {size:g} with 80 % probability takes, in runs a side: {_needs(said.effects, size)}"


def _needs(effects: Sequence[MetricEffect], size: float) -> str:
    numbers = [(effect.label, dict(effect.runs_for)[size]) for effect in effects]
    return "; ".join(f"{label} {f'{n:,}' if n else 'more than can be run'}" for label, n in numbers)


def _order(said: Comparison) -> Iterator[str]:
    if deterministic_comparison(said):
        return
    order, names = said.order, (said.a.name, said.b.name)
    sure = "surely differ" if order.method == BY_RUNS else "differ by more than chance within them"
    method = order.method
    if order.method == BY_RUNS and said.turns.interleaved is not True:
        sure, method = "differ by more than the runs of a side", f"{method}, if nothing else changed from run to run"
    elif order.method == BY_RUNS and said.finding is ComparisonFinding.NOT_JUDGED:
        sure = "differ by more than the runs of a side"
    if order.crossings:
        yield f"the distributions cross, so neither lies below the other throughout ({method})"
        for crossing in order.crossings:
            yield _crossing(crossing, names, said.unit)
    elif order.lower:
        lower, higher = names if order.lower == "A" else names[::-1]
        yield f"wherever they {sure}, fewer values of {lower} than of {higher} lie above ({method})"
    else:
        yield f"nowhere do the distributions {sure} ({method})"


def _crossing(crossing: SideCrossing, names: tuple[str, str], unit: str) -> str:
    below, above = names if crossing.a_lower_below else names[::-1]
    share = percent(float(f"{crossing.share:.2g}"))
    return (
        f"about {figure_text(crossing.value, unit)}, above which {share} of all values lie: "
        f"below it {below} is lower, above it {above}"
    )


def _differ(said: Comparison) -> Iterator[str]:
    found = said.differences
    if not found:
        yield "no recorded fact differs"
        return
    yield from (_fact(one, (said.a.name, said.b.name)) for one in found[:MOST_FACTS])
    if len(found) > MOST_FACTS:
        yield f"and in {quantity(len(found) - MOST_FACTS, 'fact')} more, ranked below these"


def _fact(one: FactDifference, names: tuple[str, str]) -> str:
    said = ", which you said is compared" if one.said and one.weight is DifferenceWeight.UNLIKE else ""
    why = f" ({one.why})" if one.why else ""
    return f"{one.key}: {one.a} in {names[0]}, {one.b} in {names[1]}{said}{why}"


def _varies(side: ComparisonSide) -> Iterator[str]:
    for one in side.varying[:MOST_FACTS]:
        texts = "; ".join(f"{text} ({quantity(n, 'run')})" for text, n in one.texts)
        yield f"among the runs of {side.name}: {one.key}: {texts}"
    if len(side.varying) > MOST_FACTS:
        yield f"among the runs of {side.name}: {quantity(len(side.varying) - MOST_FACTS, 'fact')} more"
