# SPDX-License-Identifier: Apache-2.0
"""Pair the records of two boards: which edge of the generator is which edge of the responder.

``edge_alignment`` finds when the responder's edges were by the generator's clock. Then each belongs to the edge whose
answer the generator was waiting for at that time: it never gives one before it has the answer to the last.

All times are nanoseconds.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rtproof.record.contents import Block, Int64Array, Record
from rtproof.summary.counts import Counts, counts_of_values
from rtproof.summary.edge_alignment import NEAR, Float64Array, Given, Seen, find_alignment, nearest_edge
from rtproof.summary.moments import moments_of_values
from rtproof.summary.summary_model import Moments

GENERATED, ANSWERED = "generate_pattern", "respond_pattern"
"""The methods whose records can be paired."""
TRACKED_TO = 100
"""The clocks are surely followed to this part of a period."""
BESIDE = 64
"""So many edges before and so many behind tell whether the clocks are followed: ..."""
FOLLOWED_SHARE = 0.7
"""... so many of each are in place. By chance a quarter would be."""
MOST_LATEST = 10
NOTHING: Int64Array = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class EdgePairs:
    """What two records say of the same edges. given, seen: indices of the two edges of each pair.

    sent_ns, response_ns: by the generator's clock. own_ns: how much of the response is the responder's own.
    answers_ns: the response times of all edges with an answer, paired or not. never_answered_ns: when edges were given
    for which the generator waited in vain. edges: how many it gave. not_given: how many were due and never given, as
    those of the time in which it waited. unseen: edges with an answer that are not in the
    responder's record. unknown: edges in the responder's record that are not in the generator's, such as those of its
    warm-up. rate: how much faster the responder's clock runs, as a share. refused: why the records could not be paired;
    then there are no pairs.
    """

    given: Int64Array
    seen: Int64Array
    sent_ns: Int64Array
    response_ns: Int64Array
    own_ns: Int64Array
    answers_ns: Int64Array
    never_answered_ns: Int64Array
    edges: int
    unseen: int
    unknown: int
    rate: float = 0.0
    refused: str = ""
    not_given: int = 0

    @property
    def rest_ns(self) -> Int64Array:
        """What is not the responder's own: both wires, its interrupt's way, and the generator's."""
        return self.response_ns - self.own_ns

    @property
    def latest(self) -> Int64Array:
        """The pairs with the longest responses, the longest first."""
        return np.argsort(-self.response_ns, kind="stable")[:MOST_LATEST]


@dataclass(frozen=True)
class EdgeTimes:
    """One of the times of edges: its name, and its values."""

    name: str
    counts: Counts
    moments: Moments


def edge_times(pairs: EdgePairs) -> tuple[EdgeTimes, ...]:
    """The whole response, and of the edges that are paired its parts. Only those that have values."""
    parts = (("response", pairs.answers_ns), ("responder's own", pairs.own_ns), ("the rest", pairs.rest_ns))
    return tuple(
        EdgeTimes(name, counts_of_values(values), moments_of_values(values)) for name, values in parts if values.size
    )


def pair_edges(given: Given, seen: Seen) -> EdgePairs:
    """Pair the edges of two records."""
    never = given.sent_ns[~given.answered]
    found = find_alignment(given, seen)
    if isinstance(found, str):
        return _unpaired(given.response_ns[given.answered], never, found)
    mine, theirs = _waited_for(given, seen, found.by_generator_ns)
    answered = int(given.answered.sum())
    return EdgePairs(
        given=mine,
        seen=theirs,
        sent_ns=given.sent_ns[mine],
        response_ns=given.response_ns[mine],
        own_ns=seen.own_ns[theirs],
        answers_ns=given.response_ns[given.answered],
        never_answered_ns=never,
        edges=int(given.sent_ns.size),
        unseen=answered - int(given.answered[mine].sum()),
        unknown=int(seen.seen_ns.size - theirs.size),
        rate=found.rate,
    )


