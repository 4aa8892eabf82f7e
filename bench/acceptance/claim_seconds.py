# SPDX-License-Identifier: Apache-2.0
"""Late times known to the second never decide sooner than exact ones, and rounding joins no pairs."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from claim_judges import HOUR_S, MINUTE_S, POISSON, TIMES, Claim, Runs, episode_rate, exact, judged, product, seconds
from claim_processes import Process, Span, Stretches, hawkes, neyman_scott, poisson, runs, storms

from acceptance import Row, Simulation, at_least, at_most, slack, spread

SIX_HOURS_S = 6 * HOUR_S
CELLS = (
    *((POISSON, at_most_s, times) for at_most_s in (20.0, MINUTE_S, HOUR_S) for times in (0.1, 0.5, 2.0)),
    *((POISSON, MINUTE_S, 12.0), (POISSON, 20 * MINUTE_S, 60.0), (POISSON, 20 * MINUTE_S, 200.0)),
    *((Process("Hawkes", partial(hawkes, 0.5, 30)), at_most_s, 0.5) for at_most_s in (MINUTE_S, HOUR_S)),
    *((Process("Hawkes", partial(hawkes, 0.8, 3600)), at_most_s, 0.3) for at_most_s in (HOUR_S, SIX_HOURS_S)),
    (Process("Neyman-Scott", partial(neyman_scott, 3, 600)), HOUR_S, 0.4),
    *((Process("storms", partial(storms, length_s)), HOUR_S, 0.5) for length_s in (3.0, 61.0, 590.0)),
    (Process("storms", partial(storms, 8.0)), MINUTE_S, 0.5),
)
"""Process, T, and at how many times r0 something new comes."""
SLACK_S = 1e-6


def _compared(process: Process, at_most_s: float, times_r0: float, count: int, seed: int) -> tuple[int, ...]:
    """Of so many runs: decided with exact times; the same with seconds; sooner with these; of withheld proofs sooner.

    The bunch test looks again at the end of each quiet stretch, which is known to the second only: a proof that it had
    withheld may come up to a second sooner. The bet itself had been won long before.
    """
    usual = Claim.usual(at_most_s)
    span, claim = Span(TIMES * at_most_s, at_most_s), replace(usual, gap_s=max(usual.gap_s, 1.0))
    decided = same = sooner = withheld = 0
    for late in runs(process, times_r0 / at_most_s, span, count, (8, seed)):
        sure, coarse = (product(form(late), span.length_s, claim) for form in (exact, seconds))
        decided += bool(sure.state)
        same += bool(sure.state) and coarse.state == sure.state
        if _is_sooner(coarse.at_s, sure.at_s) or _is_sooner(coarse.refuted_s, sure.refuted_s):
            again = coarse.state == sure.state == "PROVEN" and (coarse.at_s or 0) > (sure.at_s or 0) - 1
            untested = product(exact(late), span.length_s, replace(claim, tested=False))
            was_withheld = again and _is_sooner(untested.proven_s, sure.proven_s)
            withheld += was_withheld
            sooner += not was_withheld
    return count, decided, same, sooner, withheld


def _is_sooner(coarse_s: float | None, sure_s: float | None) -> bool:
    return coarse_s is not None and (sure_s is None or coarse_s < sure_s - SLACK_S)


def roundings(short: bool) -> Iterator[Row]:
    """Checked to fail: with the middle of each second for its time some decisions are sooner."""
    found = spread(_compared, [(*cell, 12 if short else 250, number) for number, cell in enumerate(CELLS)])
    of, decided, same, sooner, withheld = (sum(column) for column in zip(*found, strict=True))
    yield at_least("runs decided with exact times", decided / of, 0.5)
    yield at_least("the same with seconds", same / decided, 0.9)
    yield at_most("decided sooner with seconds", sooner, 0)
    yield Row("withheld proofs that came sooner, by less than a second", withheld)


APART_S = (60.2, 60.5, 61.5)


def _pairs(apart_s: float, count: int) -> list[float]:
    """Percent PROVEN of pairs whose episodes come at r0: with seconds, and with exact times."""
    process, claim = Process("pairs", partial(_paired, apart_s)), Claim.usual(SIX_HOURS_S)
    rate = episode_rate(process, claim, (9, 0))
    told = (judged(process, rate, claim, Runs(count, (9, 1)), form) for form in (seconds, exact))
    return [100 * sum(one.state == "PROVEN" for one in each) / count for each in told]


def _paired(apart_s: float, rate: float, span: Span, generator: np.random.Generator) -> Stretches:
    first = poisson(rate, span, generator).begin_s
    both = np.sort(np.concatenate((first, first + apart_s)))
    return Stretches.single(both[both < span.length_s])


def pairs(short: bool) -> Iterator[Row]:
    """Checked to fail: a rule that looks at whole seconds joins those that are 60.2 s apart, and proves far more."""
    count = 250 if short else 2000
    found = dict(zip(APART_S, spread(_pairs, [(each, count) for each in APART_S]), strict=True))
    for at, form in enumerate(("seconds", "exact times")):
        for apart_s, percents in found.items():
            yield Row(f"pairs {apart_s} s apart, {form}: % PROVEN", percents[at])
        points = abs(found[60.2][at] - found[61.5][at])
        yield at_most(f"60.2 and 61.5 s apart, {form}: points", points, 5.0 + slack(25.0, count, short))


SIMULATIONS = (
    Simulation("01h_seconds", "times known to the second never decide sooner than exact ones", roundings),
    Simulation("01i_pairs", "pairs a little further apart than the gap are not joined by rounding", pairs),
)
