# SPDX-License-Identifier: Apache-2.0
"""Episodes that come in bunches: the error with the factor m, and how often the bunch test errs and helps."""

from collections.abc import Iterator
from functools import partial

import numpy as np
from claim_judges import HOUR_S, Claim, Runs, episode_rate, in_ns, judged, named
from claim_processes import Process, geometric
from part import Bound

from acceptance import Row, Simulation, at_least, at_most, slack, spread
from rtproof.judge.claim import look_bunched

SIZES = (3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 45, 60, 100, 200, 400)
FACTORS = tuple((m, pause_s) for m in (2.0, 5.0) for pause_s in (600.0, None))
"""Mean size of the bunches, and mean pause within them in seconds; None: 2 T."""


def _proven_with_and_without(m: float, pause_s: float | None, count: int, seed: int) -> list[float]:
    """Percent PROVEN with the factor, and without it and with the bunch test, where bunches come at r0 / m."""
    process = Process("", partial(geometric, m, pause_s))
    told = (judged(process, 1 / HOUR_S / m, Claim.usual(HOUR_S, factor), Runs(count, (5, seed))) for factor in (m, 1.0))
    return [100 * sum(one.state == "PROVEN" for one in each) / count for each in told]


def factor(short: bool) -> Iterator[Row]:
    """Checked to fail: without the factor more is PROVEN than the goal allows, which is measured beside it."""
    count = 300 if short else 2000
    found = spread(_proven_with_and_without, [(*cell, count, number) for number, cell in enumerate(FACTORS)])
    for (m, pause_s), (with_it, _) in zip(FACTORS, found, strict=True):
        name = f"m = {m:g}, pauses of {'2 T' if pause_s is None else '10 min'}: % PROVEN"
        yield at_most(name, with_it, 5.0 + slack(5.0, count, short))
    yield at_least("the most without the factor: % PROVEN", max(without for _, without in found), 10)


def _level(n: int, count: int) -> float:
    """Percent of so many sets of n independent starts that the test calls bunched."""
    generator = np.random.default_rng((6, n))
    starts = np.sort(generator.random((count, n)), axis=1) * HOUR_S
    now = in_ns(np.array([HOUR_S]))[0]
    return 100 * sum(look_bunched(in_ns(row), int(now)) for row in starts) / count


def _withheld_share(count: int) -> float:
    """Of the runs at r0 under Hawkes .8 that win the bet with 3 episodes or more: how many the test withholds then.

    A proof that the test withholds may come later, so both are judged, with the test and without it.
    """
    process, claims = named("Hawkes .8, 1 h"), [Claim.usual(HOUR_S, tested=tested) for tested in (True, False)]
    rate = episode_rate(process, claims[0], (0, 7))
    proofs = withheld = 0
    for told, untested in zip(*(judged(process, rate, claim, Runs(count, (7, 0))) for claim in claims), strict=True):
        if untested.state == "PROVEN" and (untested.episodes or 0) >= 3:
            proofs += 1
            withheld += told.proven_s is None or told.proven_s > (untested.proven_s or 0.0) + 1e-6
    return withheld / proofs


def test(short: bool) -> Iterator[Row]:
    """Checked to fail: a test that always or never withholds misses one of both goals."""
    count = 300 if short else 4000
    for n, level in zip(SIZES, spread(_level, [(n, count) for n in SIZES]), strict=True):
        yield Row(f"{n} independent episodes: % called bunched", level, Bound(1, 6.0 + slack(5.0, count, short)))
    yield at_least("proofs that it withholds, Hawkes .8", _withheld_share(300 if short else 2000), 0.4)


SIMULATIONS = (
    Simulation("01f_factor", "with the factor m for bunches of m a proof is false as seldom as it says", factor),
    Simulation("01g_bunch_test", "the level and the power of the bunch test", test),
)
