# SPDX-License-Identifier: Apache-2.0
"""Which chunks stand where they belong, by their sequence numbers."""

from bisect import bisect_left
from itertools import islice, pairwise
from operator import lt


def in_order(sequences: list[int]) -> list[int]:
    """Places of the longest strictly increasing subsequence: one moved chunk drops out, not all behind it.

    Patience sorting: ``ends[n]`` is the place where the run of n + 1 numbers with the smallest last number ends.
    """
    if all(map(lt, sequences, islice(sequences, 1, None))):
        return list(range(len(sequences)))
    ends: list[int] = []
    smallest: list[int] = []
    before: list[int] = []
    for place, sequence in enumerate(sequences):
        length = bisect_left(smallest, sequence)
        before.append(ends[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        smallest[length : length + 1] = [sequence]
    return _trace_back(ends[-1], before)


def _trace_back(place: int, before: list[int]) -> list[int]:
    run = []
    while place >= 0:
        run.append(place)
        place = before[place]
    return run[::-1]


def missing(sequences: list[int]) -> list[tuple[int, int, int]]:
    """(place behind, first, last) of each stretch of numbers that an increasing list leaves out."""
    if not sequences or sequences[-1] == len(sequences) - 1:
        return []
    starts = [-1, *sequences]
    return [(place, a + 1, b - 1) for place, (a, b) in enumerate(pairwise(starts)) if b > a + 1]
