# SPDX-License-Identifier: Apache-2.0
"""Runs in the background whose files, processes and disks are meddled with, and hosts that are interrupted or full."""

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from agent_process import lives
from board_runs import wait_until

from rtproof.agents.build import find_agent
from rtproof.boards import background_run, upload
from rtproof.boards import shell as boards_shell
from rtproof.boards.background_run import Assembly, BackgroundRun, Place
from rtproof.boards.frames import FrameType, LinkFrame
from rtproof.cli.main import main
from rtproof.core.errors import LinkError, TargetError, UserError
from rtproof.core.patience import Patience
from rtproof.experiment import target_runs
from rtproof.record import unfinished_run
from rtproof.record.reading import open_record
from rtproof.run.session import SignalForwarder
from rtproof.targets.command import open_program_shell

MEASURE = ("--warmup", "0s", "--no-report", "-q", "--allow-unprivileged")


@pytest.fixture(scope="module")
def agent() -> str:
    return str(find_agent(os.uname().machine))


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the board keeps its files."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "board"
    made.mkdir()
    return made


def options(board: Path) -> tuple[str, ...]:
    return ("--target", "command", "--target-option", "exec=sh -c", "--target-option", f"dir={board}")


def background(agent: str, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [agent, "background", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, input="done\n")


def measuring(duration: str) -> tuple[str, ...]:
    return ("run", "--duration", duration, "--warmup", "0s", "--allow-unprivileged")


@pytest.fixture
def run(agent: str, board: Path) -> Iterator[Path]:
    """A run of an hour that measures; its folder. Before the agent measures, a signal would leave no record."""
    folder = board / "run-1"
    started = background(agent, "start", str(folder), *measuring("1h"), "-o", f"{folder}/run.rtrec")
    assert started.returncode == 0, started.stderr
    waiter, _, number, *_ = (folder / "state").read_text().split()
    wait_until((folder / "run.rtrec").exists)
    yield folder
    for pid in (number, waiter):
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def test_an_agent_whose_keeper_was_killed_measures_on_and_is_stopped(agent: str, run: Path) -> None:
    waiter, _, number, *_ = (run / "state").read_text().split()
    os.kill(int(waiter), signal.SIGKILL)
    wait_until(lambda: not lives(waiter))
    refused = background(agent, "remove", str(run))
    assert refused.returncode != 0
    assert (run / "state").exists()
    assert "running; boot" in background(agent, "follow", str(run), "host", "0").stdout
    assert background(agent, "signal", str(run), "int").returncode == 0
    wait_until(lambda: not lives(number))
    assert open_record(run / "run.rtrec").end is not None
    assert background(agent, "remove", str(run)).returncode == 0


def stored(folder: Path, board: Path, **where: str) -> None:
    """A run's folder as a host leaves it that was killed."""
    folder.mkdir()
    place = {"agent": "/nothing", "folder": f"{board}/run-1", "before": "", "record": f"{board}/run-1/run.rtrec"}
    content = {
        "target": "command",
        "target_options": {"exec": "sh -c", "dir": str(board)},
        "where": {**place, **where},
        "goal": "1 h",
        "length_ns": 3_600_000_000_000,
    }
    (folder / "unfinished.json").write_text(json.dumps(content))


def test_a_file_of_a_run_that_no_run_wrote_is_refused(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(Path("nul"), board, agent="/a\0b")
    assert main(["attach", "nul"]) == 2
    assert "NUL" in capsys.readouterr().err
    Path("pipe").mkdir()
    os.mkfifo("pipe/unfinished.json")
    assert main(["attach", "pipe"]) == 2
    assert "pipe or a device" in capsys.readouterr().err


def test_no_command_line_has_what_a_csh_takes_as_its_history(board: Path) -> None:
    """It looks for a word behind an exclamation mark, even in quotes."""
    assert not re.search(r"![^ =(]", upload._folder_script(upload.USUAL_FOLDERS, in_ram=False))


def test_part_of_a_record_is_never_taken_for_all_of_it(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another board may have got the name, or another user may log in now, so the run's place must stay known."""
    assert main(["run", *options(board), "--duration", "200ms", *MEASURE, "-o", "whole"]) in (0, 3)
    content = Path("whole/run.rtrec").read_bytes()
    stored(Path("there"), board)
    Path("there/run.rtrec").write_bytes(content[: len(content) // 2])
    Path("there/agent.log").write_text("as it was\n")
    assert main(["attach", "there", "--no-report", "--trust"]) == 2
    assert "there is no run in" in capsys.readouterr().err
    assert Path("there/unfinished.json").exists()
    assert Path("there/agent.log").read_text() == "as it was\n"
    Path("there/run.rtrec").write_bytes(content)
    assert main(["attach", "there", "--no-report", "--trust"]) in (0, 3)
    assert not Path("there/unfinished.json").exists()


def test_a_full_disk_here_leaves_the_record_there(
    board: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12k", "none", small], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        assert main(["run", *options(board), "--duration", "1s", *MEASURE, "-o", f"{small}/run"]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert "the record is still on the board" in said
        assert f"rtproof attach {small}/run takes the run up" in said
        assert list(board.glob("*/run-*"))
        subprocess.run(["mount", "-o", "remount,size=9m", small], check=True)
        assert main(["attach", f"{small}/run", "--no-report"]) in (0, 3)
        assert open_record(f"{small}/run/run.rtrec").end is not None
        assert not list(board.glob("*/run-*"))
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_record_is_on_the_medium_before_the_board_forgets_it(
    board: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("rtproof.core.files.flush_file", broken)
    assert main(["run", *options(board), "--duration", "200ms", *MEASURE, "-o", "run"]) == 2
    assert "Input/output error" in capsys.readouterr().err
    assert list(board.glob("*/run-*/run.rtrec"))
    assert Path("run/unfinished.json").exists()


def test_a_run_whose_place_cannot_be_kept_is_not_started(
    board: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise UserError("cannot write unfinished.json: No space left on device")

    monkeypatch.setattr(unfinished_run, "write", full)
    for more in ((), ("--detach",)):
        assert main(["run", *options(board), "--duration", "1h", *MEASURE[:3], *more, "-o", "run"]) == 2
        assert "No space left" in capsys.readouterr().err
        assert not list(board.glob("*/run-*"))
        assert not Path("run").exists()


def test_a_run_that_may_have_started_can_be_taken_up(
    board: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> None:
        raise LinkError("no connection to the board: no route")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    for number, each in enumerate((cut, interrupted)):
        monkeypatch.setattr("rtproof.boards.background_run.start", each)
        assert main(["run", *options(board), "--duration", "1h", *MEASURE, "-o", f"run-{number}"]) == 2
        assert f"rtproof attach run-{number} takes the run up" in capsys.readouterr().err
        assert Path(f"run-{number}/unfinished.json").exists()


def test_the_first_signal_waits_for_a_start_and_the_second_does_not() -> None:
    forwarder = SignalForwarder()
    with pytest.raises(KeyboardInterrupt):
        forwarder.handle(signal.SIGINT, None)
    forwarder = SignalForwarder()
    forwarder.starting = True
    forwarder.handle(signal.SIGINT, None)
    assert forwarder.received == 1
    with pytest.raises(KeyboardInterrupt):
        forwarder.handle(signal.SIGINT, None)


def test_a_folder_that_is_a_link_is_not_ours(board: Path, tmp_path: Path) -> None:
    """Another user may have made it, in /var/tmp: then our files would go where they wish."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "try").write_text("precious")
    (board / f"rtproof-{os.geteuid()}").symlink_to(elsewhere)
    with pytest.raises(TargetError, match="is a link"):
        upload.own_folder(open_program_shell(["sh", "-c"]), str(board))
    assert (elsewhere / "try").read_text() == "precious"


def test_an_endless_line_does_not_fill_the_memory(board: Path) -> None:
    following = BackgroundRun(open_program_shell(["sh", "-c"]), Place("/agent", "/run"), 1, lambda: "")
    for _ in range(100):
        following._take_log(b"x" * 16384)
    assert sum(len(line) for line in following._lines) + len(following._rest) == 100 * 16384
    assert len(following._rest) <= 1 << 16


@pytest.mark.parametrize(("most", "patience_s", "why"), [(1 << 20, 60, "without end"), (1 << 40, 0.3, "within 0.3 s")])
def test_a_board_that_prints_without_end_is_not_waited_for(
    most: int, patience_s: float, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards_shell, "MOST_ANSWER", most)
    with pytest.raises(LinkError, match=why):
        open_program_shell(["sh", "-c"]).ask("while :; do echo flood; done", timeout_s=patience_s)


def test_frames_behind_a_hole_are_kept_up_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background_run, "MOST_LATER", 3)
    taken: list[bytes] = []
    assembly = Assembly(FrameType.RECORD, taken.append)
    for at in range(1, 10):
        assembly.add(LinkFrame(FrameType.RECORD, at, b"%d" % at))
    assembly.add(LinkFrame(FrameType.RECORD, 0, b"0"))
    assert b"".join(taken) == b"0123"
    for at in range(4, 10):
        assembly.add(LinkFrame(FrameType.RECORD, at, b"%d" % at))
    assert b"".join(taken) == b"0123456789"


def test_what_a_board_or_a_file_says_cannot_reach_the_terminal() -> None:
    escape = "\x1b]0;evil\x07"
    said = next(Patience(f"board{escape}", 60).lost(LinkError(f"gone{escape}")))
    assert said.isprintable()
    assert "/" not in target_runs._usual_folder("../../tmp/x").name
    assert target_runs._usual_folder(f"../../tmp/{escape}").parent == Path("runs")
    assert target_runs._usual_folder(escape).name.isprintable()
    assert len(target_runs._usual_folder("x" * 9999).name) < 100
