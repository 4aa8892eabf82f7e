# SPDX-License-Identifier: Apache-2.0
"""One series from the record's own SUMMARY slices, for records without samples and for those with damaged ones."""

from collections.abc import Iterable

import numpy as np

from rtproof.analysis import lag, moments
from rtproof.analysis.counts import EMPTY, Counts
from rtproof.analysis.model import Lag, Moments
from rtproof.analysis.part import Part, Reach, hull
from rtproof.analysis.tally import Tallied
from rtproof.record import Slice, View, bins
from rtproof.record.stored import histograms

TOGETHER = 200
"""Slices that are added up at once. A long run has tens of thousands, of a thousand bins each."""


def part_of(slices: Iterable[Slice]) -> Part:
    """Numbers of the slices of one series, both views. Their seconds and top activations are chunks of their own."""
    some = list(slices)
    observed = [s for s in some if s.view is View.OBSERVED]
    return Part(
        _tallied(observed),
        _tallied([s for s in some if s.view is View.CHARGED]),
        sum(s.lost for s in observed),
        lag.merge(Lag(s.pairs, s.sum_products, s.catch_up_pairs) for s in observed),
        reach=reach_of(some),
    )


def reach_of(slices: Iterable[Slice]) -> Reach | None:
    """From the first to the last activation that any of the slices knows of."""
    return hull(Reach(s.first_due_ns, s.last_due_ns) for s in slices if s.count)


def _tallied(slices: list[Slice]) -> Tallied:
    return Tallied(
        _counts(slices),
        moments.merge(Moments(s.count, s.min, s.max, s.sum, s.sum_squares) for s in slices),
    )


def _counts(slices: list[Slice]) -> Counts:
    """All slices have the same bins, so that counts add up bin by bin."""
    parts = [histograms(slices[at : at + TOGETHER])[1:] for at in range(0, len(slices), TOGETHER)]
    if not parts:
        return EMPTY
    places, place = np.unique(np.concatenate([bin_ for bin_, _ in parts]), return_inverse=True)
    counts = np.zeros(places.size, np.int64)
    np.add.at(counts, place, np.concatenate([count for _, count in parts]))
    return Counts(*bins.edges(places), counts)
