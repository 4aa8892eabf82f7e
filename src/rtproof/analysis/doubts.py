# SPDX-License-Identifier: Apache-2.0
"""Reasons not to believe a number, each with what to do about it. Doubt comes before numbers.

The list of checks is closed: docs/json-schema.md names every code, and a test holds the two together.
"""

from rtproof.analysis.checks import budgets, cokernel, conditions, counting, loads, rivals, scheduling, stages, system
from rtproof.analysis.checks.case import Case, Check
from rtproof.analysis.fields import judged, of_field
from rtproof.analysis.model import Doubt, Requirement, Severity, Summary, Switch
from rtproof.record import Record

LOSSES = (
    *("lost", "damage", "truncated", "ended-early", "late-start", "totals", "stages-differ", "source-differs"),
    *("events-dropped", "trace-lost"),
)
"""Codes of what is gone from a run. Nobody can see that from its figures, so it is told before any other warning."""
FOREMOST = ("in-band", "core-unseen")
"""Codes of what changes the meaning of every figure."""
CHECKS: tuple[Check, ...] = (
    *cokernel.CHECKS,
    *scheduling.CHECKS,
    *conditions.CHECKS,
    *budgets.CHECKS,
    *counting.CHECKS,
    *stages.CHECKS,
    *system.CHECKS,
    *rivals.CHECKS,
    *loads.CHECKS,
)


def doubts(
    record: Record,
    every: tuple[Summary, ...],
    asked: Requirement | tuple[Requirement, ...] | None,
    switches: tuple[Switch, ...] = (),
) -> tuple[Doubt, ...]:
    """Every doubt about a run: those that make it INVALID first, then what changes the meaning of every figure.

    Then comes what is gone from the run, then all others.

    every: the summaries of all series of the record. asked: one requirement, or several that are judged together.
    """
    several = () if asked is None else (asked,) if isinstance(asked, Requirement) else asked
    case = Case(record, of_field(every, judged(record)), several, every, switches)
    found = [doubt for check in CHECKS for doubt in check(case)]
    return tuple(sorted(found, key=_rank))


def _rank(doubt: Doubt) -> tuple[bool, bool, bool]:
    """False sorts before True."""
    return doubt.severity is not Severity.INVALID, doubt.code not in FOREMOST, doubt.code not in LOSSES
