# SPDX-License-Identifier: Apache-2.0
"""Boards with a kernel of their own: the agent that fits is chosen, and a power cut costs what came after a checkpoint.

BOARD_KINDS='x86-32bit-root armv5-root' tries other kinds of ``board_guests.KINDS``.
"""

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_guests import DISK, GuestBoard, guest_board
from board_runs import ENDED_WELL, start

from rtproof.agents.build import find_agent
from rtproof.audit.facts import Facts
from rtproof.cli.main import main
from rtproof.experiment import tuning_runs
from rtproof.experiment.stored_runs import read_run
from rtproof.tune import tuning

pytestmark = pytest.mark.slow

PATIENCE_S = 1800
CHECKPOINT_S = 2
PERIODS_PER_S = 100
ASKED = ("--duration", "1h", "--period", "10ms", "--checkpoint", f"{CHECKPOINT_S}s", "--no-report", "-q")


KINDS = os.environ.get("BOARD_KINDS", "x86 arm64 armhf armv6").split()
SHORT = ("--duration", "3s", "--period", "10ms", "--no-report", "-q")


def found_wrong(board: GuestBoard, run: Path) -> list[str]:
    """What is not as it should be after a run of a few seconds there; empty if all is right."""
    command = [sys.executable, "-m", "rtproof", "run", *board.options, *SHORT, "-o", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if not (run / "run.rtrec").exists():
        return [f"exit code {done.returncode}: {done.stderr}"]
    kind, result = board.kind, read_run(run)
    assert result.info
    machine = board.ask("uname -m").strip()
    chosen = hashlib.sha256(find_agent(kind.agent).read_bytes()).hexdigest()
    end = result.analysis.record.end
    looked_at = (
        (machine == kind.machine, f"uname -m says {machine} there, not {kind.machine}"),
        (result.info.agent_arch == kind.agent, f"the agent for {result.info.agent_arch} was chosen, not {kind.agent}"),
        (result.info.agent_sha256 == chosen, "the agent that was chosen is another program"),
        (end is not None and end.reason.name == "AS_ASKED", f"the run did not end as asked: {end}"),
        (not result.analysis.record.damage, f"the record is damaged: {result.analysis.record.damage}"),
        (result.analysis.pooled.obtained > 0, "nothing was measured"),
        (board.ask("ls /root/.cache/rtproof-0").split() == ["agents"], "the run is still on the board"),
    )
    return [sentence for right, sentence in looked_at if not right]


@pytest.mark.parametrize("name", KINDS)
def test_the_agent_that_fits_the_board_is_chosen(name: str, tmp_path: Path) -> None:
    with guest_board(name, tmp_path) as board:
        assert not found_wrong(board, tmp_path / "run")


@pytest.fixture(scope="module")
def flash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestBoard]:
    """A board whose runs are kept on a disk."""
    with guest_board("x86", tmp_path_factory.mktemp("flash"), disk=True) as board:
        yield board


def started(board: GuestBoard, folder: Path, *more: str) -> "subprocess.Popen[str]":
    return start("run", *board.options, *more, *ASKED, "-o", str(folder))


def boot_id(board: GuestBoard) -> str:
    return board.ask("cat /proc/sys/kernel/random/boot_id").strip()


def look(board: GuestBoard, place: str) -> tuple[float, int]:
    """The board's time since it was booted, in seconds, and the length of the record there; 0 without one."""
    words = board.ask(f"cat /proc/uptime; wc -c {place}/*/run-*/run.rtrec 2>/dev/null || true").split()
    return float(words[0]), int(words[2]) if len(words) > 2 else 0


def wait_for_checkpoints(board: GuestBoard, place: str) -> int:
    """How many bytes of the record are on the medium: those that it had some checkpoints ago, by the board's clock."""
    end = time.monotonic() + PATIENCE_S
    seen = [look(board, place)]
    while seen[-1][0] < seen[0][0] + 4 * CHECKPOINT_S or not seen[0][1]:
        assert time.monotonic() < end
        time.sleep(CHECKPOINT_S / 2)
        seen = [each for each in (*seen, look(board, place)) if each[1]] or seen[-1:]
    return seen[0][1]


def assert_kept(folder: Path, flushed: int) -> None:
    """What had been flushed of a run that was cut off is there, and is judged as such."""
    analysis = read_run(folder).analysis
    assert analysis.record.end is None
    assert not (folder / "unfinished.json").exists()
    assert analysis.pooled.obtained + analysis.pooled.missed >= CHECKPOINT_S * PERIODS_PER_S
    assert [doubt.what for doubt in analysis.doubts if "the record was cut off after" in doubt.what]
    size = (folder / "run.rtrec").stat().st_size
    assert size >= flushed > 0
    assert all(damage.offset >= flushed for damage in analysis.record.damage)


def test_a_power_cut_costs_what_came_after_the_last_checkpoint(flash: GuestBoard, tmp_path: Path) -> None:
    before = boot_id(flash)
    run = started(flash, tmp_path / "run", "--target-option", f"dir={DISK}")
    try:
        flushed = wait_for_checkpoints(flash, DISK)
        flash.cut_power()
        flash.boot()
        _, said = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
        run.wait()
    assert run.returncode in ENDED_WELL, said
    assert_kept(tmp_path / "run", flushed)
    assert f"the board was booted anew during the run (boot id {before} before, {boot_id(flash)} now)" in said
    assert not flash.ask(f"ls {DISK}/rtproof-0 | grep run- || true")


def test_a_board_boots_for_the_knobs_of_its_command_line_and_then_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planned(*_: object) -> tuple[tuning.Plan, int]:
        plan = tuning.plan(["skewed-tick"], tuning.LEAST_RUNS)
        assert plan
        return plan, 1_000_000_000

    monkeypatch.setattr(tuning_runs, "planned", planned)
    with guest_board("x86-kexec", tmp_path, disk=True) as board:
        own, first = board.ask("cat /proc/cmdline").split(), boot_id(board)
        asked = ("--reboot", "--knobs", "skewed-tick", "--warmup", "100ms", "--budget", "10h", "--seed", "1")
        assert main(["tune", *board.options, *asked, "-o", str(tmp_path / "out")]) == 0
        assert board.ask("cat /proc/cmdline").split() == own
        assert boot_id(board) != first
        assert board.ask("cat /sys/kernel/kexec_loaded").strip() == "0"
    runs = [read_run(folder) for folder in sorted((tmp_path / "out" / "runs").iterdir())]
    notes = [run.info.note for run in runs if run.info]
    lines = [Facts(run.analysis.record).read("/proc/cmdline").text.split() for run in runs]
    assert len(runs) == tuning.LEAST_RUNS
    assert notes == ["skewed-tick" if "skew_tick=1" in line else "untouched" for line in lines]
    assert all(set(own) < set(line) for line in lines)
