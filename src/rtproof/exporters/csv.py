# SPDX-License-Identifier: Apache-2.0
"""Every sample as a line of text, for spreadsheets and scripts."""

from pathlib import Path

from rtproof.analysis.model import Analysis
from rtproof.exporters import _common

SUFFIX = ".csv"
OPTIONS: dict[str, str] = {}
HEADER = "thread,cpu,activation,due_ns,latency_ns,missed_after\n"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the samples, thread after thread; due times count from the origin of the record."""
    _common.require_samples(analysis.record, "csv")
    written = 0
    with _common.new_file(path) as file:
        file.write(HEADER)
        for part in _common.all_columns(analysis.record):
            file.write(_lines(part))
            written += part.latency_ns.size
    return f"{path}: {_common.sample_note(analysis, written)}; facts about the run are not in it"


def _lines(part: _common.Columns) -> str:
    start = f"{part.thread},{part.cpu},"
    rows = zip(
        part.activation.tolist(),
        part.due_ns.tolist(),
        part.latency_ns.tolist(),
        part.missed_after.tolist(),
        strict=True,
    )
    return "".join([f"{start}{activation},{due},{latency},{missed}\n" for activation, due, latency, missed in rows])
