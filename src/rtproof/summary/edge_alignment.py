# SPDX-License-Identifier: Apache-2.0
"""Find where the edges of a responder's record are among those of a generator's, whose clock is another one.

The clocks have nothing in common: neither their origin nor quite their rate. But the generator gives its edges unevenly
apart, and the times at which the responder saw them show the same pattern. A chunk of the responder's edges is tried at
each place; where many of its edges meet one of the generator, the two are followed from there through both records.
There is an alignment only if one place is good and no other nearly as good.

All times are nanoseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rtproof.record.contents import Int64Array

Float64Array = NDArray[np.float64]

MOST_RATE = 1 / 500
"""Clocks whose rates differ by more are broken, or not paired right."""
FEWEST_EDGES = 100
"""With fewer edges chance may look like the pattern."""
CHUNK = 64
"""So many edges are searched for at first. Meanwhile clocks drift an eighth of a period apart at most."""
CHUNKS = 6
"""In so many places of the responder's record."""
BEST = 12
"""So many of a chunk's places are looked at closer, ..."""
AROUND = 256
"""... with so many edges before and behind, ..."""
LIKELY_SHARE = 0.6
"""... and those at which more than this share of the edges is in place are followed through both records."""
NEAR = 8
"""An edge is at a place if it is within this part of the period: edges are up to half a period off their grid."""
FIRST_EDGES = 100_000
"""Chunks are of this beginning of the records, so that long ones take seconds to pair."""
SURE_SHARE = 0.8
"""Of the edges in the time that both records have, so many must be at their place ..."""
DOUBT_SHARE = 0.15
"""... and so many more than at any other place: by chance it is four in nine."""
KNOT = 32
"""The clocks go by lines between points, each of so many edges in place; ..."""
END_KNOTS = 4
"""... before the first and behind the last by a line through so many."""
TRACKED_BLOCKS = 8
"""The rate is that of so many blocks of CHUNK edges, because a clock's rate changes with its temperature."""


@dataclass(frozen=True)
class Given:
    """The edges of a generator. sent_ns: by its clock; response_ns: until the answer, or as long as it was waited for.

    answered: whether an answer came.
    """

    sent_ns: Int64Array
    response_ns: Int64Array
    answered: NDArray[np.bool_]
    period_ns: int


@dataclass(frozen=True)
class Seen:
    """The edges that a responder saw, by its clock. own_ns: from its interrupt handler until its output was driven."""

    seen_ns: Int64Array
    own_ns: Int64Array


@dataclass(frozen=True)
class Alignment:
    """When the responder's edges were by the generator's clock, and how much faster the responder's clock runs.

    The delay from the generator's line into the responder's handler is not in it: its median counts as 0.
    """

    by_generator_ns: Float64Array
    rate: float


def find_alignment(given: Given, seen: Seen) -> Alignment | str:
    """The only place of the responder's edges among the generator's, or a sentence why there is none."""
    edges = min(given.sent_ns.size, seen.seen_ns.size)
    if edges < FEWEST_EDGES:
        return f"{edges} edges are too few to pair two records without doubt: measure {3 * FEWEST_EDGES} or more"
    found: list[tuple[float, Alignment]] = []
    for anchor, place_ns in _places(given, seen):
        if any(abs(each.by_generator_ns[anchor] - place_ns) < given.period_ns / 4 for _, each in found):
            continue
        tracked = _Track(given, seen.seen_ns).follow(anchor, place_ns)
        found.append((_share_in_place(given, tracked.by_generator_ns, FEWEST_EDGES), tracked))
    return _only_one(given, found)


