# SPDX-License-Identifier: Apache-2.0
"""What a user's own runs say of the advice of a check.

Two groups of runs show the effect of an advice if they measured alike on one system, and if the settings that the
checks of an audit read differ between them in that check only. In one group the check is good, in the other a finding.
A setting that differs as well, and changes the outcome of no check, is named: the kernel computes some from others.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from rtproof.audit.audit_model import Outcome, OwnExperiment
from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison, ComparisonFinding, MetricEffect, deterministic_comparison
from rtproof.compare.effects import MIN_RUNS
from rtproof.compare.likeness import MUST_AGREE, OTHER_QUANTITY, difference_sentences
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity, value

ALIKE = (
    *OTHER_QUANTITY,
    *MUST_AGREE,
    *("priority", "memory locked", "timer slack", "trace"),
    *("machine", "CPU model", "hardware", "kernel release", "kernel version"),
)
"""Facts in which the runs of an experiment must agree, besides the settings."""
MOST_TEXTS = 0.5
"""A setting that has more different texts than this share of the runs is a count, and no setting."""
FEWEST_VIRTUAL = 4
"""So many runs of each in virtual time, as for the shifts of a cell of the lab (docs/lab.md)."""
WITH, WITHOUT = "with the advice", "without it"
MOST_EXPERIMENTS = 2
MOST_BESIDES = 2
"""More settings that differ as well may be the reason of anything."""
HEADLINE = ("second_maxima", "p99.9", "p99", "p50")
"""The figure that stands for a comparison in which no figure differs clearly, by preference."""

Settings = Mapping[str, str]
RunGroup = list[RunFigures]


def own_experiments(runs: Sequence[RunFigures]) -> dict[str, tuple[OwnExperiment, ...]]:
    """Return what the runs say of each check that they are an experiment on, by the id of the check.

    Runs that did not measure what was asked or have no facts of an audit are left out.
    """
    usable = [run for run in runs if run.setup and not run.invalid and run.n]
    unsteady = _unsteady_paths(usable)
    groups: dict[tuple[object, ...], RunGroup] = defaultdict(list)
    for run in usable:
        alike = tuple(difference_sentences(key, run) for key in ALIKE)
        groups[alike, tuple(sorted(_settings(run, unsteady).items()))].append(run)
    found: dict[str, list[tuple[int, OwnExperiment]]] = defaultdict(list)
    for (first, a), (second, b) in combinations(groups.items(), 2):
        if first[0] == second[0]:
            for check, told in _experiments(a, b, unsteady):
                found[check].append((len(a) + len(b), told))
    return {check: _largest(told) for check, told in found.items()}


def _largest(told: list[tuple[int, OwnExperiment]]) -> tuple[OwnExperiment, ...]:
    return tuple(one for _, one in sorted(told, key=lambda each: -each[0])[:MOST_EXPERIMENTS])


def _settings(run: RunFigures, without: frozenset[str]) -> Settings:
    """Return every setting that a check reads in a run, but for those without a text of their own."""
    every = (item for check in run.setup.values() for item in check.settings.items())
    return {path: text for path, text in every if text is not None and path not in without}


def _unsteady_paths(runs: Sequence[RunFigures]) -> frozenset[str]:
    """Return the paths that hold no setting in some run, or nearly another text in each."""
    texts: dict[str, Counter[str | None]] = defaultdict(Counter)
    for run in runs:
        for path, text in {item for check in run.setup.values() for item in check.settings.items()}:
            texts[path][text] += 1
    return frozenset(path for path, seen in texts.items() if None in seen or len(seen) > max(2, MOST_TEXTS * len(runs)))


def _experiments(a: RunGroup, b: RunGroup, unsteady: frozenset[str]) -> Iterator[tuple[str, OwnExperiment]]:
    """Yield the checks that read every setting in which two groups differ and that matters, with what they show."""
    settings = _settings(a[0], unsteady), _settings(b[0], unsteady)
    paths = settings[0].keys() | settings[1].keys()
    differing = {path for path in paths if settings[0].get(path) != settings[1].get(path)}
    changed = [check for check in a[0].setup if check in b[0].setup and _outcomes(a, check) != _outcomes(b, check)]
    read = {check: differing & _read(a, b, check) for check in changed}
    judged = {path for paths in read.values() for path in paths}
    besides = sorted(differing - judged)
    if len(besides) > MOST_BESIDES or any(paths not in (set(), judged) for paths in read.values()):
        return
    for check in (check for check, paths in read.items() if paths):
        outcomes = _outcomes(a, check), _outcomes(b, check)
        if outcomes in (({Outcome.GOOD}, {Outcome.FINDING}), ({Outcome.FINDING}, {Outcome.GOOD})):
            good, bad = (a, b) if outcomes[0] == {Outcome.GOOD} else (b, a)
            told = _experiment(good, bad)
            if told:
                yield check, replace(told, sentence=f"{told.sentence}{_besides(besides)}")


def _besides(paths: Sequence[str]) -> str:
    """Say which settings differ as well, in which no check finds fault on either side."""
    return f" Besides, {' and '.join(paths)} differ{'s' if len(paths) == 1 else ''}." if paths else ""


def _read(a: RunGroup, b: RunGroup, check: str) -> set[str]:
    return {*a[0].setup[check].settings, *b[0].setup[check].settings}


def _outcomes(runs: RunGroup, check: str) -> set[Outcome]:
    return {run.setup[check].outcome for run in runs if check in run.setup}


def _experiment(good: RunGroup, bad: RunGroup) -> OwnExperiment | None:
    """Return what the comparison of runs with the advice and without it shows; None if they cannot be compared."""
    try:
        found = compare_sides(good, bad, (WITH, WITHOUT))
    except UserError:
        return None
    if deterministic_comparison(found):
        return _in_virtual_time(good, bad)
    said = _SAID.get(found.finding)
    where = f"{quantity(len(good), 'run')} {WITH}, {len(bad)} {WITHOUT}, on Linux {_kernel(good)}"
    if said is None:
        return OwnExperiment(f"Your own runs do not decide it: {_undecided(found)} ({where}).", contradicts=False)
    effect = _deciding(found)
    figures = f"{effect.label}: {_ratio(effect)} with the advice" if effect else "no figure can be compared"
    contradicts = found.finding is ComparisonFinding.B_BETTER
    return OwnExperiment(f"{said}: {figures} ({where}).", contradicts)


_SAID = {
    ComparisonFinding.A_BETTER: "Your own runs agree",
    ComparisonFinding.B_BETTER: "Your own runs contradict this",
    ComparisonFinding.NO_DIFFERENCE: "Your own runs show no clear effect",
}


def _undecided(found: Comparison) -> str:
    if found.finding is ComparisonFinding.MIXED:
        return "some figures are better with the advice and some worse"
    if found.finding is ComparisonFinding.NOT_INTERLEAVED:
        return "they were not taken by turns, so a slow change of the machine may be the reason"
    if found.finding is ComparisonFinding.OPEN:
        return "the runs have a rhythm, which may be the reason"
    if found.finding is ComparisonFinding.UNKNOWN_ORDER:
        return "it is not known in which order they were taken"
    fewest = min(len(found.a.runs), len(found.b.runs))
    if fewest < MIN_RUNS:
        return f"{MIN_RUNS} runs of each are needed"
    return "no figure can be judged"


def _in_virtual_time(good: RunGroup, bad: RunGroup) -> OwnExperiment:
    """Return what runs show in which nothing is chance, by the largest latency of each run."""
    ends = [(min(largest), max(largest)) for largest in (_largest_values(good), _largest_values(bad))]
    (low, high), (other_low, other_high) = ends
    within = max(high / low, other_high / other_low)
    enough = min(len(good), len(bad)) >= FEWEST_VIRTUAL
    better, worse = (enough and ratio > within for ratio in (other_low / high, low / other_high))
    said = "contradict this" if worse else "agree" if better else "show no clear effect"
    return OwnExperiment(
        f"Your own runs in virtual time {said}: the largest latency is {value(low)} to {value(high)} with the advice "
        f"({quantity(len(good), 'run')}), {value(other_low)} to {value(other_high)} without it ({len(bad)}), on Linux "
        f"{_kernel(good)}. Nothing in them is chance, so there is no interval.",
        contradicts=worse,
    )


def _largest_values(runs: RunGroup) -> list[int]:
    return [max(run.largest or 1, 1) for run in runs]


def _deciding(found: Comparison) -> MetricEffect | None:
    """The surest effect of a finding, or else the figure that stands for the comparison."""
    agreeing = [effect for effect in found.effects if effect.finding is found.finding]
    if found.finding is not ComparisonFinding.NO_DIFFERENCE and agreeing:
        return min(agreeing, key=lambda effect: (1.0 if effect.p is None else effect.p, _headline_rank(effect)))
    return min(found.effects, key=_headline_rank, default=None)


def _headline_rank(effect: MetricEffect) -> int:
    return HEADLINE.index(effect.metric) if effect.metric in HEADLINE else len(HEADLINE)


def _ratio(effect: MetricEffect) -> str:
    low, high = ("?" if end is None else f"{end:.2f}" for end in (effect.low, effect.high))
    return f"{effect.ratio:.2f} times as large (95 % interval {low} to {high})"


def _kernel(runs: RunGroup) -> str:
    return runs[0].facts.get("kernel release", "of unknown release")
