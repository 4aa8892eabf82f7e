# SPDX-License-Identifier: Apache-2.0
"""The first thing to know of a run beside a co-kernel: its figures are of Linux's own threads, and of no other."""

from rtproof.analysis.doubts import FOREMOST
from rtproof.analysis.model import Analysis
from rtproof.report.blocks import Block, Text


def render(analysis: Analysis) -> list[Block]:
    """One paragraph where a co-kernel was found, or may be hidden; else nothing."""
    said = [doubt for doubt in analysis.doubts if doubt.code in FOREMOST]
    return [Text((f"What to do: {doubt.remedy}.",), "doubt", _sentence(doubt.what)) for doubt in said]


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
