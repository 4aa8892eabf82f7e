# SPDX-License-Identifier: Apache-2.0
"""What ``cyclictest -v`` prints: every value, as the number of the thread, of the cycle and the value.

The numbers of the cycles are those of the thread, so a number that is missing was measured and not printed: the buffer
of cyclictest was full, or it was told to print fewer (option -o: of so many values the largest). The interval that it
prints before is that of the next thread, so it is not used; that of the last lines (T: ...) is. (Format: rt-tests,
src/cyclictest/cyclictest.c, print_stat.)
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import UserError
from rtproof.importers import LARGEST_BYTES, cyclictest
from rtproof.importers._pasted import tool_lines
from rtproof.importers._tool_output import figures_of_values, imported_measurement, notes_that_apply, whole_number
from rtproof.importers.cyclictest import BIN_NS, MICROSECONDS, OMITTED, SAMPLE, last_lines
from rtproof.summary.imported_histogram import ImportedHistogram

TOOL = "cyclictest -v"
MOST_BYTES = LARGEST_BYTES
MOST_THREADS = 65_536
NOT_PRINTED = (
    "{0:,} of its {1:,} cycles were not printed: its buffer was full, or it printed of several values only the largest "
    "(option -o)"
)

LINES = tool_lines(r" *\d+: *\d|T: *\d", [SAMPLE, cyclictest.LINES.read])


def looks_like(text: str) -> bool:
    return bool(SAMPLE.search(text))


def read(text: str) -> ImportedHistogram:
    """The measurement in the text; UserError if the cycles of a thread do not increase."""
    of_threads = _of_threads(_table(text))
    lines = last_lines(text)
    parts, cycles = [], 0
    for number, table in of_threads.items():
        line = lines.get(number)
        part = figures_of_values(number, table[:, 1], BIN_NS)
        parts.append(replace(part, period_ns=line.period_us * BIN_NS if line else None))
        # As many as the last one printed tells, or as its own line says at the end.
        cycles += max(int(table[-1, 0]) + 1, line.count if line else 0)
    missing = cycles - sum(map(len, of_threads.values()))
    first, shortest_ns = lines.get(0), min((part.period_ns or 0 for part in parts), default=0) or None
    return imported_measurement(
        TOOL,
        "values",
        parts,
        BIN_NS,
        priority=first.priority if first else None,
        period_ns=shortest_ns if len(parts) == 1 else None,
        shortest_period_ns=shortest_ns,
        left_out=missing,
        notes=notes_that_apply({MICROSECONDS: True, OMITTED: True, NOT_PRINTED.format(missing, cycles): missing > 0}),
    )


def _table(text: str) -> NDArray[np.int64]:
    """A row for each value: thread, cycle, value in microseconds."""
    numbers = (whole_number(word) for row in SAMPLE.finditer(text) for word in row.groups())
    try:
        return np.fromiter(numbers, np.int64).reshape(-1, 3)
    except OverflowError:
        raise UserError("a value is larger than any clock can show: an early wake-up that lost its sign") from None


def _of_threads(table: NDArray[np.int64]) -> dict[int, NDArray[np.int64]]:
    """Cycles and values of each thread."""
    threads = np.unique(table[:, 0])
    if threads.size > MOST_THREADS:
        raise UserError(f"it has {threads.size:,} threads")
    found = {int(number): table[table[:, 0] == number, 1:] for number in threads}
    if any(np.any(np.diff(cycles[:, 0]) <= 0) for cycles in found.values()):
        raise UserError("the cycles of a thread do not increase: it has several runs, or was put together")
    return found
