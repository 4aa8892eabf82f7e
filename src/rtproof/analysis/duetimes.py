# SPDX-License-Identifier: Apache-2.0
"""Due times off the grid: each follows from the one before, its value and the period, unless a block tells it anew.

Events from outside come when they like, so an agent begins a new block where the derived due times have drifted too far
(docs/record-format.md, SAMPLES). Such blocks are a few samples long, and are still joined to long arrays.
"""

from dataclasses import dataclass

import numpy as np

from rtproof.record import Block, Int64Array


@dataclass(frozen=True)
class Told:
    """Positions in joined blocks at which one began, the first of them 0, and the due times that these blocks told."""

    positions: Int64Array
    due_ns: Int64Array


def off_grid(period_ns: int, block: Block, told: Told | None = None) -> Int64Array:
    """Due time of every sample of a block, or of joined blocks that told theirs."""
    derived: Int64Array = block.first_due_ns + np.concatenate(([0], np.cumsum(block.values[:-1] + period_ns)))
    if told is None:
        return derived
    lengths = np.diff(told.positions, append=block.values.size)
    shifted: Int64Array = derived + np.repeat(told.due_ns - derived[told.positions], lengths)
    return shifted
