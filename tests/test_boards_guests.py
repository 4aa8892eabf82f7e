# SPDX-License-Identifier: Apache-2.0
"""Boards with a kernel of their own: the agent that fits is chosen, and a power cut costs what came after a checkpoint.

``bench/board_kinds.py`` has more kinds of guests, such as those with 32-bit programs on a 64-bit kernel.
"""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_guests import DISK, GuestBoard, guest_board
from board_kinds import found_wrong

from rtproof.experiment.stored_runs import read_run

pytestmark = pytest.mark.slow

PATIENCE_S = 300
BOOT_ID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
CHECKPOINT_S = 2
PERIODS_PER_S = 100
ASKED = ("--duration", "1h", "--period", "10ms", "--checkpoint", f"{CHECKPOINT_S}s", "--no-report", "-q")


@pytest.mark.parametrize("name", ["x86", "arm64", "armhf", "armv6"])
def test_the_agent_that_fits_the_board_is_chosen(name: str, tmp_path: Path) -> None:
    with guest_board(name, tmp_path) as board:
        assert not found_wrong(board, tmp_path / "run")


@pytest.fixture(scope="module")
def flash(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestBoard]:
    """A board whose runs are kept on a disk."""
    with guest_board("x86", tmp_path_factory.mktemp("flash"), disk=True) as board:
        yield board


def started(board: GuestBoard, folder: Path, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "rtproof", "run", *board.options, *more, *ASKED, "-o", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


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
    assert [doubt.what for doubt in analysis.doubts if "the record was cut off: it covers" in doubt.what]
    size = (folder / "run.rtrec").stat().st_size
    assert size >= flushed > 0
    assert all(damage.offset >= flushed for damage in analysis.record.damage)


def assert_told(said: str, before: str, now: str) -> None:
    """What happened, and how much is missing."""
    booted = f"rtproof: the board was booted anew during the run (boot id {before} before, {now} now); "
    covers = r"the record was cut off: it covers \d+(\.\d+)? \w+ of 1 h asked for; what it measured until then is kept"
    assert re.search(re.escape(booted) + covers, said), said


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
    assert run.returncode == 0, said
    assert_kept(tmp_path / "run", flushed)
    assert_told(said, before, boot_id(flash))
    assert "no connection to board" in said
    assert "connected to board again" in said
    assert not flash.ask(f"ls {DISK}/rtproof-0 | grep run- || true")


def test_another_host_brings_what_is_left_after_a_power_cut(flash: GuestBoard, tmp_path: Path) -> None:
    folder, before = tmp_path / "run", boot_id(flash)
    run = started(flash, folder, "--target-option", f"dir={DISK}")
    try:
        flushed = wait_for_checkpoints(flash, DISK)
    finally:
        run.kill()
        run.communicate()
    flash.cut_power()
    flash.boot()
    command = [sys.executable, "-m", "rtproof", "attach", str(folder), "--no-report"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert_kept(folder, flushed)
    assert_told(done.stderr, before, boot_id(flash))


def test_a_run_in_memory_is_gone_after_a_power_cut_and_that_is_told_at_once(flash: GuestBoard, tmp_path: Path) -> None:
    before = boot_id(flash)
    run = started(flash, tmp_path / "run", "--target-option", "dir=/tmp")
    try:
        wait_for_checkpoints(flash, "/tmp")
        flash.cut_power()
        flash.boot()
        _, said = run.communicate(timeout=PATIENCE_S)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 2, said
    last = said.splitlines()[-1]
    assert f"the board was booted anew (boot id {before} before, {boot_id(flash)} now)" in last
    assert "there is no run in /tmp/rtproof-0/run-" in last
