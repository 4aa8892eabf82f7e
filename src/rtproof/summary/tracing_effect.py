# SPDX-License-Identifier: Apache-2.0
"""How tracing itself changes the latency: blocks of one run with and without tracing, compared in sets of four."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rtproof.core.units import whole_number
from rtproof.record.contents import WHOLE_RUN, Event, Int64Array, Record, Series
from rtproof.statistics import Interval
from rtproof.summary.fields import judged_series
from rtproof.summary.kernel_trace import has_recorder
from rtproof.summary.per_second import stretches
from rtproof.summary.recorded_facts import block_length_ns
from rtproof.summary.target_threads import FOREIGN

MOST_EXACT_PAIRS = 200
"""Up to this many pairs, the distribution of the rank sum is computed exactly. Beyond, it is practically normal."""


def paired_difference(differences: Sequence[float], confidence: float) -> Interval | None:
    """The shift that independent differences of pairs show; None if they are too few for an interval.

    The halves of a pair are exchangeable, so their difference is symmetric around the shift, whatever its distribution.
    One spoiled pair changes the estimate little (Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.1).
    """
    # The rank of the sorted average that ends the interval: by chance, the rank sum lies below it in half of the rest.
    pairs, tail = len(differences), (1 - confidence) / 2
    if pairs > MOST_EXACT_PAIRS:
        deviation = sqrt(pairs * (pairs + 1) * (2 * pairs + 1) / 24)
        rank = int(pairs * (pairs + 1) / 4 - NormalDist().inv_cdf(1 - tail) * deviation)
    else:
        # The probability of each sum of ranks, if each rank is in the sum or not by chance.
        chances = np.ones(1)
        for number in range(1, pairs + 1):
            nothing = np.zeros(number)
            chances = (np.concatenate((chances, nothing)) + np.concatenate((nothing, chances))) / 2
        rank = int(np.searchsorted(np.cumsum(chances), tail, side="right"))
    if rank < 1:
        return None
    values = np.asarray(differences, float)
    rows, columns = np.triu_indices(values.size)
    averages = np.sort((values[rows] + values[columns]) / 2)
    return Interval(float(np.median(averages)), float(averages[rank - 1]), float(averages[-rank]))


BLOCKS_OF_A_SET = 4
LEAST_SETS = 8
EFFECT_CONFIDENCE = 0.95
"""The confidence that the intervals of all statistics hold together. Each single one has more (Bonferroni)."""
GUARD_NS = 10_000_000
"""This much time after the latest switch is left out, until the effects of the switch are over."""
LATEST = 0.25
"""A switch that came later than this part of a block spoils that block, and only that block."""
MOST_BLOCKS = 4_000
MOST_SAMPLES = 20_000_000
FOR_P99 = 100
"""A block needs this many values for its 99th percentile."""
BLOCK = re.compile(r"block=(\d{1,9}); took_ns=(\d{1,18})")
SHORTEST_WITH_TURNS_NS = 8_000_000_000
"""A shorter run with --explain has no turns without tracing."""
EFFECT_METHOD = (
    "Hodges-Lehmann estimate over sets of four blocks, each two with and two without tracing, with the interval that "
    "inverts the signed-rank test; all intervals hold together at 95 %"
)
EFFECT_STATISTICS: Mapping[str, Callable[[Int64Array], float]] = {
    "mean": lambda values: float(values.mean()),
    "median": lambda values: float(np.median(values)),
    "99 %": lambda values: float(np.quantile(values, 0.99)),
    "maximum": lambda values: float(values.max()),
}


@dataclass(frozen=True)
class TracingEffect:
    """One statistic of a block, and how much tracing adds to it.

    statistic: ``mean``, ``median``, ``99 %`` or ``maximum`` of a block. without: its mean over the blocks that were not
    traced. with_trace: its mean over the blocks that were traced.
    difference: how much tracing adds. low: the lower end of the interval of the difference. high: the upper end of the
    interval of the difference.
    """

    statistic: str
    without: float
    with_trace: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class TracingEffects:
    """The comparison of blocks with and without tracing, over all threads.

    block_ns: the length of a block. left_out_ns: how much of the beginning of a block is left out.
    blocks: the number of blocks that were measured completely. sets: the compared sets of four neighbouring blocks, two
    of them traced.
    field: the field that a limit judges. effects: one for each statistic. refused: why there is no comparison, or "".
    """

    block_ns: int
    left_out_ns: int
    blocks: int
    sets: int
    field: str
    unit: str
    effects: tuple[TracingEffect, ...]
    refused: str = ""


Turns = dict[int, tuple[bool, int]]
"""Of blocks by their numbers: whether tracing was on, and how late it was switched, in ns."""
Balanced = tuple[list[int], list[int]]
"""A set of blocks: the numbers of those with tracing, and of those without."""


def tracing_effects(record: Record) -> TracingEffects | None:
    """The effect of tracing; None if the run did not switch tracing on and off by turns."""
    block_ns = block_length_ns(record)
    if not block_ns:
        return None
    turns = _turns(record, block_ns)
    left_out_ns = min(GUARD_NS, block_ns // 10) + max((late_ns for _, late_ns in turns.values()), default=0)
    sets = _sets(turns)
    judged = judged_series(record)
    values = _values(record, judged, max(turns, default=-1) + 1, block_ns, left_out_ns)
    there = [(on, off) for on, off in sets if all(block in values for block in (*on, *off))]
    enough = all(values[block].size >= FOR_P99 for on, off in there for block in (*on, *off))
    named = [name for name in EFFECT_STATISTICS if enough or name != "99 %"]
    effects = tuple(effect for name in named if (effect := _effect(name, values, there)))
    why = ""
    if len(sets) < LEAST_SETS:
        why = f"it takes {LEAST_SETS} sets of four whole blocks and there are {len(sets)}: measure for longer"
    elif not effects:
        why = "the record holds too few samples of the blocks to compare them"
    field, unit = (judged[0].field, judged[0].unit) if judged else ("latency", "ns")
    return TracingEffects(block_ns, left_out_ns, len(turns), len(there), field, unit, effects, why)


def in_untraced_turns(record: Record, due_ns: Int64Array) -> NDArray[np.bool_]:
    """Which of these due times (ns from the origin) lie in a turn without tracing."""
    block_ns = block_length_ns(record)
    if not block_ns:
        return np.zeros(due_ns.size, bool)
    off = np.array([block for event, block, _ in _switches(record) if event.kind == "trace_off"], np.int64)
    return np.isin(due_ns // block_ns, off)


def untraced_times(record: Record) -> list[tuple[int, int]]:
    """From when to when nothing was traced between turns with tracing, in ns from the origin, in order."""
    if not block_length_ns(record):
        return []
    at_once = has_recorder(record)
    found: list[tuple[int, int]] = []
    off_ns: int | None = None
    for event, _, took_ns in _switches(record):
        if event.kind == "trace_off" and off_ns is None:
            off_ns = event.time_ns if at_once else event.time_ns - took_ns
        elif event.kind == "trace_on" and off_ns is not None:
            found.append((off_ns, event.time_ns - took_ns if at_once else event.time_ns))
            off_ns = None
    return [each for each in found if each[0] < each[1]]


def observer_line(record: Record) -> str:
    """What tracing adds to the median, as ``tracing adds 4.1 us (3.9 to 4.3)``, or why that is unknown."""
    found = tracing_effects(record)
    if found is None:
        if record.fact("probe") == FOREIGN:
            return "cost of tracing unknown: without a trace nothing is measured"
        length_ns = whole_number(record.fact("duration_ns") or "") or 0
        return "cost of tracing unknown" + (": run 8 s or more" if 0 < length_ns < SHORTEST_WITH_TURNS_NS else "")
    median = next((each for each in found.effects if each.statistic == "median"), None)
    if median is None:
        return f"cost of tracing unknown: {found.refused or 'too few turns have values'}"
    adds, low, high = (each / 1_000 for each in (median.difference, median.low, median.high))
    return f"tracing adds {adds:,.1f} us ({low:,.1f} to {high:,.1f}) to the median"


def _sets(turns: Turns) -> list[Balanced]:
    """Sets of four blocks that are all there, two of them with tracing."""
    found = []
    for first in range(0, max(turns, default=0) + 1, BLOCKS_OF_A_SET):
        four = [block for block in range(first, first + BLOCKS_OF_A_SET) if block in turns]
        on, off = ([block for block in four if turns[block][0] is way] for way in (True, False))
        if len(on) == len(off) == BLOCKS_OF_A_SET // 2:
            found.append((on, off))
    return found


def _switches(record: Record) -> Iterator[tuple[Event, int, int]]:
    """The events by which tracing was switched, the block that each began, and how long it took in ns."""
    for event in record.events:
        match = BLOCK.fullmatch(event.text) if event.kind in ("trace_on", "trace_off") else None
        if match:
            yield event, int(match[1]), int(match[2])


def _turns(record: Record, block_ns: int) -> Turns:
    """The blocks that are complete and were switched in time."""
    end_ns = record.end.time_ns if record.end else 0
    found: Turns = {}
    for event, block, _ in _switches(record):
        late_ns = event.time_ns - block * block_ns
        in_time = late_ns <= LATEST * block_ns and (block + 1) * block_ns <= end_ns
        if event.thread == WHOLE_RUN and in_time:
            found[block] = event.kind == "trace_on", late_ns
    # The samples of so many blocks fit into memory.
    each = sum(block_ns // max(series.period_ns, 1) + 1 for series in record.series)
    most = min(MOST_BLOCKS, MOST_SAMPLES // max(each, 1))
    return {block: found[block] for block in sorted(found) if block < most}


def _values(
    record: Record, group: tuple[Series, ...], blocks: int, block_ns: int, left_out_ns: int
) -> dict[int, Int64Array]:
    """The values of all threads, by the number of the block in which they were due, without the left-out parts."""
    parts: dict[int, list[Int64Array]] = defaultdict(list)
    for series in group:
        pieces = takewhile(lambda piece: piece.first_due_ns < blocks * block_ns, record.blocks(series.id))
        for some, _ in stretches(series, pieces):
            number = some.due_ns // block_ns
            kept = (some.due_ns % block_ns >= left_out_ns) & (number < blocks)
            for block in np.unique(number[kept]).tolist():
                parts[block].append(some.value[kept & (number == block)])
    return {block: np.concatenate(found) for block, found in parts.items()}


def _effect(name: str, values: dict[int, Int64Array], sets: list[Balanced]) -> TracingEffect | None:
    statistic = EFFECT_STATISTICS[name]
    on = [float(np.mean([statistic(values[block]) for block in traced])) for traced, _ in sets]
    off = [float(np.mean([statistic(values[block]) for block in others])) for _, others in sets]
    each = 1 - (1 - EFFECT_CONFIDENCE) / len(EFFECT_STATISTICS)
    found = paired_difference([x - y for x, y in zip(on, off, strict=True)], each) if len(sets) >= LEAST_SETS else None
    if found is None:
        return None
    return TracingEffect(name, float(np.mean(off)), float(np.mean(on)), found.difference, found.low, found.high)
