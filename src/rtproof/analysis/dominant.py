# SPDX-License-Identifier: Apache-2.0
"""The bin that holds more values than any other, which is what a histogram of article 5 shows at a glance."""

from dataclasses import dataclass

import numpy as np

from rtproof.analysis.counts import Counts


@dataclass(frozen=True)
class Dominant:
    """The values from start to below end: n of all."""

    start: int
    end: int
    n: int
    total: int


def dominant(counts: Counts, width: int) -> Dominant | None:
    """The fullest bin of this width that begins at a multiple of it, the first of several; None without values.

    Counts of a source bin that an edge cuts stand where its middle lies.
    """
    if not counts.n.size:
        return None
    places, of = np.unique((counts.lo + (counts.hi - counts.lo) // 2) // width, return_inverse=True)
    sums = np.zeros(places.size, np.int64)
    np.add.at(sums, of, counts.n)
    best = int(sums.argmax())
    start = int(places[best]) * width
    return Dominant(start, start + width, int(sums[best]), counts.total)
