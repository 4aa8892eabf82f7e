# SPDX-License-Identifier: Apache-2.0
"""The first screen: how many changes, where the last one was, and what could not have been seen."""

import math
from collections.abc import Iterator

from rtproof.analysis.comparison.deterministic import in_virtual_time
from rtproof.analysis.history.changes import P_VALUE, SHORTEST
from rtproof.analysis.history.model import FEWEST, NEAR, History, Metric, Place, Sequence
from rtproof.analysis.history.weekly import DAYS
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.comparison import runs
from rtproof.report.history.places import ratio, started

LAST = f"What happened in the last {SHORTEST - 1} runs cannot be seen yet: one or two runs alone are no change."
METHOD = (
    f"Changes of the mean of each figure's logarithm, by energy distance in windows and Student's t (p < {P_VALUE:g} "
    "each). In histories of 80 independent runs without a change about 1 of 100 has a false one in a given figure, in "
    "histories of correlated runs up to 1 of 10. A place may be "
    f"wrong by {NEAR} runs. {LAST}"
)
TOO_FEW = (
    f"No statement on changes is possible: {FEWEST} runs are needed, because what runs differ by anyway is known from "
    "the runs themselves. The figures of each run remain."
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


def section(found: History) -> Section:
    blocks: list[Block] = [block for sequence in found.sequences for block in _outcome(sequence)]
    if not blocks:
        blocks = [Text(("No run is left that can be shown.",), "doubt", "Nothing to tell")]
    if any(sequence.judged for sequence in found.sequences):
        blocks.append(Text((VISIBLE, METHOD, NO_CAUSE)))
    beside = runs.beside_a_core(run for sequence in found.sequences for run in sequence.runs)
    return Section("outcome", "Outcome", (*beside, *blocks))


def _outcome(sequence: Sequence) -> Iterator[Block]:
    runs = quantity(len(sequence.runs), "run") + (f" ({sequence.name})" if sequence.name else "")
    if in_virtual_time(sequence.runs):
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


def _weekly(metric: Metric) -> str:
    """Which days, and by how much."""
    found = metric.weekly
    assert found is not None
    most, least = found.largest, found.smallest
    factor = ratio(math.exp(found.by_day[most] - found.by_day[least]))
    return f"{metric.label}: {factor} from {DAYS[least]} (least) to {DAYS[most]} (most), p = {found.p:.2g}."


def _place(place: Place, sequence: Sequence) -> str:
    run = sequence.runs[place.at]
    what = ", ".join(f"{found.label} {ratio(found.ratio)}" for found in place.found)
    facts = [f"{fact.key}: {fact.before} to {fact.after}" for fact in place.facts if fact.steady][:2]
    with_it = f"; with it changed {', '.join(facts)}" if facts else "; no recorded fact changed with it"
    return f"At run {place.at + 1} ({run.name}, {started(run)}): {what}{with_it}."


def _visible(sequence: Sequence) -> Table:
    """What of each figure could have been seen."""
    rows = tuple(
        (metric.label, str(len(metric.places)), ratio(metric.run_factor), ratio(metric.visible))
        for metric in sequence.metrics
        if metric.run_factor is not None and metric.visible is not None
    )
    return Table("What can be seen", ("figure", "runs", "runs differ by", "found from"), rows, (1, 2, 3))
