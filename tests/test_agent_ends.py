# SPDX-License-Identifier: Apache-2.0
"""Every way in which a run of the real agent can end, and that nothing is left behind."""

import os
import resource
import signal
import struct
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import agent_process
import numpy as np
import pytest
import recompute
from agent_process import Running, eventually, may_use_fifo, needs_fifo, needs_root, policy, running, whole

from rtproof.judge.analyse import analyse
from rtproof.record.contents import EndReason, Record
from rtproof.record.reading import open_record
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Summary

MS = 1_000_000
SECOND = 1_000 * MS
STALL_MS = 400
# How far the number of missed activations may be off: without a real-time policy a thread waits for its CPU as well.
TOO_MANY = 2 if may_use_fifo() else 100
TOO_FEW = 2
LOADS = ("--load", "cpu:workers=1", "--load", "sched:groups=1,pairs=2")
PM_QOS = Path("/dev/cpu_dma_latency")


def reason(record: Record) -> EndReason:
    assert record.end is not None
    return record.end.reason


@dataclass(frozen=True)
class Stall:
    """Instants of CLOCK_MONOTONIC between which an agent came to a stop, and between which it was let go again."""

    stopped_ns: tuple[int, int]
    woken_ns: tuple[int, int]

    def milliseconds(self) -> tuple[int, int]:
        """Its length, at least and at most."""
        shortest, longest = self.woken_ns[0] - self.stopped_ns[1], self.woken_ns[1] - self.stopped_ns[0]
        return shortest // MS, longest // MS


def stall(one: Running, length_ms: int = STALL_MS) -> Stall:
    """Stops the agent for a while."""
    times = [time.clock_gettime_ns(time.CLOCK_MONOTONIC)]
    one.process.send_signal(signal.SIGSTOP)
    times.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    time.sleep(length_ms / 1000)
    times.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    one.process.send_signal(signal.SIGCONT)
    times.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    return Stall((times[0], times[1]), (times[2], times[3]))


