# SPDX-License-Identifier: Apache-2.0
"""One series from its samples."""

from collections.abc import Iterable

from rtproof.analysis import charges, lag, persecond, tops
from rtproof.analysis.blockcounts import BlockCounter, Plan
from rtproof.analysis.duetimes import Told, off_grid
from rtproof.analysis.part import Part, Reach, hull
from rtproof.analysis.stretch import activations, stretches
from rtproof.analysis.tally import Tally
from rtproof.errors import RecordError
from rtproof.record import Block, Int64Array, Series

LONGEST_GAP_NS = 400 * 86_400 * 1_000_000_000
"""A stall beyond this is no stall but nonsense, and its missed activations could not be counted."""


def part_of(  # noqa: PLR0913 - the last two are for large and for whole records only
    series: Series,
    blocks: Iterable[Block],
    slice_starts: Int64Array,
    k: int,
    *,
    lead: int = 0,
    plan: Plan | None = None,
) -> Part:
    """Numbers of some consecutive blocks; the first ``lead`` of them only lead into the pairs of the others.

    plan: how to count what is above some levels over time; without one there are no such counts.
    """
    observed, charged = Tally(), Tally()
    counter = BlockCounter(series, plan) if plan else None
    lags, seconds, reach, top = [], [], [], tops.empty(k)
    for stretch in stretches(blocks, slice_starts, lead):
        block = stretch.block
        _refuse_nonsense(series, block)
        observed.add(block.values)
        charges.charge(charged, series.period_ns, block)
        lags.append(lag.of_stretch(series, stretch))
        seconds.append(persecond.of_block(series, block, stretch.told))
        top = tops.of_block(series, block, top, stretch.told)
        reach.append(_reach(series, block, stretch.told))
        if counter:
            counter.add(block, stretch.told)
    told = observed.result(), charged.result(), 0, lag.merge(lags), persecond.merge(seconds), top, hull(reach)
    return Part(*told, counter.result() if counter else None)


def _refuse_nonsense(series: Series, block: Block) -> None:
    longest = int(block.gap_missed.max(initial=0)) * series.period_ns
    if longest > LONGEST_GAP_NS:
        days = longest // 86_400_000_000_000
        raise RecordError(f"thread {series.thread} claims a stall of {days} days: these are no samples")


def _reach(series: Series, block: Block, told: Told | None) -> Reach:
    if series.on_grid:
        return Reach(block.first_due_ns, block.first_due_ns + (activations(block) - 1) * series.period_ns)
    return Reach(block.first_due_ns, int(off_grid(series, block, told)[-1]))
