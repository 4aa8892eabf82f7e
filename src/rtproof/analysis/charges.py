# SPDX-License-Identifier: Apache-2.0
"""Charging missed activations with their lateness: the schedule view.

After an activation with latency v, missed activation j (1, 2, ..., m) is charged v - j * period: the time from its own
due time until the thread ran again. Without it a stall of 400 ms at a period of 1 ms is one sample among thousands and
no percentile shows it ("coordinated omission").
"""

import numpy as np

from rtproof.analysis.runs import pieces
from rtproof.analysis.tally import PENDING, Tally
from rtproof.record import Block, Int64Array


def charge(tally: Tally, period_ns: int, block: Block) -> None:
    """Add the lateness of every missed activation of a block to a tally."""
    late, missed = block.values[block.gap_position], block.gap_missed
    long = missed > PENDING
    for v, m in zip(late[long].tolist(), missed[long].tolist(), strict=True):
        tally.add_progression(v - period_ns, period_ns, m)
    late, missed = late[~long], missed[~long]
    for part in pieces(missed, PENDING):
        tally.add(lateness(late[part], missed[part], period_ns))


def lateness(late: Int64Array, missed: Int64Array, period_ns: int) -> Int64Array:
    """Lateness of each missed activation after activations with these latencies, in order."""
    before = np.cumsum(missed) - missed
    order = np.arange(1, int(missed.sum()) + 1) - np.repeat(before, missed)
    return np.repeat(late, missed) - order * period_ns
