# SPDX-License-Identifier: Apache-2.0
"""Boards with a kernel of their own: the agent that fits is chosen, and a power cut costs what came after a checkpoint.

``bench/board_kinds.py`` has more kinds of guests, such as those with 32-bit programs on a 64-bit kernel.
"""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from board_guests import DISK, GuestBoard, guest_board
from board_kinds import found_wrong
from board_runs import ENDED_WELL, start

from rtproof.experiment.stored_runs import read_run

pytestmark = pytest.mark.slow

PATIENCE_S = 1800
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
