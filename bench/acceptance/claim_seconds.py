# SPDX-License-Identifier: Apache-2.0
"""Check that late times known to the second never decide sooner than exact ones, and that rounding joins no pairs."""

from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import Pool

import numpy as np
from claim_judges import Claim, exact, product, seconds
from claim_processes import Process, Span, Stretches, hawkes, neyman_scott, poisson, rate_for, runs, storms

from acceptance import Benchmark, Result, Value
from acceptance.claim_errors import CALIBRATED, HOUR_S, MINUTE_S, TIMES, slack

POISSON = Process("Poisson", poisson)


@dataclass(frozen=True)
class Cell:
    """Something new comes at so many times r0."""

    process: Process
    at_most_s: float
    times_r0: float


CELLS = (
    *(Cell(POISSON, at_most_s, times) for at_most_s in (20.0, MINUTE_S, HOUR_S) for times in (0.1, 0.5, 2.0)),
    Cell(POISSON, MINUTE_S, 12.0),
    Cell(POISSON, 20 * MINUTE_S, 60.0),
    Cell(POISSON, 20 * MINUTE_S, 200.0),
    *(Cell(Process("Hawkes", partial(hawkes, 0.5, 30)), at_most_s, 0.5) for at_most_s in (MINUTE_S, HOUR_S)),
    *(Cell(Process("Hawkes", partial(hawkes, 0.8, 3600)), at_most_s, 0.3) for at_most_s in (HOUR_S, 6 * HOUR_S)),
    Cell(Process("Neyman-Scott", partial(neyman_scott, 3, 600)), HOUR_S, 0.4),
    *(Cell(Process("storms", partial(storms, length_s)), HOUR_S, 0.5) for length_s in (3.0, 61.0, 590.0)),
    Cell(Process("storms", partial(storms, 8.0)), MINUTE_S, 0.5),
)
SLACK_S = 1e-6


def _compared(cell: Cell, count: int, seed: int) -> tuple[int, int, int, int, int]:
    """Of so many runs: decided with exact times; the same with seconds; sooner with these; of withheld proofs sooner.

    The bunch test looks again at the end of each quiet stretch, which is known to the second only: a proof that it had
    withheld may come up to a second sooner. The bet itself had been won long before.
    """
    usual = Claim.usual(cell.at_most_s)
    span, claim = Span(TIMES * cell.at_most_s, cell.at_most_s), replace(usual, gap_s=max(usual.gap_s, 1.0))
    decided = same = sooner = withheld = 0
    for late in runs(cell.process, cell.times_r0 / cell.at_most_s, span, count, (8, seed)):
        sure, coarse = (product(form(late), span.length_s, claim) for form in (exact, seconds))
        decided += bool(sure.state)
        same += bool(sure.state) and coarse.state == sure.state
        if _sooner(coarse.at_s, sure.at_s) or _sooner(coarse.refuted_s, sure.refuted_s):
            again = coarse.state == sure.state == "PROVEN" and (coarse.at_s or 0) > (sure.at_s or 0) - 1
            untested = product(exact(late), span.length_s, replace(claim, tested=False))
            was_withheld = again and _sooner(untested.proven_s, sure.proven_s)
            withheld += was_withheld
            sooner += not was_withheld
    return count, decided, same, sooner, withheld


def _sooner(coarse_s: float | None, sure_s: float | None) -> bool:
    return coarse_s is not None and (sure_s is None or coarse_s < sure_s - SLACK_S)


def roundings(short: bool) -> Result:
    """Checked to fail: with the middle of each second for its time some decisions are sooner."""
    count = 12 if short else 250
    with Pool() as pool:
        found = pool.starmap(_compared, [(cell, count, n) for n, cell in enumerate(CELLS)], chunksize=1)
    of, decided, same, sooner, withheld = (sum(column) for column in zip(*found, strict=True))
    value: dict[str, Value] = {"runs": of, "decided": decided, "same_with_seconds": same, "sooner": sooner}
    value["withheld_sooner_by_a_second"] = withheld
    goal = (
        "with seconds no decision comes sooner than with exact times, but for withheld proofs by less than a second; "
        "nine of ten decisions are still found"
    )
    return Result(value, goal, sooner == 0 and same >= 0.9 * decided and decided >= of / 2)


APART_S = (60.2, 60.5, 61.5)
SIX_HOURS_S = 6 * HOUR_S


def _pairs(apart_s: float, count: int) -> tuple[float, float]:
    """Percent PROVEN of pairs whose episodes come at r0: with seconds, and with exact times."""
    span, claim = Span(TIMES * SIX_HOURS_S, SIX_HOURS_S), Claim.usual(SIX_HOURS_S)
    process = Process("pairs", partial(_paired, apart_s))
    rate = rate_for(process, claim.gap_s, Span(CALIBRATED * SIX_HOURS_S, SIX_HOURS_S), (9, 0))
    proven = [0, 0]
    for late in runs(process, rate, span, count, (9, 1)):
        for at, form in enumerate((seconds, exact)):
            proven[at] += product(form(late), span.length_s, claim).state == "PROVEN"
    return 100 * proven[0] / count, 100 * proven[1] / count


def _paired(apart_s: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    first = poisson(rate, span, generator).begin_s
    both = np.sort(np.concatenate((first, first + apart_s)))
    return Stretches.single(both[both < span.length_s])


def pairs(short: bool) -> Result:
    """Checked to fail: a rule that looks at whole seconds joins those that are 60.2 s apart, and proves far more."""
    count = 250 if short else 2000
    with Pool() as pool:
        found = dict(zip(APART_S, pool.starmap(_pairs, [(each, count) for each in APART_S], chunksize=1), strict=True))
    apart = max(abs(found[60.2][at] - found[61.5][at]) for at in (0, 1))
    most = 5.0 + slack(25.0, count, short)
    value: dict[str, Value] = {"runs": count}
    value |= {f"{each} s": {"seconds": one[0], "exact": one[1]} for each, one in found.items()}
    return Result(value, f"PROVEN of pairs 60.2 and 61.5 s apart differ by at most {most:.0f} points", apart <= most)


BENCHMARKS = (
    Benchmark("01h_seconds", "seconds never decide sooner than exact times", roundings),
    Benchmark("01i_pairs", "pairs a little further apart than the gap are not joined by rounding", pairs),
)
