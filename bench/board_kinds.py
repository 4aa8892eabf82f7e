# SPDX-License-Identifier: Apache-2.0
"""Every kind of guest as a board: is the right agent chosen, and does the judge read what it measured?

    python bench/board_kinds.py [KIND...]

The kinds are those of ``tests/board_guests.py``: Debian's kernels and packages for PCs and ARM, 32-bit programs on a
64-bit kernel among them. They boot in QEMU one after another, a minute each at most.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

import board_guests
import click

from rtproof.agents.build import find_agent
from rtproof.experiment.stored_runs import read_run

WORDS = ("--duration", "3s", "--period", "10ms", "--no-report", "-q")


def found_wrong(board: board_guests.GuestBoard, run: Path) -> list[str]:
    """What is not as it should be after a run of a few seconds there; empty if all is right."""
    command = [sys.executable, "-m", "rtproof", "run", *board.options, *WORDS, "-o", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
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


def kinds_found_wrong(names: tuple[str, ...], folder: Path) -> dict[str, list[str]]:
    """Boot these kinds of guests; what was wrong with each."""
    found = {}
    for name in names:
        place = folder / name
        place.mkdir()
        with board_guests.guest_board(name, place) as board:
            found[name] = found_wrong(board, place / "run")
        kind = board_guests.KINDS[name]
        right = f"uname -m {kind.machine}, the agent for {kind.agent}"
        click.echo(f"{name}: {'; '.join(found[name]) or right}")
    return found


@click.command()
@click.argument("kinds", nargs=-1, type=click.Choice(list(board_guests.KINDS)))
def main(kinds: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(prefix="rtproof-guests-") as folder:
        found = kinds_found_wrong(kinds or tuple(board_guests.KINDS), Path(folder))
    sys.exit(any(found.values()))


if __name__ == "__main__":
    main()
