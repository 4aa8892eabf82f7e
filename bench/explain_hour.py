# SPDX-License-Identifier: Apache-2.0
"""What the flight recorder costs and keeps while this machine is under load, in an hour. MINUTES is another length."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from explain_parts import Bound, Details, Figure, Items, Part, explained_figures, percent

from rtproof.explain.explanation import explain
from rtproof.record.contents import Record, SnapshotReason
from rtproof.record.reading import open_record
from rtproof.summary import kernel_trace
from rtproof.summary.tracing_effect import tracing_effects

MINUTES, OBSERVED_MINUTES = 60, 5
LIMIT = "5ms"
COMMAND = ("--load", "sched", "--explain", "--limit", LIMIT, "--record", "summary", "--no-report")
UNDECIDED_OR_BETTER = (0, 1, 3, 4)


def measure(_: str) -> dict[str, Any]:
    """The figures of a run of this length under load, and what tracing adds, by a shorter run that has it by turns."""
    minutes = int(os.environ.get("MINUTES", MINUTES))
    with tempfile.TemporaryDirectory() as name:
        found = figures(_run(Path(name) / "run", f"{minutes}min"))
        by_turns = _run(Path(name) / "turns", f"{min(minutes, OBSERVED_MINUTES)}min", "--observer", record="samples")
        return {**found, "observer": observer(by_turns)}


def _run(folder: Path, duration: str, *more: str, record: str = "summary") -> Path:
    command = [sys.executable, "-m", "rtproof", "run", "--duration", duration, *COMMAND, "--record", record, *more]
    done = subprocess.run([*command, "--output", str(folder)], capture_output=True, text=True, check=False)
    if done.returncode not in UNDECIDED_OR_BETTER:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return folder / "run.rtrec"


def figures(path: Path) -> dict[str, Any]:
    """What a record tells: n, what was kept and lost, whether windows are whole, the cost, and the first causes."""
    record = open_record(path)
    told, windows = kernel_trace.trace_information(record), kernel_trace.recorder_windows(record)
    if windows is None or record.end is None:
        raise RuntimeError("the run has no flight recorder, or did not end")
    late = [one for one in record.snapshots if one.reason is SnapshotReason.THRESHOLD]
    found = explain(record)
    seconds = record.end.time_ns / 1e9
    return {
        "seconds": seconds,
        "limit": LIMIT,
        "activations": sum(total.obtained for total in record.end.totals),
        "missed": sum(total.missed for total in record.end.totals),
        "load_average": os.getloadavg(),
        "above_limit": windows.above,
        "windows_kept": windows.kept,
        "windows_lost": windows.lost,
        "windows_whole_percent": percent(sum(one.whole for one in late), len(late)),
        "all_windows": dict(Counter(one.reason.name.lower() for one in record.snapshots)),
        "all_windows_whole_percent": percent(sum(one.whole for one in record.snapshots), len(record.snapshots)),
        "windows_lacking_nothing_percent": percent(found.windows.whole, found.windows.count),
        "windows_with_missing_switch": found.windows.missing,
        "recorder_cpu_percent": int(told["cpu_time_ns"]) / seconds / 1e7,
        "pages_read": int(told["pages_read"]),
        "events_lost_by_kernel": _lost(record),
        "record_bytes": path.stat().st_size,
        "window_bytes": int(told["record_used"]),
        **explained_figures(found),
    }


def _lost(record: Record) -> int:
    statistics = [kernel_trace.trace_statistics(record, cpu) for cpu in kernel_trace.trace_cpus(record)]
    return sum(int(each.get(key, 0)) for each in statistics for key in ("overrun", "commit overrun", "dropped events"))


def observer(path: Path) -> dict[str, Any]:
    """What tracing adds to each statistic, with its interval in us, and from how many sets of four blocks."""
    effects = tracing_effects(open_record(path))
    if effects is None or not effects.fields:
        return {"not_measured": effects.refused if effects else "no blocks"}
    found = {
        each.statistic: {"us": each.difference / 1000, "low_us": each.low / 1000, "high_us": each.high / 1000}
        for each in effects.fields[-1].effects
    }
    return {"sets": effects.sets, **found}


def part_figures(items: Items) -> list[Figure]:
    """The numbers, with what is asked of them. The size is asked of an hour, so a shorter run only tells it."""
    return [figure for name, one in items.items() for figure in _figures_of(name, one)]


def _figures_of(name: str, one: Details) -> list[Figure]:
    hour = one["seconds"] >= 3600
    kept, windows = one["all_windows"].get("threshold", 0), sum(one["all_windows"].values())
    added = one["observer"].get("median", {})
    sets = one["observer"].get("sets", 0)
    return [
        Figure(name, "length", one["seconds"], "s", 1, Bound(3600)),
        Figure(name, "late activations that kept a window", percent(kept, one["above_limit"]), "%", one["above_limit"]),
        Figure(name, "windows of late activations, whole", one["windows_whole_percent"], "%", kept, Bound(99.9)),
        Figure(name, "all windows, whole", one["all_windows_whole_percent"], "%", windows),
        Figure(
            name,
            "all windows, without a missing switch or turn",
            one.get("windows_lacking_nothing_percent"),
            "%",
            windows,
        ),
        Figure(name, "recorder, of one CPU", one["recorder_cpu_percent"], "%", 1, Bound(most=0.5)),
        Figure(name, "record", one["record_bytes"] / 1e6, "MB", 1, Bound(most=5) if hour else None),
        Figure(name, "observer at the median", added.get("us"), "us", sets, Bound(most=5)),
        Figure(name, "the same, lower end of the interval", added.get("low_us"), "us", sets),
        Figure(name, "the same, upper end", added.get("high_us"), "us", sets),
    ]


PART = Part(
    asked="4: the flight recorder in an hour at 1 kHz under load on this machine",
    items=lambda: ["hour"],
    measure=measure,
    figures=part_figures,
    long="it takes more than an hour",
)
