# SPDX-License-Identifier: Apache-2.0
"""The kernel's events during a run as the kernel wrote them: the text that its file ``trace`` gave."""

from pathlib import Path

from rtproof.core import files
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.summary import kernel_trace

SUFFIX = ".trace.txt"
OPTIONS: dict[str, str] = {}
NEEDS = "a trace (rtproof run --trace)"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the text of the trace. Its times come from the trace's clock."""
    record = analysis.record
    _columns.require_trace(record)
    with files.new_path(path), path.open("xb") as file:
        file.write(kernel_trace.trace_content(record, "text"))
    return f"{path}: {len(kernel_trace.trace_lines(record))} events, by the clock {kernel_trace.trace_clock(record)}"
