# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from analysis_records import block, record
from hypothesis import given
from hypothesis import strategies as st
from stage_records import KERNEL, fields_of, staged

from rtproof.summary import per_second
from rtproof.summary.fields import aligned_fields

NAMES = ("a", "b", "c")


def test_values_of_the_same_activation_stand_side_by_side() -> None:
    made = staged({"a": [1, 2], "b": [3, 4], "c": [5, 6]}, gaps={0: 1})
    (piece, rest) = aligned_fields(made, made.series)
    assert piece.index.tolist() == [0, 2]
    assert piece.due_ns.tolist() == [0, 2 * KERNEL.period_ns]
    assert [values.tolist() for values in piece.values] == [[1, 2], [3, 4], [5, 6]]
    assert (piece.alone, rest.alone, rest.index.size) == (0, 0, 0)


@given(st.lists(st.sets(st.integers(0, 30)), min_size=3, max_size=3), st.integers(1, 5))
def test_only_activations_that_every_field_has_are_aligned(kept: list[set[int]], longest: int) -> None:
    series = fields_of(KERNEL, 0, NAMES)
    blocks = [
        block([100 * index + each.id], None, index, each)
        for each, some in zip(series, kept, strict=True)
        for index in sorted(some)
    ]
    made = record(blocks, series)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_second, "LONGEST", longest)
        pieces = list(aligned_fields(made, series))
    common = sorted(set.intersection(*kept))
    assert np.concatenate([piece.index for piece in pieces]).tolist() == common
    for number in range(3):
        values = np.concatenate([piece.values[number] for piece in pieces])
        assert values.tolist() == [100 * index + number for index in common]
    assert sum(piece.alone for piece in pieces) == sum(map(len, kept)) - 3 * len(common)