def _only_one(given: Given, found: list[tuple[float, Alignment]]) -> Alignment | str:
    """The best of some alignments and their shares, if it is good, and no other is nearly as good."""
    pattern = "the responder's edges do not show the generator's pattern"
    if not found:
        return pattern
    best_share, best = max(found, key=lambda each: each[0])
    if best_share < SURE_SHARE:
        return f"{pattern}: at most {best_share:.0%} are in place"
    if abs(best.rate) > MOST_RATE:
        return f"the clocks of the two boards differ by {abs(best.rate):.2%}, and good ones by {MOST_RATE:.1%} at most"
    others = [share for share, other in found if _apart(best, other) > given.period_ns / 4]
    if others and best_share - max(others) < DOUBT_SHARE:
        return "the responder's edges fit to the generator's in two ways, so none is sure: measure for longer"
    return best


def _apart(one: Alignment, other: Alignment) -> float:
    return float(np.median(np.abs(one.by_generator_ns - other.by_generator_ns)))


def _share_in_place(given: Given, at_ns: Float64Array, fewest: int) -> float:
    """How many of the edges in the time of both records are at an edge of the other; 0 for fewer edges than that."""
    inside = at_ns[(at_ns > given.sent_ns[0]) & (at_ns < given.sent_ns[-1])]
    within = int(((given.sent_ns > at_ns[0]) & (given.sent_ns < at_ns[-1])).sum())
    if min(inside.size, within) < fewest:
        return 0.0
    near = np.abs(_distance(given.sent_ns, inside)) < given.period_ns / NEAR
    return float(near.sum() / max(inside.size, within))


def nearest_edge(sent_ns: Int64Array, at_ns: Float64Array) -> Int64Array:
    """The index of the nearest edge of the generator, for each time."""
    after = np.clip(np.searchsorted(sent_ns, at_ns), 1, sent_ns.size - 1)
    return after - (at_ns - sent_ns[after - 1] < sent_ns[after] - at_ns)


def _distance(sent_ns: Int64Array, at_ns: Float64Array) -> Float64Array:
    """From the nearest edge of the generator, for each time."""
    found: Float64Array = at_ns - sent_ns[nearest_edge(sent_ns, at_ns)]
    return found


