# SPDX-License-Identifier: Apache-2.0
"""The kernel's events during a run as the kernel wrote them: the text that its file ``trace`` gave."""

from pathlib import Path

from rtproof import files
from rtproof.analysis import tracefile
from rtproof.analysis.model import Analysis
from rtproof.exporters import _common

SUFFIX = ".trace.txt"
OPTIONS: dict[str, str] = {}
NEEDS = "a trace (rtproof run --trace)"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the text of the trace. Times are those of the trace's clock."""
    record = analysis.record
    _common.require_trace(record)
    with files.new_path(path), path.open("xb") as file:
        file.write(tracefile.content(record, "text"))
    return f"{path}: {len(tracefile.lines(record))} events, by the clock {tracefile.clock(record)}"
