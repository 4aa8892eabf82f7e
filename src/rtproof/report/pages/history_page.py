# SPDX-License-Identifier: Apache-2.0
"""The page of a history: where the latency of a system changed, and which facts changed there.

``history_sections`` and ``history_title`` are pure functions.
"""

import json
import math
from collections.abc import Iterator
from itertools import pairwise

from rtproof.compare import likeness
from rtproof.compare.change_points import DAYS, P_VALUE, SHORTEST
from rtproof.compare.comparison_model import sides_in_virtual_time
from rtproof.compare.history import (
    FEWEST,
    NEAR,
    ChangePlace,
    FactChange,
    FoundChange,
    MetricHistory,
    RunHistory,
    RunSequence,
)
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.phrases import instant, quantity
from rtproof.report.blocks import Block, Curve, Marker, Plot, Section, Table, Text
from rtproof.report.number_format import number_text, unit_for
from rtproof.report.pages import comparison_page
from rtproof.report.pages.comparison_page import NO_SETTING, SETUP, SETUP_HEADER, ComparisonContext
from rtproof.schema.published import history_dict

__all__ = ["history_sections", "history_title"]


# The next functions show the places where something changed: by how much, how surely, and which facts changed there.


SHARE = "share"
SHOWN = 12
FACTS = ("fact", "before", "after", "at run", "on both sides", "why it may matter", "source")


def place_blocks(sequence: RunSequence) -> Iterator[Block]:
    """Yield the changes first, then the figures that were not searched for changes."""
    for place in sequence.places:
        yield _table(place, sequence)
        yield from _setup(place)
        yield from _facts(place)
    if sequence.judged and not sequence.places:
        yield Text(("No change is shown, which is not the same as none.",))
    whys = tuple((metric.label, metric.why) for metric in sequence.metrics if metric.why)
    if whys:
        yield Table("No change can be told in", ("figure", "why"), whys)


def _table(place: ChangePlace, sequence: RunSequence) -> Table:
    run = sequence.runs[place.at]
    caption = (
        f"Run {place.at + 1} of {len(sequence.runs)}: {run.name}, {start_text(run)}; means of the runs on both sides"
    )
    header = ("figure", "from", "to", "ratio", "p", "runs before", "runs after")
    return Table(caption, header, tuple(_row(found) for found in place.found), (1, 2, 3, 4, 5, 6))


def _row(found: FoundChange) -> tuple[str, ...]:
    since, until = found.runs
    return (
        found.label,
        shown_places(found.before, found.unit),
        shown_places(found.after, found.unit),
        place_ratio(found.ratio),
        f"{found.p:.2g}",
        str(found.at - since),
        str(until - found.at),
    )


def _setup(place: ChangePlace) -> Iterator[Block]:
    """Yield what the checks of an audit read that changed there."""
    rows = tuple(
        (
            step.change.severity.value,
            step.change.check,
            step.change.outcomes,
            step.change.shown or NO_SETTING,
            str(step.at + 1),
        )
        for step in place.setup
    )
    if rows:
        yield Table(f"{SETUP}, near the change", (*SETUP_HEADER, "at run"), rows, (4,))


def _facts(place: ChangePlace) -> Iterator[Block]:
    if not place.facts:
        yield Text(("No recorded fact changed there. What no record holds, such as temperature, may have.",))
        return
    first, rest = place.facts[:SHOWN], place.facts[SHOWN:]
    yield Table("Facts that changed there, most likely to matter first", FACTS, tuple(map(_fact, first)))
    if rest:
        caption = f"{quantity(len(rest), 'more fact')} that changed there"
        yield Table(caption, FACTS, tuple(map(_fact, rest)), folded=True)


def _fact(fact: FactChange) -> tuple[str, ...]:
    steady = "yes" if fact.steady else "no, it changes elsewhere too"
    return fact.key, fact.before, fact.after, str(fact.at + 1), steady, fact.why or "not known to matter", fact.source


def place_ratio(value: float) -> str:
    """Return the ratio as text. Above 1 the figure is larger: later or more often."""
    return f"x{number_text(value, 3)}"


def shown_places(value: float, unit: str) -> str:
    """Return a figure with its unit; shares have no unit."""
    if unit == SHARE:
        return number_text(value, 3)
    return unit_for((value,))(value) if unit == "ns" else f"{number_text(value)} {unit}"


def start_text(run: RunFigures) -> str:
    """Return when a run began."""
    return "of unknown time" if run.started_ns is None else f"{instant(run.started_ns, 0)} UTC"


def figure_scale(metric: MetricHistory) -> tuple[str, float]:
    """Return name and size of the unit of a metric's axis."""
    return (metric.label, 1.0) if metric.unit == SHARE else (f"{metric.label} [us]", 1_000.0)


# The first screen says how many changes there are, where the last one was, and which changes could not be found.


