# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest
from analysis_records import MS, block
from hypothesis import given
from hypothesis import strategies as st

from rtproof.summary import tally as summary_tally_module
from rtproof.summary.tally import Tally


@given(st.lists(st.tuples(st.integers(0, 10**10), st.integers(1, 20)), max_size=20))
def test_each_missed_activation_is_charged_until_the_thread_ran(gaps: list[tuple[int, int]]) -> None:
    late, missed = (np.array([gap[i] for gap in gaps], np.int64) for i in (0, 1))
    expected = [v - j * MS for v, m in gaps for j in range(1, m + 1)]
    assert summary_tally_module.lateness_of_missed(late, missed, MS).tolist() == expected


def test_the_400_ms_stall() -> None:
    tally = Tally()
    summary_tally_module.charge_missed(tally, MS, block([30_000, 400_200_000, 30_000], {1: 400}))
    counts = tally.result().counts
    assert counts.lo.tolist() == [200_000 + j * MS for j in range(400)]
    assert counts.total == 400


@pytest.mark.parametrize("pending", [1, 3, 1000])
def test_batches_and_long_gaps_charge_the_same(pending: int, monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = {0: 7, 1: 2, 3: 4}
    values = [7 * MS + 1, 2 * MS + 2, 5, 4 * MS + 3]
    monkeypatch.setattr(summary_tally_module, "PENDING", pending)
    tally = Tally()
    summary_tally_module.charge_missed(tally, MS, block(values, gaps))
    counts = tally.result().counts
    expected = sorted(values[at] - j * MS for at, m in gaps.items() for j in range(1, m + 1))
    assert np.repeat(counts.lo, counts.n).tolist() == expected


def test_nothing_missed_charges_nothing() -> None:
    tally = Tally()
    summary_tally_module.charge_missed(tally, MS, block([1, 2, 3]))
    assert tally.result().counts.total == 0
