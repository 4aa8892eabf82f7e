# SPDX-License-Identifier: Apache-2.0
"""Late times known to the second decide as exact ones do or later, never earlier; so does a watch of them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import slow_verdict

from rtproof.judge.analysis_model import Requirement, State
from rtproof.judge.claim import Decision, LateStretches, RefutingRule, decide, episode_course
from rtproof.judge.watch import Watch

SECOND_NS = 10**9
LIMIT = 500_000
LONGEST_S = 900


def some(rng: np.random.Generator) -> tuple[list[tuple[int, int]], int, Requirement, int]:
    """Late stretches, alone, in bursts and in long stops; the length in seconds; what is asked; how many limits."""
    length = int(rng.integers(30, LONGEST_S))
    at_most_s, confidence = int(rng.choice([20, 60, 110, 400])), float(rng.choice([0.8, 0.95, 0.99]))
    gap = max(at_most_s * SECOND_NS // int(rng.integers(10, 25)), SECOND_NS)
    spans: list[tuple[int, int]] = []
    for start in rng.integers(0, length * SECOND_NS, rng.poisson(rng.choice([0.3, 2.0, 8.0]))):
        for at in start + np.cumsum(rng.exponential(1.5 * gap, rng.choice([1, 1, 6, 30]))):
            beyond = int(rng.choice([1, 10**6, SECOND_NS - 1, 7 * SECOND_NS]))
            if at + beyond < length * SECOND_NS:
                spans.append((int(at), int(at) + beyond))
    return sorted(spans), length, Requirement(LIMIT, at_most_s * SECOND_NS, confidence, gap), int(rng.choice([1, 2, 8]))


def exactly(spans: list[tuple[int, int]]) -> LateStretches:
    return LateStretches.exact([begin for begin, _ in spans], [end for _, end in spans])


def by_second(spans: list[tuple[int, int]]) -> LateStretches:
    """As the agent tells: each second in which one was due, and how much longer than the limit the latest of it was."""
    beyond: dict[int, int] = {}
    for begin, end in spans:
        second = begin // SECOND_NS
        beyond[second] = max(beyond.get(second, 0), end - begin)
    return LateStretches.of_seconds(
        np.array(list(beyond), np.int64) * SECOND_NS, np.array(list(beyond.values()), np.int64)
    )


def not_earlier(rough: Decision, exact: Decision) -> None:
    if rough.proven_at_ns is not None and exact.refuted_at_ns is None:
        assert exact.proven_at_ns is not None
        assert rough.proven_at_ns >= exact.proven_at_ns
    if rough.refuted_at_ns is not None:
        assert exact.refuted_at_ns is not None
        assert rough.refuted_at_ns >= exact.refuted_at_ns


@pytest.mark.parametrize("seed", range(8))
def test_seconds_never_decide_earlier_than_exact_times(seed: int) -> None:
    """And exact times as the slow verdict does. Found out: with the refuting joins used for the duration."""
    rng = np.random.default_rng(seed)
    states: Counter[State] = Counter()
    for _ in range(60):
        spans, length, asked, limits = some(rng)
        alpha = (1 - asked.confidence) / limits
        exact = decide(asked, exactly(spans), length * SECOND_NS, alpha)
        rough = decide(asked, by_second(spans), length * SECOND_NS, alpha)
        not_earlier(rough, exact)
        assert (
            episode_course(by_second(spans), length * SECOND_NS, asked.gap_ns).live_ns
            <= episode_course(exactly(spans), length * SECOND_NS, asked.gap_ns).live_ns
        )
        slow = slow_verdict.decided(
            spans,
            length * SECOND_NS,
            slow_verdict.Asked(LIMIT, asked.at_most_ns, asked.gap_ns, asked.longest_ns, 1.0, alpha),
            whole=True,
        )
        assert (exact.state.value, exact.kind.value if exact.kind else "") == (slow.state, slow.why)
        assert exact.at_ns == (
            pytest.approx(slow.at_ns, abs=1e-6 * asked.at_most_ns) if slow.at_ns is not None else None
        )
        states[rough.state] += 1
    assert {State.PROVEN, State.REFUTED, State.UNDECIDED} == set(states)


@pytest.mark.parametrize("seed", range(4))
def test_the_watch_decides_as_seconds_do(seed: int) -> None:
    """At some moments while it goes on, it says what a record of so much would, or that a second later."""
    rng = np.random.default_rng((seed, 5))
    for _ in range(12):
        spans, length, asked, limits = some(rng)
        others = [replace(asked, limit_ns=LIMIT + 10**12 + other) for other in range(limits - 1)]
        watch = Watch([asked, *others])
        alpha = (1 - asked.confidence) / limits
        for second in range(length):
            for begin, end in spans:
                if begin // SECOND_NS == second:
                    watch.over(0, LIMIT, second, LIMIT + end - begin)
            for thread in range(3):
                watch.progress(thread, (second + 1) * SECOND_NS)
            if second % 60 == 59:
                past = [span for span in spans if span[0] < (second + 1) * SECOND_NS]
                told, exact = watch.standings[0].decision, decide(asked, exactly(past), (second + 1) * SECOND_NS, alpha)
                not_earlier(told, exact)
                if exact.proven_at_ns is not None and not past:
                    assert told.proven_at_ns is not None or second * SECOND_NS <= exact.proven_at_ns


def test_a_duration_needs_late_times_that_are_surely_joined() -> None:
    """Late seconds 4 s apart with a gap of 3 s may be joined or not: that refutes by neither rule too soon."""
    asked = Requirement(LIMIT, 60 * SECOND_NS)
    times = np.arange(300, 320, 4) * SECOND_NS
    rough = decide(asked, LateStretches.of_seconds(times), 400 * SECOND_NS, 0.05)
    assert rough.kind is not RefutingRule.DURATION
    inside = [int(at) + offset for at, offset in zip(times, (999_999_999, 0, 999_999_999, 0, 0), strict=True)]
    assert decide(asked, LateStretches.exact(inside, inside), 400 * SECOND_NS, 0.05).kind is not RefutingRule.DURATION
