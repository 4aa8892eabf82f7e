# SPDX-License-Identifier: Apache-2.0

import numpy as np
import pytest

from rtproof.simulation.events import BURST_GAP_S, EVENT_KINDS, STORM_S, cluster_rate, event_rate, event_times, events

DAY_S = 86_400.0
RATE = 0.02


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_times_are_sorted_inside_the_run_and_the_same_for_a_seed(kind: str) -> None:
    times = event_times(kind, RATE, DAY_S, generator())
    assert times.dtype == np.float64
    assert (np.diff(times) >= 0).all()
    assert times[0] >= 0
    assert times[-1] < DAY_S
    assert np.array_equal(times, event_times(kind, RATE, DAY_S, generator()))
    assert not np.array_equal(times[:5], event_times(kind, RATE, DAY_S, generator(2))[:5])


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_the_mean_rate_is_the_one_asked_for(kind: str) -> None:
    """Also in the first seconds: clusters that began before the run reach into it."""
    counts = [event_times(kind, RATE, DAY_S, generator(seed)).size for seed in range(60)]
    spread = np.std(counts) / np.sqrt(len(counts))
    assert abs(np.mean(counts) - RATE * DAY_S) < 4 * spread
    if kind != "drift":
        early = [np.count_nonzero(event_times(kind, RATE, 600.0, generator(seed)) < 60) for seed in range(2000)]
        assert abs(np.mean(early) - RATE * 60) < 4 * np.std(early) / np.sqrt(len(early))


def starts(times: np.ndarray, gap_s: float) -> int:
    return 1 + int(np.count_nonzero(np.diff(times) > gap_s)) if times.size else 0


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_clusters_come_at_their_rate(kind: str) -> None:
    """At a rate so low that neighbours hardly ever join."""
    rate = event_rate(kind, 1e-5)
    assert cluster_rate(kind, rate) == pytest.approx(1e-5)
    found = [starts(event_times(kind, rate, 1e7, generator(seed)), 120.0) for seed in range(30)]
    assert np.mean(found) == pytest.approx(100, abs=4 * 10 / np.sqrt(30) + 0.5)


def test_the_gaps_of_a_burst_and_the_length_of_a_storm() -> None:
    times = event_times("burst5", event_rate("burst5", 1e-5), 1e8, generator())
    gaps = np.diff(times)
    assert np.mean(gaps[gaps < 200]) == pytest.approx(BURST_GAP_S, rel=0.08)
    times = event_times("storm", event_rate("storm", 1e-6), 1e9, generator())
    edges = np.flatnonzero(np.diff(times) > 200)
    lengths = times[edges[1:]] - times[edges[:-1] + 1]
    assert lengths.max() < STORM_S
    assert lengths.max() > 0.9 * STORM_S


@pytest.mark.parametrize(
    ("kind", "dispersed"), [("poisson", False), ("storm", True), ("storm2", True), ("drift", True)]
)
def test_counts_per_ten_minutes_disperse_where_the_rate_is_not_constant(kind: str, dispersed: bool) -> None:
    counts = np.bincount((event_times(kind, 0.05, DAY_S, generator()) // 600).astype(np.int64), minlength=144)
    assert bool(counts.var() > 2 * counts.mean()) is dispersed


def test_a_drifting_rate_trebles() -> None:
    times = event_times("drift", 1.0, DAY_S, generator())
    first, last = np.count_nonzero(times < DAY_S / 10), np.count_nonzero(times >= 0.9 * DAY_S)
    assert last / first == pytest.approx(1.45 / 0.55, rel=0.06)


def test_only_the_storms_of_storm2_stretch_the_tail() -> None:
    found = events("storm2", 0.01, 1e6, generator())
    assert set(found.stretch.tolist()) == {1.0, 2.0}
    assert np.mean(found.stretch == 2.0) == pytest.approx(EVENT_KINDS["storm2"].clustered, abs=0.05)
    assert set(events("storm", 0.01, 1e6, generator()).stretch.tolist()) == {1.0}


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_nothing_happens_at_no_rate(kind: str) -> None:
    assert event_times(kind, 0.0, DAY_S, generator()).size == 0
