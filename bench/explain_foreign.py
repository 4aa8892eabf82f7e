# SPDX-License-Identifier: Apache-2.0
"""The latency that a trace tells of other programs, beside what they print: a section of ``make bench-explain``.

Both are figures of the same activations: the program's own clock reading comes after the return that the trace has.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rtproof.experiment.stored_runs import open_run

ROOT = Path(__file__).parent.parent
APP = ROOT / "tests" / "foreign_app.c"
AGENT = ROOT / "build" / "agent" / "rtproof-agent"
TIMES, PERIOD_US = 1_500, 1_000
SAME_NS = 50_000
"""Two figures that are further apart are not of the same activation."""
CYCLICTEST_LINE = re.compile(r"(?m)^\s*0:\s*\d+:\s*(\d+)\s*$")
Array = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """name: of its thread. words: its command. pattern: finds the figures in ns in what it prints."""

    name: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]


def programs(folder: Path) -> list[Program]:
    """The programs that can be had here."""
    app = folder / "foreign_app"
    subprocess.run(["cc", "-O2", "-o", app, APP, "-lpthread", "-lrt"], check=True)
    line = re.compile(r"(?m)^(-?\d+)$")
    found = [
        Program(f"app-{kind}", (str(app), kind, str(TIMES), str(PERIOD_US)), line)
        for kind in ("sleep", "timerfd", "posix", "pipe")
    ]
    if shutil.which("cyclictest"):
        words = ("cyclictest", "-v", "-N", "-m", "-t1", "-p80", f"-i{PERIOD_US}", f"-l{TIMES}")
        found.append(Program("cyclictest", words, CYCLICTEST_LINE))
    return found


def measure() -> dict[str, Any]:
    """For each program: how many figures it printed, how many the trace has, and how they differ."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        told = {program.name: _one(program, folder) for program in programs(folder)}
    missing = [] if shutil.which("rt-app") else ["rt-app"]
    return {"programs": told, "not_installed": missing, "times": TIMES, "period_us": PERIOD_US}


def _one(program: Program, folder: Path) -> dict[str, Any]:
    record = folder / f"{program.name}.rtrec"
    trace = f"explain,whole,calls_of={program.name}"
    words = ["--probe", f"foreign:thread={program.name}", "--trace", trace, "--duration", "10min", "--progress", "1s"]
    agent = subprocess.Popen([AGENT, "run", *words, "-o", record], stderr=subprocess.PIPE, text=True)
    assert agent.stderr is not None
    next((line for line in agent.stderr if line.startswith("progress")), None)
    printed = subprocess.run(program.words, capture_output=True, text=True, check=True).stdout
    agent.send_signal(2)
    agent.communicate()
    found = open_run(record).record
    series = max(found.series, key=lambda each: sum(block.values.size for block in found.blocks(each.id)))
    traced_ns = np.concatenate([block.values for block in found.blocks(series.id)])
    own_ns = np.array([int(text) for text in program.pattern.findall(printed)], np.int64)
    return compare(own_ns[own_ns != 0], traced_ns)


def compare(own_ns: Array, traced_ns: Array) -> dict[str, Any]:
    """How the figures differ, those of the same activation side by side. Figures without a partner are counted."""
    apart_ns = np.array(_paired(own_ns.tolist(), traced_ns.tolist()), np.int64)
    share = {f"p{at}": float(np.percentile(apart_ns, at)) for at in (1, 50, 99)} if apart_ns.size else {}
    return {
        "printed": int(own_ns.size),
        "in_trace": int(traced_ns.size),
        "paired": int(apart_ns.size),
        "own_median_ns": float(np.median(own_ns)) if own_ns.size else None,
        "own_minus_trace_ns": share,
        "largest_apart_ns": int(np.abs(apart_ns).max()) if apart_ns.size else None,
    }


def _paired(own: Sequence[int], traced: Sequence[int]) -> list[int]:
    """The differences of figures in order. One that fits no figure of the other side is left out."""
    apart: list[int] = []
    at = there = 0
    while at < len(own) and there < len(traced):
        difference = own[at] - traced[there]
        if abs(difference) < SAME_NS:
            apart.append(difference)
            at, there = at + 1, there + 1
        elif len(own) - at > len(traced) - there:
            at += 1
        else:
            there += 1
    return apart


if __name__ == "__main__":
    json.dump(measure(), sys.stdout, indent=2)
