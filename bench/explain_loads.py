# SPDX-License-Identifier: Apache-2.0
"""Whether runs under each built-in load come home from a guest with what explains them, traced in both ways.

A load that cannot run in the guest is told with the agent's sentence.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explain_parts import Bound, Figure, Items, Part, explained_figures, percent

from rtproof.agents import build
from rtproof.explain.explanation import explain
from rtproof.record import run_folder
from rtproof.record.reading import open_record
from rtproof.summary import kernel_trace

KERNEL = "debian-6.1"
WAYS = {"recorder": ["--explain=threshold=100us"], "whole trace": ["--trace", "explain"]}
ALL = Bound(100)
DURATION = "1s"
TIMEOUT_S = 600
THRESHOLD_NS = 100_000


def loads() -> list[str]:
    """The names of the loads that are part of the agent."""
    return [row[1] for row in build.listed_rows(build.agent_prints(build.find_agent(), "list"), "load")]


def measured(load: str, way: Sequence[str], folder: Path) -> dict[str, Any]:
    """One run in a guest of its own, as a user would start it."""
    words = ["run", "--target", "qemu", "--target-option", f"kernel={KERNEL}", "--load", load, "--duration", DURATION]
    command = [sys.executable, "-m", "rtproof", *words, *way, "-q", "--output", str(folder)]
    begin_s = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return {"home": False, "said": f"it took more than {TIMEOUT_S} s of this machine"}
    took_s = time.monotonic() - begin_s
    if not (folder / run_folder.RECORD_NAME).exists():
        return {"home": False, "said": done.stderr.strip().splitlines()[-1:], "exit_code": done.returncode}
    record = open_record(folder / run_folder.RECORD_NAME)
    kinds = kernel_trace.event_kinds(kernel_trace.trace_lines(record))
    return {
        "home": record.end is not None and not record.damage and kinds.get("sched_switch", 0) > 0,
        "host_seconds": round(took_s, 1),
        "record_bytes": (folder / run_folder.RECORD_NAME).stat().st_size,
        "events": sum(kinds.values()),
        "events_of_no_known_format": kinds.get("unknown", 0),
        **explained_figures(explain(record, THRESHOLD_NS)),
    }


def measure(load: str) -> dict[str, Any]:
    """Run a load in both ways. Returns what came home by each. Takes about a minute for each run."""
    found: dict[str, Any] = {}
    for way, options in WAYS.items():
        with tempfile.TemporaryDirectory() as place:
            found[way] = measured(load, options, Path(place) / "run")
    return found


def figures(items: Items) -> list[Figure]:
    """How many runs came home with their trace, by way."""
    found = []
    for way in WAYS:
        home = sum(one[way]["home"] for one in items.values())
        found.append(Figure("", f"{way}: runs that came home with it", percent(home, len(items)), "%", len(items), ALL))
    return found


def lines(items: Items) -> list[str]:
    """A line for each run that did not come home."""
    runs = ((load, way, one[way]) for load, one in items.items() for way in WAYS)
    return [
        f"{load}, {way}: {told.get('said', 'its record is damaged, or empty')}"
        for load, way, told in runs
        if not told["home"]
    ]


PART = Part(
    asked="a run under each built-in load comes home from a guest with what explains it",
    items=loads,
    measure=measure,
    figures=figures,
    lines=lines,
)