LAST = f"What happened in the last {SHORTEST - 1} runs cannot be seen yet: one or two runs alone are no change."
METHOD = (
    f"Changes of the mean of each figure's logarithm, by energy distance in windows and Student's t (p < {P_VALUE:g} "
    "each). In histories of 80 independent runs without a change about 1 of 100 has a false one in a given figure, in "
    "histories of correlated runs up to 1 of 10. A place may be "
    f"wrong by {NEAR} runs. {LAST}"
)
TOO_FEW = (
    f"No statement on changes is possible: {FEWEST} runs are needed, because it takes as many to see how much "
    "runs differ without a change. The figures of each run remain."
)
VIRTUAL = (
    "These runs are deterministic: each gives the same bytes again, and no number of further runs would tell more. If "
    "a figure differs between two of them, what went into them differs. The figures of each run remain."
)
WEEKLY = (
    "A pattern that comes back each week is not called a change. It is taken out before changes are looked for. Days "
    "are those of UTC."
)
CORRELATED = (
    "Neighbouring runs resemble each other, so they tell less than as many independent runs. A change has to be larger."
)
VISIBLE = (
    "What can be seen: runs differ anyway by a factor (one standard deviation), and a lasting change in the middle is "
    "found 9 times of 10 from the ratio on that stands beside it; near an end it has to be larger."
)
NOT_SHOWN = "No figure changed by as much as these runs can show."
NO_CAUSE = "What changed with a figure need not be the reason: other things may have changed that no record holds."


def history_outcome_section(found: RunHistory) -> Section:
    blocks: list[Block] = [block for sequence in found.sequences for block in _outcome(sequence)]
    if not blocks:
        blocks = [Text(("No run is left that can be shown.",), "doubt", "Nothing to tell")]
    if any(sequence.judged for sequence in found.sequences):
        blocks.append(Text((VISIBLE, METHOD, NO_CAUSE)))
    beside = comparison_page.beside_a_core(run for sequence in found.sequences for run in sequence.runs)
    return Section("outcome", "Outcome", (*beside, *blocks))


def _outcome(sequence: RunSequence) -> Iterator[Block]:
    runs = quantity(len(sequence.runs), "run") + (f" ({sequence.name})" if sequence.name else "")
    if sides_in_virtual_time(sequence.runs):
        yield Text((VIRTUAL,), "doubt", f"{runs}: no change is tested in virtual time")
        return
    if not sequence.judged:
        yield Text((TOO_FEW,), "doubt", f"{runs}: too few to tell a change")
        return
    if sequence.places:
        lines = tuple(_place(place, sequence) for place in sequence.places)
        yield Text(lines, "bad", f"{runs}: {quantity(len(lines), 'change')}")
    else:
        yield Text((NOT_SHOWN,), "normal", f"{runs}: no change shown")
    patterns = tuple(_weekly(metric) for metric in sequence.metrics if metric.weekly)
    if patterns:
        yield Text((*patterns, WEEKLY), "doubt", f"{runs}: a weekly pattern in {quantity(len(patterns), 'figure')}")
    correlated = [f"{metric.label} {metric.correlation:.2f}" for metric in sequence.metrics if metric.correlation]
    if correlated:
        yield Text((f"{CORRELATED} Correlation of neighbouring runs: {', '.join(correlated)}.",))
    yield _visible(sequence)


def _weekly(metric: MetricHistory) -> str:
    """Return on which days the figure is larger or smaller, and by how much."""
    found = metric.weekly
    assert found is not None
    most, least = found.largest, found.smallest
    factor = place_ratio(math.exp(found.by_day[most] - found.by_day[least]))
    return f"{metric.label}: {factor} from {DAYS[least]} (least) to {DAYS[most]} (most), p = {found.p:.2g}."


def _place(place: ChangePlace, sequence: RunSequence) -> str:
    run = sequence.runs[place.at]
    what = ", ".join(f"{found.label} {place_ratio(found.ratio)}" for found in place.found)
    facts = [f"{fact.key}: {fact.before} to {fact.after}" for fact in place.facts if fact.steady][:2]
    facts = [*(f"{step.change.check}: {step.change.shown}" for step in place.setup[:1]), *facts]
    with_it = f"; with it changed {', '.join(facts)}" if facts else "; no recorded fact changed with it"
    return f"At run {place.at + 1} ({run.name}, {start_text(run)}): {what}{with_it}."


def _visible(sequence: RunSequence) -> Table:
    """Return how large a change of each figure has to be to be found."""
    rows = tuple(
        (metric.label, str(len(metric.places)), place_ratio(metric.run_factor), place_ratio(metric.visible))
        for metric in sequence.metrics
        if metric.run_factor is not None and metric.visible is not None
    )
    return Table("What can be seen", ("figure", "runs", "runs differ by", "found from"), rows, (1, 2, 3))


# The next functions plot each figure run by run, with the means of the stretches between changes.


FEWEST_DRAWN = 2
"""The least number of values in a plot."""


MOST_FOREMOST = 2
"""So many plots stand on the first screen."""


def foremost_metrics(found: RunHistory) -> list[MetricHistory]:
    """Return the metrics that the first screen shows: of those that changed, else of all, the latest activations."""
    drawn = [metric for sequence in found.sequences for metric in sequence.metrics if _is_drawn(metric)]
    changed = [metric for metric in drawn if metric.changes]
    return (changed or drawn)[-MOST_FOREMOST:]


