# SPDX-License-Identifier: Apache-2.0
"""Anybody's trace.dat as a run: the activations of its threads are found in the trace."""

from pathlib import Path

from rtproof.core import files
from rtproof.explain.foreign_records import WantedThreads, with_activations
from rtproof.importers import _trace_dat
from rtproof.record.contents import Record
from rtproof.summary.imported_trace import record_of_trace


def is_trace_file(path: Path) -> bool:
    """Whether a path is a trace.dat of trace-cmd."""
    return path.is_file() and _trace_dat.looks_like(path)


def open_trace(path: Path, wanted: WantedThreads) -> Record:
    """The trace with the activations of the threads that are wanted. UserError if it has none, or cannot be read."""
    files.refuse_what_waits(path)
    trace = _trace_dat.read(path)
    return with_activations(record_of_trace(trace, str(path), path.stat().st_size), wanted)
