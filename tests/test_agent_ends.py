# SPDX-License-Identifier: Apache-2.0
"""Every way in which a run of the real agent can end, and that nothing is left behind."""

import os
import resource
import signal
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import agent_process
import numpy as np
import pytest
import recompute
from agent_process import Running, eventually, needs_root, policy, running, whole

from rtproof.judge.analyse import analyse
from rtproof.record.contents import EndReason, Record, View
from rtproof.record.reading import open_record
from rtproof.summary.quantiles import quantile

MS = 1_000_000
SECOND = 1_000 * MS
STALL_MS = 400
TOO_FEW = 2
"""So many due times may pass between the reading of the clock and the stop itself."""
LOADS = ("--load", "cpu:workers=1", "--load", "sched:groups=1,pairs=2")
PM_QOS = Path("/dev/cpu_dma_latency")


def reason(record: Record) -> EndReason:
    assert record.end is not None
    return record.end.reason


@pytest.mark.serial
@pytest.mark.parametrize("method", ["clock_nanosleep", "posix_timer", "timerfd"])
def test_a_stall_is_charged_with_all_that_it_hid(tmp_path: Path, method: str) -> None:
    """At a period of 1 ms, at least as many activations are missed as the stall has milliseconds."""
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--method", method, "--duration", "600s", "--threads", "2") as one:
        one.await_ns(300 * MS)
        stopped_ns, woken_ns = one.stop_for(STALL_MS * MS)
        one.await_more(SECOND)
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 0
    record = whole(path)
    for summary in analyse(record).summaries:
        samples = recompute.ran(record, record.series[summary.series.id])
        late = np.flatnonzero(samples.value > STALL_MS * MS // 2)
        assert samples.missed[late].sum() + late.size >= (woken_ns - stopped_ns) // MS - TOO_FEW
        scheduled = summary.obtained + summary.missed
        assert scheduled == samples.index[-1] + samples.missed[-1] + 1
        high = quantile(summary.schedule_counts, 1 - (STALL_MS - 150) / scheduled).value
        assert (high or 0) > 100 * MS, "the activations that were missed are late ones"
    recompute.check(record)


@pytest.mark.serial
def test_a_stall_across_the_end_of_the_warm_up_hides_nothing(tmp_path: Path) -> None:
    """Whatever was due before the stall ended is in the record, beginning with the first due time."""
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--warmup", "10s", "--samples", "1000", "--threads", "2") as one:
        assert eventually(lambda: path.exists() and path.stat().st_size > 0)
        stopped_ns, woken_ns = one.stop_for(11 * SECOND)
        assert one.end() == 0
    record = whole(path)
    if stopped_ns > record.begin.origin_monotonic_ns:
        pytest.skip("this machine was too busy: the agent could not be stopped within ten seconds")
    least = min((woken_ns - record.begin.origin_monotonic_ns) // MS, 1000)
    assert record.end is not None
    assert [(total.obtained + total.missed, total.lost) for total in record.end.totals] == [(1000, 0)] * 2
    for series in record.series:
        samples = recompute.ran(record, series)
        assert samples.index[0] == 0
        assert 1 + samples.missed[0] >= least - TOO_FEW
    recompute.check(record)


def counted(record: Record) -> dict[int, int]:
    """How many activations of each series its summaries are of."""
    own = [one for one in record.slices if one.view is View.OBSERVED]
    return {each.id: sum(one.count for one in own if one.series == each.id) for each in record.series}


@pytest.mark.serial
def test_killed_it_leaves_a_record_up_to_the_last_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "600s", "--checkpoint", "1s", *LOADS) as one:
        one.await_ns(0)
        assert len(one.processes()) >= 8
        assert eventually(lambda: min(counted(open_record(path)).values(), default=0) > 0)
        before = counted(open_record(path))
        one.process.kill()
        assert eventually(lambda: not one.processes())
    record = open_record(path)
    assert record.end is None
    assert [damage.offset for damage in record.damage if damage.length == 0] == [record.size]
    for series in record.series:
        assert recompute.ran(record, series).value.size >= before[series.id] > 0


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
    with running("-o", tmp_path / "record", *policy(), "--duration", "600s", "--dma-latency", "17", *LOADS) as one:
        one.await_ns(0)
        assert pm_qos_us() == 17
        one.process.send_signal(number)
        assert eventually(lambda: not one.processes())
        assert eventually(lambda: pm_qos_us() == before)


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_properly(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "600s", *LOADS) as one:
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
    with running("-o", path, *policy(), "--duration", "600s", "--warmup", "600s") as one:
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
    with running("-o", path, *policy(), "--duration", "600s", "--stop-on-eof", *LOADS) as one:
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


def innermost(one: Running) -> int:
    """A process of the agent's loads that has no child: one that works."""
    parents = {int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid in one.processes()}
    return max(pid for pid in one.processes() if pid not in parents)


@pytest.mark.serial
@pytest.mark.parametrize("load", ["cpu:workers=2", "sched:groups=2,pairs=2", "files:workers=2,mib=1"])
def test_when_a_load_dies_the_run_ends(tmp_path: Path, load: str) -> None:
    path = tmp_path / "record"
    with running("-o", path, *policy(), "--duration", "600s", "--load", load) as one:
        one.await_ns(200 * MS)
        victim = innermost(one)
        os.kill(victim, signal.SIGKILL)
        one.end()
        assert eventually(lambda: not one.processes())
    record = whole(path)
    assert record.end is not None
    assert record.end.reason is EndReason.LOAD_DIED
    assert [event.text for event in record.events if event.kind == "load_died"] == [load.partition(":")[0]]
    recompute.check(record)


# The real agent where a record finds little room: refused when it cannot fit, stopped cleanly when the room goes.


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


@pytest.mark.serial
@needs_root
@pytest.mark.parametrize("options", [["--duration", "10min"], ["--samples", "5000000", "--period", "100us"]])
def test_what_cannot_fit_is_refused_before_it_starts(disk: Path, options: list[str]) -> None:
    done = agent_process.run("run", "-o", disk / "record", *policy(), *options)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the record needs up to " in done.stderr
    assert " and 1049 kB are free for " in done.stderr
    assert list(disk.iterdir()) == []


@pytest.mark.serial
@needs_root
@pytest.mark.parametrize("threads", [1, 16])
def test_under_the_limit_on_file_sizes_the_record_gets_its_end(tmp_path: Path, threads: int) -> None:
    place = tmp_path / "record"
    kept = 2**18 + threads * 2**14
    with running("-o", place, "--policy", "other", "--threads", str(threads), "--duration", "600s") as one:
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
    assert sum(total.obtained for total in record.end.totals) > 0
    recompute.check(record)