def missed_in_the_stall(record: Record, series: int) -> tuple[int, int]:
    """Activations missed behind the one sample that is hundreds of milliseconds late, and how many milliseconds it is.

    There are two of them where the stall came between the kernel's signal and the reading of the clock.
    """
    samples = recompute.ran(record, record.series[series])
    late = np.flatnonzero(samples.value > STALL_MS * MS // 2)
    assert late.size in (1, 2)
    return int(samples.missed[late].sum()) + late.size - 1, int(samples.value[late].max()) // MS


def p99(summary: Summary) -> tuple[int, int]:
    """Of the activations that ran, and of all that were due."""
    both = quantile(summary.observed_counts, 0.99).value, quantile(summary.schedule_counts, 0.99).value
    assert both[0] is not None
    assert both[1] is not None
    return both[0], both[1]


@pytest.mark.serial
@pytest.mark.parametrize("method", ["clock_nanosleep", "posix_timer", "timerfd"])
def test_a_stall_is_charged_with_all_that_it_hid(tmp_path: Path, method: str) -> None:
    """At a period of 1 ms, as many activations are missed as the stall has milliseconds.

    A host that takes the CPU at its end makes it longer, and the late activation by as much.
    """
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--method", method, "--duration", "2s", "--threads", "2") as one:
        one.await_ns(300 * MS)
        least, most = stall(one).milliseconds()
        assert one.end() == 0
    record = whole(path)
    for summary in analyse(record).summaries:
        missed, late_ms = missed_in_the_stall(record, summary.series.id)
        assert least - TOO_FEW <= missed <= max(most, late_ms) + TOO_MANY
        assert abs(summary.obtained + summary.missed - 2000) <= 1
        observed, schedule = p99(summary)
        assert observed < 100 * MS < schedule < STALL_MS * 2 * MS
    recompute.check(record)


@pytest.mark.serial
def test_a_stall_across_the_end_of_the_warm_up_hides_nothing(tmp_path: Path) -> None:
    """Whatever was due before the stall ended is in the record, beginning with the first due time."""
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--warmup", "500ms", "--samples", "1000", "--threads", "2") as one:
        assert eventually(lambda: path.exists() and path.stat().st_size > 0)
        stalled = stall(one, 1000)
        assert one.end() == 0
    record = whole(path)
    least, most = ((at - record.begin.origin_monotonic_ns) // MS for at in stalled.woken_ns)
    assert least > 0
    assert record.end is not None
    assert [(total.obtained + total.missed, total.lost) for total in record.end.totals] == [(1000, 0)] * 2
    for series in record.series:
        samples = recompute.ran(record, series)
        assert samples.index[0] == 0
        assert least - TOO_FEW <= 1 + samples.missed[0] <= max(most, samples.value[0] // MS) + TOO_MANY
    recompute.check(record)


@pytest.mark.serial
def test_killed_it_leaves_a_record_up_to_the_last_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "60s", "--checkpoint", "1s", *LOADS) as one:
        reached_ns = one.await_ns(2500 * MS)
        assert len(one.processes()) >= 8
        one.process.kill()
        assert eventually(lambda: not one.processes())
    record = open_record(path)
    assert record.end is None
    assert [damage.offset for damage in record.damage if damage.length == 0] == [record.size]
    for series in record.series:
        # The writer looks twice a second.
        assert recompute.ran(record, series).due_ns[-1] > reached_ns - 1500 * MS
        assert sum(one.count for one in record.slices if one.series == series.id) > 0


@pytest.mark.real
def test_a_checkpoint_comes_every_ten_seconds_unless_asked_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "60s") as one:
        one.await_ns(200 * MS)
        one.process.kill()
        assert eventually(lambda: not one.processes())
    record = open_record(path)
    assert record.fact("checkpoint_ns") == str(10 * SECOND)
    assert [series.period_ns for series in record.series] == [MS] * len(record.series)
    assert record.end is None


def pm_qos_us() -> int:
    """The strictest request of all programs, microseconds (Documentation/power/pm_qos_interface.rst)."""
    return int(struct.unpack("=i", PM_QOS.read_bytes()[:4])[0])


@pytest.mark.serial
@needs_root
@pytest.mark.skipif(not PM_QOS.exists(), reason="this kernel has no /dev/cpu_dma_latency")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_request_for_short_wake_ups_ends_with_the_agent(tmp_path: Path, number: signal.Signals) -> None:
    before = pm_qos_us()
    if before <= 17:
        pytest.skip(f"something else holds /dev/cpu_dma_latency at {before} us")
    with running("-o", tmp_path / "record", *policy(), "--duration", "60s", "--dma-latency", "17", *LOADS) as one:
        one.await_ns(0)
        assert pm_qos_us() == 17
        one.process.send_signal(number)
        assert eventually(lambda: not one.processes())
        assert eventually(lambda: pm_qos_us() == before)


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_properly(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "60s", *LOADS) as one:
        one.await_ns(200 * MS)
        one.process.send_signal(number)
        assert one.end() == 0
        assert eventually(lambda: not one.processes())
    assert one.messages == []
    record = whole(path)
    assert reason(record) is EndReason.INTERRUPTED
    assert [event.text for event in record.events if event.kind == "interrupted"] == [number.name]
    recompute.check(record)


@pytest.mark.real
def test_interrupted_in_the_warm_up_it_ends_properly_too(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "60s", "--warmup", "60s") as one:
        assert eventually(path.exists)
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 0
    record = whole(path)
    assert reason(record) is EndReason.INTERRUPTED
    assert record.end is not None
    assert {total.obtained for total in record.end.totals} == {0}


@pytest.mark.real
def test_when_the_host_goes_away_it_ends_properly(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "60s", "--stop-on-eof", *LOADS) as one:
        one.await_ns(200 * MS)
        assert one.process.stdin
        one.process.stdin.close()
        one.process.stdin = None
        assert one.end() == 0
        assert eventually(lambda: not one.processes())
    record = whole(path)
    assert reason(record) is EndReason.HOST_GONE
    assert [event.kind for event in record.events if event.kind == "host_gone"] == ["host_gone"]
    recompute.check(record)


@pytest.mark.real
def test_input_that_does_not_end_is_no_reason_to_stop(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "500ms", "--stop-on-eof") as one:
        assert one.process.stdin
        one.process.stdin.write("keep going\n")
        one.process.stdin.flush()
        one.await_ns(200 * MS)
        assert one.process.wait() == 0
    assert reason(whole(path)) is EndReason.AS_ASKED


def innermost(one: Running) -> int:
    """A process of the agent's loads that has no child: one that works."""
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in one.processes()}
    return max(pid for pid in one.processes() if pid not in parents)


@pytest.mark.serial
@pytest.mark.parametrize("load", ["cpu:workers=2", "sched:groups=2,pairs=2", "files:workers=2,mib=1"])
def test_when_a_load_dies_the_run_ends(tmp_path: Path, load: str) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "60s", "--load", load) as one:
        one.await_ns(200 * MS)
        victim = innermost(one)
        killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        os.kill(victim, signal.SIGKILL)
        one.end()
        assert eventually(lambda: not one.processes())
    record = whole(path)
    assert record.end is not None
    assert record.end.reason is EndReason.LOAD_DIED
    assert [event.text for event in record.events if event.kind == "load_died"] == [load.partition(":")[0]]
    assert record.end.time_ns < killed_ns - record.begin.origin_monotonic_ns + 2 * SECOND
    recompute.check(record)