def _is_drawn(metric: MetricHistory) -> bool:
    return len(metric.places) >= FEWEST_DRAWN


def history_plots(sequence: RunSequence, order: str, foremost: list[MetricHistory]) -> Iterator[Block]:
    """Yield a plot for each metric. order: of the runs, in words. foremost: metrics of the first screen."""
    for metric in filter(_is_drawn, sequence.metrics):
        yield _plot(metric, order, any(metric is each for each in foremost))


def _plot(metric: MetricHistory, order: str, foremost: bool) -> Plot:
    label, size = figure_scale(metric)
    known = [(float(at + 1), math.exp(ln) / size) for at, ln in enumerate(metric.values) if ln is not None]
    curves = [Curve("each run", tuple(x for x, _ in known), tuple(y for _, y in known))]
    if metric.changes:
        curves.append(_means(metric, size))
    markers = tuple(
        Marker(f"change at run {metric.places[one.at] + 1}", "x", _between(metric, one.at)) for one in metric.changes
    )
    return Plot(
        f"{metric.label} of each run",
        _says(metric),
        f"run, {order}",
        label,
        tuple(curves),
        markers,
        log_y=True,
        foremost=foremost,
    )


def _between(metric: MetricHistory, at: int) -> float:
    """Return the middle between the runs on both sides of a change. Runs count from 1."""
    return (metric.places[at - 1] + metric.places[at]) / 2 + 1


def _means(metric: MetricHistory, size: float) -> Curve:
    """Return a curve that is level from the first to the last run of each stretch."""
    ends = [0, *(change.at for change in metric.changes), len(metric.places)]
    means = [change.before for change in metric.changes] + [metric.changes[-1].after]
    points = [
        (float(metric.places[place] + 1), math.exp(mean) / size)
        for (start, stop), mean in zip(pairwise(ends), means, strict=True)
        for place in dict.fromkeys((start, stop - 1))
    ]
    return Curve("mean between changes", tuple(x for x, _ in points), tuple(y for _, y in points), "whole")


def _says(metric: MetricHistory) -> str:
    known = [math.exp(ln) for ln in metric.values if ln is not None]
    ends = f"from {shown_places(min(known), metric.unit)} to {shown_places(max(known), metric.unit)}"
    changes = [
        f"at run {metric.places[change.at] + 1} by {place_ratio(math.exp(change.after - change.before))}"
        for change in metric.changes
    ]
    what = (
        f"it changes {', '.join(changes)}"
        if changes
        else ("no change was looked for" if metric.why else "no change is shown")
    )
    return f"{quantity(len(known), 'run')}, {ends}; {what}."


ORDERS = {False: "in order of their start (1 is the oldest)", True: "in order of their names"}


def history_sections(found: RunHistory, told: ComparisonContext, *, short: bool = False) -> list[Section]:
    """Return the sections of the page. short: for a terminal."""
    parts, foremost = [history_outcome_section(found)], foremost_metrics(found)
    for number, sequence in enumerate(found.sequences, 1):
        plots = () if short else tuple(history_plots(sequence, ORDERS[found.by_name], foremost))
        parts += _of_sequence(sequence, f"{number}", plots, short)
    parts.append(Section("left-out", "What is in no figure", tuple(_left_out(found, told))))
    made = (Text((f"Made by: {told.command}",)),) if told.command and not short else ()
    return [part for part in (*parts, Section("page", "This page", made)) if part.blocks]


def _of_sequence(sequence: RunSequence, name: str, plots: tuple[Block, ...], short: bool) -> list[Section]:
    of = f": {sequence.name}" if sequence.name else ""
    found = [
        Section(f"changes-{name}", f"Changes{of}", tuple(place_blocks(sequence))),
        Section(f"plots-{name}", f"Run by run{of}", plots),
    ]
    if not short or not sequence.judged:
        found.append(Section(f"runs-{name}", f"The runs{of}", (comparison_page.runs_table([("", sequence.runs)]),)))
    return found


def _left_out(found: RunHistory, told: ComparisonContext) -> list[Block]:
    blocks = comparison_page.left_out_rows([("", one.run, one.why) for one in found.left_out], told.complaints)
    untold = likeness.unclear_conditions([run for sequence in found.sequences for run in sequence.runs])
    return [*blocks, Text(untold, "doubt")] if untold else blocks


def history_title(found: RunHistory) -> str:
    """Return a title that tells this page from others: the number of runs and the number of changes."""
    changes = sum(len(sequence.places) for sequence in found.sequences)
    judged = any(sequence.judged for sequence in found.sequences)
    virtual = bool(found.sequences) and all(sides_in_virtual_time(sequence.runs) for sequence in found.sequences)
    without = "virtual time, no change is tested" if virtual else "too few runs to tell"
    outcome_words = quantity(changes, "change") if judged else without
    return f"rtproof: history of {quantity(found.runs, 'run')} - {outcome_words}"


def encode_history(found: RunHistory, told: ComparisonContext) -> bytes:
    """Return the history as one JSON object in UTF-8."""
    return json.dumps(history_dict(found, told.command, told.complaints), indent=2, allow_nan=False).encode() + b"\n"
