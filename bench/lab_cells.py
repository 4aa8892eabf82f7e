# SPDX-License-Identifier: Apache-2.0
"""What a cell of each load costs this host, alone on it: the plain kernel and PREEMPT_RT together."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from part import Figure, Part

from rtproof.agents.build import cache_dir
from rtproof.core.errors import TargetError

SYSTEMS = {"debian-6.1-rt": (), "debian-6.1": ("preempt=none",)}
LOADS = ("idle", "mmap", "fork", "net", "files", "dd", "sched")
SECONDS = 2
SHARED = ("kernels", "busybox", "vmlinux", "modules", "apt")


def in_cache_of_its_own(scratch: Path) -> dict[str, str]:
    """An environment in which kernels are fetched and nothing else is done yet."""
    lab = scratch / "rtproof" / "lab"
    lab.mkdir(parents=True)
    (scratch / "rtproof" / "agents").symlink_to(cache_dir())
    for name in SHARED:
        place = cache_dir().parent / "lab" / name
        if place.exists():
            (lab / name).symlink_to(place)
    return {**os.environ, "XDG_CACHE_HOME": str(scratch)}


def compare(jobs: int, loads: Sequence[str], output: Path, environment: dict[str, str]) -> tuple[float, dict[str, Any]]:
    """Seconds that ``rtproof lab compare`` takes, and its result. TargetError if it fails."""
    words = [f"--kernel={name}" for name in SYSTEMS] + [f"--load={load}" for load in loads]
    words += ["--preempt=none", "--shifts=1", f"--duration={SECONDS}s", f"--jobs={jobs}", f"--output={output}"]
    began = time.monotonic()
    command = [sys.executable, "-m", "rtproof", "lab", "compare", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TargetError(f"rtproof lab compare ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return time.monotonic() - began, json.loads((output / "result.json").read_text())


def measure(load: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        _, result = compare(1, (load,), Path(scratch) / load, in_cache_of_its_own(Path(scratch)))
    cost = result["cost"]
    return {"host_s_per_virtual_s": cost["host_s"] / cost["virtual_s"]}


PART = Part(
    goal="host seconds for each virtual second of a cell",
    items=lambda: LOADS,
    measure=measure,
    figures=(Figure("host_s_per_virtual_s", "host seconds per virtual second", "s"),),
)
