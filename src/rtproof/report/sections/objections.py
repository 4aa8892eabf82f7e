# SPDX-License-Identifier: Apache-2.0
"""What the run's own figures say against it, as far as no doubt says it; nothing if they say nothing."""

from rtproof.analysis.model import Analysis
from rtproof.analysis.objections import claim_of, objections
from rtproof.report.blocks import Block
from rtproof.report.objections import blocks, unsaid

ORDER = 90
SHORT = True
TITLE = "Objections"

NAME = "this run"


def render(analysis: Analysis) -> list[Block]:
    return blocks(unsaid(objections([claim_of(analysis, NAME)])))
