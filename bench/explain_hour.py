# SPDX-License-Identifier: Apache-2.0
"""What the flight recorder costs and keeps while this machine is under load, for ``make bench-explain``.

``python bench/explain_hour.py`` prints what ``measure`` returns. The variable MINUTES is the length, 10 by default.
``python bench/explain_hour.py RUN`` does so for a run that is there, without the effect of tracing.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.record.contents import Record, SnapshotReason
from rtproof.record.reading import open_record
from rtproof.summary import kernel_trace
from rtproof.summary.tracing_effect import tracing_effects

MINUTES, OBSERVED_MINUTES = 10, 5
LIMIT = "5ms"
COMMAND = ("--load", "sched", "--explain", "--limit", LIMIT, "--record", "summary", "--no-report")
UNDECIDED_OR_BETTER = (0, 1, 3, 4)


def measure(duration: str = "") -> dict[str, Any]:
    """The figures of a run of this length under load, and what tracing adds, by a shorter run that has it by turns."""
    minutes = int(os.environ.get("MINUTES", MINUTES))
    with tempfile.TemporaryDirectory() as name:
        found = figures(_run(Path(name) / "run", duration or f"{minutes}min"))
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
    seconds = record.end.time_ns / 1e9
    return {
        "seconds": seconds,
        "limit": LIMIT,
        "activations": sum(total.obtained for total in record.end.totals),
        "missed": sum(total.missed for total in record.end.totals),
        "load_average": os.getloadavg(),
        "late": windows.above,
        "windows_kept": windows.kept,
        "windows_lost": windows.lost,
        "windows_whole_percent": 100 * sum(one.whole for one in late) / len(late) if late else None,
        "all_windows": dict(Counter(one.reason.name.lower() for one in record.snapshots)),
        "all_windows_whole_percent": _whole_percent(record),
        "recorder_cpu_percent": int(told["cpu_time_ns"]) / seconds / 1e7,
        "pages_read": int(told["pages_read"]),
        "events_lost_by_kernel": _lost(record),
        "record_bytes": path.stat().st_size,
        "window_bytes": int(told["record_used"]),
        **_explained(record),
    }


def _whole_percent(record: Record) -> float | None:
    return 100 * sum(one.whole for one in record.snapshots) / len(record.snapshots) if record.snapshots else None


def _lost(record: Record) -> int:
    statistics = [kernel_trace.trace_statistics(record, cpu) for cpu in kernel_trace.trace_cpus(record)]
    return sum(int(each.get(key, 0)) for each in statistics for key in ("overrun", "commit overrun", "dropped events"))


def _explained(record: Record) -> dict[str, Any]:
    found = explain(record)
    return {
        "explained": len(found.budgets),
        "not_in_the_trace": found.outside,
        "unexplained_percent": 100 * found.share_of(Cause.UNEXPLAINED),
        "irqoff_or_machine_percent": 100 * found.share_of(Cause.IRQ_OFF_OR_GONE),
        "first_causes": dict(Counter(each.first.cause.value for each in found.budgets).most_common()),
    }


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


if __name__ == "__main__":
    json.dump(figures(Path(sys.argv[1])) if sys.argv[1:] else measure(), sys.stdout, indent=1)
