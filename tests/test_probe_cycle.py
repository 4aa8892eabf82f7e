# SPDX-License-Identifier: Apache-2.0
"""The probe cycle, really run: what its loop serves, what it makes up for, and what is said of it."""

import os
import signal
import time
from pathlib import Path

import agent_process
import numpy as np
import pytest
import recompute
from agent_process import measured, policy, running, whole
from report_cases import words

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Int64Array, Record
from rtproof.report.sections import loops
from rtproof.summary.summary_model import Cycles, Severity

MS = 1_000_000
SECOND = 1_000 * MS


def loop_of(record: Record) -> Cycles:
    found = analyse(record).cycles
    assert found is not None
    return found


@pytest.mark.serial
def test_every_due_time_is_served_and_told_by_its_cycles(tmp_path: Path) -> None:
    options = "cycle:ignore=7,low=500us,high=1s"
    record = measured(tmp_path / "record", *policy(), "--probe", options, "--samples", "400", "--threads", "2")
    assert record.end is not None
    assert [(one.obtained, one.missed, one.lost) for one in record.end.totals] == [(400, 0, 0)] * 2
    assert {(one.probe, one.method, one.field) for one in record.series} == {("cycle", "loop", "wake")}
    assert {(one.on_grid, one.external, one.loop) for one in record.series} == {(True, False, True)}
    recompute.check(record)
    found = loop_of(record)
    assert (found.ignored, found.counted, found.low_ns, found.high_ns) == (14, 2 * (399 - 7), 500_000, SECOND)
    assert record.fact("probe_options") == "ignore=7,low=500us,high=1s"


@pytest.mark.serial
def test_it_is_called_a_proxy_wherever_it_is_named(tmp_path: Path) -> None:
    record = measured(tmp_path / "record", *policy(), "--probe", "cycle", "--samples", "50", "--threads", "1")
    fact = record.fact("proxy_of")
    assert fact is not None
    assert fact.startswith("the kernel's own loop (probe kernel, method loop)")
    assert f"A proxy of {fact}." in words(loops.cycles_section(analyse(record)))
    (told,) = [line for line in agent_process.run("list").stdout.splitlines() if line.startswith("probe\tcycle\t")]
    assert "in user space, a proxy of the kernel's own" in told


@pytest.mark.serial
def test_a_process_that_was_stopped_stalls_the_loop_which_then_catches_up(tmp_path: Path) -> None:
    """The process is stopped for so long by the record's own clock, read before and after."""
    path = tmp_path / "record"
    arguments = (*policy(), "--probe", "cycle", "--period", "10ms", "--duration", "3500ms", "--threads", "1")
    with running("-o", path, *arguments) as one:
        one.await_ns(SECOND)
        stopped_ns = stop_for(one.process.pid, 2 * SECOND)
        assert one.end() == 0
    record = whole(path)
    assert record.end is not None
    assert [(each.obtained, each.missed) for each in record.end.totals] == [(350, 0)]
    found = loop_of(record)
    (stall,) = found.stalls
    assert (stall.thread, stall.over) == (0, True)
    assert stall.since_ns >= SECOND - 200 * MS
    assert stall.duration_ns > stopped_ns - 10 * MS
    assert found.max_ns == stall.duration_ns
    values = np.concatenate([block.values for block in record.blocks(0)])
    assert_made_up(values)
    assert "The loop stood still for" in str(loops.cycles_section(analyse(record))[0])
    assert [doubt.code for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID] == ["stopped"]


def stop_for(pid: int, least_ns: int) -> int:
    """Stops a process until the clock that it measures by is so much further; how long it was stopped at the least."""
    os.kill(pid, signal.SIGSTOP)
    assert agent_process.eventually(lambda: state(pid) == "T")
    begun_ns = clock_ns()
    assert agent_process.eventually(lambda: clock_ns() - begun_ns >= least_ns)
    took_ns = clock_ns() - begun_ns
    os.kill(pid, signal.SIGCONT)
    return took_ns


def clock_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def assert_made_up(late: Int64Array) -> None:
    """Behind the stall each run is at once: every late value is about a period below the one before it."""
    worst = int(np.argmax(late))
    behind = late[worst : worst + 100]
    assert behind[0] > SECOND
    assert (np.diff(behind) < 0).mean() > 0.9


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("ignore=few", "option 'ignore' takes a number of cycles, not 'few'"),
        ("low=1001us", "option 'low' takes a time with its unit that is not above the period; not '1001us'"),
        ("low=900", "option 'low' takes a time with its unit"),
        ("high=999us", "option 'high' takes a time with its unit that is not below the period; not '999us'"),
        ("high=", "option 'high' of probe 'cycle' needs a value"),
        ("band=1ms", "probe 'cycle' has no option 'band'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(tmp_path: Path, options: str, sentence: str) -> None:
    place = tmp_path / "record"
    done = agent_process.run("run", "-o", place, "--probe", f"cycle:{options}", "--samples", "10", "--period", "1ms")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rtproof-agent: {sentence}")
    assert done.stderr.count("\n") == 1
    assert not place.exists()
