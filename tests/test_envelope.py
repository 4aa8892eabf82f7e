# SPDX-License-Identifier: Apache-2.0

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtproof.summary.loops import DrawnPoints, Envelope


def drawn(values: list[int], most: int, cut: int = 0) -> DrawnPoints:
    envelope = Envelope(len(values), most)
    whole = np.array(values, np.int64)
    for part in (slice(cut), slice(cut, None)):
        envelope.add(np.arange(whole.size)[part], whole[part])
    return envelope.result()


def test_few_values_are_drawn_as_they_are() -> None:
    found = drawn([5, -1, 7], 3)
    assert (found.width, found.at.tolist()) == (1, [0, 1, 2])
    assert found.low.tolist() == found.high.tolist() == [5, -1, 7]


@given(st.lists(st.integers(-(2**62), 2**62), max_size=200), st.integers(2, 20), st.integers(0, 200))
def test_no_extreme_is_lost_and_no_more_points_are_drawn_than_allowed(values: list[int], most: int, cut: int) -> None:
    found = drawn(values, most, cut)
    assert found.at.size * (1 if found.width == 1 else 2) <= most + 1
    for at, low, high in zip(found.at.tolist(), found.low.tolist(), found.high.tolist(), strict=True):
        some = values[at : at + found.width]
        assert (low, high) == (min(some), max(some))
    assert sum(len(values[at : at + found.width]) for at in found.at.tolist()) == len(values)


def test_stretches_without_a_value_are_left_out() -> None:
    envelope = Envelope(4, 100)
    envelope.add(np.array([1, 3]), np.array([10, 30]))
    assert envelope.result().at.tolist() == [1, 3]
    assert Envelope(0).result().at.size == 0
