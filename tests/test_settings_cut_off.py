# SPDX-License-Identifier: Apache-2.0
"""A board's settings are as before after SIGKILL of host or agent, a dropped link, or a power cut, amid a tuning.

What a power cut leaves on the disk, ``undo`` strikes out. ``RTPROOF_KILLS`` sets how often, ``RTPROOF_SEED`` when.
"""

import random
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from board_guests import DISK, GuestBoard, guest_board
from board_runs import rtproof, start, wait_until
from restored_states import KILLS, SEED, STATE, Killed, counts, differences

pytestmark = pytest.mark.slow
TRIALS = max(4, KILLS // 5)
WAYS = ("host", "both", "link", "power")
"""both: the host and the agent, not the keeper."""
KNOBS = "dirty-pages,memory-statistics,printk,resume-latency,softirq-threads,swappiness,throttling,timer-migration"
ASKED = ("tune", "--knobs", KNOBS, "--run-length", "1s", "--warmup", "0s", "--budget", "1h")
BEGUN = "runs/0008"
"""The first runs of a tuning set nothing."""
PLACE = ("--target-option", f"dir={DISK}")
LASTING = f"mkdir -p {DISK}/lib /var; ln -s {DISK}/lib /var/lib"
JOURNALLED = f'{STATE} for try in $(seq 5000); do [ -z "$(journals)" ] || break; usleep 10000; done; sleep '
CUT = "(journals | wc -l > /tmp/cut; ip link set eth0 down; sleep {}; ip link set eth0 up) > /dev/null 2>&1 &"
ENDED = f'{STATE} while [ -n "$(ours)" ]; do sleep 0.1; done; journals | wc -l'
AGENTS_GONE = "; for pid in $(ours); do grep -qsa keep /proc/$pid/cmdline || kill -9 $pid; done"
OF_HOST = ("host", "both")
NONE = "0\n"
REBOOTED = "a run was cut off before the last boot; the settings that it changed ended with that boot"


def cut(board: GuestBoard, way: str, tuning: "subprocess.Popen[str]", draw: random.Random) -> bool:
    """Whether a journal was on the disk at that time. The board answers again."""
    wait = JOURNALLED + f"{draw.random() * draw.choice((0.05, 1)):.3f}; "
    if way == "link":
        board.ask(wait + CUT.format(draw.choice((2, 20))))
        return board.ask("cat /tmp/cut") != NONE
    journal = board.ask(wait + "journals | wc -l" + AGENTS_GONE * (way == "both")) != NONE
    if way in OF_HOST:
        tuning.kill()
        return journal
    board.cut_power()
    board.boot()
    board.ask(LASTING)
    return board.ask(STATE + "journals | wc -l") != NONE


def begun(out: Path, tuning: "subprocess.Popen[str]") -> Callable[[], bool]:
    return lambda: (out / BEGUN).exists() or tuning.poll() is not None


def test_a_board_is_as_before_whatever_is_cut_in_a_tuning(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    killed: list[Killed] = []
    with guest_board("x86", tmp_path, disk=True) as board:

        def state(name: str) -> Path:
            (tmp_path / name).write_text(board.ask(f"{STATE} state /tmp/state; cat /tmp/state; rm /tmp/state"))
            return tmp_path / name

        board.ask(LASTING)
        before = state("before")
        for n in range(TRIALS):
            way, out = WAYS[n % len(WAYS)], tmp_path / f"tuned{n}"
            tuning = start(*ASKED, *board.options, *PLACE, "--seed", str(n + 1), "-o", str(out))
            if n // len(WAYS) % 3:
                wait_until(begun(out, tuning))
            assert tuning.poll() is None, tuning.communicate()
            journal = cut(board, way, tuning, draw)
            if way not in OF_HOST:
                tuning.send_signal(signal.SIGINT)
            said = tuning.communicate(timeout=600)[1]
            assert tuning.returncode == (-signal.SIGKILL if way in OF_HOST else 130), said
            killed.append(Killed(way, journal, board.ask(ENDED) != NONE))
            undone = rtproof("undo", *board.options, *PLACE)
            assert undone.returncode == 0, undone
            assert (REBOOTED in undone.stdout) == killed[-1].left, (killed[-1], undone, said)
            assert board.ask(STATE + "journals | wc -l") == NONE
            assert not differences(before, state(str(n))), (killed[-1], undone, said)
            counts(killed[-1:])
    counts(killed)
