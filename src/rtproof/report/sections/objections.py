# SPDX-License-Identifier: Apache-2.0
"""What the run's own figures say against it, as far as no doubt says it; nothing if they say nothing."""

from rtproof.analysis.model import Analysis
from rtproof.report.blocks import Block
from rtproof.report.objections import blocks, of_run


def render(analysis: Analysis) -> list[Block]:
    return blocks(of_run(analysis))
