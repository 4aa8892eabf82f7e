# SPDX-License-Identifier: Apache-2.0
"""A board that has lost its agent, or the run, while nobody followed it; or that does not come back from a boot."""

import json
import os
import re
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from board_runs import rtproof, start, wait_until

from rtproof.cli.main import main
from rtproof.record.reading import open_record


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a board keeps its files on which a run of a second goes on: the folder ``run`` is that of the host."""
    monkeypatch.chdir(tmp_path)
    options = ("--target", "command", "--target-option", "exec=sh -c", "--target-option", "dir=board")
    options = (*options[:-1], f"dir={tmp_path}/board")
    words = ("--duration", "1s", "--warmup", "0s", "--allow-unprivileged", "--detach", "-o", "run")
    assert main(["run", *options, *words]) == 0
    return next((tmp_path / "board").glob("rtproof-*"))


def attach(*more: str) -> int:
    return main(["attach", "run", "--no-report", *more])


@pytest.mark.parametrize("left", [None, 0, 5000])
def test_an_agent_that_is_lost_or_no_longer_whole_is_brought_again(board: Path, left: int | None) -> None:
    (agent,) = board.glob("agents/*/rtproof-agent")
    whole = agent.read_bytes()
    agent.unlink()
    if left is not None:
        agent.write_bytes(whole[:left])
        agent.chmod(0o700)
    assert attach() in (0, 3)
    record = open_record(Path("run") / "run.rtrec")
    assert record.end is not None
    assert record.end.reason.name == "AS_ASKED"
    assert agent.read_bytes() == whole
    assert not list(board.glob("run-*"))


def test_a_run_that_is_lost_with_its_agent_is_told_at_once(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run,) = board.glob("run-*")
    processes = [int(word) for word in (run / "state").read_text().split()[:4:2]]
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(board)
    capsys.readouterr()
    assert attach() == 2
    said = capsys.readouterr().err.splitlines()
    assert f"there is no run in {run}" in said[-1]
    assert len(said) == 1
    assert Path("run/unfinished.json").exists()


BOOTED = """#!/bin/sh
# The last word is a command line for a board whose files, where it boots, are those of this folder.
cd BOARD || exit
[ ! -e gone ] || exit 1
for command; do :; done
PATH=$PWD/bin:$PATH exec sh -c "$(printf %s "$command" | sed "s,/proc/sys/kernel/random/boot_id,$PWD/id,g
s,/proc/cmdline,$PWD/cmdline,g; s,/boot/vmlinuz-,$PWD/vmlinuz-,g; s,/sys/kernel/kexec_loaded,$PWD/id,g
s,/proc/sys/kernel/kexec_load_disabled,$PWD/none,g; s,/run/systemd/,$PWD/none/,g")"
"""
BOOTING = """#!/bin/sh
# Nobody answers after boot number LAST.
cd BOARD || exit
case $1 in
-a) for word; do case $word in --command-line=*) echo "${word#*=}" > loaded;; esac; done;;
-u) rm loaded;;
-e) echo x >> boots; cp loaded cmdline; echo "boot-$(wc -l < boots)" > id
    [ "$(wc -l < boots)" != LAST ] || touch gone;;
esac
"""


def booted_board(folder: Path, last: int) -> list[str]:
    """The words of a tuning of a board that the folder plays. last: its boot after which nobody answers; 0: none."""
    board = folder / "board"
    (board / "bin").mkdir(parents=True)
    programs = {"door": BOOTED, "bin/kexec": BOOTING, "bin/sync": "#!/bin/sh\n"}
    for name, text in programs.items():
        (board / name).write_text(text.replace("BOARD", str(board)).replace("LAST", str(last)))
        (board / name).chmod(0o755)
    (board / f"vmlinuz-{os.uname().release}").touch()
    (board / "id").write_text("boot-0\n")
    (board / "cmdline").write_text("quiet\n")
    options = (f"exec={board}/door", f"dir={folder}/files", "patience=5s")
    words = [word for option in options for word in ("--target-option", option)]
    asked = ("--knobs", "skewed-tick", "--policy", "other", "--run-length", "1s", "--warmup", "0s", "--budget", "30min")
    return ["tune", "--reboot", "--target", "command", *words, *asked, "--json", "-o", str(folder / "out")]


def test_a_board_that_does_not_come_back_ends_a_tuning_and_what_was_measured_is_kept(tmp_path: Path) -> None:
    ended = rtproof(*booted_board(tmp_path, last=5))
    assert ended.returncode == 2, ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert re.match("rtproof: .*/door did not come back within 5.0 s after its boot with .*: reset it; the reset", last)
    assert last.endswith("the reset boots with its own command line; what was measured until then is kept")
    found = json.loads(ended.stdout)
    assert found == json.loads((tmp_path / "out" / "tuning.json").read_text())
    assert found["runs_count"] >= 6


def test_a_board_whose_tuning_is_interrupted_boots_as_before(tmp_path: Path) -> None:
    tuning = start(*booted_board(tmp_path, last=0))
    wait_until(lambda: (tmp_path / "out" / "runs" / "0002").exists() or tuning.poll() is not None)
    tuning.send_signal(signal.SIGINT)
    _, said = tuning.communicate(timeout=600)
    assert tuning.returncode == 130, said
    assert (tmp_path / "board" / "cmdline").read_text() == "quiet\n"
    assert "boots with its own command line" in said
    assert (tmp_path / "out" / "tuning.json").exists()
