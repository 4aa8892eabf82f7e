# SPDX-License-Identifier: Apache-2.0
"""A run cut into blocks of time, each with its own counts: what can be drawn again to see how much chance moves them.

Blocks of 600 s are longer than bursts and storms of latencies are (H. R. Kuensch 1989 says why dependent values have to
be drawn in blocks). A shorter run is cut into at least LEAST blocks if the slices of its record are short enough.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from rtproof.analysis.counts import Counts
from rtproof.analysis.fields import judged
from rtproof.record import Record, Slice, View, bins
from rtproof.record.stored import histograms

BLOCK_NS = 600 * 1_000_000_000
LEAST = 10
"""Fewer blocks say nothing of how much they differ."""
SHORTEST_NS = 10 * 1_000_000_000


@dataclass(frozen=True)
class Blocks:
    """The counts of each block, or ``why`` there are none."""

    length_ns: int
    counts: tuple[Counts, ...]
    why: str = ""


NO_BLOCKS = Blocks(0, (), "its parts in time were not looked at")


def blocks_of(record: Record, view: View = View.OBSERVED) -> Blocks:
    """All threads together, by the middle of each slice of the record's summary."""
    wanted = {series.id for series in judged(record)}
    slices = [s for s in record.slices if s.series in wanted and s.count and (view is View.CHARGED or s.view is view)]
    if not slices:
        return Blocks(0, (), "the record has no summary by parts of time")
    span_ns = max(s.last_due_ns for s in slices) - min(s.first_due_ns for s in slices)
    length_ns = min(BLOCK_NS, max(span_ns // LEAST, SHORTEST_NS))
    parted: dict[int, list[Slice]] = defaultdict(list)
    for s in slices:
        parted[(s.first_due_ns + s.last_due_ns) // 2 // length_ns].append(s)
    if len(parted) < LEAST:
        return Blocks(0, (), _too_few(len(parted)))
    return Blocks(length_ns, tuple(_counts(parted[number]) for number in sorted(parted)))


def _too_few(blocks: int) -> str:
    return f"its record has {blocks} parts of time that could be drawn again, and fewer than {LEAST} tell nothing"


def _counts(slices: list[Slice]) -> Counts:
    _, places, n = histograms(slices)
    distinct, at = np.unique(places, return_inverse=True)
    sums = np.zeros(distinct.size, np.int64)
    np.add.at(sums, at, n)
    return Counts(*bins.edges(distinct), sums)
