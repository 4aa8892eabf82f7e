# SPDX-License-Identifier: Apache-2.0
"""Which chunks stand where they belong."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rtproof.record.chunks import missing_sequences, places_in_order


def longest_by_trying(sequences: list[int]) -> int:
    lengths = range(len(sequences), 0, -1)
    chosen = (some for n in lengths for some in combinations(sequences, n) if list(some) == sorted(set(some)))
    return len(next(chosen, ()))


@given(st.lists(st.integers(0, 9), max_size=9))
def test_as_many_as_possible_and_increasing(sequences: list[int]) -> None:
    places = places_in_order(sequences)
    assert places == sorted(set(places))
    kept = [sequences[place] for place in places]
    assert kept == sorted(set(kept))
    assert len(kept) == longest_by_trying(sequences)


@pytest.mark.parametrize(
    ("sequences", "dropped"),
    [
        ([0, 1, 2, 3], []),
        ([0, 1, 2, 1, 3], [3]),
        ([0, 50, 1, 2, 3, 51], [1]),
        ([0, 2, 3, 4, 1, 5], [4]),
    ],
    ids=["whole", "doubled", "from far behind", "moved back"],
)
def test_only_what_moved_drops_out(sequences: list[int], dropped: list[int]) -> None:
    assert sorted(set(range(len(sequences))) - set(places_in_order(sequences))) == dropped


def test_missing() -> None:
    assert missing_sequences([1, 2, 5, 6, 8]) == [(0, 0, 0), (2, 3, 4), (4, 7, 7)]
    assert missing_sequences([0, 1, 2]) == []
