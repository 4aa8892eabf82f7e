# SPDX-License-Identifier: Apache-2.0
"""A board that has lost its agent, or the run, while nobody followed it."""

import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import pytest

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
