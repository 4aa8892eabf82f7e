# SPDX-License-Identifier: Apache-2.0
"""The trace of a run by the real agent: what it keeps, that trace-cmd reads it, and that nothing of it stays behind."""

import bisect
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import agent_process
import pytest
from agent_process import eventually, measured, running
from trace_cases import events_of_text, report_of_trace_cmd, text_lines, trace_cmd

from rtproof.exporters import trace_dat, trace_txt
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Event, Moment, Record, SnapshotReason
from rtproof.summary import kernel_trace
from rtproof.summary.trace_pages import trace_pages

pytestmark = pytest.mark.serial
SECOND = 1_000_000_000
CLOCKS_APART_NS = 100_000
"""The trace's clock can be read in any context, and may differ by a little from the one that it follows."""
SHORT = (*agent_process.policy(), "--threads", "1", "--cpus", str(min(os.sched_getaffinity(0))))
OWN_MOUNTS = ("unshare", "--mount", "sh", "-c")
REACH = "cd /sys/kernel/tracing && { mountpoint -q . || mount -t tracefs nodev $PWD && cd $PWD; }"


@pytest.fixture(scope="module", autouse=True)
def tracing(tmp_path_factory: pytest.TempPathFactory) -> None:
    skip_without_trace(tmp_path_factory.mktemp("try") / "record")


def skip_without_trace(path: Path) -> None:
    """Skips where the kernel or a lack of privilege does not let anybody trace."""
    done = agent_process.run("run", "-o", path, "--trace", "on", "--samples", "1", "--warmup", "0ms", *SHORT)
    if done.returncode:
        pytest.skip(done.stderr.strip())


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    """Mounts are as they were, and no instance is left, in whatever way the test ended the agent."""
    before = mounts()
    yield
    assert mounts() == before
    assert eventually(lambda: left_behind() == [])


def mounts() -> list[str]:
    """Those of the kinds that the agent mounts: others come and go with other programs."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [line for line in lines if line.split()[2] in {"tracefs", "debugfs"}]


def instances() -> list[str]:
    """What stands in tracefs, which a namespace of the test's own can see."""
    return in_tracefs("ls instances").split()


def in_tracefs(command: str) -> str:
    words = [*OWN_MOUNTS, f"{REACH}; {command}"]
    return subprocess.run(words, capture_output=True, text=True, timeout=agent_process.PATIENCE_S, check=True).stdout


def left_behind() -> list[str]:
    """Instances and uprobes whose agent is gone."""
    there = " ".join(instances()) + in_tracefs("cat uprobe_events 2>/dev/null || true")
    agents = {match[0]: match[1] for match in re.finditer(r"rtproof[-_](\d+)_\d+[-/]\w+", there)}
    return [name for name, pid in agents.items() if not Path("/proc", pid).exists()]


def switches(record: Record) -> list[Event]:
    return [event for event in record.events if event.kind.startswith("trace_")]


def exported(record: Record, folder: Path) -> tuple[str, Path]:
    """The text and the path of trace.dat."""
    analysis = analyse(record)
    trace_txt.export(analysis, folder / "trace.txt", {})
    trace_dat.export(analysis, folder / "trace.dat", {})
    return (folder / "trace.txt").read_text(), folder / "trace.dat"


@pytest.mark.parametrize("trace", ["on", "buffer_kib=16"])
def test_trace_cmd_finds_the_events_of_the_text(tmp_path: Path, trace: str) -> None:
    """As many, with the same names on the same CPUs at the same microseconds; also when the buffer ran over."""
    record = measured(tmp_path / "record", "--trace", trace, "--duration", "1s", *SHORT)
    text, dat = exported(record, tmp_path)
    events = events_of_text(text)
    assert events
    assert report_of_trace_cmd(dat) == events
    in_buffers = sum(
        int(kernel_trace.trace_statistics(record, cpu)["entries"]) for cpu in kernel_trace.trace_cpus(record)
    )
    assert in_buffers == len(events)
    lost = [kernel_trace.trace_statistics(record, cpu)["overrun"] for cpu in kernel_trace.trace_cpus(record)]
    assert set(lost) != {"0"} or trace == "on"
    assert re.findall(r"(?m)^overrun: (\d+)$", trace_cmd("report", "--stat", str(dat))) == lost


