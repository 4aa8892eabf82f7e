# SPDX-License-Identifier: Apache-2.0

from analysis_records import MS, block, record

from rtproof.record.contents import View
from rtproof.summary.quantiles import moments_and_counts_of_view
from rtproof.summary.series import summarise


def test_the_schedule_adds_the_missed_activations() -> None:
    (summary,) = summarise(record([block([10, 2 * MS + 5], {1: 2})]))
    counts, moments = moments_and_counts_of_view(summary, View.OBSERVED)
    assert (counts.lo.tolist(), moments.count, moments.max) == ([10, 2 * MS + 5], 2, 2 * MS + 5)
    counts, moments = moments_and_counts_of_view(summary, View.CHARGED)
    assert counts.lo.tolist() == [5, 10, MS + 5, 2 * MS + 5]
    assert (moments.count, moments.min, moments.sum) == (4, 5, 3 * MS + 25)
