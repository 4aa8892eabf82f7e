# SPDX-License-Identifier: Apache-2.0
"""The page of a history: where the latency of a system changed, and which facts changed there."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rtproof.compare import likeness
from rtproof.compare.change_points import ALARMS, DRIFT, FEW, SHORTEST
from rtproof.compare.comparison_model import sides_in_virtual_time
from rtproof.compare.history import FEWEST, MARGIN, NEAR, SHARE, ChangePlace, MetricHistory, RunHistory, RunSequence
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.phrases import instant, percent, quantity, value
from rtproof.report.blocks import Block, Curve, Marker, Plot, Section, Table, Text
from rtproof.report.number_format import number_text, table_of, unit_for
from rtproof.report.pages import comparison_page
from rtproof.report.pages.comparison_page import first_and_rest

SHOWN = 12


def place_blocks(sequence: RunSequence) -> Iterator[Block]:
    """Yield the changes first, then the figures that were not searched for changes."""
    for place in sequence.places:
        run = sequence.runs[place.at]
        start = "of unknown time" if run.started_ns is None else f"{instant(run.started_ns, 0)[:MINUTE]} UTC"
        yield table_of(
            f"From {run.name} on ({start}, run {place.at + 1} of {len(sequence.runs)}): means and runs "
            "before and after",
            place.found,
            ("figure", lambda found: found.label),
            ("from", lambda found: shown_places(found.before, found.unit)),
            ("to", lambda found: shown_places(found.after, found.unit)),
            ("ratio", lambda found: place_ratio(found.ratio)),
            ("p", lambda found: f"{found.p:.2g}"),
            ("runs", lambda found: f"{found.at - found.runs[0]} + {found.runs[1] - found.at}"),
        )
        yield from _facts(place)
    whys = tuple((metric.label, metric.why) for metric in sequence.metrics if metric.why)
    if whys and sequence.judged:
        yield Table("Figures that were not judged", ("figure", "why"), whys)


def _facts(place: ChangePlace) -> Iterator[Block]:
    if not place.facts:
        yield Text(("No recorded fact changed there. Something that no record holds may have, such as temperature.",))
        return
    whole = table_of(
        "Facts that changed there, most likely to matter first",
        place.facts,
        ("fact", lambda fact: fact.key),
        ("before", lambda fact: fact.before),
        ("after", lambda fact: fact.after),
        ("at run", lambda fact: str(fact.at + 1)),
        ("on both sides", lambda fact: "yes" if fact.steady else "no, it changes elsewhere too"),
        ("why it may matter", lambda fact: fact.why or "not known to matter"),
        ("source", lambda fact: fact.source),
        numeric=(),
    )
    rest = f"{quantity(max(len(place.facts) - SHOWN, 0), 'more fact')} that changed there"
    yield from first_and_rest(whole, SHOWN, rest)


def place_ratio(ratio: float) -> str:
    """Return the ratio as text. Above 1 the figure is larger: later or more often."""
    return f"x{number_text(ratio, 3)}"


def shown_places(figure: float, unit: str) -> str:
    """Return a figure with its unit; shares have no unit."""
    if unit == SHARE:
        return number_text(figure, 3)
    return unit_for((figure,))(figure) if unit == "ns" else f"{number_text(figure)} {unit}"


YEAR, DAY, MINUTE = len("2026"), len("2026-02-19"), len("2026-02-19 03:00")


@dataclass(frozen=True)
class RunAxis:
    """The axis of all runs. dates: x is the start of a run in seconds since 1970; else the number of the run, from 1.

    digits: of a date that tells the runs apart.
    """

    runs: tuple[RunFigures, ...]
    dates: bool
    digits: int

    @classmethod
    def of(cls, found: RunHistory) -> "RunAxis":
        starts = [instant(run.started_ns or 0, 0) for run in found.every]
        alone = len({start[:DAY] for start in starts}) == len(starts)
        return cls(found.every, not found.by_name, DAY if alone else MINUTE)

    @property
    def label(self) -> str:
        if not self.dates:
            return "run, in order of the names"
        years = {instant(run.started_ns or 0, 0)[:YEAR] for run in self.runs}
        return f"start of the run{f' in {min(years)}' if len(years) == 1 else ''}, UTC"

    def x(self, run: RunFigures) -> float:
        if self.dates:
            return (run.started_ns or 0) / 1e9
        return next(at for at, each in enumerate(self.runs, 1) if each is run)

    def between(self, before: RunFigures, after: RunFigures) -> float:
        return (self.x(before) + self.x(after)) / 2

    def name(self, run: RunFigures) -> str:
        """The date of a run; its name where the order is that of the names."""
        return instant(run.started_ns or 0, 0)[: self.digits] if self.dates else run.name


MOST_MARKS = 8
RESTLESS = 6
"""A condition that changes more often than this has no mark for each change."""
LONGEST_TEXT = 40


def condition_table(found: RunHistory, axis: RunAxis) -> Table:
    return table_of(
        f"What changed in the conditions at {quantity(len({one.at for one in found.conditions}), 'run')}, oldest first",
        found.conditions,
        ("date" if axis.dates else "run", lambda one: axis.name(found.every[one.at])),
        ("condition", lambda one: one.key),
        ("before", lambda one: one.before),
        ("after", lambda one: one.after),
        ("first run with it", lambda one: found.every[one.at].name),
        numeric=(),
        folded=len(found.conditions) > SHOWN,
    )


def condition_markers(found: RunHistory, axis: RunAxis) -> tuple[Marker, ...]:
    """Return a mark before each run at which conditions changed, without those that change all the time."""
    counts = Counter(one.key for one in found.conditions)
    some = [one for one in found.conditions if counts[one.key] <= RESTLESS]
    marks = []
    for at, group in groupby(some, lambda one: one.at):
        first, *others = group
        after = first.after if len(first.after) <= LONGEST_TEXT else "changed"
        name = f"{first.key} {after}{f' (+{len(others)})' if others else ''}"
        marks.append(Marker(name, "x", axis.between(axis.runs[at - 1], found.every[at]), "note"))
    return tuple(marks[:MOST_MARKS])


LAST = f"A change in the last {SHORTEST - 1} runs is not called one yet: it takes {SHORTEST} runs."
METHOD = (
    "A change: from the run that is named on, the mean of a figure is another one, by a jump that neither chance nor a "
    f"slow wander of the runs explains. The change may have come up to {NEAR} runs earlier or later. A step of at most "
    f"{percent(MARGIN)} (plus the width of a bin of the histogram) is no change. False alarms: about 1 history of 100 "
    "for each figure where runs are independent, up to 4 where they wander, up to 8 where they half wander. "
    f"Test: likelihood ratio of logarithms, p < {ALARMS:g} / number of runs (at least {FEW})."
)
TOO_FEW = f"{FEWEST} runs are needed to see how much runs differ without a change."
VIRTUAL = (
    "These runs are deterministic: each gives the same bytes again. If a figure differs between two runs, their inputs "
    "differ. More runs show nothing new."
)
DRIFTS = f"By a straight line that neither chance nor a slow wander of the runs explains (p < {DRIFT:g})."
CORRELATED = "Neighbouring runs resemble each other, so only larger changes are noticed"
VISIBLE = (
    "Smallest change that would be noticed: of lasting changes of this size in the middle of the runs, 9 of 10 are "
    "noticed. Near the first and the last run a change must be larger to be noticed."
)
NO_CAUSE = "What changed together with a figure need not be the reason: no record holds everything."


def history_outcome_section(found: RunHistory, axis: RunAxis) -> Section:
    blocks: list[Block] = [block for sequence in found.sequences for block in _outcome(sequence, axis)]
    if not blocks:
        blocks = [Text(("No run is left that can be shown.",), "doubt", "Nothing to tell")]
    blocks[1:1] = [condition_table(found, axis)] if found.conditions else []
    if found.order:
        blocks.append(Text(found.order, "doubt", "The order of the runs may be wrong"))
    beside = comparison_page.beside_a_core(run for sequence in found.sequences for run in sequence.runs)
    return Section("outcome", "Outcome", (*beside, *blocks))


def _outcome(sequence: RunSequence, axis: RunAxis) -> Iterator[Block]:
    runs = quantity(len(sequence.runs), "run") + (f" ({sequence.name})" if sequence.name else "")
    if sides_in_virtual_time(sequence.runs):
        yield Text((VIRTUAL,), "doubt", f"{runs}: no change is tested in virtual time")
        return
    if not sequence.judged:
        yield Text((TOO_FEW,), "doubt", f"{runs}: too few to judge")
        return
    if sequence.places:
        lines = tuple(_place(place, sequence, axis) for place in sequence.places)
        yield Text((*lines, _smallest(sequence)), "bad", f"{runs}: {quantity(len(lines), 'change')} of latency")
    drifts = tuple(
        f"{one.label}: {place_ratio(one.drift_ratio)} from the first run to the last."
        for one in sequence.metrics
        if one.drift_ratio
    )
    if drifts:
        yield Text((*drifts, DRIFTS), "bad", f"{runs}: a slow drift of {quantity(len(drifts), 'figure')}")
    elif not sequence.places:
        yield Text((_smallest(sequence),), "normal", f"{runs}: no change of latency noticed")
    correlated = [f"{metric.label} {metric.correlation:.2f}" for metric in sequence.metrics if metric.correlation]
    if correlated:
        yield Text((f"{CORRELATED} (correlation: {', '.join(correlated)}).",))


def _smallest(sequence: RunSequence) -> str:
    """Return how large a change of the foremost figure has to be to be noticed, and of the others."""
    known = [(one.visible, one.label) for one in sequence.metrics if one.visible is not None]
    (least, best), (most, last) = min(known), max(known)
    return f"Smallest change that would be noticed: {place_ratio(least)} ({best}) to {place_ratio(most)} ({last})."


def _place(place: ChangePlace, sequence: RunSequence, axis: RunAxis) -> str:
    run = sequence.runs[place.at]
    what = ", ".join(f"{found.label} {place_ratio(found.ratio)}" for found in place.found)
    steady = []
    for fact in (fact for fact in place.facts if fact.steady):
        long = max(len(fact.before), len(fact.after)) > LONGEST_TEXT
        steady.append(f"{fact.key} {'(long, in the table of facts)' if long else f'{fact.before} -> {fact.after}'}")
    facts = [*steady[:2], *([f"and {len(steady) - 2} more"] if len(steady) > 2 else [])]
    with_it = f"Changed there: {', '.join(facts)}." if facts else "No recorded fact changed there."
    first = f" (first run: {run.name})" if axis.dates else ""
    return f"{axis.name(run)}: {what}{first}. {with_it}"


MOST_FOREMOST = 2
"""So many plots stand on the first screen."""
MetricOfSequence = tuple[RunSequence, MetricHistory]


def drawn_metrics(found: RunHistory) -> list[list[MetricOfSequence]]:
    """Return what each plot shows: one figure of all sequences that measured the same quantity.

    Where changes were looked for, only the figures that were judged in a sequence are drawn.
    """
    plots: dict[tuple[tuple[str, ...], str], list[MetricOfSequence]] = {}
    for sequence in found.sequences:
        quantity_of = tuple(likeness.difference_sentences(key, sequence.runs[0]) for key in likeness.OTHER_QUANTITY)
        for metric in sequence.metrics:
            plots.setdefault((quantity_of, metric.key), []).append((sequence, metric))
    judged = any(sequence.judged for sequence in found.sequences)
    shown = [some for some in plots.values() if not judged or any(not metric.why for _, metric in some)]
    return [some for some in shown if sum(len(metric.places) for _, metric in some) >= 2]


def history_plots(found: RunHistory, axis: RunAxis) -> list[Plot]:
    """Return a plot for each figure. The first screen has the latest figures that changed, else the latest of all."""
    drawn = drawn_metrics(found)
    changed = [some for some in drawn if any(metric.changes for _, metric in some)]
    foremost = (changed or drawn)[-MOST_FOREMOST:]
    marks = condition_markers(found, axis)
    return [_plot(some, axis, marks, any(some is each for each in foremost)) for some in drawn]


def _plot(some: list[MetricOfSequence], axis: RunAxis, marks: tuple[Marker, ...], foremost: bool) -> Plot:
    first = some[0][1]
    label, size = (first.label, 1.0) if first.unit == SHARE else (f"{first.label} [us]", 1_000.0)
    changes = [marker for each in some for marker in _change_markers(*each, axis)]
    runs = [run for sequence, _ in some for run in sequence.runs] if first.unit == "ns" else []
    limits = sorted({limit for run in runs for limit in run.limits_ns})
    return Plot(
        f"{first.label} of each run",
        " ".join(_says(*each, axis) for each in some),
        axis.label,
        label,
        (
            *(_dots(*each, axis, size) for each in some),
            *(_means(*each, axis, size) for each in some if each[1].changes),
        ),
        (*_joined(changes, marks), *(Marker(f"limit {value(limit)}", "y", limit / size) for limit in limits)),
        log_y=True,
        style="dots",
        x_dates=axis.dates,
        foremost=foremost,
    )


def _dots(sequence: RunSequence, metric: MetricHistory, axis: RunAxis, size: float) -> Curve:
    known = [(axis.x(sequence.runs[at]), math.exp(ln) / size) for at, ln in enumerate(metric.values) if ln is not None]
    return Curve(sequence.name or "each run", tuple(x for x, _ in known), tuple(y for _, y in known))


def _joined(changes: Sequence[Marker], marks: Sequence[Marker]) -> Iterator[Marker]:
    there = {mark.at: mark.name for mark in marks}
    for one in changes:
        yield replace(one, name=f"{one.name}, {there[one.at]}") if one.at in there else one
    yield from (mark for mark in marks if mark.at not in {one.at for one in changes})


def _change_markers(sequence: RunSequence, metric: MetricHistory, axis: RunAxis) -> Iterator[Marker]:
    for change in metric.changes:
        before = metric.places[metric.places.index(change.at) - 1]
        at = axis.between(sequence.runs[before], sequence.runs[change.at])
        yield Marker(place_ratio(change.ratio), "x", at)


def _means(sequence: RunSequence, metric: MetricHistory, axis: RunAxis, size: float) -> Curve:
    first, *_, last = metric.places
    points = [(first, metric.changes[0].before), *((change.at, change.after) for change in metric.changes)]
    points.append((last, metric.changes[-1].after))
    name = f"mean, {sequence.name}" if sequence.name else "mean between changes"
    xs = tuple(axis.x(sequence.runs[at]) for at, _ in points)
    return Curve(name, xs, tuple(mean / size for _, mean in points), "whole")


def _says(sequence: RunSequence, metric: MetricHistory, axis: RunAxis) -> str:
    known = [math.exp(ln) for ln in metric.values if ln is not None]
    runs = quantity(len(known), "run") + (f" ({sequence.name})" if sequence.name else "")
    if not known:
        return f"{runs}."
    ends = f"{shown_places(min(known), metric.unit)} to {shown_places(max(known), metric.unit)}"
    changes = [f"{place_ratio(change.ratio)} at {axis.name(sequence.runs[change.at])}" for change in metric.changes]
    what = f"changed {', '.join(changes)}" if changes else "not judged" if metric.why else "no change noticed"
    return f"{runs}: {ends}, {what}."


def history_sections(found: RunHistory, complaints: Sequence[str] = (), command: str = "") -> list[Section]:
    """Return the sections of the page. complaints, command: as of ``comparison_sections``."""
    axis, numbered = RunAxis.of(found), list(enumerate(found.sequences, 1))
    judged = any(one.judged for one in found.sequences)
    tables = [replace(comparison_page.runs_table([("", each.runs)]), folded=judged) for each in found.sequences]
    parts = [
        history_outcome_section(found, axis),
        *(Section(f"changes-{n}", f"Changes{_of(each)}", tuple(place_blocks(each))) for n, each in numbered),
        Section("run-by-run", "Run by run", tuple(history_plots(found, axis))),
        *(
            Section(f"runs-{n}", f"The runs{_of(each)}", (table,))
            for (n, each), table in zip(numbered, tables, strict=True)
        ),
        Section("left-out", "What is in no figure", tuple(_left_out(found, complaints))),
        Section("notes", "How this was judged", (Text((VISIBLE, METHOD, LAST, NO_CAUSE)),) if judged else ()),
        comparison_page.made_by(command),
    ]
    return [part for part in parts if part.blocks]


def _of(sequence: RunSequence) -> str:
    return f": {sequence.name}" if sequence.name else ""


def _left_out(found: RunHistory, complaints: Sequence[str]) -> list[Block]:
    blocks = comparison_page.left_out_rows([("", one.run, one.why) for one in found.left_out], complaints)
    untold = likeness.unclear_conditions([run for sequence in found.sequences for run in sequence.runs])
    return [*blocks, Text(untold, "doubt")] if untold else blocks


def history_title(found: RunHistory) -> str:
    """Return a title that tells this page from others: the runs, and how often latency and conditions changed."""
    changes = sum(len(sequence.places) for sequence in found.sequences)
    judged = any(sequence.judged for sequence in found.sequences)
    virtual = bool(found.sequences) and all(sides_in_virtual_time(sequence.runs) for sequence in found.sequences)
    without = "virtual time, no change is tested" if virtual else "too few runs to judge"
    outcome_words = f"{quantity(changes, 'change')} of latency" if judged else without
    conditions = len({one.at for one in found.conditions})
    more = f", conditions changed at {quantity(conditions, 'run')}" if conditions else ""
    drifts = any(metric.drift for sequence in found.sequences for metric in sequence.metrics)
    more = (", a slow drift" if drifts else "") + more
    return f"rtproof: history of {quantity(found.runs, 'run')} - {outcome_words}{more}"
