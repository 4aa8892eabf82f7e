# SPDX-License-Identifier: Apache-2.0
"""Whether runs under each built-in load come home from a guest with what explains them, traced in both ways.

    python bench/explain_loads.py [LOAD...]

Writes build/bench-explain-loads.json and prints a line for each load. A load that cannot run in the guest is told with
the agent's sentence.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rtproof.agents import build
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.record import run_folder
from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.summary import kernel_trace

PLACE = Path(__file__).parent.parent / "build" / "bench-explain-loads.json"
KERNEL = "debian-6.1"
WAYS = {"recorder": ["--explain=threshold=100us"], "whole trace": ["--trace", "explain"]}
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
        **_explained(record),
    }


def _explained(record: Record) -> dict[str, Any]:
    """What the explanation of a record makes of it."""
    found = explain(record, THRESHOLD_NS)
    first = found.rows[0] if found.rows else None
    return {
        "late": found.late,
        "explained": len(found.budgets),
        "not_in_the_trace": found.outside,
        "unexplained_percent": 100 * found.share_of(Cause.UNEXPLAINED),
        "most_time": f"{first.cause.cause.value} {100 * first.share:.0f} %" if first else "",
    }


def measure(names: Sequence[str] = ()) -> dict[str, Any]:
    """Run each load in both ways. Returns, by load and way, what came home. Takes about a minute for each run."""
    found: dict[str, Any] = {}
    for way, options in WAYS.items():
        for load in names or loads():
            with tempfile.TemporaryDirectory() as place:
                found.setdefault(load, {})[way] = measured(load, options, Path(place) / "run")
            print(f"{load:<16} {way:<12} {json.dumps(found[load][way])}", flush=True)
    return found


def main() -> int:
    """Measure, store and print."""
    found = measure(sys.argv[1:])
    PLACE.parent.mkdir(exist_ok=True)
    PLACE.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    home = sum(run["home"] for ways in found.values() for run in ways.values())
    runs = sum(map(len, found.values()))
    print(f"{home} of {runs} runs came home with their trace, in {PLACE}")
    return 0 if home == runs else 1


if __name__ == "__main__":
    sys.exit(main())
