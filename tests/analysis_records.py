# SPDX-License-Identifier: Apache-2.0
"""Records made of plain numbers, for the tests of analysis: no file, no agent."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from rtproof.analysis.counts import Counts
from rtproof.record import (
    Begin,
    Block,
    ChunkRef,
    End,
    EndReason,
    Fact,
    Int64Array,
    Moment,
    Record,
    Seconds,
    Series,
    SeriesTotals,
    Slice,
    Top,
    View,
    WHOLE_RUN,
    bins,
)

MS = 1_000_000
SECOND = 1_000_000_000
BEGIN = Begin(1, 0, bytes(16), 1_700_000_000 * SECOND, 0, "0.1.0", "x86_64", "6.1.0-rt", "#1 SMP PREEMPT_RT")
SERIES = Series(0, 0, 0, True, True, MS, 0, "timer", "nanosleep_abs", "latency", "ns")


def array(*values: int) -> Int64Array:
    return np.array(values, np.int64)


def block(
    values: Iterable[int], gaps: dict[int, int] | None = None, first_index: int = 0, series: Series = SERIES
) -> Block:
    """A block on the grid; gaps: position and how many activations were missed behind it."""
    gaps = gaps or {}
    return Block(
        series.id,
        first_index,
        series.first_due_ns + first_index * series.period_ns,
        np.array(list(values), np.int64),
        array(*sorted(gaps)),
        array(*(gaps[at] for at in sorted(gaps))),
    )


def record(blocks: Sequence[Block], series: Sequence[Series] = (SERIES,), **parts: object) -> Record:
    """A record of these blocks that ended as asked, with whatever other parts a test gives it."""
    refs = tuple(ChunkRef(number, 1, b.series, b.first_index, b.values.size) for number, b in enumerate(blocks))

    def read(wanted: tuple[ChunkRef, ...]) -> Iterator[Block]:
        return (blocks[ref.offset] for ref in wanted)

    whole = Record("", 0, BEGIN, (), (), tuple(series), (), {}, {}, (), (), end(blocks), (), refs, read)
    return replace(whole, **parts)  # type: ignore[arg-type]


def end(blocks: Sequence[Block], reason: EndReason = EndReason.AS_ASKED) -> End:
    ids = sorted({b.series for b in blocks})
    totals = tuple(
        SeriesTotals(
            i,
            sum(b.values.size for b in blocks if b.series == i),
            int(sum(b.gap_missed.sum() for b in blocks if b.series == i)),
            0,
        )
        for i in ids
    )
    last = max((b.first_due_ns + (b.values.size + int(b.gap_missed.sum())) * MS for b in blocks), default=0)
    return End(last, reason, "", totals)


def fact(key: str, value: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> Fact:
    return Fact(0, thread, moment, key, value)
