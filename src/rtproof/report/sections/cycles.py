# SPDX-License-Identifier: Apache-2.0
"""Lengths of the cycles of a periodic loop against a band around the period, and whether it ever stood still."""

from rtproof.analysis.cycles import says
from rtproof.analysis.model import Analysis, Cycles, Stall
from rtproof.analysis.phrases import duration, quantity
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text


def render(analysis: Analysis) -> list[Block]:
    found = analysis.cycles
    if found is None:
        return []
    blocks: list[Block] = [_stalled(stall) for stall in found.stalls]
    proxy = analysis.record.fact("proxy_of")
    if proxy:
        blocks.append(Text((f"A proxy of {proxy}.",)))
    return [*blocks, _table(found), Text((says(found), signature(found)))]


def _stalled(stall: Stall) -> Text:
    how = "then it went on" if stall.over else "until the end"
    where = f"thread {stall.thread}, from {stall.since_ns / figures.NS_PER_S:,.3f} s after measuring began, {how}"
    return Text((f"The loop stood still for {duration(stall.duration_ns)}: {where}.",), "bad", "STALLED")


def _table(found: Cycles) -> Table:
    limits = (f"shorter than {duration(found.low_ns)}", f"longer than {duration(found.high_ns)}")
    header = ("cycles", *limits, *figures.headings(figures.MS, "max", "min"), "catch-up pairs")
    row = (
        *map(figures.count, (found.counted, found.short, found.long)),
        *map(figures.MS.show, (found.max_ns, found.min_ns)),
        figures.count(found.catch_up_pairs),
    )
    several = f"the first of each thread, {found.ignored:,} in all,"
    first = several if found.loops > 1 else f"the first {found.ignored:,}"
    caption = f"Cycles of {duration(found.period_ns)}, from one run of the loop to the next; {first} are not counted"
    return Table(caption, header, (row,), tuple(range(len(header))), row_headers=False)


def signature(found: Cycles) -> str:
    """Loops that catch up show long cycles with short ones behind."""
    pairs = f"{quantity(found.catch_up_pairs, 'long cycle')} had a short one directly behind."
    if found.correlation is None:
        return pairs
    return (
        f"{pairs} Neighbouring cycles correlate by {found.correlation:.2f}; a loop that makes up for each delay in its "
        "next cycle shows -0.5."
    )
