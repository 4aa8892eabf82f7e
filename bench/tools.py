# SPDX-License-Identifier: Apache-2.0
"""Run programs and measure what they cost."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """Of one finished program: CPU time of it and the children it waited for."""

    cpu_s: float
    output: str


def run(command: Sequence[str], folder: Path | None = None) -> Cost:
    """Run a program to its end; RuntimeError with what it said if it fails."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {output.strip()[-500:]}")
    return Cost(usage.ru_utime + usage.ru_stime, output)


def proportional_bytes(pid: int) -> int:
    """Memory of a process with shared pages divided among those that share them (proportional set size)."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
