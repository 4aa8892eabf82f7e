# SPDX-License-Identifier: Apache-2.0
"""Every sample as a line of text, for spreadsheets and scripts."""

from pathlib import Path

from rtproof.analysis.model import Analysis
from rtproof.exporters import _common
from rtproof.record import Series
from rtproof.record.slicing import Activations

SUFFIX = ".csv"
OPTIONS: dict[str, str] = {}
HEADER = "thread,cpu,activation,due_ns,latency_ns,missed_after\n"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the samples, thread after thread; due times count from the origin of the record."""
    _common.require_samples(analysis.record, "csv")
    written = 0
    with _common.new_file(path) as file:
        file.write(HEADER)
        for series, part in _common.all_columns(analysis.record):
            file.write(_lines(series, part))
            written += part.value.size
    return f"{path}: {_common.sample_note(analysis, written)}; facts about the run are not in it"


def _lines(series: Series, part: Activations) -> str:
    start = f"{series.thread},{series.cpu},"
    columns = (part.index, part.due_ns, part.value, part.missed)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return "".join([f"{start}{index},{due},{latency},{missed}\n" for index, due, latency, missed in rows])
