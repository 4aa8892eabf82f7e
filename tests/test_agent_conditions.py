# SPDX-License-Identifier: Apache-2.0
"""Conditions that somebody changes for a part of a run and changes back: the agent notes it, and the run is INVALID."""

import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from agent_process import agent, measured, needs_fifo, needs_root, policy, run, running, whole

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement, State
from rtproof.record.contents import Condition, Moment, Record
from rtproof.record.reading import open_record
from rtproof.summary.measured_kernel import ModeSwitches, mode_switches
from rtproof.summary.summary_model import Doubt, Severity

# What somebody else does to the measuring threads while they measure, and that the record tells.


def measuring_thread_changes(pid: int, name: str = "rtproof-0") -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    pytest.fail(f"process {pid} has no thread {name}")


@needs_fifo
def test_a_policy_taken_away_is_noticed_and_spoils_the_run(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, "--policy", "fifo", "--threads", "1", "--duration", "5s") as one:
        one.await_ns(SECOND)
        os.sched_setscheduler(measuring_thread_changes(one.process.pid), os.SCHED_OTHER, os.sched_param(0))
        assert one.end() == 0
    record = whole(path)
    (event,) = [event for event in record.events if event.kind == "policy_changed"]
    assert (event.thread, event.text) == (0, "other")
    assert event.time_ns > SECOND / 2
    assert analyse(record).verdict.state is State.INVALID


