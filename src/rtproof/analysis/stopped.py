# SPDX-License-Identifier: Apache-2.0
"""A run that was to end as soon as its limits were decided."""

from dataclasses import replace

from rtproof.analysis.model import Analysis, State
from rtproof.record import EndReason


def ended_when_decided(analysis: Analysis) -> Analysis:
    """The analysis of such a run: if it is decided, that it was stopped is what was asked, and no doubt."""
    end = analysis.record.end
    stopped = end is not None and end.reason is EndReason.INTERRUPTED
    if not stopped or analysis.verdict.state not in (State.PROVEN, State.REFUTED):
        return analysis
    return replace(analysis, doubts=tuple(doubt for doubt in analysis.doubts if doubt.code != "ended-early"))