def _unpaired(answers_ns: Int64Array, never_answered_ns: Int64Array, why: str) -> EdgePairs:
    return EdgePairs(
        given=NOTHING,
        seen=NOTHING,
        sent_ns=NOTHING,
        response_ns=NOTHING,
        own_ns=NOTHING,
        answers_ns=answers_ns,
        never_answered_ns=never_answered_ns,
        edges=int(answers_ns.size + never_answered_ns.size),
        unseen=0,
        unknown=0,
        refused=why,
    )


def _waited_for(given: Given, seen: Seen, at_ns: Float64Array) -> tuple[Int64Array, Int64Array]:
    """The pairs' indices: each edge of the responder, and the edge whose answer the generator waited for at its time.

    at_ns: times of the responder's edges by the generator's clock.
    """
    delay_ns, sure_ns = _usual_delay(given, seen, at_ns)
    at_ns = at_ns + delay_ns
    newest = np.searchsorted(given.sent_ns, at_ns, side="right") - 1
    near = np.stack([newest - 1, newest, newest + 1])
    known = (near >= 0) & (near < given.sent_ns.size)
    outside = np.array([_outside(given, seen, np.clip(each, 0, given.sent_ns.size - 1), at_ns) for each in near])
    outside = np.where(known, outside, np.inf)
    least, other = np.sort(outside, axis=0)[:2]
    followed = _followed(given, at_ns)
    theirs = np.flatnonzero(followed & (least < given.period_ns / NEAR) & (other - least > sure_ns))
    mine = near[np.argmin(outside, axis=0), np.arange(at_ns.size)][theirs]
    # Which edges of the generator had no answer, like the one before: what came then may be that one's level, late.
    once = _met_once(mine) & ~np.asarray(~given.answered[mine] & ~given.answered[np.maximum(mine - 1, 0)] & (mine > 0))
    mine, theirs = mine[once], theirs[once]
    return _with_enclosed(given, seen, at_ns, mine.astype(np.int64), theirs.astype(np.int64))


def _followed(given: Given, at_ns: Float64Array) -> NDArray[np.bool_]:
    """Where the clocks are surely followed: most edges just before and just behind are in place.

    A clock that jumps, as that of a board that slept, is followed again only after some edges. What lies between would
    be at any edge's place by chance.
    """
    near = np.abs(at_ns - given.sent_ns[nearest_edge(given.sent_ns, at_ns)]) < given.period_ns / NEAR
    known = (at_ns > given.sent_ns[0] - given.period_ns) & (at_ns < given.sent_ns[-1] + given.period_ns)
    counted, there = (np.concatenate(([0], np.cumsum(each))) for each in (near & known, known))
    index = np.arange(at_ns.size)
    begin, end = np.maximum(index - BESIDE, 0), np.minimum(index + BESIDE, at_ns.size - 1) + 1
    before = counted[index + 1] - counted[begin], there[index + 1] - there[begin]
    behind = counted[end] - counted[index], there[end] - there[index]
    followed: NDArray[np.bool_] = np.logical_and(*(n + 1 >= FOLLOWED_SHARE * of for n, of in (before, behind)))
    return followed


def _met_once(mine: Int64Array) -> NDArray[np.bool_]:
    """Which edges of the generator no other edge of the responder has too; else none of them is sure."""
    _, which, n = np.unique(mine, return_inverse=True, return_counts=True)
    return np.asarray(n[which] == 1)


def _outside(given: Given, seen: Seen, mine: Int64Array, at_ns: Float64Array) -> Float64Array:
    """How far the responder's times are outside of the time for which the generator waited for an edge.

    Of one that was never answered that is a period: what comes later is another edge, such as that of giving up.
    """
    sent = given.sent_ns[mine]
    waited = np.where(given.answered, given.response_ns, np.minimum(given.response_ns, given.period_ns))[mine]
    late = at_ns + seen.own_ns - (sent + waited)
    return np.maximum(np.maximum(sent - at_ns, late), 0.0)


