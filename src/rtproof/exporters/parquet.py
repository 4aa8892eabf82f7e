# SPDX-License-Identifier: Apache-2.0
"""Every sample in a Parquet file (zstd), for duckdb, pandas, R and the like; needs the package duckdb."""

import glob
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rtproof.analysis.model import Analysis
from rtproof.errors import UserError
from rtproof.exporters import _common
from rtproof.record import Record

SUFFIX = ".parquet"
OPTIONS: dict[str, str] = {}
PART_ROWS = 4_000_000
"""Rows that are held in memory at once (160 MB)."""
FORMAT = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 3, ROW_GROUP_SIZE 1000000"
COLUMNS = "thread::USMALLINT AS thread, cpu::INTEGER AS cpu, activation, due_ns, latency_ns, missed_after"


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the samples, thread after thread. Parts go to a folder beside the file first, which bounds the memory."""
    duckdb = _duckdb()
    _common.require_samples(analysis.record, "parquet")
    try:
        with _common.new_path(path), _parts_folder(path) as folder, duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            written = _write_parts(connection, analysis.record, folder)
            _join_parts(connection, analysis.record, folder, path)
    except duckdb.Error as error:
        raise UserError(f"duckdb cannot write {path}: {str(error).splitlines()[0]}") from error
    return f"{path}: {_common.sample_note(analysis, written)}; facts about the run are not in it"


@contextmanager
def _parts_folder(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix=".rtproof-", dir=path.parent) as folder:
        yield Path(folder)


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise UserError(f"parquet needs the package duckdb, which cannot be loaded: {error}") from error
    return duckdb


def _write_parts(connection: Any, record: Record, folder: Path) -> int:
    written = 0
    for number, part in enumerate(_parts(record)):
        connection.register("part", part)
        connection.execute(f"COPY (SELECT {COLUMNS} FROM part) TO '{_quoted(folder / f'{number:06}')}' ({FORMAT})")
        connection.unregister("part")
        written += part["latency_ns"].size
    return written


def _join_parts(connection: Any, record: Record, folder: Path, path: Path) -> None:
    """One file out of all parts, in their order; duckdb streams, so this takes no memory to speak of."""
    run_id = record.begin.run_id.hex()
    about = f"KV_METADATA {{rtproof_run_id: '{run_id}', origin_realtime_ns: '{record.begin.origin_realtime_ns}'}}"
    parts = f"read_parquet('{_quoted(glob.escape(str(folder)))}/*')"
    connection.execute(f"COPY (SELECT * FROM {parts}) TO '{_quoted(path)}' ({FORMAT}, {about})")


def _quoted(path: Path | str) -> str:
    return str(path).replace("'", "''")


def _parts(record: Record) -> Iterator[dict[str, Any]]:
    """Samples in large pieces, at least one, so that a run without samples gives a file without rows."""
    pending: list[_common.Columns] = []
    rows = 0
    for part in _common.all_columns(record):
        pending.append(part)
        rows += part.latency_ns.size
        if rows >= PART_ROWS:
            yield _table(pending)
            pending, rows = [], 0
    yield _table(pending)


def _table(parts: list[_common.Columns]) -> dict[str, Any]:
    """Columns by name. thread and cpu have one value in each piece, so they are repeated here and not before."""
    sizes = [part.latency_ns.size for part in parts]
    table: dict[str, Any] = {
        "thread": np.repeat(np.array([part.thread for part in parts], np.int64), sizes),
        "cpu": np.repeat(np.array([part.cpu for part in parts], np.int64), sizes),
    }
    for name in ("activation", "due_ns", "latency_ns", "missed_after"):
        arrays = [getattr(part, name) for part in parts]
        table[name] = np.concatenate(arrays) if arrays else np.empty(0, np.int64)
    return table