pytestmark = pytest.mark.real
SECOND = 1_000_000_000
ASKED = ("--policy", "fifo", "--priority", "80", "--threads", "1", "--period", "1ms")
LOOSE_NS = 5 * SECOND
"""A limit that nothing here exceeds: without a doubt the runs would pass."""
GROUPS = Path("/sys/fs/cgroup/cpu")
HOG_S = 30
"""So long a hog lasts that nobody ends: on a busy machine a run of 5 s can take three times that."""
HOG = """
import os, sys, time
parent = os.getppid()
os.sched_setaffinity(0, {int(sys.argv[1])})
if int(sys.argv[2]):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(sys.argv[2])))
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end and os.getppid() == parent:
    pass
"""
RUNS = 4
"""So many are tried until one shows what it must: on a shared machine others trace, slew clocks and take CPUs away."""
TRACE = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0, ctypes.get_errno()
print("attached", flush=True)
time.sleep(60)
"""
needs_two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one CPU")


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
    with running("-o", path, *ASKED, "--cpus", str(own), "--duration", "4s") as one:
        begin_ns = one.await_ns(SECOND)
        thread = measuring_thread_changes(one.process.pid)
        os.sched_setaffinity(thread, {other})
        end_ns = one.await_ns(begin_ns + 3 * SECOND // 2)
        os.sched_setaffinity(thread, {own})
        assert one.end() == 0
    record = whole(path)
    conditions = record.conditions[0]
    assert record.fact("cpu_checks", Moment.START, 0) in ("every activation", "random activations")
    assert {(one.kind, one.seen) for one in conditions.deviations} >= {(Condition.CPU, str(other))}
    share = conditions.elsewhere.sum() / conditions.noted.sum()
    assert share == pytest.approx((end_ns - begin_ns) / (4 * SECOND), rel=0.3)
    assert record.fact("cpu", Moment.END, 0) == str(own)
    assert f"ran on CPU {other} instead of CPU {own} for about" in invalid(record)["cpu"].what


@needs_fifo
@pytest.mark.parametrize(
    ("policy", "priority", "code", "seen"),
    [(os.SCHED_RR, 80, "policy-between", "rr"), (os.SCHED_FIFO, 10, "priority-between", "10")],
)
def test_a_policy_for_50_ms_again_and_again(tmp_path: Path, policy: int, priority: int, code: str, seen: str) -> None:
    """About a check falls into each of the twelve: that none does has a chance of 6 in a million."""
    path = tmp_path / "record"
    with running("-o", path, *ASKED, "--duration", "5s") as one:
        one.await_ns(SECOND // 2)
        thread = measuring_thread_changes(one.process.pid)
        for _ in range(12):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))
            time.sleep(0.05)
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(80))
            time.sleep(0.2)
        assert one.end() == 0
    record = whole(path)
    assert record.fact("policy", Moment.END, 0) == "fifo"
    assert f"thread 0 had {seen} at " in invalid(record)[code].what


@needs_fifo
@needs_root
def test_a_tracer_that_was_attached_for_two_seconds(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *ASKED, "--duration", "4s") as one:
        one.await_ns(SECOND)
        command = [sys.executable, "-c", TRACE, str(measuring_thread_changes(one.process.pid))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stdout
            assert tracer.stderr
            if tracer.stdout.readline() != "attached\n":
                pytest.skip(f"ptrace is refused here: {tracer.stderr.read()}")
            one.await_ns(3 * SECOND)
            tracer.kill()
        assert one.end() == 0
    record = whole(path)
    assert [record.fact("tracer", moment, 0) for moment in (Moment.START, Moment.END)] == ["none", "none"]
    assert f"thread 0 by process {tracer.pid} python" in invalid(record)["traced"].what


@needs_fifo
def test_a_stop_of_the_agent_is_no_latency(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *ASKED, "--duration", "3s") as one:
        one.await_ns(SECOND // 2)
        one.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        one.process.send_signal(signal.SIGCONT)
        assert one.end() == 0
    assert "somebody had stopped the agent and let it go on" in invalid(whole(path))["stopped"].what


@needs_root
def test_a_nice_value_that_was_changed_and_changed_back(tmp_path: Path) -> None:
    path = tmp_path / "record"
    asked = ("--policy", "other", "--threads", "1", "--period", "1ms", "--duration", "5s")
    with running("-o", path, *asked) as one:
        one.await_ns(3 * SECOND // 2)
        thread = measuring_thread_changes(one.process.pid)
        before = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, before + 3)
        one.await_ns(4 * SECOND)
        os.setpriority(os.PRIO_PROCESS, thread, before)
        assert one.end() == 0
    assert f"thread 0 had {before}, {before + 3}" in invalid(whole(path))["nice-changed"].what


@pytest.mark.serial
@needs_fifo
def test_a_run_that_nobody_disturbs_has_none_of_these_doubts(tmp_path: Path) -> None:
    for number in range(RUNS):
        assert run("run", "-o", tmp_path / f"record{number}", *ASKED, "--duration", "2s").returncode == 0
        record = whole(tmp_path / f"record{number}")
        doubts = {"cpu", "policy-between", "priority-between", "traced", "clock-slewed"} & set(invalid(record))
        if not doubts and not record.conditions[0].deviations:
            break
    assert doubts == set()
    conditions = record.conditions[0]
    assert conditions.deviations == ()
    obtained = record.end.totals[0].obtained if record.end else 0
    every = record.fact("cpu_checks", Moment.START, 0) == "every activation"
    assert conditions.noted.sum() == (obtained if every else conditions.checks.sum())
    assert conditions.checks.sum() > obtained / 100


@pytest.mark.parametrize("period", ["500ms", "100us"])
def test_long_and_short_periods_are_checked_often_enough(tmp_path: Path, period: str) -> None:
    asked = ("--policy", "other", "--threads", "1", "--period", period, "--duration", "2s")
    assert run("run", "-o", tmp_path / "record", *asked).returncode == 0
    record = whole(tmp_path / "record")
    mean = {"500ms": 1, "100us": 64}[period]
    assert record.fact("check_mean", Moment.START, 0) == str(mean)
    noted = int(record.conditions[0].noted.sum())
    assert record.conditions[0].checks.sum() >= noted // (2 * mean)


@contextmanager
def group(runtime_us: int) -> Iterator[Path]:
    """A control group of version 1 with a budget for real-time threads; skips where there is no such thing."""
    place = GROUPS / f"rtproof-test-{os.getpid()}"
    if not (GROUPS / "cpu.rt_runtime_us").exists():
        pytest.skip(f"there is no {GROUPS}/cpu.rt_runtime_us (cgroup v1, CONFIG_RT_GROUP_SCHED)")
    place.mkdir()
    try:
        (place / "cpu.rt_runtime_us").write_text(f"{runtime_us}\n")
        yield place
    finally:
        for pid in (place / "tasks").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        give_up = time.monotonic() + 10
        while (place / "tasks").read_text() and time.monotonic() < give_up:
            time.sleep(0.01)
        place.rmdir()


def inside(place: Path) -> tuple[str, ...]:
    """What puts a command into a group."""
    return ("sh", "-c", f'echo $$ > {place}/tasks && exec "$@"', "sh")


@needs_root
def test_a_group_without_a_budget_is_named(tmp_path: Path) -> None:
    with group(0) as place:
        done = run("run", "-o", tmp_path / "record", *ASKED, "--duration", "1s", prefix=inside(place))
        assert done.returncode == 2
        assert f"{place}/cpu.rt_runtime_us is 0" in done.stderr
        assert "it needs root" not in done.stderr
        asked = (*ASKED, "--duration", "1s", "--allow-unprivileged")
        assert run("run", "-o", tmp_path / "record", *asked, prefix=inside(place)).returncode == 0
    refused = whole(tmp_path / "record").fact("policy_refused", Moment.START)
    assert refused is not None
    assert re.search(r"no budget for real-time threads: .*/cpu\.rt_runtime_us is 0$", refused)


def hog(cpu: int, priority: int, seconds: float, prefix: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    command = [*prefix, sys.executable, "-c", HOG, str(cpu), str(priority), str(seconds)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.serial  # its hog takes a CPU
@needs_root
@needs_fifo
def test_throttling_of_a_group_is_known_by_its_rhythm(tmp_path: Path) -> None:
    """The kernel's log tells of it once per boot, if at all."""
    cpu = max(os.sched_getaffinity(0))
    with group(300_000) as place, hog(cpu, 10, HOG_S, inside(place)) as other:
        asked = (*ASKED, "--cpus", str(cpu), "--duration", "5s")
        done = run("run", "-o", tmp_path / "record", *asked, prefix=inside(place))
        other.kill()
    assert done.returncode == 0
    found = invalid(whole(tmp_path / "record"))["budget-stops"].what
    assert f"the throttling of the control group {place} may take up to 700 ms of each" in found


