# SPDX-License-Identifier: Apache-2.0
"""Open a run on the disk, or the samples or the trace of another tool as a run. Nothing is analysed here."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rtproof import importers
from rtproof.core import files
from rtproof.core.errors import NoRecordError, UserError
from rtproof.record import file_kinds, run_folder
from rtproof.record.chunks import is_record
from rtproof.record.contents import Record
from rtproof.record.run_folder import RECORD_NAME, Run
from rtproof.summary.kernel_trace import has_trace
from rtproof.summary.target_threads import FOREIGN

if TYPE_CHECKING:
    from rtproof.explain.foreign_records import WantedThreads

ONLY_FACTS = "facts"
"""The fact ``collected`` of what ``rtproof-agent facts`` wrote. A run has no such fact."""


def open_run(run: Path) -> Run:
    """UserError for a file that is something else, which says what, and what can be read.

    The samples of another tool become a record, because they have their times, and so does a trace of trace-cmd.
    """
    if not (run / RECORD_NAME).exists() and (foreign := _foreign_run(run)):
        return foreign
    try:
        found = run_folder.open_run(run)
    except NoRecordError as problem:
        known = f"what can be read: {importers.READABLE}{', '.join(importers.tools())}"
        why = str(problem) if run.is_dir() else f"{file_kinds.advice(run) or problem}; {known}"
        if not run.is_dir() and (tool := importers.tool_of(run)):
            read_by = "show, report, judge, compare, history and export read it"
            why = f"{run} is the output of {tool}, a histogram: {read_by}"
        raise UserError(why) from None
    if found.record.fact("collected") == ONLY_FACTS:
        judge = f"rtproof audit {shlex.quote(str(run))}"
        raise UserError(f"{run} holds the facts of a system and no measurement: {judge} judges it")
    if found.record.fact("probe") != FOREIGN:
        return found
    return replace(found, record=with_threads(found.record)) if is_foreign(found.record) else found


def _foreign_run(run: Path) -> Run | None:
    """The samples or the trace of another tool; None for any other file or folder."""
    from rtproof.importers import jitterdebugger
    from rtproof.summary.imported_samples import record_of_samples

    if is_trace_file(run):
        return Run(open_trace(run), None)
    if is_timed_samples(run):
        samples, place, size = jitterdebugger.read_samples(run)
        return Run(record_of_samples(samples, str(place), size), None)
    return None


def is_timed_samples(path: Path) -> bool:
    """Whether a folder or a file holds the samples of another tool, with their times."""
    from rtproof.importers import jitterdebugger

    if path.is_dir():
        return not (path / RECORD_NAME).exists() and jitterdebugger.holds_samples(path)
    return jitterdebugger.holds_samples(path) and not is_record(path)


# Threads of an application: a run of the probe ``foreign``, or anybody's trace.dat. Both hold a trace and no samples.
# The activations are found in the trace whenever such a run is opened.


def is_trace_file(path: Path) -> bool:
    """Whether a path is a trace.dat of trace-cmd."""
    from rtproof.importers import _trace_dat

    return path.is_file() and _trace_dat.looks_like(path)


def open_trace(path: Path, wanted: "WantedThreads | None" = None) -> Record:
    """The trace with the activations of the threads that are wanted, by default of all real-time ones.

    UserError if it has none, or cannot be read.
    """
    from rtproof.explain.foreign_records import ALL_REAL_TIME, with_activations
    from rtproof.importers import _trace_dat
    from rtproof.summary.imported_samples import record_of_trace

    files.refuse_what_waits(path)
    trace = _trace_dat.read(path)
    return with_activations(record_of_trace(trace, str(path), path.stat().st_size), wanted or ALL_REAL_TIME)


def is_foreign(record: Record) -> bool:
    """Whether a record is of the probe that measures threads of others, and holds their trace."""
    return record.fact("probe") == FOREIGN and has_trace(record)


def with_threads(record: Record, wanted: "WantedThreads | None" = None) -> Record:
    """A record of the probe with the activations of the threads that are wanted, or else of those it was asked for."""
    from rtproof.explain.foreign_records import ALL_REAL_TIME, wanted_in, with_activations

    return with_activations(record, (wanted or ALL_REAL_TIME).or_else(wanted_in(record)))
