# SPDX-License-Identifier: Apache-2.0
"""A requirement that was chosen when the data were there already."""

from dataclasses import replace

from rtproof.analysis.model import Analysis, Doubt, Severity, State, Verdict

WHAT = "the limit was chosen after the data, so the confidence of a verdict on it would mean nothing"
REMEDY = "measure again with the limit given to rtproof run"


def chosen_after_the_data(analysis: Analysis) -> Analysis:
    """The analysis without a decision on its requirement, since whoever sees the data first can choose the outcome.

    The figures stay; a run that is INVALID stays so.
    """
    doubt = Doubt("limit-after-data", Severity.WARNING, WHAT, REMEDY)
    return replace(analysis, doubts=(*analysis.doubts, doubt), verdict=_undecided(analysis.verdict))


def _undecided(verdict: Verdict) -> Verdict:
    if verdict.state not in (State.PROVEN, State.REFUTED):
        return replace(verdict, reasons=(*verdict.reasons, WHAT), sentences=(*verdict.sentences, ("", WHAT)))
    reason = f"{WHAT}; fixed before the run, it would have been {verdict.state.value}"
    sentences = (("VERDICT", f"{State.UNDECIDED.value} - {reason}"), *verdict.sentences[1:])
    return replace(verdict, state=State.UNDECIDED, reasons=(reason, *verdict.reasons), sentences=sentences)
