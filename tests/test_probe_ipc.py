# SPDX-License-Identifier: Apache-2.0
"""The probe ipc on this machine: every way to wake a thread, and what is left behind."""

import functools
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from agent_process import eventually, measured, policy, run, running, whole

from rtproof.record.contents import EndReason, Record
from rtproof.summary.recorded_facts import probe_accounts

METHODS = ("futex", "cond", "sem", "sysv", "mq", "signal", "pipe", "eventfd")
SAMPLES = 100
PERIOD_NS = 2_000_000
SHORT = ("--period", "2ms", "--samples", str(SAMPLES))

pytestmark = pytest.mark.real


@functools.cache
def missing(method: str) -> str:
    """Why the method cannot run, as the agent says; empty where it can."""
    lines = [line.split("\t") for line in run("list").stdout.splitlines()]
    (said,) = (line[3] for line in lines if line[:3] == ["method", "ipc", method])
    return str(said.partition("; not here: ")[2])


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if why := missing(name):
        pytest.skip(why)
    return name


def totals(record: Record) -> list[tuple[int, int, int]]:
    assert record.end is not None
    return [(total.obtained, total.missed, total.lost) for total in record.end.totals]


def semaphores() -> set[int]:
    """Keys of System V semaphores that have the probe's mark."""
    lines = Path("/proc/sysvipc/sem").read_text().splitlines()[1:]
    return {key for line in lines if (key := int(line.split()[0])) >> 24 == 0x52}


@pytest.mark.parametrize("sender", ["same", "other"])
def test_every_due_time_is_accounted_for(method: str, sender: str, tmp_path: Path) -> None:
    if sender == "other" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("there is one CPU")
    arguments = ("--probe", f"ipc:sender={sender}", "--method", method, *policy(), *SHORT)
    record = measured(tmp_path / "record", *arguments)
    for series, counts in zip(record.series, totals(record), strict=True):
        assert (series.probe, series.method, series.field) == ("ipc", method, "wake")
        assert series.external
        assert sum(counts) == SAMPLES
        values = np.concatenate([block.values for block in record.blocks(series.id)])
        assert (values > 0).all()
        told = probe_accounts(record, "ipc")[series.thread]
        assert int(told["posts"]) - int(told["answered"]) in (0, 1)
        assert int(told["answered"]) >= counts[0]
        assert int(told["skipped"]) >= counts[2]
        assert (told["sender_cpu"] == str(series.cpu)) == (sender == "same")
        assert (told["sender_policy"], told["sender_priority"]) == (record.fact("policy"), record.fact("priority"))


def test_missed_due_times_are_those_that_passed_before_the_answer(tmp_path: Path) -> None:
    """Values of more than a period stand before each gap, and before nothing else."""
    record = measured(tmp_path / "record", "--probe", "ipc", "--policy", "other", *SHORT, "--load", "cpu")
    for series in record.series:
        for block in record.blocks(series.id):
            gaps = dict(zip(block.gap_position.tolist(), block.gap_missed.tolist(), strict=True))
            late = {at: value // PERIOD_NS for at, value in enumerate(block.values.tolist()) if value >= PERIOD_NS}
            last = block.first_index + block.values.size + int(block.gap_missed.sum()) == SAMPLES
            assert set(gaps) <= set(late)
            assert all(gaps.get(at) == missed for at, missed in late.items() if not last)


def test_a_thread_that_waits_for_long_can_be_stopped(method: str, tmp_path: Path) -> None:
    path = tmp_path / "record"
    period = ("--period", "1h", "--duration", "9h", "--warmup", "0s")
    with running("-o", path, "--probe", "ipc", "--method", method, *policy(), *period) as one:
        one.await_ns(0)
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 0
    record = whole(path)
    assert record.end is not None
    assert record.end.reason is EndReason.INTERRUPTED


@pytest.mark.serial  # others have semaphores, too
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_semaphore_outlives_the_agent(number: signal.Signals, tmp_path: Path) -> None:
    if why := missing("sysv"):
        pytest.skip(why)
    before = semaphores()
    with running("-o", tmp_path / "r", "--probe", "ipc", "--method", "sysv", *policy(), "--duration", "1h") as one:
        one.await_ns(0)
        assert semaphores() - before
        one.process.send_signal(number)
        assert eventually(lambda: not semaphores() - before)
        one.process.wait()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--probe", "ipc:sender=both"), "sender= of probe ipc is same or other"),
        (("--probe", "ipc", "--method", "carrier"), "probe 'ipc' has no method 'carrier'"),
        (("--probe", "ipc", "--policy", "deadline"), "method futex can't have policy deadline"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(
    arguments: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    done = run("run", "-o", tmp_path / "record", "--duration", "1s", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
