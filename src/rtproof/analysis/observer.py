# SPDX-License-Identifier: Apache-2.0
"""What tracing itself does to the latency: blocks of one run with and without it, compared pair by pair.

The agent traces by turns, in an order that is balanced in every four blocks (docs/record-format.md, trace). Each two
blocks that follow on from each other are one with and one without, so what drifts slowly falls out of their difference.
As much of the beginning of each is left out, because switching changes the kernel's code, which costs time of its own.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from rtproof.analysis.fields import by_field
from rtproof.analysis.signedrank import shift
from rtproof.record import WHOLE_RUN, Int64Array, Record, Series
from rtproof.record.slicing import activations

LEAST_PAIRS = 8
CONFIDENCE = 0.95
GUARD_NS = 10_000_000
"""Left out behind the latest switch, for what it set off to die away."""
LATEST = 0.25
"""A switch that came later than this part of a block spoils that block alone."""
MOST_BLOCKS = 4_000
MOST_SAMPLES = 20_000_000
FOR_P99 = 100
"""Values that a block needs for its 99th percentile."""
BLOCK = re.compile(r"block=(\d+); took_ns=\d+")
METHOD = (
    f"Hodges-Lehmann estimate over pairs of neighbouring blocks, with the {CONFIDENCE:.0%} interval that inverts the "
    "signed-rank test"
).replace("%", " %")
STATISTICS: Mapping[str, Callable[[Int64Array], float]] = {
    "mean": lambda values: float(values.mean()),
    "median": lambda values: float(np.median(values)),
    "99 %": lambda values: float(np.quantile(values, 0.99)),
    "maximum": lambda values: float(values.max()),
}


@dataclass(frozen=True)
class Effect:
    """One statistic of a block: its mean over the blocks without and with tracing, and how much tracing adds."""

    statistic: str
    without: float
    with_trace: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class FieldEffects:
    """All statistics of one field, all threads together."""

    field: str
    unit: str
    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Observer:
    """The comparison, or in ``refused`` why there is none.

    left_out_ns: of the beginning of each block. blocks: those that were measured whole; pairs: those compared.
    """

    block_ns: int
    left_out_ns: int
    blocks: int
    pairs: int
    fields: tuple[FieldEffects, ...]
    refused: str = ""


@dataclass(frozen=True)
class Turn:
    """One block: its number, whether tracing was on, and how late it was switched."""

    block: int
    on: bool
    late_ns: int


def observer(record: Record) -> Observer | None:
    """The effect of tracing; None if tracing was not switched by turns."""
    block_ns = _block_ns(record)
    if not block_ns:
        return None
    turns = _turns(record, block_ns)
    left_out_ns = min(GUARD_NS, block_ns // 10) + max((turn.late_ns for turn in turns.values()), default=0)
    pairs = [(a, a + 1) for a in turns if a % 2 == 0 and a + 1 in turns and turns[a].on != turns[a + 1].on]
    if len(pairs) < LEAST_PAIRS:
        why = f"{len(pairs)} pairs of whole blocks are too few, {LEAST_PAIRS} are the least: measure for longer"
        return Observer(block_ns, left_out_ns, len(turns), len(pairs), (), why)
    fields = [_effects(record, group, pairs, turns, (block_ns, left_out_ns)) for group in by_field(record)]
    compared = min((len(found) for found, _ in fields), default=0)
    effects = tuple(field for _, field in fields if field.effects)
    why = "" if effects else "the record holds too few samples of the blocks to compare them"
    return Observer(block_ns, left_out_ns, len(turns), compared, effects, why)


def _block_ns(record: Record) -> int:
    told = record.fact("trace_blocks_ns") or ""
    return int(told) if told.isdecimal() else 0


def _turns(record: Record, block_ns: int) -> dict[int, Turn]:
    """Blocks that are whole and were switched in time."""
    end_ns = record.end.time_ns if record.end else 0
    found: dict[int, Turn] = {}
    for event in record.events:
        match = BLOCK.fullmatch(event.text) if event.kind in ("trace_on", "trace_off") else None
        if not match or event.thread != WHOLE_RUN:
            continue
        turn = Turn(int(match[1]), event.kind == "trace_on", event.time_ns - int(match[1]) * block_ns)
        if turn.late_ns <= LATEST * block_ns and (turn.block + 1) * block_ns <= end_ns:
            found[turn.block] = turn
    most = min(MOST_BLOCKS, _most_blocks(record, block_ns))
    return {block: found[block] for block in sorted(found) if block < most}


def _most_blocks(record: Record, block_ns: int) -> int:
    """Blocks whose samples fit memory."""
    each = sum(block_ns // max(series.period_ns, 1) + 1 for series in record.series)
    return MOST_SAMPLES // max(each, 1)


def _effects(
    record: Record,
    group: tuple[Series, ...],
    pairs: list[tuple[int, int]],
    turns: dict[int, Turn],
    lengths_ns: tuple[int, int],
) -> tuple[list[tuple[int, int]], FieldEffects]:
    """The pairs that have values of this field, and what these say."""
    values = _values(record, group, max(turns) + 1, *lengths_ns)
    there = [pair for pair in pairs if all(block in values for block in pair)]
    enough = all(values[block].size >= FOR_P99 for pair in there for block in pair)
    named = [name for name in STATISTICS if enough or name != "99 %"]
    effects = (_effect(name, values, there, turns) for name in named)
    return there, FieldEffects(group[0].field, group[0].unit, tuple(effect for effect in effects if effect))


def _values(
    record: Record, group: tuple[Series, ...], blocks: int, block_ns: int, left_out_ns: int
) -> dict[int, Int64Array]:
    """Values of all threads by the block that they were due in, but for what is left out."""
    parts: dict[int, list[Int64Array]] = defaultdict(list)
    for series in group:
        for block, values in _by_block(record, series, block_ns, left_out_ns):
            if 0 <= block < blocks:
                parts[block].append(values)
    return {block: np.concatenate(found) for block, found in parts.items()}


def _by_block(record: Record, series: Series, block_ns: int, left_out_ns: int) -> Iterator[tuple[int, Int64Array]]:
    for piece in record.blocks(series.id):
        missed = np.zeros(piece.values.size, np.int64)
        missed[piece.gap_position] = piece.gap_missed
        due_ns = activations(series, piece.first_index, piece.first_due_ns, piece.values, missed).due_ns
        kept = due_ns % block_ns >= left_out_ns
        numbers, values = due_ns[kept] // block_ns, piece.values[kept]
        for number in np.unique(numbers):
            yield int(number), values[numbers == number]


def _effect(
    name: str, values: dict[int, Int64Array], pairs: list[tuple[int, int]], turns: dict[int, Turn]
) -> Effect | None:
    statistic = STATISTICS[name]
    of_block = {block: statistic(values[block]) for pair in pairs for block in pair}
    on = [of_block[a if turns[a].on else b] for a, b in pairs]
    off = [of_block[b if turns[a].on else a] for a, b in pairs]
    found = shift([x - y for x, y in zip(on, off, strict=True)], CONFIDENCE) if len(pairs) >= LEAST_PAIRS else None
    if found is None:
        return None
    return Effect(name, float(np.mean(off)), float(np.mean(on)), found.estimate, found.low, found.high)
