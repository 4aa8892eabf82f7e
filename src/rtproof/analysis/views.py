# SPDX-License-Identifier: Apache-2.0
"""The two views of lateness, which are kept apart: of activations that ran, and of all that were due (the schedule)."""

from rtproof.analysis import moments
from rtproof.analysis.counts import Counts
from rtproof.analysis.model import Moments, Summary
from rtproof.record import View


def of_view(summary: Summary, view: View) -> tuple[Counts, Moments]:
    """Counts and moments of the activations that ran; for view CHARGED those of the schedule: the missed ones added."""
    if view is View.OBSERVED:
        return summary.observed_counts, summary.observed
    return summary.schedule_counts, moments.merge((summary.observed, summary.charged))
