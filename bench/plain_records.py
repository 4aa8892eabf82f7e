# SPDX-License-Identifier: Apache-2.0
"""Records of plain arrays of latencies, one thread, each activation a period after the one before."""

from dataclasses import replace
from pathlib import Path

from rtproof.record.contents import Begin, End, EndReason, Int64Array, Series
from rtproof.record.writing import RecordWriter, SeriesWriter

MS = 1_000_000
BEGIN = Begin(1, 0, bytes(16), 1_700_000_000_000_000_000, 0, "0.1.0", "x86_64", "6.12.0-rt", "#1 SMP PREEMPT_RT")
SERIES = Series(0, 0, 0, True, True, MS, 0, "timer", "clock_nanosleep", "latency", "ns")


def write_run(path: Path, values: Int64Array, *, limit_ns: int, samples: bool, period_ns: int = MS) -> None:
    """samples: whether the record has them, or the summary only."""
    series = replace(SERIES, has_samples=samples, period_ns=period_ns)
    with RecordWriter(path) as writer:
        writer.begin(BEGIN)
        writer.series(series)
        feed = SeriesWriter(writer, series, limits_ns=(limit_ns,))
        feed.add(values)
        writer.end(End(values.size * period_ns, EndReason.AS_ASKED, "as asked", (feed.finish(),)))
