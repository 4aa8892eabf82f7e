# SPDX-License-Identifier: Apache-2.0
"""Levels as an agent learns them, and what it counts above them."""

import numpy as np
import pytest
import record_cases as cases

from rtproof.record import activations, histogram_bins
from rtproof.record.activations import SECOND_NS, Activations
from rtproof.record.contents import Int64Array

SERIES = cases.ON_GRID


def ran(values: Int64Array, first: int = 0, missed: dict[int, int] | None = None) -> Activations:
    gone = np.zeros_like(values)
    for at, n in (missed or {}).items():
        gone[at] = n
    return activations.number_activations(SERIES, first, SERIES.first_due_ns + first * SERIES.period_ns, values, gone)


@pytest.mark.parametrize(
    ("taught", "shares"), [(4_999, []), (5_000, [1_000]), (49_999, [1_000]), (50_000, [1_000, 100])]
)
def test_few_values_teach_less(taught: int, shares: list[int]) -> None:
    learner = activations.LevelLearner(SERIES.first_due_ns + taught * SERIES.period_ns)
    assert learner.learn(ran(np.arange(taught)), 0) == []
    found = learner.learn(ran(np.array([0]), taught), 2)
    assert [(head.number, head.share, head.taught) for head in found] == [
        (2 + place, share, taught) for place, share in enumerate(shares)
    ]
    for head in found:
        at_most = taught * head.share // 1_000_000
        assert head.value == histogram_bins.bin_edges(histogram_bins.bin_of(taught - at_most - 1))[1]
        assert head.since_ns == SERIES.first_due_ns + taught * SERIES.period_ns
    assert learner.learn(ran(np.array([0]), taught + 1), 2) == []


def test_however_the_first_minute_is_cut() -> None:
    values = np.random.default_rng(4).gamma(4.0, 5_000.0, 61_000).astype(np.int64)
    whole = activations.LevelLearner(SERIES.first_due_ns + activations.LEARN_NS).learn(ran(values), 0)
    pieces = activations.LevelLearner(SERIES.first_due_ns + activations.LEARN_NS)
    parts = [pieces.learn(ran(values[at : at + 7_000], at), 0) for at in range(0, 61_000, 7_000)]
    assert [part for part in parts if part] == [whole]
    assert len(whole) == 2


def test_what_was_due_before_a_level_is_not_above_it() -> None:
    some = ran(np.array([50, 50, 60, 50]))
    late = activations.LevelHead(1, 40, int(some.due_ns[2]), 100, 50_000)
    found = activations.count_above(SERIES, some, [activations.LevelHead(0, 55, 0), late])
    assert (found.second.tolist(), found.level.tolist(), found.ran.tolist()) == ([0, 0], [0, 1], [1, 2])


def test_missed_ones_belong_to_their_own_seconds() -> None:
    some = ran(np.array([2 * SECOND_NS + 5]), 900, {0: 2_000})
    found = activations.count_above(SERIES, some, [activations.LevelHead(0, SECOND_NS, 0)])
    assert (found.second.tolist(), found.ran.tolist(), found.missed.tolist()) == ([0, 1], [1, 0], [99, 901])
    assert activations.count_above(SERIES, some, []).second.size == 0


def test_a_list_tells_when_it_is_full() -> None:
    limits = activations.limit_heads(SERIES, (1_000, 10))
    listed = [0, activations.LONGEST_LIST - 2]
    found = activations.list_exceeding(ran(np.array([20, 5, 2_000, 30, 3_000])), limits, listed)
    assert found.index.tolist() == [0, 2, 4]
    assert (found.lists.tolist(), found.ended, listed) == ([2, 3, 1], 2, [2, activations.LONGEST_LIST])
    again = activations.list_exceeding(ran(np.array([20, 5, 2_000])), limits, listed)
    assert (again.lists.tolist(), again.ended) == ([1], 0)