@pytest.mark.serial  # its hogs take a CPU
@needs_root
@needs_fifo
@pytest.mark.skipif(
    tuple(map(int, platform.release().split(".")[:2])) < (6, 12), reason="the kernel has no fair server before 6.12"
)
def test_the_fair_server_is_known_by_its_rhythm(tmp_path: Path) -> None:
    """A real-time thread of lower priority leaves ordinary ones nothing; the kernel gives them 50 ms of each second."""
    cpu = max(os.sched_getaffinity(0))
    for number in range(RUNS):
        record = tmp_path / f"record{number}"
        with hog(cpu, 0, HOG_S) as starved, hog(cpu, 10, HOG_S) as other:
            done = run("run", "-o", record, *ASKED, "--cpus", str(cpu), "--duration", "5s")
            other.kill()
            starved.kill()
        assert done.returncode == 0
        found = invalid(whole(record))
        if "budget-stops" in found:
            break
    assert "in step with a period of 1.0 s" in found["budget-stops"].what


# What a measuring thread counts about itself: that its loop makes no calls but its own (a printf there would show).


SHORT = (*policy(), "--threads", "1", "--samples", "100", "--warmup", "50ms", "--period", "5ms")


def number(record: Record, key: str, moment: Moment) -> int:
    value = record.fact(key, moment, 0)
    if value is None or value.startswith("unavailable"):
        pytest.skip(f"{key} cannot be had here: {value}")
    return int(value)


def test_threads_of_evl_are_asked_for_at_both_ends(tmp_path: Path) -> None:
    """In a namespace that has such a thread; its count of in-band switches goes on while the agent measures."""
    script = f"""
    cd /sys/devices/virtual && mount -t tmpfs none $PWD && cd $PWD && mkdir -p thread/sampler:7 || exit 77
    echo "3 50 60 0 70 1" > thread/sampler:7/stats
    {agent()} run -o {tmp_path}/record {" ".join(SHORT)} &
    until grep -q "3 50 60 0 70 1" {tmp_path}/record; do kill -0 $! || exit 1; done 2> /dev/null
    echo "44 90 99 0 80 1" > thread/sampler:7/stats
    wait $!
    """
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, timeout=60, check=False)
    if done.returncode == 77 or done.stderr.startswith(b"unshare"):
        pytest.skip(f"no namespace to try it in: {done.stderr.decode().strip()}")
    assert done.returncode == 0
    assert mode_switches(open_record(tmp_path / "record")) == (ModeSwitches("sampler:7", 3, 44),)


def test_a_loop_that_only_sleeps_neither_reads_nor_writes(tmp_path: Path) -> None:
    assert number(measured(tmp_path / "record", *SHORT), "io_calls", Moment.END) == 0


def test_each_reading_of_the_sensor_is_counted_the_warm_up_included(tmp_path: Path) -> None:
    sensor = tmp_path / "temp1_input"
    sensor.write_text("41000\n")
    record = measured(tmp_path / "record", "--probe", f"app:work=sensor,sensor={sensor}", *SHORT)
    loops = 100 + number(record, "warmup_activations", Moment.START)
    assert number(record, "io_calls", Moment.END) == loops
