# SPDX-License-Identifier: Apache-2.0
"""The user's own application: a run of the probe ``foreign``, or anybody's trace.dat. Both hold a trace and no samples.

The activations of the threads are found in the trace whenever such a run is opened.
"""

from pathlib import Path

from rtproof.core import files
from rtproof.explain.foreign_records import ALL_REAL_TIME, WantedThreads, wanted_in, with_activations
from rtproof.importers import _trace_dat
from rtproof.record.contents import Record
from rtproof.summary.imported_samples import record_of_trace
from rtproof.summary.kernel_trace import has_trace
from rtproof.summary.target_threads import FOREIGN


def is_trace_file(path: Path) -> bool:
    """Whether a path is a trace.dat of trace-cmd."""
    return path.is_file() and _trace_dat.looks_like(path)


def open_trace(path: Path, wanted: WantedThreads) -> Record:
    """The trace with the activations of the threads that are wanted. UserError if it has none, or cannot be read."""
    files.refuse_what_waits(path)
    trace = _trace_dat.read(path)
    return with_activations(record_of_trace(trace, str(path), path.stat().st_size), wanted)


def is_foreign(record: Record) -> bool:
    """Whether a record is of the probe that measures threads of others, and holds their trace."""
    return record.fact("probe") == FOREIGN and has_trace(record)


def with_threads(record: Record, wanted: WantedThreads = ALL_REAL_TIME) -> Record:
    """A record of the probe with the activations of the threads that are wanted, or else of those it was asked for."""
    return with_activations(record, wanted.or_else(wanted_in(record)))
