# SPDX-License-Identifier: Apache-2.0
"""The first screen: how many changes, where the last one was, and what could not have been seen."""

from collections.abc import Iterator

from rtproof.analysis.history.changes import P_VALUE, SHORTEST
from rtproof.analysis.history.model import FEWEST, History, Place, Sequence
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Section, Text
from rtproof.report.history.places import ratio, started

METHOD = (
    f"Changes of the mean of each figure's logarithm, by energy distance in windows and Student's t (p < {P_VALUE:g} "
    "each). In histories of 80 runs without a change about 1 of 100 has a false one in a given figure. A place may be "
    "wrong by 3 runs."
)
NO_CAUSE = "What changed with a figure need not be the reason: other things may have changed that no record holds."


def section(found: History) -> Section:
    texts = [_outcome(sequence) for sequence in found.sequences]
    if not texts:
        texts = [Text(("No run is left that can be shown.",), "doubt", "Nothing to tell")]
    return Section("outcome", "Outcome", (*texts, *_method(found)))


def _method(found: History) -> Iterator[Text]:
    if any(sequence.judged for sequence in found.sequences):
        yield Text((METHOD, NO_CAUSE))


def _outcome(sequence: Sequence) -> Text:
    runs = quantity(len(sequence.runs), "run") + (f" ({sequence.name})" if sequence.name else "")
    if not sequence.judged:
        return Text(
            (
                f"No statement on changes is possible: {FEWEST} runs are needed, because what runs differ by "
                "anyway is known from the runs themselves. The figures of each run remain.",
            ),
            "doubt",
            f"{runs}: too few to tell a change",
        )
    if not sequence.places:
        return Text(tuple(_unseen(sequence)), "normal", f"{runs}: no change shown")
    lines = [_place(place, sequence) for place in sequence.places]
    return Text((*lines, *_unseen(sequence)), "bad", f"{runs}: {quantity(len(sequence.places), 'change')}")


def _place(place: Place, sequence: Sequence) -> str:
    run = sequence.runs[place.at]
    what = ", ".join(f"{found.label} {ratio(found.ratio)}" for found in place.found)
    facts = [f"{fact.key}: {fact.before} to {fact.after}" for fact in place.facts if fact.steady][:2]
    with_it = f"; with it changed {', '.join(facts)}" if facts else "; no recorded fact changed with it"
    return f"At run {place.at + 1} ({run.name}, {started(run)}): {what}{with_it}."


def _unseen(sequence: Sequence) -> Iterator[str]:
    """What could not have been seen, of the figure that varies least and most."""
    judged = [metric for metric in sequence.metrics if metric.visible is not None and metric.run_factor is not None]
    for metric in judged:
        yield (
            f"{metric.label}: runs differ by a factor of {metric.run_factor:.3g} anyway (one standard deviation, "
            f"n = {len(metric.places)}), so a lasting change by less than x{metric.visible:.3g} may go unseen, and "
            "near an end a larger one."
        )
    yield f"What happened in the last {SHORTEST - 1} runs cannot be seen yet: one or two runs alone are no change."
