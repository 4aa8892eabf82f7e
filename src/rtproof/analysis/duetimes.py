# SPDX-License-Identifier: Apache-2.0
"""Due times off the grid: each follows from the one before, unless a block tells it anew.

Behind a sleep it is the last wake-up and a period (docs/record-format.md, SAMPLES). Events from outside come when they
like, so an agent begins a new block where they have drifted too far from their period. Such blocks may be short, and
are still joined to long arrays.
"""

from dataclasses import dataclass

import numpy as np

from rtproof.record import Block, Int64Array, Series


@dataclass(frozen=True)
class Told:
    """Positions in joined blocks at which one began, the first of them 0, and the due times that these blocks told."""

    positions: Int64Array
    due_ns: Int64Array


def off_grid(series: Series, block: Block, told: Told | None = None) -> Int64Array:
    """Due time of every sample of a block, or of joined blocks that told theirs."""
    derived: Int64Array = block.first_due_ns + np.concatenate(([0], np.cumsum(_steps(series, block))))
    if told is None:
        return derived
    lengths = np.diff(told.positions, append=block.values.size)
    shifted: Int64Array = derived + np.repeat(told.due_ns - derived[told.positions], lengths)
    return shifted


def _steps(series: Series, block: Block) -> Int64Array:
    """From each due time to that of the next sample."""
    if not series.by_period:
        return block.values[:-1] + series.period_ns
    steps = np.full(block.values.size - 1, series.period_ns)
    inside = block.gap_position < steps.size
    steps[block.gap_position[inside]] += block.gap_missed[inside] * series.period_ns
    return steps
