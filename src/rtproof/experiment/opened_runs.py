# SPDX-License-Identifier: Apache-2.0
"""Open a run on the disk, or the samples or the trace of another tool as a run. Nothing is analysed here."""

import shlex
from dataclasses import replace
from pathlib import Path

from rtproof import importers
from rtproof.core.errors import NoRecordError, UserError
from rtproof.record import file_kinds, run_folder
from rtproof.record.chunks import is_record
from rtproof.record.run_folder import RECORD_NAME, Run
from rtproof.summary.target_threads import FOREIGN

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
        raise UserError(str(problem) if run.is_dir() else _why_no_run(run, problem)) from None
    if found.record.fact("collected") == ONLY_FACTS:
        judge = f"rtproof audit {shlex.quote(str(run))}"
        raise UserError(f"{run} holds the facts of a system and no measurement: {judge} judges it")
    if found.record.fact("probe") != FOREIGN:
        return found
    from rtproof.experiment.foreign_traces import is_foreign, with_threads

    return replace(found, record=with_threads(found.record)) if is_foreign(found.record) else found


def _foreign_run(run: Path) -> Run | None:
    """The samples or the trace of another tool; None for any other file or folder."""
    from rtproof.experiment.foreign_traces import is_trace_file, open_trace
    from rtproof.explain.foreign_records import ALL_REAL_TIME
    from rtproof.importers import _jitterdebugger_samples as timed_samples
    from rtproof.summary.imported_samples import record_of_samples

    if is_trace_file(run):
        return Run(open_trace(run, ALL_REAL_TIME), None)
    if is_timed_samples(run):
        samples, place, size = timed_samples.read(run)
        return Run(record_of_samples(samples, str(place), size), None)
    return None


def _why_no_run(path: Path, problem: NoRecordError) -> str:
    tool = importers.tool_of(path)
    if tool:
        return f"{path} is the output of {tool}, a histogram: show, report, judge, compare, history and export read it"
    return f"{file_kinds.advice(path) or problem}; what can be read: {importers.READABLE}{', '.join(importers.tools())}"


def is_timed_samples(path: Path) -> bool:
    """Whether a folder or a file holds the samples of another tool, with their times."""
    from rtproof.importers import _jitterdebugger_samples as timed_samples

    if path.is_dir():
        return not (path / RECORD_NAME).exists() and timed_samples.looks_like(path)
    return timed_samples.looks_like(path) and not is_record(path)
