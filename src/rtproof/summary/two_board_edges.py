# SPDX-License-Identifier: Apache-2.0
"""The edges of a run on two boards, whose clocks share nothing: both response times in ns, side by side."""

from dataclasses import dataclass

import numpy as np

from rtproof.record.contents import Int64Array, Record
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.moments import moments_of_values
from rtproof.summary.per_second import join_blocks
from rtproof.summary.summary_model import Moments, Summary

GENERATED = "generate_pattern"
"""The method of the board that gives the edges."""
PATIENCE_NS = 5_000_000_000
"""So long a generator waits for an answer (agent/probes/gpio.c)."""


@dataclass(frozen=True)
class EdgeTimes:
    """One of the times of edges.

    name: ``response``, by the generator's clock, or ``responder's own``, by the responder's.
    """

    name: str
    counts: Counts
    moments: Moments


@dataclass(frozen=True)
class BoardEdges:
    """Both series.

    response: by the generator's clock, of each edge with an answer. own: by the responder's clock, from its interrupt
    handler until its output was driven, of each edge that it answered.
    never_answered_ns: when edges were given for whose answer the generator waited in vain. not_given: how many were due
    and never given, as those of the time in which it waited.
    """

    response: EdgeTimes
    own: EdgeTimes
    never_answered_ns: Int64Array
    not_given: int

    @property
    def times(self) -> tuple[EdgeTimes, ...]:
        """Those of both series that have values."""
        return tuple(each for each in (self.response, self.own) if each.moments.count)

    @property
    def answered(self) -> int:
        """How many edges had an answer."""
        return self.response.moments.count

    @property
    def given(self) -> int:
        """How many edges the generator gave."""
        return self.answered + self.never_answered_ns.size


def edges_of_boards(generator: Record, not_given: int, responder: Summary) -> BoardEdges:
    """The edges of a generator's record beside the answers of all threads of the responder."""
    given_ns, response_ns = _samples(generator)
    answered = response_ns < PATIENCE_NS
    account = next((file.content for file in generator.files if file.path == "gpio/thread0"), b"")
    if answered.size and b"cut_off 1" in account.splitlines():
        # The last edge had no answer when the run ended, and was not given up.
        answered[-1] = False
    values = response_ns[answered]
    response = EdgeTimes("response", counts_of_values(values), moments_of_values(values))
    own = EdgeTimes("responder's own", responder.observed_counts, responder.observed)
    return BoardEdges(response, own, given_ns[~answered], not_given)


def _samples(record: Record) -> tuple[Int64Array, Int64Array]:
    given: list[Int64Array] = [np.zeros(0, np.int64)]
    values: list[Int64Array] = [np.zeros(0, np.int64)]
    for series in record.series:
        for block in record.blocks(series.id) if series.has_samples else ():
            some, _ = join_blocks(series, [block])
            given.append(some.due_ns)
            values.append(some.value)
    return np.concatenate(given), np.concatenate(values)
