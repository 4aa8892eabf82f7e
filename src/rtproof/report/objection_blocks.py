# SPDX-License-Identifier: Apache-2.0
"""Objections as blocks, for the report of one run and for pages that compare several."""

from collections.abc import Sequence

from rtproof.judge.analysis_model import Analysis
from rtproof.judge.objections import Objection, claim_of, objections
from rtproof.report.blocks import Block, Text

NAME = "this run"


def run_objections(analysis: Analysis) -> tuple[Objection, ...]:
    """Those to a single run that no doubt about it says already."""
    return unsaid_objections(objections([claim_of(analysis, NAME)]))


def objection_blocks(found: Sequence[Objection]) -> list[Block]:
    """One block each, in the order given."""
    return [Text((each.what,), "doubt", f"Objection ({each.code})") for each in found]


def unsaid_objections(found: Sequence[Objection]) -> tuple[Objection, ...]:
    """Those that no doubt says already."""
    return tuple(each for each in found if each.doubt is None)
