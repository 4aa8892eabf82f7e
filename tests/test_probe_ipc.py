# SPDX-License-Identifier: Apache-2.0
"""The probe ipc on this machine: every way to wake a thread, and what is left behind."""

import errno
import functools
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import refused_calls
from agent_process import eventually, measured, policy, run, running, whole

from rtproof.judge.analyse import analyse
from rtproof.record.contents import EndReason, Record

METHODS = ("futex", "cond", "sem", "sysv", "mq", "signal", "pipe", "eventfd")
SAMPLES = 100
PERIOD_NS = 2_000_000
SHORT = ("--period", "2ms", "--samples", str(SAMPLES))
MS = 1_000_000

pytestmark = pytest.mark.real


def reasons(listing: str) -> dict[str, str]:
    """Why each method cannot run, as the agent says; empty where it can."""
    lines = [line.split("\t") for line in listing.splitlines()]
    return {line[2]: line[3].partition("; not here: ")[2] for line in lines if line[:2] == ["method", "ipc"]}


@functools.cache
def missing(method: str) -> str:
    return reasons(run("list").stdout)[method]


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if why := missing(name):
        pytest.skip(why)
    return name


def account(record: Record, thread: int = 0) -> dict[str, str]:
    """What the probe says of the thread that wakes."""
    (content,) = (file.content.decode() for file in record.files if file.path == f"ipc/thread{thread}")
    return dict(line.split(" ", 1) for line in content.splitlines())


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
        told = account(record, series.thread)
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


def test_due_times_that_pass_while_all_stands_still_are_told(tmp_path: Path) -> None:
    """No thread ran: nothing was posted, or one answer came late. None of that time is left out."""
    path = tmp_path / "record"
    with running("-o", path, "--probe", "ipc", *policy(), "--period", "2ms", "--duration", "2s") as one:
        one.await_ns(300 * MS)
        one.process.send_signal(signal.SIGSTOP)
        stopped_ns = time.monotonic_ns()
        time.sleep(0.3)
        woken_ns = time.monotonic_ns()
        one.process.send_signal(signal.SIGCONT)
        assert one.end() == 0
    record = whole(path)
    for obtained, missed, lost in totals(record):
        assert obtained > 0
        assert missed + lost >= (woken_ns - stopped_ns) // PERIOD_NS - 2
    assert {doubt.code for doubt in analyse(record).doubts} >= {"lost"}


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


def test_a_message_queue_has_no_name_while_it_is_used(tmp_path: Path) -> None:
    """So nothing of it is left, however the agent ends."""
    if why := missing("mq"):
        pytest.skip(why)
    with running("-o", tmp_path / "r", "--probe", "ipc", "--method", "mq", *policy(), "--duration", "1h") as one:
        one.await_ns(0)
        links = [str(fd.readlink()) for fd in Path(f"/proc/{one.process.pid}/fd").iterdir()]
        queues = [link for link in links if link.startswith("/rtproof-")]
        assert queues
        assert all(link.endswith(" (deleted)") for link in queues)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--probe", "ipc:sender=both"), "sender= of probe ipc is same or other"),
        (("--probe", "ipc:sender="), "option 'sender' of probe 'ipc' needs a value"),
        (("--probe", "ipc:cpu=1"), "probe 'ipc' has no option 'cpu'"),
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


def test_another_cpu_must_be_there(tmp_path: Path) -> None:
    prefix = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    probe = ("--probe", "ipc:sender=other")
    done = run("run", "-o", tmp_path / "record", "--duration", "1s", *probe, prefix=prefix)
    assert (done.returncode, done.stderr) == (2, "rtproof-agent: sender=other of probe ipc needs a second CPU\n")


NO_SEMAPHORES = ("unshare", "-i", "sh", "-c", 'echo 250 32000 32 0 > /proc/sys/kernel/sem && exec "$@"', "sh")
"""In a namespace of its own, which ends with it."""
MISSING = {
    "mq": ("mq_unlink", "this kernel has no POSIX message queues (CONFIG_POSIX_MQUEUE)"),
    "sysv": ("semget", "this kernel has no System V semaphores (CONFIG_SYSVIPC)"),
    "eventfd": ("eventfd2", "this kernel has no eventfd (CONFIG_EVENTFD)"),
}


@pytest.mark.parametrize("error", [errno.ENOSYS, errno.EPERM])
@pytest.mark.parametrize("method", MISSING)
def test_a_method_says_why_it_cannot_run_here(method: str, error: int, tmp_path: Path) -> None:
    call, absent = MISSING[method]
    why = absent if error == errno.ENOSYS else "this process may not use the system calls that it needs"
    prefix = refused_calls.prefix(error, call)
    assert reasons(run("list", prefix=prefix).stdout) == {
        name: why if name == method else missing(name) for name in METHODS
    }
    place = tmp_path / "record"
    done = run("run", "-o", place, "--probe", "ipc", "--method", method, *SHORT, prefix=prefix)
    assert (done.returncode, done.stderr) == (2, f"rtproof-agent: the method can't run here: {why}\n")
    assert not place.exists()


@pytest.mark.parametrize(
    ("method", "prefix", "sentence"),
    [
        (
            "mq",
            ("prlimit", "--msgqueue=0"),
            "make its kernel object: too many files, or bytes in queues (ulimit -n, -q)",
        ),
        ("signal", ("prlimit", "--sigpending=0"), "be woken: too many signals are pending (ulimit -i)"),
        ("sysv", NO_SEMAPHORES, "make its kernel object: there is no free one (kernel.sem)"),
        ("pipe", ("prlimit", "--nofile=10"), "prepare the probe: Too many open files"),
        ("mq", (errno.EIO, "mq_timedsend"), "be woken: Input/output error"),
        ("signal", (errno.EIO, "rt_sigtimedwait"), "be woken: Input/output error"),
    ],
)
def test_a_way_that_fails_ends_the_run_in_a_sentence(
    method: str, prefix: tuple[str | int, ...], sentence: str, tmp_path: Path
) -> None:
    if why := missing(method):
        pytest.skip(why)
    if prefix == NO_SEMAPHORES and os.geteuid() != 0:
        pytest.skip("only root may make a namespace")
    match prefix:
        case (int() as error, str() as call):
            before = refused_calls.prefix(error, call)
        case _:
            before = tuple(map(str, prefix))
    options = ("--probe", "ipc", "--method", method, "--policy", "other", "--threads", "1", *SHORT)
    done = run("run", "-o", tmp_path / "record", *options, prefix=before)
    assert (done.returncode, done.stderr) == (2, f"rtproof-agent: thread 0 could not {sentence}\n")
