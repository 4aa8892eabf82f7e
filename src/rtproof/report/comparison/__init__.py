# SPDX-License-Identifier: Apache-2.0
"""The page of a comparison: runs of one side held against runs of the other.

``sections``, ``title`` and, for runs of one thing, ``alone`` are pure functions.
"""

from collections.abc import Sequence

from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.comparison.model import Comparison
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Section
from rtproof.report.comparison import curves, differences, metrics, outcome, runs, shift, spread
from rtproof.report.comparison.told import Told

__all__ = ["Told", "alone", "sections", "title"]


def sections(found: Comparison, told: Told, *, short: bool = False) -> list[Section]:
    """short: for a terminal."""
    parts = [
        outcome.section(found, told),
        metrics.section(found, short=short),
        *([] if short else [curves.section(found), shift.section(found)]),
        differences.section(found, short=short),
        runs.section(found, told, short=short),
    ]
    return [part for part in parts if part.blocks]


def title(found: Comparison) -> str:
    """Tells this page from others: what was found, and of how many runs."""
    count = f"{quantity(len(found.a.runs), 'run')} against {len(found.b.runs)}"
    return f"rtproof: {found.a.name} against {found.b.name}, {count} - {found.finding.value}"


def alone(found: Sequence[RunFigures], told: Told, *, short: bool = False) -> list[Section]:
    """Of runs of the same thing: how much they differ, which is what any comparison with them starts from."""
    return [spread.section(found, told), *([] if short else [curves.alone(found)])]
