# SPDX-License-Identifier: Apache-2.0
"""The verdict once more, slowly and by other means: second after second, both bets as plain means over the rates.

Nothing is shared with the code that judges: no episodes, no thresholds, no formulas. With a density a b^(a-1) on (0, 1)
b is U^(1/a) of a uniform U, and 1/b is so for the other bet.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from analysis_records import SERIES, array, record
from numpy.typing import NDArray

from rtproof.analysis import sequential
from rtproof.analysis.episodes import episodes, lengths_ns, starts_ns
from rtproof.analysis.model import Requirement, State, Summary
from rtproof.analysis.scan import summarise
from rtproof.analysis.sequential import Decision, Known
from rtproof.analysis.watch import Watch
from rtproof.record import Seconds

SECOND_NS = 10**9
LIMIT = 500_000
LONGEST_S = 900
NODES, WEIGHTS = np.polynomial.legendre.leggauss(300)
EMPTY = summarise(record([], [SERIES]))[0]

Late = tuple[int, int, int]
"""Thread, second in which it was due, and how late at most."""
Found = tuple[State, int | None, int]
"""State, the second by whose end it was decided, and the episodes by then."""


@lru_cache(maxsize=4096)
def bets(count: int, at_most_s: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """E+ and E- after each whole second."""
    tau = np.arange(LONGEST_S + 2)[:, None] / at_most_s
    u = (NODES + 1) / 2
    with np.errstate(over="ignore"):
        below, above = (
            (np.exp(np.minimum(count * np.log(b) + tau * (1 - b), 600)) * WEIGHTS / 2).sum(axis=1)
            for b in (u ** (1 / 0.3), u ** (-1 / 0.3))
        )
    return below, above


def slowly(late: Sequence[Late], length_s: int, asked: Requirement, alpha: float, *, whole: bool = True) -> Found:
    """What is reached first, looked for at the end of every second."""
    is_late = np.zeros(length_s + 10 + LONGEST_S, bool)
    for _, second, worst in late:
        is_late[second : second + (worst - asked.limit_ns) // SECOND_NS + 1] = True
    within, begins = inside_of(is_late, asked.gap_ns)
    count = outside = 0
    at_most_s = asked.at_most_ns // SECOND_NS
    for second in range(length_s + 1):
        if whole and bets(count, at_most_s)[0][outside] >= 1 / alpha:
            return State.PROVEN, second, count
        if second == length_s:
            break
        if begins[second]:
            count += 1
            if bets(count, at_most_s)[1][second + 1] >= 1 / alpha:
                return State.REFUTED, second + 1, count
        outside += not within[second]
    return State.UNDECIDED, None, count


def inside_of(is_late: NDArray[np.bool_], gap_ns: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which seconds are within an episode of more than one, and in which an episode begins."""
    within, begins = np.zeros_like(is_late), np.zeros_like(is_late)
    last = None
    for second in np.flatnonzero(is_late):
        if last is None or (second - last) * SECOND_NS > gap_ns:
            begins[second] = True
        else:
            within[last : second + 1] = True
        last = second
    return within, begins


def summary_of(thread: int, late: Sequence[Late]) -> Summary:
    """Nothing but the largest value of each second."""
    worst: dict[int, int] = {}
    for _, second, value in (each for each in late if each[0] == thread):
        worst[second] = max(worst.get(second, 0), value)
    seconds, n = sorted(worst), len(worst)
    ran, missed = array(*[1000] * n), array(*[0] * n)
    held = Seconds(array(*seconds), ran, missed, array(*(worst[second] for second in seconds)))
    return replace(EMPTY, seconds=held, threads=(thread,))


def judged(late: Sequence[Late], length_s: int, asked: Requirement, alpha: float, *, whole: bool = True) -> Found:
    """What the verdict says of the same."""
    threads = {thread for thread, _, _ in late}
    found = episodes([summary_of(thread, late) for thread in threads], (), asked, length_s * SECOND_NS)
    known = Known(lengths_ns(found), whole)
    return seen(sequential.decide(starts_ns(found, 0), length_s * SECOND_NS, asked.at_most_ns, alpha, known))


def seen(decision: Decision) -> Found:
    at = decision.at_ns
    return decision.state, None if at is None else -(-at // SECOND_NS), decision.episodes


def some(rng: np.random.Generator) -> tuple[list[Late], int, Requirement, int]:
    """Late activations, alone, in bursts and in long stops; the length; what is asked; the number of limits."""
    length = int(rng.integers(1, LONGEST_S))
    times = rng.integers(0, length, rng.poisson(rng.choice([0.3, 2.0, 8.0])))
    late: list[Late] = []
    for start in times:
        for second in start + np.cumsum(rng.integers(0, 9, rng.choice([1, 1, 6]))):
            worst = LIMIT + int(rng.choice([1, 1, SECOND_NS - 1, SECOND_NS, 7 * SECOND_NS]))
            late.append((int(rng.integers(3)), int(second), worst))
    late = [each for each in late if each[1] + (each[2] - LIMIT) // SECOND_NS < length]
    gap = int(rng.choice([1000, 1500, 5000, 60_000, 600_000])) * 1_000_000
    at_most_s, confidence = int(rng.choice([5, 20, 60, 110, 400])), float(rng.choice([0.8, 0.95, 0.99]))
    return late, length, Requirement(LIMIT, at_most_s * SECOND_NS, confidence, gap), int(rng.choice([1, 2, 8]))


def test_the_slow_bets_are_known_ones() -> None:
    """First seconds of PROVEN at 95 %: 3.482, 6.803 and 9.137 times T; of REFUTED the last: 0.0834 and 0.880."""
    proven = [int(np.argmax(bets(count, 60)[0] >= 20)) for count in range(3)]
    assert proven == [209, 409, 549]
    assert [int(np.flatnonzero(bets(count, 60)[1] >= 20)[-1]) for count in (2, 5)] == [5, 52]


@pytest.mark.parametrize("seed", range(8))
def test_the_verdict_and_the_watch_decide_as_the_slow_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = set()
    for _ in range(50):
        late, length, asked, limits = some(rng)
        alpha = (1 - asked.confidence) / limits
        expected = slowly(late, length, asked, alpha)
        assert judged(late, length, asked, alpha) == expected
        assert judged(late, length, asked, alpha, whole=False) == slowly(late, length, asked, alpha, whole=False)
        others = [replace(asked, limit_ns=LIMIT + 10**12 + other) for other in range(limits - 1)]
        check_watch([asked, *others], late, length, alpha)
        states.add(expected[0])
    assert states == {State.PROVEN, State.REFUTED, State.UNDECIDED}


def check_watch(asked: list[Requirement], late: Sequence[Late], length: int, alpha: float) -> None:
    """At some moments while it goes on, and at the end, the watch says what a record of so much would."""
    watch = Watch(asked)
    moments = {length, *range(0, length, 60)}
    for second in range(length):
        now = [each for each in late if each[1] == second]
        for thread, _, worst in now:
            watch.over(thread, LIMIT, second, worst)
        for thread in range(3):
            watch.progress(thread, (second + 1) * SECOND_NS)
        if second + 1 in moments:
            past = [each for each in late if each[1] <= second]
            assert seen(watch.standings[0].decision) == slowly(past, second + 1, asked[0], alpha)
