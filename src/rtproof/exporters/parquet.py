# SPDX-License-Identifier: Apache-2.0
"""Every sample in a Parquet file (zstd), for duckdb, pandas, R and the like; needs the package duckdb.

Where activations have several values, each value has its own row, and a column names its field.
"""

import errno
import glob
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rtproof.core import files
from rtproof.core.errors import UserError
from rtproof.core.scratch import scratch_folder
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.activations import Activations
from rtproof.record.contents import Record, Series

BINARY = True
SUFFIX = ".parquet"
EXTRA = "parquet"
OPTIONS: dict[str, str] = {}
PART_ROWS = 4_000_000
"""The most rows that the export holds in memory at once (160 MB)."""
FORMAT = "FORMAT parquet, PARQUET_VERSION v2, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 1000000"
QUERY = "SELECT thread::USMALLINT thread, cpu::INTEGER cpu,{} activation, due_ns, latency_ns, missed_after FROM part"
FIELD = " CASE series {} END AS field,"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the samples, thread after thread. Parts go to a folder beside the file first, to save memory."""
    duckdb = require()
    _columns.require_samples(analysis.record, "parquet")
    try:
        with (
            files.whole_file(path, new=True) as part,
            scratch_folder(path.parent) as folder,
            duckdb.connect() as connection,
        ):
            connection.execute("SET threads = 1")
            written = _write_parts(connection, analysis.record, folder)
            _join_parts(connection, analysis.record, folder, part)
    except duckdb.Error as error:
        raise _error_of(error, path) from error
    notes = _columns.sample_note(analysis, written) + _columns.mark_note(analysis)
    return f"{path}: {notes}; facts about the run are not in it"


def _error_of(error: Exception, path: Path) -> Exception:
    """That of the system, if duckdb quotes one: its own text quotes files that the user has not named."""
    text = str(error).replace("Could not write all bytes", os.strerror(errno.ENOSPC))
    number = next((each for each in errno.errorcode if os.strerror(each) in text), None)
    if number:
        return OSError(number, os.strerror(number), str(path))
    return UserError(f"duckdb cannot write {path}: {text.splitlines()[0]}")


def require() -> Any:
    """The package duckdb. UserError if it cannot be loaded."""
    try:
        import duckdb
    except ImportError as error:
        raise UserError(
            f"the format parquet needs duckdb: pip install 'rtproof[parquet]' (it cannot be loaded: {error})"
        ) from error
    return duckdb


def _write_parts(connection: Any, record: Record, folder: Path) -> int:
    written, query = 0, _query(record)
    for number, part in enumerate(_parts(record)):
        connection.register("part", part)
        connection.execute(_copy(query, folder / f"{number:06}", FORMAT))
        connection.unregister("part")
        written += part["latency_ns"].size
    return written


def _query(record: Record) -> str:
    """The query that writes a part. With several fields it turns the number of a series into a field's name."""
    names = " ".join(f"WHEN {series.id} THEN {_quoted(_columns.plain(series.field))}" for series in record.series)
    return QUERY.format(FIELD.format(names) if _columns.has_fields(record) else "")


def _join_parts(connection: Any, record: Record, folder: Path, path: Path) -> None:
    """Join all parts in their order to one file. duckdb streams them, so this takes little memory."""
    run_id = record.begin.run_id.hex()
    marks = "".join(f", {name}: {_quoted(words)}" for name, words in _columns.marks(record).items())
    about = f"rtproof_run_id: '{run_id}', origin_realtime_ns: '{record.begin.origin_realtime_ns}'{marks}"
    parts = _quoted(glob.escape(str(folder)) + "/*")
    connection.execute(_copy(f"FROM read_parquet({parts})", path, f"{FORMAT}, KV_METADATA {{{about}}}"))


def _copy(query: str, path: Path, form: str) -> str:
    return f"COPY ({query}) TO {_quoted(str(path))} ({form})"


def _quoted(text: str) -> str:
    """The text as a string of SQL. Quotes are escaped, because a file name may hold any character."""
    return "'" + text.replace("'", "''") + "'"


def _parts(record: Record) -> Iterator[dict[str, Any]]:
    """Samples in large parts. There is at least one part, so that a run without samples gives a file without rows."""
    pending: list[tuple[Series, Activations]] = []
    rows = 0
    for series, part in _columns.all_columns(record):
        pending.append((series, part))
        rows += part.value.size
        if rows >= PART_ROWS:
            yield _table(pending)
            pending, rows = [], 0
    yield _table(pending)


def _table(parts: list[tuple[Series, Activations]]) -> dict[str, Any]:
    """The columns of a part by name. Thread and CPU do not change in a piece, so only this function repeats them."""
    sizes = [part.value.size for _, part in parts]
    columns = zip(*((part.index, part.due_ns, part.value, part.missed) for _, part in parts), strict=True)
    arrays = [np.concatenate(column) for column in columns] or [np.empty(0, np.int64)] * 4
    return {
        "thread": np.repeat(np.array([series.thread for series, _ in parts], np.int64), sizes),
        "cpu": np.repeat(np.array([series.cpu for series, _ in parts], np.int64), sizes),
        "series": np.repeat(np.array([series.id for series, _ in parts], np.int64), sizes),
        **dict(zip(("activation", "due_ns", "latency_ns", "missed_after"), arrays, strict=True)),
    }
