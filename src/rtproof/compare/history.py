# SPDX-License-Identifier: Apache-2.0
"""Read the history of a system from many runs: where did the latency change, and which facts changed there?"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from rtproof.compare.change_points import mean_changes, neighbour_correlation, slow_drift, visible_step
from rtproof.compare.comparison_model import WHY, LeftOutRun, sides_in_virtual_time
from rtproof.compare.effects import reference_levels
from rtproof.compare.likeness import (
    MUST_AGREE,
    NOT_KNOWN,
    OTHER_QUANTITY,
    SAME_BOOT_NS,
    SeenRuns,
    difference_sentences,
    known_fact,
    ranked_facts,
)
from rtproof.compare.run_metrics import NO_CLOCK, QUANTILES, FigureReading, RunFigures
from rtproof.core.phrases import percent, quantity, value

FEWEST = 20
"""Fewer runs with a figure are not searched for changes: neither side would tell enough of the noise."""
NEAR = 3
"""A change may be misplaced by this many runs: 95 % of steps of two deviations are found this near."""
MARGIN = 0.05
"""A step of at most 5 %, and a bin of the histogram more, is no change: the figures may not show a smaller one."""


@dataclass(frozen=True)
class FactChange:
    """A fact whose text changes from one run to the next.

    key: the fact. before: what it said before. after: what it said after. at: the first run with the new text.
    steady: whether it kept the old text in the whole stretch before a change of latency, and the new text after it.
    why: why it matters, "" if not known. source: who says so, "" if not known.
    """

    key: str
    before: str
    after: str
    at: int
    steady: bool = False
    why: str = ""
    source: str = ""


@dataclass(frozen=True)
class FoundChange:
    """A change of one metric.

    metric: its key. at: the first run after the change. before: the mean of the runs before it. after: the mean of the
    runs after it. ratio: after to before. p: the p-value.
    runs: the first run of the stretch before the change, and the run behind the stretch after it.
    """

    metric: str
    label: str
    unit: str
    at: int
    before: float
    after: float
    p: float
    runs: tuple[int, int]

    @property
    def ratio(self) -> float:
        return self.after / self.before


@dataclass(frozen=True)
class ChangePlace:
    """Changes of one or more metrics that lie within NEAR runs of each other.

    at: the run of the surest change. found: the metrics that changed near it. facts: the facts that changed near it.
    """

    at: int
    found: tuple[FoundChange, ...]
    facts: tuple[FactChange, ...]


@dataclass(frozen=True)
class MetricHistory:
    """One figure of every run.

    key: of the metric. label: its name. values: its logarithm, None where a run has none. unit: of its values, the
    exponentials. places: the runs that have a value.
    changes: in order. noise: standard deviation of the logarithms within the stretches between changes, None if not
    known.
    why: why no changes were looked for, "" if they were. correlation: of neighbouring runs, 0 where none is clear.
    margin: the logarithm of the largest ratio that is no change.
    drift: the logarithm of the last run against the first by a straight line; None where a change was found, or no
    drift is sure.
    """

    key: str
    label: str
    unit: str
    values: tuple[float | None, ...]
    places: tuple[int, ...]
    changes: tuple[FoundChange, ...]
    noise: float | None
    why: str
    correlation: float = 0.0
    margin: float = 0.0
    drift: float | None = None

    @property
    def drift_ratio(self) -> float | None:
        """The last run against the first by the drift; None without one."""
        return None if self.drift is None else math.exp(self.drift)

    @property
    def run_factor(self) -> float | None:
        """The factor by which runs differ between which nothing happened; None if not known."""
        return None if self.noise is None else math.exp(self.noise)

    @property
    def visible(self) -> float | None:
        """The step in the middle, as a ratio, that is found 9 times of 10 among this number of runs."""
        if self.noise is None:
            return None
        return math.exp(self.margin + visible_step(len(self.places), self.correlation) * self.noise)


@dataclass(frozen=True)
class RunSequence:
    """Runs that measured alike.

    name: how they differ from the other sequences; empty if there is only one sequence. runs: in order. metrics: one
    for each metric. places: the changes, in order.
    """

    name: str
    runs: tuple[RunFigures, ...]
    metrics: tuple[MetricHistory, ...]
    places: tuple[ChangePlace, ...]

    @property
    def judged(self) -> bool:
        """Whether any metric had enough runs to look for changes."""
        return any(not metric.why for metric in self.metrics)


@dataclass(frozen=True)
class RunHistory:
    """Everything said about the runs of a folder.

    sequences: the runs that measured alike. every: the runs of all sequences in order.
    conditions: what changed between runs of all sequences, in order; ``at`` counts in ``every``. by_name: the runs are
    in order of name, not of start.
    order: sentences on why the order of the runs may be wrong. left_out: runs that no figure contains.
    """

    sequences: tuple[RunSequence, ...]
    left_out: tuple[LeftOutRun, ...]
    every: tuple[RunFigures, ...] = ()
    conditions: tuple[FactChange, ...] = ()
    by_name: bool = False
    order: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        return len(self.every)


OWN = ("length asked",)
"""Facts that a user changes without a change of the system. They come last."""
FOREMOST_CONDITIONS = (*OTHER_QUANTITY, *MUST_AGREE, "kernel release", "firmware version")
"""What a reader asks for first, where several conditions change at one run."""


def condition_changes(runs: Sequence[RunFigures]) -> tuple[FactChange, ...]:
    """Return what changed in the conditions between runs, in order: the facts that are known to change latencies.

    A fact that a run does not tell is no change: it is compared with the last run that tells it.
    """
    ranks = {key: at for at, key in enumerate(FOREMOST_CONDITIONS)}
    found = []
    for key in dict.fromkeys(key for run in runs for key in run.facts):
        if key in OWN or not (key in ranks or known_fact(key)):
            continue
        told = [(at, text) for at, run in enumerate(runs) if (text := difference_sentences(key, run)) != NOT_KNOWN]
        found += [FactChange(key, before, text, at) for (_, before), (at, text) in pairwise(told) if text != before]
    return tuple(sorted(found, key=lambda one: (one.at, ranks.get(one.key, len(ranks)), ranked_facts(one.key))))


def fact_changes(runs: Sequence[RunFigures], since: int, at: int, until: int) -> tuple[FactChange, ...]:
    """Return the facts whose text changed within NEAR runs of ``at``.

    Facts that are steady on both sides come first, then those with a known effect on latency.
    since, until: the stretches before and after the change reach from ``since`` to ``until``.
    """
    found = []
    for key in dict.fromkeys(key for run in runs[since:until] for key in run.facts):
        texts = [difference_sentences(key, run) for run in runs[since:until]]
        steps = [since + i for i, (before, text) in enumerate(pairwise(texts), 1) if before != text]
        step = min(steps, key=lambda one: abs(one - at), default=until + NEAR)
        if abs(step - at) <= NEAR and steps:
            row = known_fact(key)
            told = (row.why, row.source) if row else ("", "")
            found.append(FactChange(key, texts[step - since - 1], texts[step - since], step, len(steps) == 1, *told))
    return tuple(
        sorted(found, key=lambda one: (not one.steady, one.key in OWN, ranked_facts(one.key), abs(one.at - at)))
    )


SHARE = "share"
DETERMINISTIC = f"{WHY}; rtproof lab check judges each run"
NO_START = "it does not say when it was measured"
SET_BACK = (
    "{1} began after {0} by the clock, and before it by the time since boot: the clock was set back, or these are runs "
    "of several systems (--order name sorts by the names)."
)
BY_NAME = " (--order name sorts by the names)"


def analyse_history(runs: Sequence[RunFigures], *, by_name: bool = False) -> RunHistory:
    """Return the history of runs in the order of their start.

    by_name: keep the runs in the order given. Runs that did not measure what was asked are left out, and so are runs
    that are given twice. Runs that measured something else make a sequence of their own: a ratio to them means nothing.
    """
    left_out: list[LeftOutRun] = []
    kept = list(_usable(runs, by_name, left_out))
    if not by_name:
        kept.sort(key=lambda run: run.started_ns or 0)
    alike: dict[tuple[str, ...], list[RunFigures]] = {}
    for run in kept:
        alike.setdefault(tuple(difference_sentences(key, run) for key in (*OTHER_QUANTITY, *MUST_AGREE)), []).append(
            run
        )
    names = _names(list(alike))
    sequences = []
    for name, some in zip(names, map(tuple, alike.values()), strict=True):
        metrics = tuple(_metrics(some))
        sequences.append(RunSequence(name, some, metrics, tuple(_places(some, metrics))))
    order = () if by_name else tuple(said for some in alike.values() for said in _doubts_about_order(some))
    return RunHistory(tuple(sequences), tuple(left_out), tuple(kept), condition_changes(kept), by_name, order)


def _doubts_about_order(runs: Sequence[RunFigures]) -> Iterator[str]:
    """Yield sentences on runs that began at one time, and on a start that contradicts the times since boot.

    A later start of a system that had booted before the earlier one began, and had been up for less, is set back.
    """
    again = sum(later.started_ns == run.started_ns for run, later in pairwise(runs))
    if again:
        yield f"{quantity(again, 'run')} began at the same time as another one, so the names decide the order."
    for run, later in pairwise(runs):
        booted, started, later_booted, later_started = (
            each or 0 for each in (run.booted_ns, run.started_ns, later.booted_ns, later.started_ns)
        )
        shorter = later_started - later_booted < started - booted - SAME_BOOT_NS
        if booted and started and later_booted and later_started and later_booted < started - SAME_BOOT_NS and shorter:
            yield SET_BACK.format(run.name, later.name)
            return


def _usable(runs: Sequence[RunFigures], by_name: bool, left_out: list[LeftOutRun]) -> Iterator[RunFigures]:
    seen: dict[str, str] = {}
    known = SeenRuns()
    for run in runs:
        why = f"INVALID: {run.invalid[0]}" if run.invalid else ""
        why = why or ("it has no value" if not run.n else "")
        if not (by_name or why) and run.started_ns is None:
            why = (NO_CLOCK if NO_CLOCK in run.unclear else NO_START) + BY_NAME
        why = why or (f"it is the same run as {seen[run.run_id]}" if run.run_id in seen else "") or known.copied_by(run)
        if why:
            left_out.append(LeftOutRun(run.name, why))
            continue
        if set(run.run_id) - {"0"}:
            seen[run.run_id] = run.name
        yield run


def _names(kinds: list[tuple[str, ...]]) -> list[str]:
    keys = (*OTHER_QUANTITY, *MUST_AGREE)
    differing = [at for at in range(len(keys)) if len({kind[at] for kind in kinds}) > 1]
    return [", ".join(f"{keys[at]} {kind[at]}" for at in differing) for kind in kinds]


def _metrics(runs: tuple[RunFigures, ...]) -> Iterator[MetricHistory]:
    unit = runs[0].unit
    for p in QUANTILES:
        yield _metric(f"p{100 * p:g}", percent(p), unit, runs, [run.quantile(p) for run in runs])
    yield _metric("second_maxima", "maximum of a second", unit, runs, [run.second_maxima for run in runs])
    for level in reference_levels(runs, ())[0]:
        readings = [run.share_above(level) for run in runs]
        yield _metric(f"above_{level}", f"share above {value(level)}", SHARE, runs, readings)


def _metric(
    key: str, label: str, unit: str, runs: tuple[RunFigures, ...], readings: list[FigureReading]
) -> MetricHistory:
    values = tuple(reading.ln for reading in readings)
    places = tuple(at for at, ln in enumerate(values) if ln is not None)
    known = [ln for ln in values if ln is not None]
    if sides_in_virtual_time(runs):
        return MetricHistory(key, label, unit, values, places, (), None, DETERMINISTIC)
    if len(known) < FEWEST:
        return MetricHistory(key, label, unit, values, places, (), None, _why(runs, readings, len(known)))
    widths = [one.ln_high - one.ln_low for one in readings if one.ln_low is not None and one.ln_high is not None]
    margin = math.log1p(MARGIN) + (median(widths) if widths else 0.0)
    found = mean_changes(known, margin=margin)
    ends = [0, *(at for at, _ in found), len(known)]
    stretches = [known[start:stop] for start, stop in pairwise(ends)]
    means = [sum(part) / len(part) for part in stretches]
    changes = []
    for k, (at, p) in enumerate(found):
        before, after = math.exp(means[k]), math.exp(means[k + 1])
        reach = places[ends[k]], places[ends[k + 2] - 1] + 1
        changes.append(FoundChange(key, label, unit, places[at], before, after, p, reach))
    squares = sum((ln - mean) ** 2 for part, mean in zip(stretches, means, strict=True) for ln in part)
    freedom = len(known) - len(stretches)
    noise = math.sqrt(squares / freedom) if freedom > 0 else None
    drift = None if found else slow_drift(known, margin)
    phi = neighbour_correlation(known)
    return MetricHistory(key, label, unit, values, places, tuple(changes), noise, "", phi, margin, drift)


def _why(runs: tuple[RunFigures, ...], readings: list[FigureReading], known: int) -> str:
    if known == len(runs):
        return f"{quantity(known, 'run')}; {FEWEST} are needed"
    reason = next(reading.why for reading in readings if reading.ln is None)
    return f"{known} of {quantity(len(runs), 'run')} have this figure; {FEWEST} are needed ({reason})"


def _places(runs: tuple[RunFigures, ...], metrics: tuple[MetricHistory, ...]) -> Iterator[ChangePlace]:
    """Yield the changes of all metrics in order. Changes that are too near to be told apart form one place."""
    found = sorted((change for metric in metrics for change in metric.changes), key=lambda one: one.at)
    groups: list[list[FoundChange]] = []
    for one in found:
        if groups and one.at - groups[-1][0].at <= NEAR:
            groups[-1].append(one)
        else:
            groups.append([one])
    for group in groups:
        surest = min(group, key=lambda one: one.p)
        since, until = max(one.runs[0] for one in group), min(one.runs[1] for one in group)
        facts = fact_changes(runs, min(since, surest.at - 1), surest.at, max(until, surest.at + 1))
        yield ChangePlace(surest.at, tuple(sorted(group, key=lambda one: one.p)), facts)
