# SPDX-License-Identifier: Apache-2.0
"""What is played, what is written of it and what is told of it are the same."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import BEGIN

from rtproof.record.contents import End, EndReason, Record
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter
from rtproof.simulation import simulated_thread
from rtproof.simulation.simulated_thread import (
    BODY_NS,
    SECOND_NS,
    PlayedStretch,
    SampledThread,
    SimulatedProcess,
    SimulationRequest,
    SummaryThread,
    values_of,
)
from rtproof.summary.series import summarise

PROCESS = SimulatedProcess(seed=5, kind="burst5", clusters_per_s=0.05)
LIMIT = 120_000
ASKED = SimulationRequest("", 300 * SECOND_NS, period_ns=7_000_000, cpus=(2, 5))


def stretches(asked: SimulationRequest = ASKED) -> list[PlayedStretch]:
    series = simulated_thread.series_of(asked)
    late = simulated_thread.late_activations(PROCESS, asked, series)
    generator = np.random.default_rng(1)
    return [simulated_thread.play_stretch(*pair, 0, 300, generator) for pair in zip(series, late, strict=True)]


def written(path: Path, keep_samples: bool, cut: int = 300) -> Record:
    asked = replace(ASKED, keep_samples=keep_samples)
    some = stretches(asked)
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        totals = []
        for one in some:
            writer.series(one.series)
        for one in some:
            limits = (10_000, LIMIT)
            generator = np.random.default_rng(2)
            thread = (
                SampledThread(writer, one.series, generator, limits)
                if keep_samples
                else SummaryThread(writer, one.series, limits)
            )
            thread.add(one.until(cut))
            totals.append(thread.finish())
        writer.end(End(cut * SECOND_NS, EndReason.AS_ASKED, "", tuple(totals)))
    return open_record(path)


def test_events_hit_the_next_activation_of_some_thread() -> None:
    series = simulated_thread.series_of(ASKED)
    time_s, value = simulated_thread.system_events(PROCESS, 300)
    late = simulated_thread.late_activations(PROCESS, ASKED, series)
    together = sorted((due, v) for one in late for due, v in zip(one.due_ns, one.value, strict=True))
    assert len(together) == time_s.size
    assert all(one.index.size for one in late)
    for (due, latency), at, drawn in zip(together, time_s, value, strict=True):
        assert 0 <= due - at * SECOND_NS <= ASKED.period_ns
        assert latency == min(drawn, ASKED.period_ns - 1)


def test_events_depend_on_the_seed_alone() -> None:
    one_thread = replace(ASKED, cpus=(0,), period_ns=1_000_000)
    (late,) = simulated_thread.late_activations(PROCESS, one_thread, simulated_thread.series_of(one_thread))
    assert sorted(late.value) == sorted(value for one in stretches() for value in one.late.value)


@pytest.mark.parametrize("keep_samples", [False, True])
@pytest.mark.parametrize("cut", [300, 7])
def test_the_record_holds_what_was_played(tmp_path: Path, keep_samples: bool, cut: int) -> None:
    record = written(tmp_path / "x.rtrec", keep_samples, cut)
    assert record.damage == ()
    for some, summary in zip(stretches(replace(ASKED, keep_samples=keep_samples)), summarise(record), strict=True):
        shown = some.until(cut)
        assert summary.observed.count == shown.obtained().sum() == summary.expected
        assert summary.observed.sum == shown.total().sum()
        assert summary.observed.max == shown.most().max()
        assert summary.seconds.max.tolist() == shown.most().tolist()
        assert summary.seconds.obtained.tolist() == shown.obtained().tolist()
        assert (summary.missed, summary.lost) == (0, 0)
        above = record.exceeded(some.series.id, LIMIT)
        assert above is not None
        assert above.ran.sum() == np.count_nonzero(shown.late.value > LIMIT)
        assert (record.exceeded(some.series.id, 10_000) is None) is not keep_samples


def test_the_largest_are_those_of_the_samples(tmp_path: Path) -> None:
    """Of the body only how many there are of each value is known without samples."""
    for some, summary in zip(stretches(), summarise(written(tmp_path / "x.rtrec", False)), strict=True):
        values = values_of(some, np.random.default_rng(2))
        top = summary.top
        assert top.value.tolist() == np.sort(values)[::-1][: top.value.size].tolist()
        assert top.value.size == 256
        assert len(set(top.index.tolist())) == 256
        assert (top.due_ns == some.series.first_due_ns + top.index * some.series.period_ns).all()
        late = some.late.index[np.isin(some.late.index, top.index)]
        assert late.size == some.late.index.size


def test_activations_without_an_event_show_the_body() -> None:
    values = values_of(stretches()[0], np.random.default_rng(3))
    assert set(values[values < PROCESS.tail.threshold_ns].tolist()) <= set(BODY_NS.tolist())


def test_a_period_longer_than_a_second_leaves_seconds_empty() -> None:
    slow = replace(ASKED, period_ns=3 * SECOND_NS, cpus=(0,))
    series = simulated_thread.series_of(slow)
    late = simulated_thread.late_activations(PROCESS, slow, series)
    some = simulated_thread.play_stretch(series[0], late[0], 0, 9, np.random.default_rng(1))
    assert some.obtained().tolist() == [1, 0, 0] * 3
    assert (some.most() > 0).tolist() == [True, False, False] * 3
