# SPDX-License-Identifier: Apache-2.0
"""The record was streamed while it was measured, and the link worked on a measured CPU or took much time.

A part of what came late may have come late because of the run's own link. Published rows do not tell of one, so only
the doubt about a measured run is cited.
"""

from collections.abc import Iterable, Sequence

from rtproof.judge.objections.result_row import Objection, ResultClaim

ORDER = 115
CODE = "own-link"
REMEDY = "compare with a run without --stream"
DOUBTS = ("link-load",)


def judge(claims: Sequence[ResultClaim]) -> Iterable[Objection]:
    return ()
