# SPDX-License-Identifier: Apache-2.0

import math

import numpy as np
import pytest

from rtproof.simulation.events import BODY_RANGE_NS, EVENT_KINDS, KnownTail, rate_above, second_maxima

SECONDS = 400_000


@pytest.mark.parametrize("shape", [-0.2, 0.0, 0.3])
def test_drawn_latencies_have_the_tail_that_is_told(shape: float) -> None:
    tail = KnownTail(shape=shape)
    drawn = tail.draw_ns(np.ones(200_000), np.random.default_rng(1))
    assert drawn.min() > tail.threshold_ns
    for level in (60_000.0, 90_000.0, 120_000.0):
        expected = tail.above(level)
        assert np.mean(drawn > level) == pytest.approx(expected, abs=4 * math.sqrt(expected / drawn.size))


def test_a_tail_that_ends_has_nothing_behind_its_end() -> None:
    tail = KnownTail(shape=-0.5)
    assert tail.above(tail.threshold_ns + tail.scale_ns / 0.5) == 0
    assert tail.above(0) == 1


@pytest.mark.parametrize("kind", EVENT_KINDS)
@pytest.mark.parametrize("shape", [0.0, 0.2])
def test_the_rate_above_a_level_is_the_true_one(kind: str, shape: float) -> None:
    tail, level, rate = KnownTail(shape=shape), 120_000.0, 0.02
    found = [
        np.count_nonzero(second_maxima(kind, rate, SECONDS, tail, np.random.default_rng(seed)) > level)
        for seed in range(12)
    ]
    expected = SECONDS * rate_above(kind, rate, tail, level)
    spread = max(float(np.std(found)), math.sqrt(expected)) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(expected, abs=4 * spread + 0.02 * expected)


def test_a_second_without_an_event_shows_the_body() -> None:
    most = second_maxima("poisson", 0.001, SECONDS, KnownTail(), np.random.default_rng(3))
    quiet = most[most <= KnownTail().threshold_ns]
    assert quiet.min() >= BODY_RANGE_NS[0]
    assert quiet.max() < BODY_RANGE_NS[1]
    assert most.size - quiet.size == pytest.approx(400, abs=80)