def _with_enclosed(
    given: Given, seen: Seen, at_ns: Float64Array, mine: Int64Array, theirs: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The pairs, and between two of them the edges that are as many in both records: they come in the same order."""
    before, behind = np.array([-1]), np.array([given.sent_ns.size])
    last = np.array([seen.seen_ns.size])
    edges = zip(
        *(np.concatenate(each).tolist() for each in ((before, mine, behind), (before, theirs, last))), strict=True
    )
    more = [np.stack([mine, theirs])]
    for (first, seen_first), (end, seen_end) in pairwise(edges):
        between = np.arange(first + 1, end)
        between = between[given.answered[between]]
        enclosed = np.arange(seen_first + 1, seen_end)
        if between.size and between.size == enclosed.size and first >= 0 and end < given.sent_ns.size:
            part = Seen(seen.seen_ns[enclosed], seen.own_ns[enclosed])
            if (_outside(given, part, between, at_ns[enclosed]) < given.period_ns / NEAR).all():
                more.append(np.stack([between, enclosed]))
    found = np.concatenate(more, axis=1)
    found = found[:, np.argsort(found[0], kind="stable")]
    return found[0], found[1]


def _usual_delay(given: Given, seen: Seen, at_ns: Float64Array) -> tuple[float, float]:
    """The usual time from a line into the responder's handler, which the alignment takes for 0; and how sure it is.

    No edge can be seen before it was given, and none be answered later than the generator saw: the middle between.
    """
    nearest = nearest_edge(given.sent_ns, at_ns)
    off = at_ns - given.sent_ns[nearest]
    near = np.abs(off) < given.period_ns / NEAR
    if not near.any():
        return 0.0, given.period_ns / NEAR
    least = float(np.quantile(-off[near], 0.99))
    most = float(np.quantile((given.response_ns[nearest] - seen.own_ns - off)[near], 0.01))
    spread = abs(most - least) + 2 * float(np.median(np.abs(off[near])))
    return (least + most) / 2, spread + given.period_ns / TRACKED_TO


def edges_of_records(responder: Record, generator: Record) -> EdgePairs:
    """Pair the records of two boards that ran together."""
    for record, method in ((generator, GENERATED), (responder, ANSWERED)):
        if not record.series or record.series[0].method != method or not record.series[0].has_samples:
            return _unpaired(NOTHING, NOTHING, f"{record.path} has no edges of the method {method}")
    seen, values = _columns(responder)
    return pair_edges(given_edges(generator), Seen(seen, values[-1]))


def given_edges(record: Record) -> Given:
    """The edges of a generator's record. An answer that had not come at the end, or in time, is none."""
    sent, (response,) = _columns(record)
    answered = np.ones(sent.size, dtype=np.bool_)
    answered[response >= PATIENCE_NS] = False
    if sent.size and _account(record).get("cut_off"):
        answered[-1] = False
    return Given(sent, response, answered, record.series[0].period_ns)


PATIENCE_NS = 5_000_000_000
"""So long a generator waits for an answer (agent/probes/gpio.c)."""


def _account(record: Record) -> dict[str, int]:
    text = next((file.content.decode(errors="replace") for file in record.files if file.path == "gpio/thread0"), "")
    words = [line.partition(" ") for line in text.splitlines()]
    return {name: int(value) for name, _, value in words if value.isdecimal()}


def _columns(record: Record) -> tuple[Int64Array, list[Int64Array]]:
    """The due times, and the values of each field."""
    dues: Int64Array = np.zeros(0, dtype=np.int64)
    values = []
    for series in record.series:
        blocks = list(record.blocks(series.id))
        parts = [_dues(block, series.period_ns) for block in blocks]
        dues = np.concatenate([dues[:0], *parts])
        values.append(np.concatenate([dues[:0], *(block.values for block in blocks)]))
    return dues, values


def _dues(block: Block, period_ns: int) -> Int64Array:
    """The due times of a block: a period apart, and more by what was missed between."""
    steps = np.arange(block.values.size, dtype=np.int64)
    missed = np.zeros(block.values.size + 1, dtype=np.int64)
    np.add.at(missed, block.gap_position + 1, block.gap_missed)
    return block.first_due_ns + (steps + np.cumsum(missed)[: steps.size]) * period_ns
