# SPDX-License-Identifier: Apache-2.0
"""The facts for an audit from every kind of target: the same as here, or one sentence; and nothing stays on a board."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import lab_kernels
import pytest
from agent_process import needs_root
from board_runs import rtproof
from board_servers import board, processes

from rtproof.core.errors import TargetError, UserError
from rtproof.experiment import audited_system
from rtproof.experiment.audited_system import collect, read_facts
from rtproof.record.contents import Moment, Record

NO_PROCESS = 4_194_303
PATIENCE_S = 300


OF_THE_PLACE = (
    "/sys/class/net/", "/sys/devices/virtual/", "/sys/fs/", "/sys/kernel/tracing/instances/", "/sys/kernel/debug/irq/",
    "/sys/kernel/debug/sched/fair_server/",
)  # fmt: skip
"""What a namespace has anew, or has not mounted."""


def names(record: Record) -> set[tuple[Moment, str]]:
    """What was read, without what stands in a pattern's place, and without what is another in each namespace."""
    return {
        (file.moment, file.path)
        for file in record.files
        if "*" not in file.path and not file.path.startswith(OF_THE_PLACE)
    }


def assert_same_names(there: Record, before: Record, after: Record) -> None:
    """What was read on a board is what was read here. Devices and modules of other programs come and go meanwhile.

    before, after: collected here, on both sides of what was collected there.
    """
    lasting, seen = names(before) & names(after), names(before) | names(after)
    assert len(lasting) > 100
    assert lasting - names(there) == set()
    assert names(there) - seen == set()


def command_options(folder: Path) -> tuple[tuple[str, str], ...]:
    return (("exec", "sh -c"), ("dir", str(folder)))


def words(target: str, options: tuple[tuple[str, str], ...]) -> list[str]:
    return ["--target", target, *(word for key, value in options for word in ("--target-option", f"{key}={value}"))]


