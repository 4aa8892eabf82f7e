# SPDX-License-Identifier: Apache-2.0
"""The kernel's events during a run as text, a line for each, with task, CPU, flags and time as in the file ``trace``.

The text is made from the pages of the buffers, by the formats that the kernel stated. A line has the values of the
fields. trace-cmd makes the kernel's own text of a trace.dat.
"""

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
    events = 0
    with files.whole_file(path, new=True) as part, part.open("x", encoding="utf-8", errors="replace") as file:
        for line in kernel_trace.text_of_events(record):
            file.write(line + "\n")
            events += 1
    return f"{path}: {events} events, by the clock {kernel_trace.trace_clock(record)}"