def test_the_trace_has_every_activation_and_nothing_from_outside_of_the_loop(tmp_path: Path) -> None:
    record = measured(tmp_path / "record", "--trace", "buffer_kib=8192", "--samples", "500", *SHORT)
    began, ended = switches(record)
    assert [(event.kind, event.text.split(";")[0]) for event in (began, ended)] == [
        ("trace_on", "loop=begins"),
        ("trace_off", "loop=ends"),
    ]
    origin_ns = record.begin.origin_monotonic_ns
    lines = text_lines(record)
    times_ns = [time_ns - origin_ns for *_, time_ns, _ in lines]
    took_ns = int(began.text.partition("took_ns=")[2])
    assert began.time_ns - took_ns - CLOCKS_APART_NS <= min(times_ns)
    assert max(times_ns) <= ended.time_ns + CLOCKS_APART_NS
    ends_of_sleep = ("rtproof-0", "sys_exit_clock_nanosleep")
    of_threads = Counter(pid for task, pid, *_, event in lines if (task, event) == ends_of_sleep)
    assert record.end
    ran = record.end.totals[0].obtained  # a busy machine may miss some of the 500, and be too much for the trace
    least = ran - 20 - sum(kernel_trace.lost_trace_events(record))
    assert any(least <= n <= ran + 2 for n in of_threads.values()), "others may measure here too, but none as often"


@pytest.mark.parametrize("trace", ["on", "recorder,stacks"])
def test_nothing_stays_behind_an_agent_that_is_killed(trace: str, tmp_path: Path) -> None:
    """What a fixture looks after for every test too; here with an agent that had no chance to clear up."""
    with running("-o", tmp_path / "record", "--trace", trace, "--duration", "600s", *SHORT) as one:
        one.await_ns(SECOND // 2)
        assert any(re.fullmatch(rf"rtproof-{one.process.pid}_\d+-trace", name) for name in instances())
        os.kill(one.process.pid, signal.SIGKILL)
        one.process.wait(timeout=agent_process.PATIENCE_S)
        assert eventually(lambda: left_behind() == [])


def test_the_flight_recorder_keeps_the_pages_of_what_was_late(tmp_path: Path) -> None:
    trace = "recorder,stacks,top=10,ordinary=5,buffer_kib=4096"
    record = measured(tmp_path / "record", "--trace", trace, "--samples", "1000", "--limit", "1ns", *SHORT)
    kept = [one.index for one in record.snapshots]
    assert kept
    assert len(kept) == len(set(kept)), "every one is above a nanosecond: none is ordinary or kept twice"
    assert {one.reason for one in record.snapshots} == {SnapshotReason.THRESHOLD}
    layout = kernel_trace.page_layout(record)
    for cpu in kernel_trace.trace_cpus(record):
        pages = kernel_trace.cpu_pages(record, cpu, layout)
        stamps = {page.time_ns for page in trace_pages(pages, layout)}
        assert stamps == {s for one in record.snapshots for p in one.pages if p.cpu == cpu for s in p.stamps}
    about = kernel_trace.trace_information(record)
    assert record.end
    ran = record.end.totals[0].obtained  # a busy machine may miss one: there was no wake-up to keep
    assert about["windows_threshold"] == str(ran)
    assert about["windows_kept"] == str(len(kept))
    assert re.fullmatch(r"(fifo 1|other 0), nice -?\d+, CPUs [\d,-]+", record.fact("recorder", Moment.END) or "")
    counted = {counter.name.partition(".cpu")[0] for counter in record.counters}
    smi = record.fact("smi_count", Moment.START) or ""
    assert "steal" in counted
    assert ("smi" in counted) == (smi == "read once a second"), smi
    assert "smi" in counted or smi.startswith("unavailable: "), "the reason is told"


def test_nothing_is_traced_in_a_block_without_tracing(tmp_path: Path) -> None:
    trace = ("--trace", "buffer_kib=8192", "--trace-blocks", "100ms")
    record = measured(tmp_path / "record", *trace, "--samples", "2000", *SHORT)
    switched = sorted(
        (event.time_ns, event.kind == "trace_on", int(event.text.partition("took_ns=")[2]))
        for event in switches(record)
        if event.text.startswith("block=")
    )
    assert {on for _, on, _ in switched} == {True, False}
    origin_ns = record.begin.origin_monotonic_ns
    starts = [time_ns for time_ns, _, _ in switched]
    ends = [time_ns - took_ns for time_ns, _, took_ns in switched[1:]]
    inside: Counter[bool] = Counter()
    for *_, time_ns, _ in text_lines(record):
        block = bisect.bisect_right(starts, time_ns - origin_ns - CLOCKS_APART_NS) - 1
        if 0 <= block < len(ends) and time_ns - origin_ns < ends[block] - CLOCKS_APART_NS:
            inside[switched[block][1]] += 1
    assert inside[True] > 0
    assert inside[False] == 0
