# SPDX-License-Identifier: Apache-2.0
"""Episodes that come in bunches: check the error with the factor m, and how often the bunch test errs and helps."""

from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool

import numpy as np
from claim_judges import Claim, exact, in_ns, product
from claim_processes import Process, Span, geometric, rate_for, runs

from acceptance import Benchmark, Result, Value
from acceptance.claim_errors import CALIBRATED, HOUR_S, TIMES, named, slack
from rtproof.judge.claim import look_bunched

SIZES = (3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 45, 60, 100, 200, 400)


@dataclass(frozen=True)
class Factor:
    """Bunches of m episodes on average, pauses within them of so many seconds on average (None: 2 T)."""

    m: float
    pause_s: float | None


FACTORS = tuple(Factor(m, pause_s) for m in (2.0, 5.0) for pause_s in (600.0, None))


def _factor(cell: Factor, count: int, seed: int) -> tuple[float, float]:
    """Percent PROVEN with the factor, and without it and the bunch test, where bunches come at r0 / m."""
    span = Span(TIMES * HOUR_S, HOUR_S)
    process = Process("", partial(geometric, cell.m, cell.pause_s))
    claims = (Claim.usual(HOUR_S, cell.m), Claim.usual(HOUR_S))
    proven = [0, 0]
    for late in runs(process, 1 / HOUR_S / cell.m, span, count, (5, seed)):
        for at, claim in enumerate(claims):
            proven[at] += product(exact(late), span.length_s, claim).state == "PROVEN"
    return 100 * proven[0] / count, 100 * proven[1] / count


def factor(short: bool) -> Result:
    """Checked to fail: without the factor more is PROVEN than the goal allows, which is measured beside it."""
    count = 300 if short else 2000
    with Pool() as pool:
        found = pool.starmap(_factor, [(cell, count, n) for n, cell in enumerate(FACTORS)], chunksize=1)
    value: dict[str, Value] = {"runs": count}
    value |= {
        f"m = {cell.m:g}, pauses {'2 T' if cell.pause_s is None else '10 min'}": {"with": one[0], "without": one[1]}
        for cell, one in zip(FACTORS, found, strict=True)
    }
    most = 5.0 + slack(5.0, count, short)
    goal = f"bunches at r0/m: with the factor m at most {most:.1f} % PROVEN, without it more than 10 % in one of them"
    return Result(value, goal, all(one[0] <= most for one in found) and max(one[1] for one in found) > 10)


def _level(n: int, count: int) -> float:
    """Percent of so many sets of n independent starts that the test calls bunched."""
    generator = np.random.default_rng((6, n))
    starts = np.sort(generator.random((count, n)), axis=1) * HOUR_S
    now = in_ns(np.array([HOUR_S]))[0]
    return 100 * sum(look_bunched(in_ns(row), int(now)) for row in starts) / count


def _withheld(count: int) -> tuple[int, int]:
    """Of runs at r0 under Hawkes .8, 1 h: how many were PROVEN with 3 episodes or more, and withheld at that moment.

    A proof that the test withholds may come later; so each run's untested crossing is found from the tested decision
    where nothing was withheld, and else is a withheld one.
    """
    span, claim = Span(TIMES * HOUR_S, HOUR_S), Claim.usual(HOUR_S)
    process = named("Hawkes .8, 1 h")
    rate = rate_for(process, claim.gap_s, Span(CALIBRATED * HOUR_S, HOUR_S), (0, 7))
    proofs = withheld = 0
    for late in runs(process, rate, span, count, (7, 0)):
        untested = product(exact(late), span.length_s, Claim.usual(HOUR_S, tested=False))
        if untested.state == "PROVEN" and untested.episodes is not None and untested.episodes >= 3:
            told = product(exact(late), span.length_s, claim)
            proofs += 1
            withheld += told.proven_s is None or told.proven_s > (untested.proven_s or 0.0) + 1e-6
    return proofs, withheld


def test(short: bool) -> Result:
    """Checked to fail: a test that always or never withholds misses one of both goals."""
    count = 300 if short else 4000
    with Pool() as pool:
        levels = pool.starmap(_level, [(n, count) for n in SIZES], chunksize=1)
        proofs, withheld = pool.apply(_withheld, (300 if short else 2000,))
    most = 6.0 + slack(5.0, count, short)
    share = withheld / proofs
    value: dict[str, Value] = {
        "sets": count,
        "level": {str(n): round(level, 2) for n, level in zip(SIZES, levels, strict=True)},
        "hawkes_proofs": proofs,
        "withheld_share": round(share, 3),
    }
    goal = (
        f"level at most {most:.1f} % for 3 to 400 episodes; it withholds 40 % of the proofs with 3 or more (Hawkes .8)"
    )
    return Result(value, goal, all(1 <= level <= most for level in levels) and share >= 0.4)


BENCHMARKS = (
    Benchmark("01f_factor", "with the factor m for bunches of m a proof is false as seldom as it says", factor),
    Benchmark("01g_bunch_test", "the level and the power of the bunch test", test),
)
