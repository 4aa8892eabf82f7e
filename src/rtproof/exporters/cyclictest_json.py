# SPDX-License-Identifier: Apache-2.0
"""The file of ``cyclictest --json`` (rt-tests 2.x), for scripts that read it.

Latencies are whole microseconds or nanoseconds, rounded towards zero as cyclictest does. Values beyond the scale are in
no bin and are counted among the cycles, as cyclictest does. ``return_code`` is the exit code of the verdict, which is 0
for PROVEN and without a limit. (Format: rt-tests, src/lib/rt-utils.c, rt_write_json, and src/cyclictest/cyclictest.c,
write_stats.)
"""

import json
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import numpy as np

from rtproof import __version__
from rtproof.core.errors import UserError
from rtproof.core.units import UNITS_NS
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.run_folder import read_run_info
from rtproof.summary import recorded_facts
from rtproof.summary.summary_model import Summary

SUFFIX = ".cyclictest.json"
HOLDS_COUNTS = True
OPTIONS = {
    "bins": "number of bins of one unit, from 0 (default 400; cyclictest -h); 0: no histogram",
    "unit": _columns.TIME_UNIT_HELP,
    "command": "the command line that the file names (default: cyclictest with the options of the run)",
}
FREE = ("command",)
US = UNITS_NS["us"]


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the observed view, which is the only one that cyclictest knows."""
    _columns.refuse_without_threads(analysis)
    unit_ns = _columns.time_unit_ns(options)
    bins = 0 if options.get("bins") == "0" else _columns.bins_within(analysis, options, "bins", 400, (0, unit_ns))
    if any(summary.series.unit != "ns" for summary in analysis.summaries):
        raise UserError("its values are no times, and this format is for times")
    document = {
        "file_version": 1,
        "cmdline:": options.get("command") or _command(analysis, bins),
        "rt_test_version:": f"rtproof {__version__}",
        "start_time": _time(analysis.started_ns),
        "end_time": _time(analysis.started_ns + (analysis.verdict.measured_ns or 0)),
        "return_code": analysis.verdict.state.exit_code,
        "sysinfo": _system(analysis),
        "num_threads": len(analysis.summaries),
        "resolution_in_ns": int(unit_ns == 1),
        "thread": {str(number): _thread(summary, bins, unit_ns) for number, summary in enumerate(analysis.summaries)},
        **_columns.marks(analysis.run_record),
    }
    with _columns.new_file(path) as file:
        file.write(json.dumps(document, indent=2) + "\n")
    missed = analysis.pooled.never_ran
    note = f"; {missed} missed activations are not in it, because the format has no place for them" if missed else ""
    note += _columns.summary_note(analysis) + _columns.mark_note(analysis)
    return f"{path}: {bins} bins of 1 {options.get('unit', 'us')}{note}"


def _command(analysis: Analysis, bins: int) -> str:
    """The options of cyclictest that ask for what was measured."""
    series = analysis.summaries[0].series
    record, imported = analysis.run_record, analysis.imported
    priority = recorded_facts.fact_number(record, "priority") if record else imported and imported.priority
    interval = f" -i {series.period_ns // US}" if series.period_ns else ""
    return f"cyclictest -q -t {len(analysis.summaries)} -p {priority or 0}{interval} -d 0 -h {bins}"


def _time(realtime_ns: int) -> str:
    return format_datetime(datetime.fromtimestamp(realtime_ns // 10**9, UTC))


def _system(analysis: Analysis) -> dict[str, Any]:
    """The system as the record tells it, or as another tool told it."""
    record = analysis.run_record
    said = dict(analysis.imported.facts) if analysis.imported else {}
    begin, info = (record.begin, read_run_info(Path(record.path).parent)) if record else (None, None)
    return {
        "sysname": "Linux",
        "nodename": (info.host if info else "") if record else said.get("nodename", ""),
        "release": begin.kernel_release if begin else said.get("release", ""),
        "version": begin.kernel_version if begin else said.get("version", ""),
        "machine": begin.machine if begin else said.get("machine", ""),
        "realtime": int(record is not None and recorded_facts.file_line(record, "/sys/kernel/realtime") == "1"),
    }


def _thread(summary: Summary, bins: int, unit_ns: int) -> dict[str, Any]:
    seen = summary.observed
    return {
        "histogram": _histogram(summary, bins, unit_ns) if bins else {},
        "cycles": seen.count,
        "min": max(seen.min, 0) // unit_ns,
        "max": max(seen.max, 0) // unit_ns,
        "avg": round((seen.mean or 0) / unit_ns, 2),
        "cpu": summary.series.cpu,
        "node": -1,  # as cyclictest without NUMA
    }


def _histogram(summary: Summary, bins: int, unit_ns: int) -> dict[str, int]:
    found = summary.observed_counts.fixed_bins(0, unit_ns, bins)
    counts = found.counts.copy()
    counts[0] += found.below
    return {str(bin_): int(counts[bin_]) for bin_ in np.flatnonzero(counts).tolist()}
