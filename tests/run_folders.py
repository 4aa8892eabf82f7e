# SPDX-License-Identifier: Apache-2.0
"""Run folders of made-up latencies, for the tests of whatever reads several runs."""

from pathlib import Path
from typing import Any

import numpy as np
from analysis_records import BEGIN, MS, SERIES

from rtproof.record import run_folder
from rtproof.record.contents import WHOLE_RUN, Begin, End, EndReason, Fact, Moment, Series
from rtproof.record.writing import RecordWriter, SeriesWriter

INFO = run_folder.RunInfo(
    command=["rtproof", "run"],
    started="2026-01-02T03:04:05+00:00",
    host="desk",
    user="me",
    rtproof_version="0.1.0",
    agent_sha256="0" * 64,
    agent_arch="x86_64",
    target="local",
)


def latencies(seed: int, n: int, factor: float = 1.0) -> np.ndarray[Any, np.dtype[np.int64]]:
    """A body around 20 us with a smooth tail, below a period."""
    drawn = np.random.default_rng(seed).gamma(4.0, 5_000.0 * factor, n)
    return np.minimum(drawn, MS - 1).astype(np.int64)


def write_record(
    path: Path,
    values: np.ndarray[Any, np.dtype[np.int64]],
    facts: dict[str, object] | None = None,
    series: Series = SERIES,
    begin: Begin = BEGIN,
) -> Path:
    """A record of one series that ended as asked. facts: as asked for the whole run."""
    with RecordWriter(str(path)) as writer:
        writer.begin(begin)
        for key, value in (facts or {}).items():
            writer.fact(Fact(0, WHOLE_RUN, Moment.ASKED, key, str(value)))
        writer.series(series)
        feed = SeriesWriter(writer, series)
        feed.add(values)
        writer.end(End(values.size * series.period_ns, EndReason.AS_ASKED, "", (feed.finish(),)))
    return path


def write_run(folder: Path, values: np.ndarray[Any, np.dtype[np.int64]], info: Any = INFO, **more: Any) -> Path:
    """A run folder; what else a record can have as of ``write_record``."""
    run_folder.create_run_folder(folder)
    run_folder.write_run_info(folder, info)
    write_record(folder / run_folder.RECORD_NAME, values, **more)
    return folder
