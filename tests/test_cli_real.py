# SPDX-License-Identifier: Apache-2.0
"""``rtproof run`` with the real agent: what is left when either of the two is killed, or the disk is full."""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import agent_process
import pytest
from agent_process import eventually, marked, needs_root

from rtproof.cli.main import main
from rtproof.core.errors import RecordError
from rtproof.record import run_folder
from rtproof.record.contents import EndReason, Record

pytestmark = pytest.mark.real

RUN = [sys.executable, "-m", "rtproof", "run", "--no-report", "--warmup", "20ms", "--checkpoint", "100ms"]


@pytest.fixture(autouse=True)
def agent() -> str:
    return agent_process.agent()


class Started:
    """A run that has reached its first checkpoint."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], enter: list[str], seen_at: Path | None) -> None:
        self.folder = seen_at or folder
        self.token = uuid.uuid4().hex
        command = [*enter, *RUN, "--output", str(folder), *agent_process.policy(), *arguments]
        environment = {**os.environ, agent_process.TOKEN: self.token}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        assert eventually(self.has_slices)

    def has_slices(self) -> bool:
        with suppress(RecordError):
            return bool(self.record_so_far().slices)
        return False

    def record_so_far(self) -> Record:
        return run_folder.open_run(self.folder).record

    def agent_pid(self) -> int:
        """The agent is the child that leads its session."""
        (pid,) = [pid for pid in marked(self.token) if pid != self.process.pid and os.getsid(pid) == pid]
        return pid

    def end(self) -> tuple[int, str]:
        """Exit code and standard error."""
        _, err = self.process.communicate(timeout=agent_process.PATIENCE_S)
        return self.process.returncode, err.decode()


@contextmanager
def started(folder: Path, *arguments: str, enter: Sequence[str] = (), seen_at: Path | None = None) -> Iterator[Started]:
    """A run that does not outlive the test. enter: command that starts it elsewhere; seen_at: the folder from here."""
    one = Started(folder, arguments, list(enter), seen_at)
    try:
        yield one
    finally:
        for pid in marked(one.token):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        one.process.communicate()


def test_what_there_is_not_is_refused_with_what_there_is(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["run", "--agent", agent_process.agent(), "--policy", "other", "--output", str(tmp_path / "a")]
    for option, value, sentence in (
        ("--load", "schd", "there is no load 'schd' (did you mean 'sched'?); there are: "),
        ("--load", "sched:group=1", "load 'sched' has no option 'group'"),
        ("--probe", "moon", "there is no probe 'moon'; there are: "),
        ("--method", "clock", "probe 'timer' has no method 'clock'"),
    ):
        assert main([*words, option, value]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"rtproof: {sentence}")
        assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_kill_9_of_the_agent_keeps_what_was_measured(tmp_path: Path) -> None:
    with started(tmp_path / "a", "--duration", "1h", "--load", "sched:groups=1,pairs=2", "--limit", "1h") as run:
        os.kill(run.agent_pid(), signal.SIGKILL)
        code, err = run.end()
        assert eventually(lambda: not marked(run.token)), "a load was left behind"
    assert "the agent was killed by SIGKILL" in err
    assert code in (3, 4), err
    assert run.record_so_far().end is None
    assert sum(part.count for part in run.record_so_far().slices) > 0


def test_kill_9_of_the_host_ends_everything(tmp_path: Path) -> None:
    with started(tmp_path / "a", "--duration", "1h", "--load", "sched:groups=1,pairs=2") as run:
        run.process.kill()
        assert eventually(lambda: not marked(run.token)), "the agent or a load was left behind"
    end = run.record_so_far().end
    assert end is not None
    assert end.reason is EndReason.HOST_GONE


@contextmanager
def small_disk(folder: Path) -> Iterator[tuple[list[str], Path]]:
    """16 MB of disk at the folder, gone with the test: the command that leads there, and its root seen from here."""
    if not (shutil.which("unshare") and shutil.which("nsenter")):
        pytest.skip("there is no unshare or no nsenter")
    mount = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=16m none "$0" && echo mounted && exec cat']
    with subprocess.Popen([*mount, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as keeper:
        assert keeper.stdout is not None
        if keeper.stdout.readline() != "mounted\n":
            pytest.skip("mounting is refused here")
        yield ["nsenter", f"--mount=/proc/{keeper.pid}/ns/mnt"], Path(f"/proc/{keeper.pid}/root")


@needs_root
def test_a_disk_that_fills_up_stops_the_run_and_keeps_it(tmp_path: Path) -> None:
    with small_disk(tmp_path) as (enter, root):
        inside = root / tmp_path.relative_to("/")
        asked = ("--duration", "600s", "--threads", "1", "--period", "1ms", "--limit", "1h")
        with started(tmp_path / "a", *asked, enter=enter, seen_at=inside / "a") as run:
            fill(inside / "fill")
            code, err = run.end()
            assert eventually(lambda: not marked(run.token))
        end = run.record_so_far().end
        assert end is not None
        assert end.reason is EndReason.NO_SPACE
        assert code == 2
        assert "no space" in err.splitlines()[-1].lower()


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
