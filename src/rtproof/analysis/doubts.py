# SPDX-License-Identifier: Apache-2.0
"""Reasons not to believe a number, each with what to do about it. Doubt comes before numbers."""

from rtproof.analysis.model import Doubt, Requirement, Severity, Summary
from rtproof.record import Record


def doubts(record: Record, summaries: tuple[Summary, ...], requirement: Requirement | None) -> tuple[Doubt, ...]:
    """Every doubt about a run, those that make it INVALID first."""
    return ()
