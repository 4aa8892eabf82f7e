# SPDX-License-Identifier: Apache-2.0
"""The program: what it says, how it ends, and that it waits for whoever listens."""

import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from analysis_records import BEGIN
from simulated_seconds import rate_above, second_maxima

from rtproof.core.errors import UserError
from rtproof.record.contents import End, EndReason, Record
from rtproof.record.reading import open_record
from rtproof.record.writing import RecordWriter, SeriesWriter
from rtproof.run.live_view import parse_progress
from rtproof.simulation import simulated_thread
from rtproof.simulation.events import EVENT_KINDS, KnownTail
from rtproof.simulation.simulated_thread import (
    SECOND_NS,
    PlayedStretch,
    SimulatedProcess,
    SimulationRequest,
    SummaryThread,
    parse_process,
    parse_request,
    with_values,
)
from rtproof.summary.series import summarise
from rtproof.targets.simulated import START

PROCESS = ("--simulate", "seed=4", "episodes=1/min")
LONG = ("--duration", "300d", "--limit", "100us", "--progress", "500ms")


def words(path: Path, *more: str) -> list[str]:
    return [sys.executable, "-c", START.format(path=sys.path), "run", "-o", str(path), *more]


@contextmanager
def started(path: Path, *more: str) -> "Iterator[subprocess.Popen[bytes]]":
    process = subprocess.Popen(words(path, *more), stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ended(path: Path) -> Record:
    record = open_record(path)
    assert record.end is not None
    assert record.damage == ()
    return record


def test_it_tells_of_each_thread_and_each_second_above_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "x"
    asked = ("--duration", "10min", "--threads", "2", "--limit", "100us", "--limit", "130us", "--progress", "1s")
    done = subprocess.run(words(path, *asked, *PROCESS), capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    progress = [found for line in lines if (found := parse_progress(line))]
    assert [(p.thread, p.time_ns) for p in progress[-2:]] == [(0, 600 * 10**9), (1, 600 * 10**9)]
    assert [(p.due_ns, p.first_due_ns) for p in progress[-2:]] == [
        (600 * 10**9, series.first_due_ns) for series in ended(path).series
    ]
    record = ended(path)
    seconds = {
        (thread, limit, int(second), int(worst))
        for thread in (0, 1)
        for limit in (100_000, 130_000)
        for second, worst in zip(record.seconds[thread].second, record.seconds[thread].max, strict=True)
        if worst > limit
    }
    said = [dict(word.split("=") for word in line.split()[1:]) for line in lines if line.startswith("over ")]
    keys = ("thread", "limit_ns", "second", "worst_ns")
    assert seconds == {tuple(int(one[key]) for key in keys) for one in said}
    assert len({limit for _, limit, _, _ in seconds}) == 2
    assert record.fact("simulated", thread=0xFFFF) is not None
    assert (
        [p.obtained for p in progress[-2:]] == [total.obtained for total in record.end.totals] if record.end else False
    )


def test_it_does_not_run_ahead_of_its_reader(tmp_path: Path) -> None:
    """Whatever is read, at most two steps more have been played when it is told to stop."""
    path = tmp_path / "x"
    with started(path, *LONG, *PROCESS) as process:
        assert process.stderr is not None
        last = [process.stderr.readline() for _ in range(50)][-1]
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait() == 0
    progress = parse_progress(last.decode())
    record = ended(path)
    assert record.end is not None
    assert record.end.reason is EndReason.INTERRUPTED
    if progress:
        assert record.end.time_ns - progress.time_ns <= 300 * 10**9


def test_the_end_of_its_input_ends_it_where_that_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with started(path, *LONG, "--stop-on-eof", *PROCESS) as process:
        assert process.stderr is not None
        assert process.stdin is not None
        process.stderr.readline()
        process.stdin.close()
        process.stdin = None
        process.stderr.read()
        assert process.wait() == 0
    record = ended(path)
    assert record.end is not None
    assert record.end.reason is EndReason.HOST_GONE


def test_nonsense_leaves_nothing_but_a_sentence(tmp_path: Path) -> None:
    asked = ("--duration", "1s", "--load", "sched")
    done = subprocess.run(words(tmp_path / "x", *asked), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "no use for --load" in done.stderr
    assert not (tmp_path / "x").exists()


PROCESS_SIMULATED_PLAYED = SimulatedProcess(seed=5, kind="burst5", clusters_per_s=0.05)
LIMIT = 120_000
ASKED = SimulationRequest("", 300 * SECOND_NS, period_ns=7_000_000, cpus=(2, 5))


def stretches(asked: SimulationRequest = ASKED) -> list[PlayedStretch]:
    series = simulated_thread.series_of(asked)
    late = simulated_thread.late_activations(PROCESS_SIMULATED_PLAYED, asked, series)
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
            thread: SeriesWriter | SummaryThread
            if keep_samples:
                values = with_values(one, np.random.default_rng(2)).until(cut).values
                assert values is not None
                thread = SeriesWriter(writer, one.series, limits_ns=limits)
                thread.add(values)
            else:
                thread = SummaryThread(writer, one.series, limits)
                thread.add(one.until(cut))
            totals.append(thread.finish())
        writer.end(End(cut * SECOND_NS, EndReason.AS_ASKED, "", tuple(totals)))
    return open_record(path)


def test_events_hit_the_next_activation_of_some_thread() -> None:
    series = simulated_thread.series_of(ASKED)
    time_s, value = simulated_thread.system_events(PROCESS_SIMULATED_PLAYED, 300)
    late = simulated_thread.late_activations(PROCESS_SIMULATED_PLAYED, ASKED, series)
    together = sorted((due, v) for one in late for due, v in zip(one.due_ns, one.value, strict=True))
    assert len(together) == time_s.size
    assert all(one.index.size for one in late)
    for (due, latency), at, drawn in zip(together, time_s, value, strict=True):
        assert 0 <= due - at * SECOND_NS <= ASKED.period_ns
        assert latency == min(drawn, ASKED.period_ns - 1)


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
        below = record.exceeded(some.series.id, 10_000)
        assert below is not None
        assert below.ran.sum() == shown.body[:, simulated_thread.BODY_NS > 10_000].sum() + shown.late.index.size


def test_the_largest_are_those_of_the_samples(tmp_path: Path) -> None:
    """Of the body only how many there are of each value is known without samples."""
    for some, summary in zip(stretches(), summarise(written(tmp_path / "x.rtrec", False)), strict=True):
        values = with_values(some, np.random.default_rng(2)).values
        assert values is not None
        top = summary.top
        assert top.value.tolist() == np.sort(values)[::-1][: top.value.size].tolist()
        assert top.value.size == 256
        assert len(set(top.index.tolist())) == 256
        assert (top.due_ns == some.series.first_due_ns + top.index * some.series.period_ns).all()
        late = some.late.index[np.isin(some.late.index, top.index)]
        assert late.size == some.late.index.size


RUN = ("-o", "x", "--duration", "10s")


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("seed", "-1", "not a whole number"),
        ("kind", "flood", "poisson"),
        ("episodes", "2", "write how many per time"),
        ("episodes", "nan/h", "not a number"),
        ("above", "100", "above: "),
        ("shape", "2", "not a number from -0.5 to 0.9"),
        ("step", "1500ms", "not a number of whole seconds"),
    ],
)
def test_nonsense_is_refused_in_a_sentence(option: str, value: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_process({option: value})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((*RUN, "--load", "sched"), "no use for --load"),
        ((*RUN, "--threads"), "--threads needs a value"),
        ((*RUN, "--threads", "1000"), "whole number from 1 to 256"),
        ((*RUN, "--cpus", "0-300"), "at most 256 threads"),
        (("-o", "x"), "needs a file to write and a length"),
        (("-o", "x", "--duration", "10000d"), "too long"),
        (("-o", "x", "--duration", "30d", "--record", "samples"), "too many to simulate one by one"),
    ],
)
def test_what_an_agent_would_do_and_a_simulation_cant(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        parse_request(words)


SECONDS = 400_000


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.3])
def test_drawn_latencies_have_the_tail_that_is_told(shape: float) -> None:
    tail = KnownTail(shape=shape)
    drawn = tail.draw_ns(np.ones(200_000), np.random.default_rng(1))
    assert drawn.min() > tail.threshold_ns
    for level in (60_000.0, 90_000.0, 120_000.0):
        expected = tail.above(level)
        assert np.mean(drawn > level) == pytest.approx(expected, abs=4 * math.sqrt(expected / drawn.size))


@pytest.mark.parametrize("kind", EVENT_KINDS)
@pytest.mark.parametrize("shape", [0.0, 0.2])
def test_the_rate_above_a_level_is_the_true_one(kind: str, shape: float) -> None:
    tail, level, rate = KnownTail(shape=shape), 120_000.0, 0.02
    found = [
        np.count_nonzero(second_maxima(kind, rate, SECONDS, tail, np.random.default_rng(seed)) > level)
        for seed in range(12)
    ]
    expected = SECONDS * rate_above(kind, rate, tail, level)
    spread = max(float(np.std(found)), math.sqrt(expected)) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(expected, abs=4 * spread + 0.02 * expected)
