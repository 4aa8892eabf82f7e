# SPDX-License-Identifier: Apache-2.0
"""The trace of a run by the real agent: what it keeps, that trace-cmd reads it, and that nothing of it stays behind."""

import bisect
import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import agent_process
import numpy as np
import pytest
from agent_process import eventually, measured, running, whole
from trace_cases import events_of_text, report_of_trace_cmd, trace_cmd

from rtproof.cli.main import main
from rtproof.exporters import trace_dat, trace_txt
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Event, Moment, Record, SnapshotReason
from rtproof.summary import kernel_trace
from rtproof.summary.trace_pages import trace_pages
from rtproof.summary.tracing_effect import LEAST_SETS, in_untraced_turns

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
    done = subprocess.run([*OWN_MOUNTS, f"{REACH}; {command}"], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def left_behind() -> list[str]:
    """Instances and uprobes whose agent is gone."""
    there = " ".join(instances()) + in_tracefs("cat uprobe_events 2>/dev/null || true")
    agents = {match[0]: match[1] for match in re.finditer(r"rtproof[-_](\d+)[-/]\w+", there)}
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
    assert len(events) > 300
    assert report_of_trace_cmd(dat) == events
    in_buffers = sum(
        int(kernel_trace.trace_statistics(record, cpu)["entries"]) for cpu in kernel_trace.trace_cpus(record)
    )
    assert in_buffers == len(events)
    lost = [kernel_trace.trace_statistics(record, cpu)["overrun"] for cpu in kernel_trace.trace_cpus(record)]
    assert set(lost) != {"0"} or trace == "on"
    assert re.findall(r"(?m)^overrun: (\d+)$", trace_cmd("report", "--stat", str(dat))) == lost


def test_all_of_trace_cmd_s_readers_take_the_file(tmp_path: Path) -> None:
    """Its other view, its filters and its dump of the file's parts, as KernelShark reads them too."""
    record = measured(tmp_path / "record", "--trace", "buffer_kib=512", "--samples", "200", *SHORT)
    text, dat = exported(record, tmp_path)
    kinds = kernel_trace.event_kinds(kernel_trace.trace_lines(record))
    latency = trace_cmd("report", "-l", str(dat))
    assert Counter(re.findall(r"(?m)^.{16,24}\d+\S* +\d+\.\d+: (\w+): ", latency)) == kinds
    filtered = trace_cmd("report", "-F", "sched_waking: prio < 100", str(dat))
    urgent = sum(int(priority) < 100 for priority in re.findall(r": sched_waking: .* prio=(\d+) ", text))
    assert len(re.findall(r": sched_waking: ", filtered)) == urgent > 0
    assert not re.search(r": sched_switch: ", filtered)
    parts = trace_cmd("dump", "--summary", str(dat))
    assert f"{len(kernel_trace.trace_cpus(record))} [CPUs with tracing data]" in parts
    assert "[Tracing clock]" in parts
    assert "[mono]" in parts


def test_the_trace_has_every_activation_and_nothing_from_outside_of_the_loop(tmp_path: Path) -> None:
    record = measured(tmp_path / "record", "--trace", "buffer_kib=8192", "--samples", "500", *SHORT)
    began, ended = switches(record)
    assert [(event.kind, event.text.split(";")[0]) for event in (began, ended)] == [
        ("trace_on", "loop=begins"),
        ("trace_off", "loop=ends"),
    ]
    origin_ns = record.begin.origin_monotonic_ns
    lines = kernel_trace.trace_lines(record)
    times_ns = [line.time_ns - origin_ns for line in lines]
    took_ns = int(began.text.partition("took_ns=")[2])
    assert began.time_ns - took_ns - CLOCKS_APART_NS <= min(times_ns)
    assert max(times_ns) <= ended.time_ns + CLOCKS_APART_NS
    ends_of_sleep = [line for line in lines if (line.task, line.event) == ("rtproof-0", "sys_exit_clock_nanosleep")]
    of_threads = Counter(line.pid for line in ends_of_sleep)
    assert record.end
    ran = record.end.totals[0].obtained  # a busy machine may miss some of the 500
    assert any(ran - 20 <= n <= ran + 2 for n in of_threads.values()), "others may measure here too, but none as often"


def test_marks_of_the_application_are_in_it(tmp_path: Path) -> None:
    probe = ("--probe", "app:work=outputs,marks=yes", "--period", "5ms", "--trace", "buffer_kib=8192")
    record = measured(tmp_path / "record", *probe, "--samples", "100", *SHORT)
    text, dat = exported(record, tmp_path)
    marks = [event for event in events_of_text(text) if event[2] == "print"]
    assert len(marks) >= 300
    assert [event for event in report_of_trace_cmd(dat) if event[2] == "print"] == marks
    said = Counter(re.findall(r": tracing_mark_write: ((?:no-)?\w+ [01])$", text, re.MULTILINE))
    assert sum(said.values()) == len(marks), "no-sleep: on a busy machine a loop may last longer than its period"
    found = re.findall(
        r": print: +tracing_mark_write: ((?:no-)?\w+ [01])$", trace_cmd("report", str(dat)), re.MULTILINE
    )
    assert Counter(found) == said, "with the name of the function that took them, not its address"


def test_the_user_chooses_events_and_the_record_names_them(tmp_path: Path) -> None:
    events = "sched:sched_wakeup+irq_handler_*"
    record = measured(tmp_path / "record", "--trace", f"events={events},buffer_kib=64", "--samples", "200", *SHORT)
    kept = [name for name in kernel_trace.trace_names(record) if name.startswith("events/") and "ftrace" not in name]
    assert sorted(kept) == [
        "events/irq/irq_handler_entry/format",
        "events/irq/irq_handler_exit/format",
        "events/sched/sched_wakeup/format",
    ]
    assert {line.event for line in kernel_trace.trace_lines(record)} <= {
        "sched_wakeup",
        "irq_handler_entry",
        "irq_handler_exit",
    }
    assert kernel_trace.trace_information(record)["buffer_kib"] == "64"
    assert record.fact("trace") == f"events={events},buffer_kib=64"


@pytest.mark.parametrize(
    ("trace", "sentence"),
    [
        ("all", "--trace takes on, explain, events="),
        ("buffer_kib=1", "--trace takes on, explain, events="),
        ("events=", "--trace takes on, explain, events="),
        ("events=no_such_event", "this kernel has no event 'no_such_event' to trace"),
        ("events=sched_switch+sys_*", "--trace takes 160 events at most; 'sys_*' makes them more"),
        ("buffer_kib=16777216", "is more than half of the memory there is"),
    ],
)
def test_what_makes_no_sense_gets_a_sentence_and_leaves_nothing(tmp_path: Path, trace: str, sentence: str) -> None:
    done = agent_process.run("run", "-o", tmp_path / "record", "--trace", trace, "--samples", "10", *SHORT)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert sentence in done.stderr
    assert not (tmp_path / "record").exists()


def test_without_root_there_is_no_trace(tmp_path: Path) -> None:
    user = ("setpriv", "--reuid=61234", "--regid=61234", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
    options = ("--trace", "on", "--samples", "10", "--allow-unprivileged")
    copy = Path("/tmp") / f"rtproof-agent-{os.getpid()}"
    copy.write_bytes(Path(agent_process.agent()).read_bytes())
    try:
        copy.chmod(0o755)
        command = [*user, str(copy), "run", "-o", str(tmp_path / "record"), *options]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        copy.unlink()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "a trace needs root" in done.stderr


def test_a_kernel_without_tracefs_is_said_to_have_none(tmp_path: Path) -> None:
    script = (
        f"mount -t tmpfs none /sys/kernel && exec {agent_process.agent()} run -o {tmp_path}/r --trace on --samples 10"
    )
    done = subprocess.run([*OWN_MOUNTS, script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "there is no trace" in done.stderr


def test_a_tracefs_that_is_shut_to_root_too_is_said_to_be(tmp_path: Path) -> None:
    """A kernel in lockdown answers so (with EPERM); here it is a file of somebody else's, without leave to read it."""
    script = f"""
    cd /sys/kernel/tracing && mount -t tmpfs none $PWD && cd $PWD && touch available_tracers || exit 3
    chown 61234 available_tracers && chmod 0 available_tracers
    exec setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search \
        {agent_process.agent()} run -o {tmp_path}/r --trace on --samples 10 {" ".join(SHORT)}
    """
    done = subprocess.run([*OWN_MOUNTS, script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "rtproof-agent: tracefs can't be used, maybe because the kernel is locked down or this is a container: "
        "Permission denied\n",
    )


def test_root_that_may_not_mount_is_told_what_stands_in_its_way(tmp_path: Path) -> None:
    """As in most containers: nobody has mounted tracefs there, and root may not do it either."""
    script = f"""
    umount /sys/kernel/tracing 2> /dev/null
    mountpoint -q /sys/kernel/debug && umount -l /sys/kernel/debug
    exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin \
        {agent_process.agent()} run -o {tmp_path}/r --trace on --samples 10 {" ".join(SHORT)}
    """
    done = subprocess.run([*OWN_MOUNTS, script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "or this is a container: Operation not permitted" in done.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("trace", ["on", "recorder,stacks"])
def test_nothing_stays_behind_an_agent_that_is_killed(trace: str, tmp_path: Path) -> None:
    """What a fixture looks after for every test too; here with an agent that had no chance to clear up."""
    with running("-o", tmp_path / "record", "--trace", trace, "--duration", "60s", *SHORT) as one:
        one.await_ns(SECOND // 2)
        assert f"rtproof-{one.process.pid}-trace" in instances()
        os.kill(one.process.pid, signal.SIGKILL)
        one.process.wait(timeout=agent_process.PATIENCE_S)
        assert eventually(lambda: left_behind() == [])


def test_an_interrupted_run_keeps_its_trace(tmp_path: Path) -> None:
    with running("-o", tmp_path / "record", "--trace", "on", "--duration", "60s", *SHORT) as one:
        one.await_ns(SECOND // 2)
        os.kill(one.process.pid, signal.SIGINT)
        assert one.end() == 0
    record = whole(tmp_path / "record")
    assert [event.kind for event in switches(record)] == ["trace_on", "trace_off"]
    assert len(kernel_trace.trace_lines(record)) > 300


def test_the_flight_recorder_keeps_the_pages_of_what_was_late(tmp_path: Path) -> None:
    trace = "recorder,stacks,top=10,ordinary=5,buffer_kib=4096"
    record = measured(tmp_path / "record", "--trace", trace, "--samples", "1000", "--limit", "1ns", *SHORT)
    kept = [one.index for one in record.snapshots]
    assert len(kept) > 500
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


def test_the_flight_recorder_has_no_window_of_a_turn_without_tracing(tmp_path: Path) -> None:
    """After the turns it has one of each activation again."""
    trace = ("--trace", "recorder,turns=8,seed=1,buffer_kib=4096", "--trace-blocks", "100ms")
    record = measured(tmp_path / "record", *trace, "--samples", "1200", "--limit", "1ns", *SHORT)
    turns = [event for event in switches(record) if event.text.startswith("block=")]
    assert len(turns) == 9
    assert turns[-1].kind == "trace_on"
    assert [event.kind for event in turns[:8]].count("trace_off") == 4
    due_ns = np.array([one.due_ns for one in record.snapshots])
    assert not in_untraced_turns(record, due_ns).any()
    assert (due_ns >= 800_000_000).sum() > 100


def test_a_run_from_the_command_line_leaves_the_bundle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "--agent", agent_process.agent(), "--trace", "--samples", "200", "--warmup", "20ms"]
    assert main([*command, *SHORT, "--no-report", "--output", "a"]) == 0
    assert "events, by the clock mono" in capsys.readouterr().out
    assert sorted(path.name for path in Path("a").iterdir()) == [
        *("run.json", "run.rtrec", "samples.csv", "trace.dat", "trace.txt")
    ]
    assert report_of_trace_cmd(Path("a/trace.dat")) == events_of_text(Path("a/trace.txt").read_text())


def test_the_observer_compares_what_was_traced_by_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "--agent", agent_process.agent(), "--observer", "--trace", "buffer_kib=8192", "--duration", "6s"]
    assert main([*command, *SHORT, "--no-report", "--json", "--output", "a"]) in (0, 3)
    found = json.loads(capsys.readouterr().out)["observer"]
    assert (found["block_ns"], found["confidence_ratio"]) == (100_000_000, 0.95)
    assert 10_000_000 <= found["left_out_ns"] <= 35_000_000
    assert (found["refused"] is None) == (found["sets_count"] >= LEAST_SETS) == bool(found["fields"])
    for field in found["fields"]:
        assert [effect["statistic"] for effect in field["effects"]][:2] == ["mean", "median"]
        assert all(effect["low_ns"] <= effect["difference_ns"] <= effect["high_ns"] for effect in field["effects"])


def test_nothing_is_traced_in_a_block_without_tracing(tmp_path: Path) -> None:
    trace = ("--trace", "buffer_kib=8192", "--trace-blocks", "100ms")
    record = measured(tmp_path / "record", *trace, "--samples", "2000", *SHORT)
    switched = sorted(
        (event.time_ns, event.kind == "trace_on", int(event.text.partition("took_ns=")[2]))
        for event in switches(record)
        if event.text.startswith("block=")
    )
    assert len(switched) >= 19
    origin_ns = record.begin.origin_monotonic_ns
    starts = [time_ns for time_ns, _, _ in switched]
    ends = [time_ns - took_ns for time_ns, _, took_ns in switched[1:]]
    inside: Counter[bool] = Counter()
    for line in kernel_trace.trace_lines(record):
        block = bisect.bisect_right(starts, line.time_ns - origin_ns - CLOCKS_APART_NS) - 1
        if 0 <= block < len(ends) and line.time_ns - origin_ns < ends[block] - CLOCKS_APART_NS:
            inside[switched[block][1]] += 1
    assert inside[True] > 500
    assert inside[False] == 0
