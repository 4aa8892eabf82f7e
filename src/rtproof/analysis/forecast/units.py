# SPDX-License-Identifier: Apache-2.0
"""The units of a forecast: the largest latency of each second, over all threads.

Bursts shorter than a second are then one value, so that neighbouring values depend on each other far less than samples
do, and rates come per second of themselves.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rtproof.analysis.counts import Counts, from_values
from rtproof.analysis.model import Summary
from rtproof.record import Int64Array


@dataclass(frozen=True)
class Units:
    """Seconds in which anything ran, and the largest latency of each; measured_ns: the time they stand for."""

    second: Int64Array
    largest_ns: Int64Array
    measured_ns: int

    @property
    def count(self) -> int:
        return int(self.second.size)

    @property
    def unit_ns(self) -> float:
        """The time that one of them stands for: a second, or more where activations are further apart."""
        return self.measured_ns / max(self.count, 1)

    @cached_property
    def step_ns(self) -> int:
        """Of the clock, as the values show it: the least distance between two of them.

        Values on a grid are never nearer to each other. Those of a fine clock are, unless they are few and far apart,
        and then so small a step changes nothing.
        """
        distinct = np.unique(self.largest_ns)
        return int(np.diff(distinct).min()) if distinct.size > 1 else 1

    @cached_property
    def counts(self) -> Counts:
        """How often each value occurred."""
        return from_values(self.largest_ns)

    def probability(self, horizon_ns: int) -> float:
        """That one unit exceeds a level which is exceeded once in the horizon."""
        return self.unit_ns / horizon_ns


def units_of(pooled: Summary) -> Units:
    """The one-second maxima of a run."""
    seconds = pooled.seconds
    ran = seconds.obtained > 0
    return Units(seconds.second[ran], seconds.max[ran], pooled.span_ns)
