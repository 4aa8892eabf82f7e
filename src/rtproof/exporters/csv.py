# SPDX-License-Identifier: Apache-2.0
"""Every sample as a line of text, for spreadsheets and scripts.

Where activations have several values, each value has its own line, and a column names its field. If the times are
virtual or simulated, a line of comment above the header says so.
"""

from pathlib import Path

from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.activations import Activations

SUFFIX = ".csv"
OPTIONS: dict[str, str] = {}
HEADER = "thread,cpu,activation,due_ns,latency_ns,missed_after\n"
HEADER_OF_FIELDS = HEADER.replace("cpu,", "cpu,field,")


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the samples, thread after thread; due times count from the origin of the record."""
    _columns.require_samples(analysis.record, "csv")
    written = 0
    with _columns.new_file(path) as file:
        fields = _columns.has_fields(analysis.record)
        file.write(_columns.mark_lines(analysis.record) + (HEADER_OF_FIELDS if fields else HEADER))
        for series, part in _columns.all_columns(analysis.record):
            start = f"{series.thread},{series.cpu}," + (f"{_columns.plain(series.field)}," if fields else "")
            file.write(_lines(start, part))
            written += part.value.size
    notes = _columns.sample_note(analysis, written) + _columns.mark_note(analysis)
    return f"{path}: {notes}; facts about the run are not in it"


def _lines(start: str, part: Activations) -> str:
    columns = (part.index, part.due_ns, part.value, part.missed)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return "".join([f"{start}{index},{due},{latency},{missed}\n" for index, due, latency, missed in rows])
