# SPDX-License-Identifier: Apache-2.0
"""Conditions that somebody changes for a part of a run and changes back: the agent notes it, and the run is INVALID."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agent_process import PATIENCE_S, Running, agent, eventually, needs_fifo, needs_root, policy, run, running, whole

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State
from rtproof.record.contents import Condition, Moment, Record
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.summary.measured_kernel import mode_switches
from rtproof.summary.summary_model import Doubt, Severity

# What somebody else does to the measuring threads while they measure, and that the record tells.


def measuring_thread_changes(pid: int, name: str = "rtproof-0") -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    pytest.fail(f"process {pid} has no thread {name}")


pytestmark = pytest.mark.real
SECOND = 1_000_000_000
ASKED = ("--policy", "fifo", "--priority", "80", "--threads", "1", "--period", "1ms")
LOOSE_NS = 5 * SECOND
"""A limit that nothing here exceeds: without a doubt the runs would pass."""
TRACE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0, ctypes.get_errno()
print("attached", flush=True)
sys.stdin.read()
"""
needs_two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")


def sleeps(pid: int, thread: int) -> int:
    """How often a thread has slept."""
    status = Path(f"/proc/{pid}/task/{thread}/status").read_text()
    return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def await_wakes(pid: int, thread: int, n: int) -> None:
    most = sleeps(pid, thread) + n
    assert eventually(lambda: sleeps(pid, thread) >= most)


def told(one: Running, key: str, value: str) -> bool:
    """Whether the record has this fact of thread 0 by now, as seen while it measures."""
    facts = (each for each in open_record(one.record).facts if (each.key, each.moment) == (key, Moment.DURING))
    return value in [each.value.partition(" ")[0] for each in facts]


def finish(one: Running) -> None:
    one.process.send_signal(signal.SIGINT)
    assert one.end() == 0


def invalid(record: Record) -> dict[str, Doubt]:
    """What makes the run INVALID, by code."""
    found = analyse(record, [Requirement(LOOSE_NS)])
    doubts = {doubt.code: doubt for doubt in found.doubts if doubt.severity is Severity.INVALID}
    assert (found.verdict.state is State.INVALID) == bool(doubts)
    return doubts


@needs_fifo
@needs_two_cpus
def test_an_affinity_that_was_moved_and_moved_back(tmp_path: Path) -> None:
    path, (own, other) = tmp_path / "record", sorted(os.sched_getaffinity(0))[:2]
    with running("-o", path, *ASKED, "--cpus", str(own), "--duration", "600s") as one:
        one.await_ns(SECOND)
        thread = measuring_thread_changes(one.process.pid)
        os.sched_setaffinity(thread, {other})
        await_wakes(one.process.pid, thread, 1000)
        os.sched_setaffinity(thread, {own})
        finish(one)
    record = whole(path)
    conditions = record.conditions[0]
    assert record.fact("cpu_checks", Moment.START, 0) in ("every activation", "random activations")
    assert {(one.kind, one.seen) for one in conditions.deviations} >= {(Condition.CPU, str(other))}
    assert 0 < conditions.elsewhere.sum() < conditions.noted.sum()
    assert record.fact("cpu", Moment.END, 0) == str(own)
    assert f"on CPU {other} instead of CPU {own} for about" in invalid(record)["cpu"].whole


@needs_fifo
@pytest.mark.parametrize(
    ("policy", "priority", "code", "seen"),
    [(os.SCHED_RR, 80, "policy-between", "rr"), (os.SCHED_FIFO, 10, "priority-between", "10")],
)
def test_a_policy_for_50_wake_ups_again(tmp_path: Path, policy: int, priority: int, code: str, seen: str) -> None:
    """Checks are 20 or so wake-ups apart: that none falls into one of the twelve has no chance worth mentioning."""
    path = tmp_path / "record"
    with running("-o", path, *ASKED, "--duration", "600s") as one:
        one.await_ns(SECOND // 2)
        thread = measuring_thread_changes(one.process.pid)
        for _ in range(12):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))
            await_wakes(one.process.pid, thread, 50)
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(80))
            await_wakes(one.process.pid, thread, 200)
        finish(one)
    record = whole(path)
    assert record.fact("policy", Moment.END, 0) == "fifo"
    assert f"thread 0 had {seen} at " in invalid(record)[code].whole


@needs_fifo
@pytest.mark.skipif(not Path("/proc/self/sched").exists(), reason="the kernel has no SCHED_DEBUG")
def test_an_ordinary_policy_between_two_looks(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *ASKED, "--duration", "600s") as one:
        one.await_ns(SECOND)
        thread = measuring_thread_changes(one.process.pid)
        os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
        await_wakes(one.process.pid, thread, 3)
        os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(80))
        finish(one)
    assert "thread 0 became other" in invalid(whole(path))["policy-changed"].whole


