# SPDX-License-Identifier: Apache-2.0
"""If values resemble their neighbours, percentiles' intervals hold the true one or are refused.

Runs of ten minutes at 200 Hz go through the whole scan. A burst lasts ten activations on average, and a storm ten
seconds. A run has about 15 storms, too few for an interval.

Checked to fail: with a factor of 1, AR .9 is held in .4 to .8, AR .999 in .01 to .08, bursts in .45 to .85.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from acceptance import Row, Simulation, at_least, at_most
from rtproof.record.contents import Begin, Block, ChunkRef, Record, Series
from rtproof.summary.quantiles import quantiles
from rtproof.summary.series import summarise

SECONDS, HZ = 600, 200
N = SECONDS * HZ
SHARES = (0.5, 0.9, 0.99, 0.999, 0.9999)
TRUTH_RUNS = 60
SERIES = Series(0, 0, -1, True, True, 1_000_000_000 // HZ, 0, "", "", "latency", "ns")

Values = NDArray[np.float64]
Process = Callable[[np.random.Generator], Values]


def _independent(random: np.random.Generator) -> Values:
    return random.standard_normal(N)


def _autoregressive(phi: float) -> Process:
    """Deviation 1; the recursion by blocks of the filter's length, so that it needs no loop over all values."""

    def draw(random: np.random.Generator) -> Values:
        taps = phi ** np.arange(math.ceil(-8 / math.log(phi)))
        noise = random.standard_normal(N + taps.size - 1) * math.sqrt(1 - phi * phi)
        size = 1 << math.ceil(math.log2(noise.size + taps.size))
        whole = np.fft.irfft(np.fft.rfft(noise, size) * np.fft.rfft(taps, size), size)
        drawn: Values = whole[taps.size - 1 : noise.size]
        return drawn

    return draw


def _bursts(random: np.random.Generator) -> Values:
    values = random.standard_normal(N)
    for start in random.integers(0, N, random.poisson(N / 2000)):
        values[start : start + random.geometric(0.1)] += 4
    return values


def _storms(random: np.random.Generator) -> Values:
    values = random.standard_normal(N)
    for start in random.integers(0, N, random.poisson(15)):
        values[start : start + int(random.exponential(10 * HZ))] *= 1.6
    return values


def _periodic(random: np.random.Generator) -> Values:
    values = random.standard_normal(N)
    values[random.integers(7 * HZ) :: 7 * HZ] += 5
    return values


PROCESSES: dict[str, Process] = {
    "independent": _independent,
    "AR .9": _autoregressive(0.9),
    "AR .99": _autoregressive(0.99),
    "AR .999": _autoregressive(0.999),
    "bursts of 10": _bursts,
    "storms of 10 s": _storms,
    "periodic": _periodic,
}
REFUSABLE = ("AR .999", "storms of 10 s")
"""Processes of which a run of ten minutes may tell nothing of the tail."""


def percentiles(short: bool) -> Iterator[Row]:
    """Share of runs whose interval holds the true percentile, of those that have one, and share without one."""
    runs, slack = (12, 0.12) if short else (200, 0.03)
    random = np.random.default_rng(160)
    for name, draw in PROCESSES.items():
        truth = np.quantile(np.concatenate([_whole(draw(random)) for _ in range(TRUTH_RUNS)]), SHARES)
        told = np.array([_told(_whole(draw(random)), truth) for _ in range(runs)])
        given, held = told[:, :, 0].sum(axis=0), told[:, :, 1].sum(axis=0)
        for share, g, h in zip(SHARES, given.tolist(), held.tolist(), strict=True):
            yield Row(f"{name}, {share * 100:g} %: an interval", g / runs)
            if g:
                yield Row(f"{name}, {share * 100:g} %: of these hold", h / g)
        most_missed, most_refused = (0.07, 0.05) if name in ("independent", "periodic") else (0.1, 1.0)
        allowed = most_missed * given.sum()
        yield at_most(f"{name}: intervals that miss", given.sum() - held.sum(), allowed + 2 * math.sqrt(allowed))
        yield at_most(f"{name}: without an interval", 1 - given.sum() / (runs * len(SHARES)), most_refused + slack / 3)
        if name not in REFUSABLE:
            yield at_least(f"{name}: 50 % have one", given[0] / runs, 0.9 - slack)
            yield at_least(f"{name}: 90 % have one", given[1] / runs, 0.85 - slack)


def _whole(values: Values) -> NDArray[np.int64]:
    """In nanoseconds: deviation 10 us around 200 us."""
    return (200_000 + 10_000 * values).astype(np.int64)


def _told(values: NDArray[np.int64], truth: Values) -> list[tuple[bool, bool]]:
    """Of each share whether there is an interval, and whether it holds the truth."""
    none = np.empty(0, np.int64)
    block = Block(0, 0, 0, values, none, none)
    begin = Begin(1, 0, bytes(16), 0, 0, "", "", "", "")
    refs = (ChunkRef(0, 1, 0, 0, values.size),)
    record = Record("", 0, begin, (), (), (SERIES,), (), {}, {}, (), (), None, (), refs, lambda _: iter((block,)))
    (summary,) = summarise(record, workers=1)
    found = []
    for each, true in zip(quantiles(summary, shares=SHARES), truth.tolist(), strict=True):
        given = each.low is not None or each.high is not None
        below = each.low is None or each.low <= true
        found.append((given, given and below and (each.high is None or true <= each.high)))
    return found


SIMULATIONS = (Simulation("16_percentiles", "intervals of percentiles under dependence", percentiles),)
