# SPDX-License-Identifier: Apache-2.0
"""Another tool's own measurement on this machine, while the agent runs the loads."""

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rtproof.core.errors import TargetError

COMPLAINT = "rtproof-agent: "
"""What the agent's errors begin with; a line on what the loads did does not."""
EXTRA_TIME_S = 60
"""How much longer than asked for a tool may take until it has written its result."""


@contextmanager
def under_loads(agent: Path, loads: Sequence[str]) -> Iterator[None]:
    """The machine under loads, given as the agent's words, which have begun to work; none if there are no words.

    TargetError, with the agent's last sentence, if they do not start.
    """
    if not loads:
        yield
        return
    process = subprocess.Popen(
        [agent, "load", *loads, "--stop-on-eof"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        first = process.stdout.readline().decode(errors="replace").strip()
        if not first or first.startswith(COMPLAINT):
            raise TargetError(f"the loads did not start: {first.removeprefix(COMPLAINT) or 'they said nothing'}")
        yield
    finally:
        process.stdin.close()
        with contextlib.suppress(OSError):
            process.stdout.read()
        process.wait()


def run_tool(command: Sequence[str], length_s: int, output: Path) -> None:
    """Run a tool and keep what it prints. TargetError if it fails, or takes much longer than it was asked for."""
    with output.open("xb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
        try:
            code = process.wait(length_s + EXTRA_TIME_S)
        except subprocess.TimeoutExpired:
            raise TargetError(f"{command[0]} did not end within {length_s + EXTRA_TIME_S} s") from None
        finally:
            process.kill()
            process.wait()
    if code:
        raise TargetError(f"{command[0]} ended with exit code {code}: {_last_line(output)}")


def _last_line(output: Path) -> str:
    lines = output.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
