# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import MS, SERIES, array, block, record

from rtproof.record.contents import Block
from rtproof.summary.quantiles import offset_and_spread
from rtproof.summary.series import summarise


def test_a_constant_lateness_is_offset_and_not_jitter() -> None:
    (summary,) = summarise(record([block([360_000 + i for i in range(200)])]))
    found = offset_and_spread(summary)
    assert (found.offset, found.jitter, found.peak_to_peak) == (360_099, 196, 199)
    assert found.deviation == pytest.approx(np.std(np.arange(200), ddof=1))
    assert found.drift_ppm is None


def test_off_the_grid_lateness_adds_up_to_drift() -> None:
    """Each cycle is 60 us longer than its millisecond."""
    free = replace(SERIES, on_grid=False)
    (summary,) = summarise(record([Block(0, 0, 0, np.full(1001, 60_000), array(), array())], [free]))
    assert offset_and_spread(summary).drift_ppm == pytest.approx(60_000)
    assert summary.span_ns == 1000 * (MS + 60_000) + MS


def test_unknown_without_samples() -> None:
    (summary,) = summarise(record([]))
    found = offset_and_spread(summary)
    assert (found.offset, found.jitter, found.peak_to_peak, found.deviation) == (None, None, None, None)
