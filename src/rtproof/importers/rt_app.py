# SPDX-License-Identifier: Apache-2.0
"""The log that rt-app writes of each of its threads.

A row stands for one phase of the thread, whose lengths are in microseconds. ``wu_lat`` is how late the timer woke the
thread, and ``slack`` how much of the period was left when its work was done: below 0, the work ended after its period.
The log has every value, so its histogram is exact to a microsecond. (Format: rt-app, src/rt-app_utils.c,
log_timing.)
"""

import re
from collections.abc import Iterator

import numpy as np

from rtproof.core.errors import UserError
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import (
    LARGEST_NS,
    figures_of_values,
    imported_measurement,
    refuse_several,
    whole_number,
)
from rtproof.summary.counts import NO_COUNTS
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures

TOOL = "rt-app"
US_NS = 1_000
MOST_ROWS = 2_000_000
ONE_THREAD = "it is the log of one thread; others of the same run have logs of their own"
SEVERAL_TIMERS = "of a phase with several timers it has one latency: the sum of theirs"
SLACK = (
    "the work of {0:,} of {1:,} phases ended after their period, the latest {2:,} us after: rt-app writes no latency "
    "then, so they are in no bin"
)

_POLICY = re.compile(r"^# Policy : (\S{1,40})(?: priority : (-?\d{1,3}))?", re.M)
_HEAD = re.compile(r"^#idx +perf +run +period +(.*)$", re.M)

LINES = tool_lines(r" *\d", [r"^ *\d+(?: +-?\d+)+ *$"])


def looks_like(text: str) -> bool:
    return bool(_HEAD.search(text[:4_096]))


def read(text: str) -> ImportedHistogram:
    """The measurement in the log; UserError if it has no column of wake-up latencies, or rows without sense."""
    head = _HEAD.search(text)
    refuse_several(_HEAD.findall(text))
    columns = head[0].removeprefix("#").split() if head else []
    if not head or "wu_lat" not in columns:
        raise UserError("it has no column wu_lat: no thread of it waited for a timer, or its version is too old")
    late, spans, slacks, starts = (
        np.fromiter(_numbers(text[head.end() :], name, columns), np.int64)
        for name in ("wu_lat", "c_period", "slack", "start")
    )
    # A phase without a timer is a row of zeros. One with several timers has the sum of their latencies.
    timed, overran = spans > 0, slacks < 0
    if not timed.any():
        raise UserError("it has no row: the thread never ran")
    # rt-app does not sleep when the time has passed already, and writes 0 for the latency.
    slept = late[timed & ~overran]
    if slept.size and int(slept.min()) < 0:
        raise UserError("a wake-up latency is below 0")
    no_value = PrintedFigures(count=0, overflow=0, histogram=NO_COUNTS)
    # All phases with a period have the same one, or it is not told.
    periods_us = {int(each) for each in np.unique(spans) if each > 0}
    period_ns = periods_us.pop() * US_NS if len(periods_us) == 1 else None
    span_us, policy = int(starts[-1]) - int(starts[0]), _POLICY.search(text)
    n = int((timed & overran).sum())
    return imported_measurement(
        TOOL,
        "thread with a timer",
        [figures_of_values(0, slept, US_NS) if slept.size else no_value],
        US_NS,
        period_ns=period_ns,
        shortest_period_ns=period_ns,
        priority=int(policy[2]) if policy and policy[2] else None,
        overruns=n,
        duration_ns=span_us * US_NS + (period_ns or 0) or None if span_us >= 0 else None,
        facts=(("policy", policy[1]),) if policy else (),
        notes=(ONE_THREAD, SEVERAL_TIMERS, *([SLACK.format(n, int(timed.sum()), -int(slacks.min()))] if n else [])),
    )


def _numbers(rows: str, name: str, columns: list[str]) -> Iterator[int]:
    if name not in columns:
        raise UserError(f"it has no column {name}")
    at = columns.index(name)
    for number, line in enumerate(rows.splitlines()):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != len(columns):
            raise UserError(f"a row has {len(words)} numbers, and its head names {len(columns)} columns")
        if number > MOST_ROWS:
            raise UserError(f"it has more than {MOST_ROWS:,} rows")
        value = whole_number(words[at])
        if abs(value) > LARGEST_NS:
            raise UserError(f"a number of its column {name} is larger than any clock can show")
        yield value