def runs_left(folder: Path) -> list[Path]:
    return list(folder.rglob("run-*"))


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def started(folder: Path, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "rtproof", "audit", *words("command", command_options(folder)), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the board keeps its files."""
    made = tmp_path / "board"
    made.mkdir()
    return made


def test_a_board_tells_what_this_machine_tells(tmp_path: Path, place: Path) -> None:
    here = collect(pid=os.getpid(), keep=tmp_path / "here.rtrec")
    there = collect("command", command_options(place), os.getpid(), tmp_path / "there.rtrec")
    assert_same_names(there, here, collect(pid=os.getpid()))
    assert {(fact.moment, fact.key) for fact in here.facts} == {(fact.moment, fact.key) for fact in there.facts}
    assert names(read_facts(tmp_path / "there.rtrec")) == names(there)
    assert runs_left(place) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["board", "here.rtrec", "there.rtrec"]


@pytest.mark.parametrize("on_board", [False, True], ids=["local", "command"])
def test_a_process_that_is_not_there_is_a_sentence(place: Path, on_board: bool) -> None:
    asked = ("command", command_options(place)) if on_board else ("local", ())
    with pytest.raises(UserError, match=f"there is no process {NO_PROCESS}"):
        collect(*asked, pid=NO_PROCESS)
    assert runs_left(place) == []


def test_a_name_that_cannot_be_had_is_refused_before_anything_is_asked(tmp_path: Path, place: Path) -> None:
    (tmp_path / "old").write_text("mine")
    for keep, sentence in ((tmp_path / "old", "exists already"), (tmp_path / "gone" / "new", "there is no folder")):
        with pytest.raises(UserError, match=sentence):
            collect("command", command_options(place), keep=keep)
    assert (tmp_path / "old").read_text() == "mine"
    assert list(place.iterdir()) == []


@needs_root
def test_a_full_disk_keeps_no_part_of_the_facts(tmp_path: Path) -> None:
    script = """
        mount -t tmpfs -o size=16k none "$1" || exit 77
        "$2" -m rtproof audit -o "$1/kept.rtrec"
        code=$?
        ls "$1"
        exit $code
    """
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    kept = tmp_path / "kept.rtrec"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"rtproof: cannot write {kept}: No space left on device\n"


def test_who_is_interrupted_leaves_nothing_on_the_board(tmp_path: Path, place: Path) -> None:
    host = started(place, "-o", str(tmp_path / "kept.rtrec"))
    wait_until(lambda: runs_left(place) or host.poll() is not None)
    host.send_signal(signal.SIGINT)
    _, said = host.communicate(timeout=PATIENCE_S)
    assert host.returncode
    assert "Traceback" not in said
    wait_until(lambda: not runs_left(place))
    assert not (tmp_path / "kept.rtrec").exists()


def test_a_board_forgets_facts_that_no_host_fetches(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audited_system, "FORGET_AFTER", "1s")
    monkeypatch.setattr(tempfile, "tempdir", str(place.parent))  # the child that is killed leaves its folder there
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reader)
            collect("command", command_options(place))
        finally:
            os._exit(0)
    os.close(writer)
    wait_until(lambda: runs_left(place))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reader)
    wait_until(lambda: not runs_left(place))


def test_a_cut_off_file_is_no_audit(tmp_path: Path, place: Path) -> None:
    cat = place / "agent"
    cat.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\nhead -c 700 "$WHOLE" > "$2"\n')
    cat.chmod(0o755)
    collect(keep=tmp_path / "whole.rtrec")
    os.environ["WHOLE"] = str(tmp_path / "whole.rtrec")
    try:
        with pytest.raises(TargetError, match="it was cut off"):
            collect(agent=cat, keep=tmp_path / "cut.rtrec")
    finally:
        del os.environ["WHOLE"]
    assert not (tmp_path / "cut.rtrec").exists()


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("exit 0", "the agent wrote no facts"),
        ("echo 'rtproof-agent: unknown command; see rtproof-agent help' >&2; exit 2", "this agent is older"),
        ("exit 7", "the agent ended with exit code 7"),
        ("kill -9 $$", "the agent was ended by signal 9"),
    ],
)
def test_an_agent_that_collects_nothing_is_a_sentence(place: Path, script: str, sentence: str) -> None:
    agent = place / "agent"
    agent.write_text(f"#!/bin/sh\n{script}\n")
    agent.chmod(0o755)
    with pytest.raises((UserError, TargetError), match=sentence):
        collect(agent=agent)


@pytest.mark.slow
@pytest.mark.parametrize("server", ["sshd", "dropbear"])
def test_an_audit_over_ssh(tmp_path: Path, server: str) -> None:
    with board(tmp_path, server) as machine:
        before = collect()
        done = rtproof("audit", *machine.options, "-o", str(tmp_path / "there.rtrec"))
        assert done.returncode in (0, 1, 4), done.stderr
        assert_same_names(read_facts(tmp_path / "there.rtrec"), before, collect())
        refused = rtproof("audit", *machine.options, "--pid", str(NO_PROCESS))
        assert refused.returncode == 2
        assert refused.stderr == f"rtproof: there is no process {NO_PROCESS}\n"
        assert runs_left(machine.cache) == []
        wait_until(lambda: not [line for line in processes(machine.cable.namespace) if "rtproof-agent" in line])


@pytest.mark.slow
def test_a_link_that_is_cut_is_one_sentence(tmp_path: Path) -> None:
    with board(tmp_path, "sshd") as machine:
        patience = ("--target-option", "patience=1s")
        command = [sys.executable, "-m", "rtproof", "audit", *machine.options, *patience]
        host = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: runs_left(machine.cache) or host.poll() is not None)
        machine.cable.pull()
        _, said = host.communicate(timeout=PATIENCE_S)
        machine.cable.plug()
        assert host.returncode == 2, said
        assert "Traceback" not in said
        assert said.splitlines()[-1].startswith("rtproof: ")
        assert all(line.startswith("rtproof: ") for line in said.splitlines()), said
        assert "=rtproof" not in said


@pytest.mark.slow
def test_an_audit_of_a_guest(tmp_path: Path) -> None:
    lab_kernels.kernel("debian-6.1-rt")
    options = (("kernel", "debian-6.1-rt"), ("mode", "wall-clock"))
    record = collect("qemu", options, keep=tmp_path / "guest.rtrec")
    assert "-rt-" in record.begin.kernel_release
    assert names(record) >= {(Moment.START, "tasks"), (Moment.START, "/sys/kernel/realtime")}
    assert [path.name for path in tmp_path.iterdir()] == ["guest.rtrec"]
