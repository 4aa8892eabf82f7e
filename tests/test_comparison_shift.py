# SPDX-License-Identifier: Apache-2.0
"""The shift function, with shifts that are known."""

from dataclasses import replace

import numpy as np
import pytest
from comparison_cases import counted, latencies, run_of, side

from rtproof.compare.distributions import BEYOND, quantile_shift
from rtproof.compare.run_metrics import RunFigures, TimeBlocks, figures_of_histogram
from rtproof.summary.counts import Counts, counts_of_values

MINUTE = 60 * 10**9


def in_blocks(seed: int, added: int = 0, blocks: int = 20, each: int = 1_000, scatter: float = 0.0) -> RunFigures:
    """A run of blocks that differ by chance, or more."""
    random = np.random.default_rng(seed)
    parts = [latencies(random, each, float(np.exp(random.normal(0, scatter)))) + added for _ in range(blocks)]
    made = run_of(np.concatenate(parts), f"run {seed}")
    return replace(made, blocks=TimeBlocks(10 * MINUTE, tuple(counted(part) for part in parts)))


def test_a_constant_shift_is_found_at_every_share() -> None:
    found = quantile_shift([in_blocks(1, added=5_000)], [in_blocks(2)])
    assert found.why_no_band == ""
    assert "20 and 20 blocks of 10 min" in found.method
    assert [point.share for point in found.points][:3] == [0.05, 0.1, 0.15]
    for point in found.points:
        assert point.low is not None
        assert point.high is not None
        assert point.low < 5_000 < point.high
        assert point.difference == point.a - point.b
    assert sum(point.low > 0 for point in found.points if point.low is not None) > 15


def test_a_shift_that_changes_its_sign() -> None:
    """A is 4 us later in the lower half and has no tail."""
    values = latencies(np.random.default_rng(1), 40_000)
    ceiling = int(np.quantile(values, 0.9))
    early, late = run_of(np.minimum(values + 4_000, ceiling)), run_of(values)
    points = {point.share: point.difference for point in quantile_shift([early], [late]).points}
    assert points[0.05] == pytest.approx(4_000, abs=100)
    assert points[0.99] < -5_000


def test_the_band_holds_everywhere_at_once_for_identical_systems() -> None:
    """40 pairs of runs without a difference: at 95 %, two bands with zero outside somewhere are expected."""
    missed = 0
    for seed in range(40):
        found = quantile_shift([in_blocks(2 * seed)], [in_blocks(2 * seed + 1)])
        missed += any(not (p.low or 0) <= 0 <= (p.high or 0) for p in found.points)
    assert missed <= 7


def test_blocks_that_differ_widen_the_band() -> None:
    calm, wild = (quantile_shift([in_blocks(1, scatter=s)], [in_blocks(2, scatter=s)]).points[9] for s in (0.0, 0.5))
    assert (wild.high or 0) - (wild.low or 0) > 3 * ((calm.high or 0) - (calm.low or 0))


def test_without_blocks_there_is_no_band_and_a_reason() -> None:
    without = replace(in_blocks(2), blocks=TimeBlocks(0, (), "its record has 3 parts of time"))
    found = quantile_shift([in_blocks(1)], [without])
    assert found.why_no_band == "no band: run 2: its record has 3 parts of time"
    assert found.method == ""
    assert all(point.low is None for point in found.points)
    assert len(found.points) > 15


def test_several_runs_have_an_interval_of_their_scatter() -> None:
    found = quantile_shift(side(1, 6, factor=1.5), side(2, 6))
    middle = next(point for point in found.points if point.share == 0.5)
    assert middle.low is not None
    assert middle.high is not None
    assert 0 < middle.low < middle.difference < middle.high
    assert "means over the runs" in found.method
    one = quantile_shift(side(1, 1), side(2, 6))
    assert one.points[0].low is None
    assert "one side has one run" in one.why_no_band


def test_points_go_as_far_as_every_run_reaches() -> None:
    short, long = run_of(np.arange(1_000, 2_000)), run_of(np.arange(1_000, 101_000))
    assert quantile_shift([long], [long]).points[-1].share == 1 - BEYOND / 100_000
    assert quantile_shift([short], [long]).points[-1].share == 0.99
    full = figures_of_histogram("full", counts_of_values(np.arange(1, 1_001)), {}, overflow=9_000)
    assert max(point.share for point in quantile_shift([full], [long]).points) == 0.1
    tiny = run_of(np.array([1, 2, 3]))
    assert quantile_shift([tiny], [long]).points == ()


def test_bins_of_a_microsecond_leave_a_microsecond_open() -> None:
    """Five histograms a side without scatter: A is 1 us later, by values that are known to 1 us only."""

    def coarse(added_us: int) -> list[RunFigures]:
        at = np.arange(20 + added_us, 60 + added_us, dtype=np.int64) * 1_000
        counts = Counts(at, at + 999, np.full(at.size, 1_000, np.int64))
        return [figures_of_histogram(f"{n}", counts, {}) for n in range(5)]

    for point in quantile_shift(coarse(1), coarse(0)).points:
        assert (point.difference, point.low, point.high) == (1_000, 1, 1_999)
