# SPDX-License-Identifier: Apache-2.0

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rtproof.summary.tally import array_pieces


@given(st.lists(st.integers(1, 100)), st.integers(1, 200))
def test_pieces_cover_everything_in_order(sizes: list[int], most: int) -> None:
    found = array_pieces(np.array(sizes, np.int64), most)
    assert [size for piece in found for size in sizes[piece]] == sizes
    assert all(sizes[piece] for piece in found)
    assert all(sum(sizes[piece]) < most + max(sizes) for piece in found)
