# SPDX-License-Identifier: Apache-2.0
"""The page of a history: where the latency of a system changed, and which facts changed there.

``sections`` and ``title`` are pure functions.
"""

from rtproof.analysis.comparison import conditions
from rtproof.analysis.comparison.deterministic import in_virtual_time
from rtproof.analysis.history.model import History, Sequence
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Block, Section, Text
from rtproof.report.comparison import runs
from rtproof.report.comparison.told import Told
from rtproof.report.history import outcome, places, plots

__all__ = ["sections", "title"]

ORDERS = {False: "in order of their start (1 is the oldest)", True: "in order of their names"}


def sections(found: History, told: Told, *, short: bool = False) -> list[Section]:
    """short: for a terminal."""
    parts = [outcome.section(found)]
    for number, sequence in enumerate(found.sequences, 1):
        parts += _of_sequence(sequence, f"{number}", short, ORDERS[found.by_name])
    parts.append(Section("left-out", "What is in no figure", tuple(_left_out(found, told))))
    made = (Text((f"Made by: {told.command}",)),) if told.command and not short else ()
    return [part for part in (*parts, Section("page", "This page", made)) if part.blocks]


def _of_sequence(sequence: Sequence, name: str, short: bool, order: str) -> list[Section]:
    of = f": {sequence.name}" if sequence.name else ""
    found = [Section(f"changes-{name}", f"Changes{of}", tuple(places.blocks(sequence)))]
    if not short:
        found.append(Section(f"plots-{name}", f"Run by run{of}", tuple(plots.blocks(sequence, order))))
    if not short or not sequence.judged:
        found.append(Section(f"runs-{name}", f"The runs{of}", (runs.table([("", sequence.runs)]),)))
    return found


def _left_out(found: History, told: Told) -> list[Block]:
    blocks = runs.left_out([("", one.run, one.why) for one in found.left_out], told.complaints)
    untold = conditions.unclear([run for sequence in found.sequences for run in sequence.runs])
    return [*blocks, Text(untold, "doubt")] if untold else blocks


def title(found: History) -> str:
    """Tells this page from others: how many runs, and how many changes."""
    changes = sum(len(sequence.places) for sequence in found.sequences)
    judged = any(sequence.judged for sequence in found.sequences)
    virtual = bool(found.sequences) and all(in_virtual_time(sequence.runs) for sequence in found.sequences)
    without = "virtual time, no change is tested" if virtual else "too few runs to tell"
    outcome_words = quantity(changes, "change") if judged else without
    return f"rtproof: history of {quantity(found.runs, 'run')} - {outcome_words}"
