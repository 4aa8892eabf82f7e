# SPDX-License-Identifier: Apache-2.0
"""Compare a fit to the summary with a fit to the values: the same numbers, and nearly the same limit.

Forecasts rest on the largest value of each second, which a summary has exactly. Tails may also be fitted to the
summary's histogram. This is measured at one number of excesses. If the ladder uses another rung, limits differ by more,
and the benchmark tells how often.

Checked to fail: limits of 128 bins per power of two, used as if values were at the lower ends, differ by 0.04. (With
eight bins used as intervals it is 0.009.)
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from plain_records import write_run
from tail_truths import SEVEN, Lognormal, Truth, largest, repeated

from acceptance import Benchmark, Result, Value
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Episode
from rtproof.judge.requirement import Requirement
from rtproof.record import histogram_bins
from rtproof.record.reading import open_record
from rtproof.summary.counts import Counts
from rtproof.tail.pareto_fit import coarsened_excesses, fit_region, highest_excesses, tail_of
from rtproof.tail.thresholds import threshold_ladder

UNITS = 10**6
FAR = 1 / (10 * UNITS)
LARGEST = 1000
MEDIAN, MOST = 0.02, 0.1
BODY = Lognormal(0.3, 30e3)
PERIOD_NS = 10_000_000
ACTIVATIONS = 400_000
ASKED = Requirement(110_000)
"""Exceeded by a share of 7e-6: some episodes."""


@dataclass(frozen=True)
class Told:
    """What one form of a record tells."""

    activations: int
    measured_ns: int
    episodes: tuple[Episode, ...]
    largest_ns: int
    limit_ns: int | None
    refused: tuple[str, ...]


def binned(counts: Counts) -> Counts:
    """As a record's SUMMARY has them."""
    numbers, place = np.unique(histogram_bins.bin_of(counts.lo), return_inverse=True)
    sums = np.zeros(numbers.size, np.int64)
    np.add.at(sums, place, counts.n)
    return Counts(*histogram_bins.bin_edges(numbers), sums)


def _differ(truth: Truth, seed: int) -> list[float]:
    """By what share limits from bins are others than those from values: of one fit, and of the ladder (0: none)."""
    values = largest(truth, UNITS, np.random.default_rng([13, seed]))
    forms = (values, binned(values))
    return [
        _apart(*(_of_one_fit(one) for one in forms)),
        _apart(*(threshold_ladder(one, UNITS, 1).limit(FAR) for one in forms)),
    ]


def _of_one_fit(counts: Counts) -> float:
    excesses = highest_excesses(tail_of(counts, UNITS, 1), LARGEST)
    assert excesses is not None
    return fit_region(coarsened_excesses(excesses)).level_upper(FAR)


def _apart(a: float | None, b: float | None) -> float:
    return abs(b / a - 1) if a and b else 0.0


def _told(samples: bool, seed: int) -> Told:
    generator = np.random.default_rng([13, seed])
    values = BODY.median_ns * np.exp(BODY.sigma * generator.standard_normal(ACTIVATIONS))
    with TemporaryDirectory() as folder:
        place = Path(folder) / "run.rtrec"
        write_run(place, values.astype(np.int64), limit_ns=ASKED.limit_ns, samples=samples, period_ns=PERIOD_NS)
        told = analyse(open_record(place), ASKED, workers=1)
    return Told(
        told.pooled.obtained,
        told.verdict.measured_ns or 0,
        told.verdict.episodes,
        told.pooled.observed.max,
        told.forecast.limit_ns if told.forecast else None,
        tuple(refusal.code for refusal in told.forecast.refusals) if told.forecast else (),
    )


def _same(seed: int) -> list[float]:
    """Whether the record with samples and the one without tell the same; whether of a forecast; how many episodes."""
    raw, summary = _told(True, seed), _told(False, seed)
    return [float(raw == summary), float(raw.limit_ns is not None), float(len(raw.episodes))]


def _13(short: bool) -> Result:
    repetitions, records = (4, 1) if short else (150, 24)
    apart = np.concatenate([repeated(partial(_differ, truth), repetitions, short) for truth in SEVEN.values()])
    same, forecast, episodes = repeated(_same, records, short).mean(axis=0)
    value: dict[str, Value] = {
        "one fit: median, most": [round(float(np.median(apart[:, 0])), 4), round(float(apart[:, 0].max()), 4)],
        "ladder: median, share beyond 0.1": [
            round(float(np.median(apart[:, 1])), 4),
            round(float((apart[:, 1] > MOST).mean()), 3),
        ],
        "records that tell the same": float(same),
        "of these with a forecast": round(float(forecast), 3),
        "episodes of each": round(float(episodes), 1),
    }
    holds = np.median(apart[:, 0]) <= MEDIAN and apart[:, 0].max() <= MOST and same == 1
    goal = (
        f"limits from bins are those from values to {MEDIAN} (median) and {MOST} (most); of records with and without "
        "samples activations, time, episodes, largest value and forecast are identical"
    )
    return Result(value, goal, bool(holds))


BENCHMARKS = (Benchmark("13_summary", "the summary instead of the values", _13),)
