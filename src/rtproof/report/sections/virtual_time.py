# SPDX-License-Identifier: Apache-2.0
"""The first thing to know of a run whose clock counts instructions: none of its figures is a time on any board."""

from rtproof.analysis.model import Analysis
from rtproof.analysis.virtual_time import WORDS, virtual_time
from rtproof.report.blocks import Block, Text


def render(analysis: Analysis) -> list[Block]:
    made_by = virtual_time(analysis.record)
    if made_by is None:
        return []
    return [Text((f"What made the clock count instructions: {made_by}.",), "doubt", f"{WORDS[:1].upper()}{WORDS[1:]}.")]