@needs_fifo
@needs_root
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is missing")
def test_strace_between_two_looks(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *ASKED, "--duration", "600s") as one:
        one.await_ns(SECOND)
        thread = measuring_thread_changes(one.process.pid)
        with subprocess.Popen(["strace", "-o", "/dev/null", "-p", str(thread)], stderr=subprocess.DEVNULL) as tracer:
            await_wakes(one.process.pid, thread, 600)
            tracer.send_signal(signal.SIGINT)
        await_wakes(one.process.pid, thread, 1000)
        finish(one)
    assert "traced" in invalid(whole(path))


@needs_fifo
@needs_root
def test_a_tracer_that_was_attached_for_a_while(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *ASKED, "--duration", "600s") as one:
        one.await_ns(SECOND)
        command = [sys.executable, "-c", TRACE, str(measuring_thread_changes(one.process.pid))]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as tracer:
            assert tracer.stdout
            assert tracer.stderr
            if tracer.stdout.readline() != "attached\n":
                pytest.skip(f"ptrace is refused here: {tracer.stderr.read()}")
            assert eventually(lambda: told(one, "tracer", str(tracer.pid)))
            tracer.kill()
        finish(one)
    record = whole(path)
    assert [record.fact("tracer", moment, 0) for moment in (Moment.START, Moment.END)] == ["none", "none"]
    assert f"thread 0 by process {tracer.pid} python" in invalid(record)["traced"].whole


@needs_root
def test_a_nice_value_that_was_changed_and_changed_back(tmp_path: Path) -> None:
    path = tmp_path / "record"
    asked = ("--policy", "other", "--threads", "1", "--period", "1ms", "--duration", "600s")
    with running("-o", path, *asked) as one:
        one.await_ns(SECOND)
        thread = measuring_thread_changes(one.process.pid)
        before = os.getpriority(os.PRIO_PROCESS, thread)
        assert eventually(lambda: told(one, "nice", str(before)))
        os.setpriority(os.PRIO_PROCESS, thread, before + 3)
        assert eventually(lambda: told(one, "nice", str(before + 3)))
        os.setpriority(os.PRIO_PROCESS, thread, before)
        finish(one)
    assert f"thread 0 had {before}, {before + 3}" in invalid(whole(path))["nice-changed"].whole


@pytest.mark.serial
@needs_fifo
def test_a_run_that_nobody_disturbs_has_none_of_these_doubts(tmp_path: Path) -> None:
    assert run("run", "-o", tmp_path / "record", *ASKED, "--duration", "2s").returncode == 0
    record = whole(tmp_path / "record")
    assert {"cpu", "policy-between", "priority-between"} & set(invalid(record)) == set()
    conditions = record.conditions[0]
    assert conditions.deviations == ()
    obtained = record.end.totals[0].obtained if record.end else 0
    every = record.fact("cpu_checks", Moment.START, 0) == "every activation"
    assert conditions.noted.sum() == (obtained if every else conditions.checks.sum())
    assert conditions.checks.sum() >= obtained // (2 * int(record.fact("check_mean", Moment.START, 0) or 0))


@pytest.mark.parametrize("period", ["500ms", "100us"])
def test_long_and_short_periods_are_checked_often_enough(tmp_path: Path, period: str) -> None:
    asked = ("--policy", "other", "--threads", "1", "--period", period, "--duration", "2s")
    assert run("run", "-o", tmp_path / "record", *asked).returncode == 0
    record = whole(tmp_path / "record")
    mean = {"500ms": 1, "100us": 64}[period]
    assert record.fact("check_mean", Moment.START, 0) == str(mean)
    noted = int(record.conditions[0].noted.sum())
    assert record.conditions[0].checks.sum() >= noted // (2 * mean)


# What a measuring thread counts about itself: that its loop makes no calls but its own (a printf there would show).


SHORT = (*policy(), "--threads", "1", "--samples", "100", "--warmup", "50ms", "--period", "5ms")


def test_threads_of_evl_are_asked_for_at_both_ends(tmp_path: Path) -> None:
    """In a namespace that has such a thread; its count of in-band switches goes on while the agent measures."""
    script = f"""
    cd /sys/devices/virtual && mount -t tmpfs none $PWD && cd $PWD && mkdir -p thread/sampler:7 || exit 77
    echo "3 50 60 0 70 1" > thread/sampler:7/stats
    {agent()} run -o {tmp_path}/record {" ".join(SHORT)} --samples 100000 & agent=$!
    until grep -q "3 50 60 0 70 1" {tmp_path}/record; do kill -0 $agent || exit 1; done 2> /dev/null
    echo "44 90 99 0 80 1" > thread/sampler:7/stats
    kill -INT $agent
    wait $agent
    """
    words = ["unshare", "--mount", "sh", "-c", script]
    done = subprocess.run(words, capture_output=True, timeout=2 * PATIENCE_S, check=False)
    if done.returncode == 77 or done.stderr.startswith(b"unshare"):
        pytest.skip(f"no namespace to try it in: {done.stderr.decode().strip()}")
    assert done.returncode == 0
    assert mode_switches(open_record(tmp_path / "record")) == {"sampler:7": (3, 44)}
