# SPDX-License-Identifier: Apache-2.0
"""Doubts about the run, each with what to do about it; or how many checks found nothing."""

from rtproof.analysis.doubts import CHECKS
from rtproof.analysis.model import Analysis, Doubt, Severity
from rtproof.analysis.phrases import quantity
from rtproof.report.blocks import Block, Text

KINDS = {Severity.INVALID: "bad", Severity.WARNING: "doubt"}
WORDS = {Severity.INVALID: "Makes the run invalid", Severity.WARNING: "Warning"}


def render(analysis: Analysis) -> list[Block]:
    if not analysis.doubts:
        return [Text((f"No doubts: {quantity(len(CHECKS), 'check')} of the run found nothing wrong with it.",), "good")]
    return [_block(doubt) for doubt in analysis.doubts]


def _block(doubt: Doubt) -> Text:
    advice = (f"What to do: {doubt.remedy}",) if doubt.remedy else ()
    return Text((doubt.what, *advice), KINDS[doubt.severity], f"{WORDS[doubt.severity]} ({doubt.code})")