# The real agent where a record finds little room: refused when it cannot fit, stopped cleanly when the room goes.


# 20,000 activations a second for each of 4 threads: what is reserved lasts for about a second.
BUSY = ("--period", "50us", "--threads", "4")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], capture_output=True, text=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"nothing can be mounted here: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(path: Path) -> None:
    """Takes all the space that is left."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(4096)):
                pass
        except OSError:
            return


@pytest.mark.serial
@needs_root
@pytest.mark.parametrize("options", [["--duration", "10min"], ["--samples", "5000000", "--period", "100us"]])
def test_what_cannot_fit_is_refused_before_it_starts(disk: Path, options: list[str]) -> None:
    done = agent_process.run("run", "-o", disk / "record", *policy(), *options)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the record may grow to " in done.stderr
    assert " and 1.0 MB are free where " in done.stderr
    assert list(disk.iterdir()) == []


@pytest.mark.serial
@needs_root
def test_room_for_what_is_above_limits_is_asked_for(disk: Path) -> None:
    short = ("run", "-o", str(disk / "record"), *policy(), "--threads", "1", "--record", "summary")
    done = agent_process.run(*short, "--duration", "10min", "--limit", "500us", "--limit", "1ms")
    assert done.returncode == 2
    assert "the record may grow to 2.5 MB and 1.0 MB are free where " in done.stderr
    assert done.stderr.endswith("or with fewer limits\n")
    assert list(disk.iterdir()) == []


@pytest.mark.serial
@needs_root
def test_a_summary_of_the_same_run_fits(disk: Path) -> None:
    done = agent_process.run("run", "-o", disk / "record", *policy(), *BUSY, "--duration", "10min", "--threads", "1")
    assert "--record summary" in done.stderr
    with running(
        "-o", disk / "record", *policy(), "--record", "summary", "--duration", "10min", "--threads", "1"
    ) as one:
        one.await_ns(100 * MS)
        one.process.terminate()
        assert one.end() == 0
    assert whole(disk / "record").chunk_refs == ()


@pytest.mark.serial
@needs_root
@needs_fifo
def test_when_the_space_goes_it_stops_and_the_record_is_whole(disk: Path) -> None:
    with running("-o", disk / "record", *policy(), *BUSY, "--duration", "2500ms") as one:
        one.await_ns(100 * MS)
        fill(disk / "filler")
        assert one.end() == 2
    assert one.messages == [
        "rtproof-agent: no space was left for the record; the run ended early, what was written is whole"
    ]
    record = whole(disk / "record")
    assert record.end is not None
    assert record.end.reason is EndReason.NO_SPACE
    assert [event.kind for event in record.events if event.kind == "no_space"] == ["no_space"]
    assert min(total.obtained for total in record.end.totals) > 0
    recompute.check(record)


@pytest.mark.serial
@needs_root
def test_a_record_that_the_limit_on_file_sizes_cannot_hold_is_refused(tmp_path: Path) -> None:
    limited = ("prlimit", "--fsize=300000")
    done = agent_process.run("run", "-o", tmp_path / "record", *policy(), "--duration", "1s", prefix=limited)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert " and the limit on the size of files (ulimit -f) is 0.3 MB; measure for less time" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.serial
@needs_root
@pytest.mark.parametrize("threads", [1, 16])
def test_under_the_limit_on_file_sizes_the_record_gets_its_end(tmp_path: Path, threads: int) -> None:
    place = tmp_path / "record"
    kept = 2**18 + threads * 2**14
    with running("-o", place, "--policy", "other", "--threads", str(threads), "--duration", "2min") as one:
        one.await_ns(100 * MS)
        most = place.stat().st_size + kept + 10_000
        resource.prlimit(one.process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert one.end() == 2
    assert one.messages == [
        "rtproof-agent: the limit on the size of files left no room for the record; the run ended early, "
        "what was written is whole"
    ]
    assert place.stat().st_size <= most
    record = whole(place)
    assert record.end is not None
    assert record.end.reason is EndReason.NO_SPACE
    assert [event.text for event in record.events if event.kind == "no_space"] == [
        "the limit on the size of files leaves no room for the record"
    ]
    assert min(total.obtained for total in record.end.totals) > 0
    recompute.check(record)