def _places(given: Given, seen: Seen) -> Iterator[tuple[int, float]]:
    """Where some chunks of the responder's edges may belong: an edge's index, and its time by the generator's clock."""
    count = min(seen.seen_ns.size, FIRST_EDGES)
    for start in np.linspace(0, count - CHUNK, CHUNKS, dtype=np.int64).tolist():
        anchor = start + CHUNK // 2
        chunk = (seen.seen_ns[start : start + CHUNK] - seen.seen_ns[anchor]).astype(np.float64)
        sent = given.sent_ns[:FIRST_EDGES]
        around = slice(max(anchor - AROUND, 0), anchor + AROUND)
        for place in np.argsort(_scores(given, sent, chunk))[::-1][:BEST].tolist():
            part = _Track(given, seen.seen_ns[around]).follow(anchor - around.start, float(sent[place]))
            if _share_in_place(given, part.by_generator_ns, CHUNK // 2) > LIKELY_SHARE:
                yield anchor, float(sent[place])


def _scores(given: Given, sent: Int64Array, chunk: Float64Array) -> Int64Array:
    """How many edges of the chunk are at an edge, for each place of its anchor."""
    near = given.period_ns / NEAR
    score = np.zeros(sent.size, dtype=np.int64)
    for apart in chunk.tolist():
        score += np.abs(_distance(given.sent_ns, sent + apart)) < near
    return score


class _Track:
    """Follows the clocks block by block from one place, forwards and backwards."""

    def __init__(self, given: Given, seen_ns: Int64Array) -> None:
        self._given = given
        self._seen = seen_ns.astype(np.float64)
        self._near = given.period_ns / NEAR
        self._at = np.zeros(seen_ns.size)

    def follow(self, anchor: int, place_ns: float) -> Alignment:
        """The alignment that begins with an edge at a place."""
        start = max(anchor - CHUNK // 2, 0)
        offset = place_ns - self._seen[anchor]
        rate = self._settle(start, anchor, offset)
        offset = self._offset_at(start, offset, rate)
        self._walk(range(start, self._seen.size, CHUNK), offset, rate)
        self._walk(range(start - CHUNK, -CHUNK, -CHUNK), offset, rate)
        self._straighten()
        return Alignment(self._at, self._whole_rate())

    def _straighten(self) -> None:
        """Replace the steps from block to block by lines between the medians of KNOT edges in place each."""
        off = _distance(self._given.sent_ns, self._at)
        near = np.flatnonzero(np.abs(off) < self._near)
        groups = np.array_split(near, near.size // KNOT) if near.size >= 2 * KNOT else []
        if not groups:
            return
        ahead = self._at - off - self._seen
        x = np.array([np.median(self._seen[group]) for group in groups])
        y = np.array([np.median(ahead[group]) for group in groups])
        ends = self._seen[[0, -1]]
        first, last = (
            np.polyfit(x[:END_KNOTS] - x[0], y[:END_KNOTS], 1),
            np.polyfit(x[-END_KNOTS:] - x[-1], y[-END_KNOTS:], 1),
        )
        outer = (np.polyval(first, ends[0] - x[0]), np.polyval(last, ends[1] - x[-1]))
        self._at = self._seen + np.interp(self._seen, [ends[0], *x, ends[1]], [outer[0], *y, outer[1]])

    def _whole_rate(self) -> float:
        """How much faster the responder's clock runs, from the first quarter of the edges in place to the last."""
        off = _distance(self._given.sent_ns, self._at)
        near = np.flatnonzero(np.abs(off) < self._near)
        quarter = near.size // 4
        if not quarter:
            return 0.0
        sent, seen = self._at[near] - off[near], self._seen[near]
        ahead = seen - sent - (seen[0] - sent[0])
        apart = float(np.median(sent[-quarter:]) - np.median(sent[:quarter]))
        return float(np.median(ahead[-quarter:]) - np.median(ahead[:quarter])) / apart

    def _settle(self, start: int, anchor: int, offset: float) -> float:
        """The rate in the first chunk: of several, the one at which most edges are nearest."""
        chunk = self._seen[start : start + CHUNK]
        x = chunk - self._seen[anchor]
        rates = np.linspace(-2 * MOST_RATE, 2 * MOST_RATE, 33)
        fits = [float(np.median(np.abs(_distance(self._given.sent_ns, chunk + offset + x * rate)))) for rate in rates]
        return float(rates[np.argmin(fits)])

    def _offset_at(self, start: int, offset: float, rate: float) -> float:
        middle = min(start + CHUNK // 2, self._seen.size - 1)
        return offset + rate * float(self._seen[start] - self._seen[middle])

    def _walk(self, starts: range, offset: float, rate: float) -> None:
        """offset: what to add to the responder's times at the first start. rate: how that changes with them."""
        known: list[tuple[float, float]] = []
        origin = self._seen[max(starts[0], 0)] if len(starts) else 0.0
        for start in starts:
            part = slice(max(start, 0), start + CHUNK)
            x = self._seen[part] - origin
            predicted = self._seen[part] + offset + rate * x
            off = _distance(self._given.sent_ns, predicted)
            near = np.abs(off) < self._near
            if near.sum() >= CHUNK // 4:
                middle, shift = float(np.median(x[near])), float(np.median(off[near]))
                known.append((middle, offset + rate * middle - shift))
                predicted -= shift
            self._at[part] = predicted
            offset, rate = _newest_line(known, offset, rate)


def _newest_line(known: list[tuple[float, float]], offset: float, rate: float) -> tuple[float, float]:
    """The line through the newest points; through the last one with the rate as it was while there are few."""
    if not known:
        return offset, rate
    x, y = np.array(known[-TRACKED_BLOCKS:]).T
    if x.size >= 3:
        slopes = [(y[j] - y[i]) / (x[j] - x[i]) for i in range(x.size) for j in range(i + 1, x.size) if x[j] != x[i]]
        rate = float(np.median(slopes)) if slopes else rate
    return float(np.median(y[-3:] - rate * x[-3:])), rate
