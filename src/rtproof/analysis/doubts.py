# SPDX-License-Identifier: Apache-2.0
"""Reasons not to believe a number, each with what to do about it. Doubt comes before numbers.

The list of checks is closed: docs/json-schema.md names every code, and a test holds the two together.
"""

from rtproof.analysis.checks import counting, scheduling, system
from rtproof.analysis.checks.case import Case, Check
from rtproof.analysis.model import Doubt, Requirement, Severity, Summary
from rtproof.record import Record

CHECKS: tuple[Check, ...] = (*scheduling.CHECKS, *counting.CHECKS, *system.CHECKS)


def doubts(record: Record, summaries: tuple[Summary, ...], requirement: Requirement | None) -> tuple[Doubt, ...]:
    """Every doubt about a run, those that make it INVALID first."""
    case = Case(record, summaries, requirement)
    found = [doubt for check in CHECKS for doubt in check(case)]
    return tuple(sorted(found, key=lambda doubt: doubt.severity is not Severity.INVALID))
