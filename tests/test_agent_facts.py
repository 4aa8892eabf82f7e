# SPDX-License-Identifier: Apache-2.0
"""``rtproof-agent facts``: what it reads is all named, what it cannot write is a sentence, and nothing stays behind."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from agent_process import PATIENCE_S, agent, needs_root, run, whole

from rtproof.record.contents import Moment, Record
from rtproof.record.reading import open_record

QUICK = ("--between", "1ms")


def facts(path: Path, *arguments: str) -> Record:
    """The facts of this machine, without damage."""
    done = run("facts", "-o", path, *QUICK, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return whole(path)


def contents(record: Record, moment: Moment) -> dict[str, str]:
    """The texts by path."""
    return {file.path: file.content.decode(errors="replace") for file in record.files if file.moment is moment}


def listed() -> list[list[str]]:
    """Kind and name of everything that is collected."""
    done = run("facts", "--list")
    assert done.returncode == 0
    return [line.split("\t") for line in done.stdout.splitlines()]


def test_everything_that_is_listed_is_in_the_facts_or_said_to_be_missing(tmp_path: Path) -> None:
    record = facts(tmp_path / "facts.rtrec", "--pid", str(os.getpid()))
    at_start = [file.path for file in record.files if file.moment is Moment.START]
    plain = [words[1] for words in listed() if "*" not in words[1] and "[" not in words[1]]
    assert len(plain) > 40
    assert set(plain) <= set(at_start)
    assert len(at_start) == len(set(at_start))
    counts = {words[1] for words in listed() if words[0] == "counts" and words[1] in plain}
    assert counts <= {file.path for file in record.files if file.moment is Moment.END}
    assert record.fact("left_out", Moment.START) is None


def test_a_process_is_described(tmp_path: Path) -> None:
    record = facts(tmp_path / "facts.rtrec", "--pid", str(os.getpid()))
    texts = contents(record, Moment.START)
    assert f"Pid:\t{os.getpid()}\n" in texts["process/status"]
    head, first, *_ = texts["process/threads"].splitlines()
    assert head.split() == ["PID", "TID", "PPID", "CLS", "RTPRIO", "NICE", "CPU", "CPUS", "FLAGS", "SLACK", "COMM"]
    words = dict(zip(head.split(), first.split(maxsplit=10), strict=True))
    assert (words["PID"], words["PPID"]) == (str(os.getpid()), str(os.getppid()))
    assert int(words["FLAGS"], 16) & 0x00200000 == 0
    kinds = {line.split()[-4] for line in texts["process/maps"].splitlines()}
    assert {"heap", "stack", "file", "anonymous"} == kinds
    again = contents(record, Moment.END)
    assert int(again["process/faults"].split()[1]) >= int(texts["process/faults"].split()[1]) > 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("-o", "{new}", "--pid", "4194303"), "there is no process 4194303"),
        (("-o", "{new}", "--between", "61s"), "--between 61s makes no sense"),
        (("-o", "{old}"), "exists already; facts are never overwritten"),
        (("-o", "{new}/facts"), "can't be written: No such file or directory"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, arguments: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "old").write_text("mine")
    words = [word.format(new=tmp_path / "new", old=tmp_path / "old") for word in arguments]
    done = run("facts", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1
    assert (tmp_path / "old").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


@pytest.mark.parametrize("after_s", [0, 0.3], ids=["at once", "while it waits"])
def test_who_is_interrupted_leaves_no_file(tmp_path: Path, after_s: float) -> None:
    process = subprocess.Popen([agent(), "facts", "-o", str(tmp_path / "facts.rtrec"), "--between", "60s"])
    time.sleep(after_s)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == -signal.SIGINT
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_a_network_device_that_sleeps_is_not_woken(tmp_path: Path) -> None:
    """Here a device of the kernel alone, which folders tell to be suspended."""
    path = tmp_path / "facts.rtrec"
    script = """
        ip link add awake type veth peer name sleepy && ip link set awake up && ip link set sleepy up &&
        mount -t tmpfs none /sys/class/net && mkdir -p /sys/class/net/sleepy/device/power || exit 77
        echo suspended > /sys/class/net/sleepy/device/power/runtime_status
        exec "$@"
    """
    make = ["unshare", "--net", "--mount", "sh", "-c", script, "sh"]
    done = subprocess.run(
        [*make, agent(), "facts", "-o", path, *QUICK], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        pytest.skip(f"no such device can be made here: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, "")
    lines = contents(whole(path), Moment.START)["net-devices"].splitlines()
    assert sorted(line.split()[:2] for line in lines) == [["awake", "driver=veth"], ["sleepy", "asleep=1"]]


@needs_root
def test_a_system_without_proc_and_sys_has_facts_too(tmp_path: Path) -> None:
    shutil.copy(agent(), tmp_path / "agent")
    command = ["chroot", str(tmp_path), "/agent", "facts", "-o", "/facts.rtrec", *QUICK]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    record = open_record(tmp_path / "facts.rtrec")
    assert record.end is not None
    read = [file for file in record.files if file.path.startswith("/") and not file.errno]
    assert read == []
    assert next(file for file in record.files if file.path == "tasks").errno


def test_a_run_has_what_the_audit_reads_once(tmp_path: Path) -> None:
    path = tmp_path / "run.rtrec"
    done = run("run", "-o", path, "--samples", "20", "--period", "1ms", "--warmup", "20ms", "--policy", "other")
    assert (done.returncode, done.stderr) == (0, "")
    record = whole(path)
    for moment in (Moment.START, Moment.END):
        names = [file.path for file in record.files if file.moment is moment]
        assert len(names) == len(set(names))
    start = {file.path for file in record.files if file.moment is Moment.START}
    assert {words[1] for words in listed() if "*" not in words[1] and not words[1].startswith("process/")} <= start
