# SPDX-License-Identifier: Apache-2.0
"""What the flight recorder costs and keeps while this machine is under load, in an hour. MINUTES is another length."""

import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from part import Bound, Figure, Part, percent

from rtproof.core.errors import TargetError
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.record.contents import Record, SnapshotReason
from rtproof.record.reading import open_record
from rtproof.summary import kernel_trace
from rtproof.summary.tracing_effect import tracing_effects

MINUTES, OBSERVED_MINUTES = 60, 5
COMMAND = ("--load", "sched", "--explain", "--limit", "5ms", "--no-report")
UNDECIDED_OR_BETTER = (0, 1, 3, 4)


def measure(_: str) -> dict[str, Any]:
    """The figures of a run of this length under load, and what tracing adds, by a shorter run that has it by turns."""
    minutes = int(os.environ.get("MINUTES", MINUTES))
    with tempfile.TemporaryDirectory() as name:
        found = recorded(_run(Path(name) / "run", f"{minutes}min", "--record", "summary"))
        by_turns = _run(
            Path(name) / "turns", f"{min(minutes, OBSERVED_MINUTES)}min", "--observer", "--record", "samples"
        )
        return {**found, **observer(by_turns)}


def _run(folder: Path, duration: str, *more: str) -> Path:
    command = [sys.executable, "-m", "rtproof", "run", "--duration", duration, *COMMAND, *more, "--output", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in UNDECIDED_OR_BETTER:
        raise TargetError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return folder / "run.rtrec"


def recorded(path: Path) -> dict[str, Any]:
    """What a record tells: n, what was kept and lost, whether windows are whole, the cost, and the first causes."""
    record = open_record(path)
    told, windows = kernel_trace.trace_information(record), kernel_trace.recorder_windows(record)
    if windows is None or record.end is None:
        raise TargetError("the run has no flight recorder, or did not end")
    late = [one for one in record.snapshots if one.reason is SnapshotReason.THRESHOLD]
    found = explain(record)
    seconds, megabytes = record.end.time_ns / 1e9, path.stat().st_size / 1e6
    return {
        "seconds": seconds,
        "activations": sum(total.obtained for total in record.end.totals),
        "missed": sum(total.missed for total in record.end.totals),
        "above_limit": windows.above,
        "windows_kept": windows.kept,
        "windows_lost": windows.lost,
        "windows": len(record.snapshots),
        "late_windows": len(late),
        "late_kept_percent": percent(len(late), windows.above),
        "late_whole_percent": percent(sum(one.whole for one in late), len(late)),
        "whole_percent": percent(sum(one.whole for one in record.snapshots), len(record.snapshots)),
        "lacking_nothing_percent": percent(found.windows.whole, found.windows.count),
        "recorder_cpu_percent": int(told["cpu_time_ns"]) / seconds / 1e7,
        "pages_read": int(told["pages_read"]),
        "events_lost_by_kernel": _lost(record),
        "mb_of_an_hour" if seconds >= 3600 else "mb": megabytes,
        "window_bytes": int(told["record_used"]),
        "late": found.late,
        "explained": len(found.budgets),
        "not_in_the_trace": found.outside,
        "unexplained_percent": 100 * found.share_of(Cause.UNEXPLAINED),
        "first_causes": dict(Counter(each.first.cause.value for each in found.budgets).most_common()),
    }


def _lost(record: Record) -> int:
    statistics = [kernel_trace.trace_statistics(record, cpu) for cpu in kernel_trace.trace_cpus(record)]
    return sum(int(each.get(key, 0)) for each in statistics for key in ("overrun", "commit overrun", "dropped events"))


def observer(path: Path) -> dict[str, Any]:
    """What tracing adds to the median, with its interval in us, and from how many sets of four blocks."""
    effects = tracing_effects(open_record(path))
    if effects is None or not effects.fields:
        return {"added_us": None, "sets": 0, "why_not": effects.refused if effects else "no blocks"}
    median = next(each for each in effects.fields[-1].effects if each.statistic == "median")
    figures_us = {"added_us": median.difference, "added_low_us": median.low, "added_high_us": median.high}
    return {"sets": effects.sets, **{key: value / 1000 for key, value in figures_us.items()}}


PART = Part(
    goal="in an hour at 1 kHz under load the recorder takes 0.5 % of a CPU and 5 MB, and keeps 99.9 % of windows whole",
    measure=measure,
    figures=(
        Figure("seconds", "length", "s", Bound(3600)),
        Figure("late_kept_percent", "late activations that kept a window", "%", of="above_limit"),
        Figure("late_whole_percent", "windows of late activations, whole", "%", Bound(99.9), "late_windows"),
        Figure("whole_percent", "all windows, whole", "%", of="windows"),
        Figure("lacking_nothing_percent", "all windows, without a missing switch or turn", "%", of="windows"),
        Figure("recorder_cpu_percent", "recorder, of one CPU", "%", Bound(most=0.5)),
        Figure("mb_of_an_hour", "record", "MB", Bound(most=5)),
        Figure("mb", "record", "MB"),
        Figure("added_us", "observer at the median", "us", Bound(most=5), "sets"),
        Figure("added_low_us", "the same, lower end of the interval", "us", of="sets"),
        Figure("added_high_us", "the same, upper end", "us", of="sets"),
    ),
    long="it takes more than an hour",
)
