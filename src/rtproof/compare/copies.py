# SPDX-License-Identifier: Apache-2.0
"""Find runs that copy another one, wholly or but for a few values: they are no further evidence."""

from collections import Counter

import numpy as np

from rtproof.compare.comparison_model import sides_in_virtual_time
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.phrases import percent

COPY = "it has the same values as {0}, so it is no further run"
NEAR_COPY = "{1} of its stretches of {2} s have the largest values of {0}, second for second, so it is no further run"
SURE = 25.0
"""Runs are copies where chance makes two independent ones alike with at most exp(-SURE), 1e-11: of 1,000 runs, too."""
STRETCHES_S = (8, 16, 32, 64, 128)
"""A stretch is the shortest of these that chance does not repeat. Of few values, many seconds are needed."""
FEWEST, DISTINCT = 20, 0.98
"""So many stretches of a run, and this share of them, must differ: what comes back in a run does so in others."""
MOST = 256
"""Of a run so many stretches are kept, those with the smallest numbers: the same of a copy."""
ALIKE = 0.2
"""Runs with this share of stretches in common are copies. Of a quarter of a run, a quarter is among those kept."""
_FACTORS = np.random.default_rng(8).integers(0, 2**63, STRETCHES_S[-1], np.uint64) * np.uint64(2) + np.uint64(1)


class SeenRuns:
    """What two independent runs never have alike, of the runs so far. Runs in virtual time are alike by design.

    every: equal runs are copies even where chance can make them alike, as it must be once a run is surely one.
    """

    def __init__(self, *, every: bool = False) -> None:
        self._every = every
        self._whole: dict[tuple[object, ...], str] = {}
        self._stretches: dict[int, str] = {}

    def copied_by(self, run: RunFigures) -> str:
        """Say which of them a run copies; "" if none, and then it is one of them."""
        if sides_in_virtual_time([run]):
            return ""
        values = _values(run)
        if values in self._whole and (self._every or _surprise(run) >= SURE):
            return COPY.format(self._whole[values])
        stretch_s = _stretch_s(run)
        stretches = _stretches(run, stretch_s)
        common = Counter(self._stretches[each] for each in stretches if each in self._stretches)
        for name, n in common.most_common(1):
            if n >= ALIKE * len(stretches):
                return NEAR_COPY.format(name, percent(round(n / len(stretches), 2)), stretch_s)
        self._whole[values] = run.name
        self._stretches |= dict.fromkeys(stretches, run.name)
        return ""


def _values(run: RunFigures) -> tuple[object, ...]:
    """Return all counts, and the largest value of each second."""
    of_seconds = run.seconds.max.tobytes() if run.seconds else b""
    counts = run.counts
    return run.overflow, run.largest, of_seconds, counts.lo.tobytes(), counts.hi.tobytes(), counts.n.tobytes()


def _surprise(run: RunFigures) -> float:
    """Return at least -ln of the chance that an independent run has the same values, by its counts or its seconds.

    Two Poisson counts of mean n are equal with 1 / sqrt(4 pi n); that the runs have equally many values is no surprise.
    """
    n = run.counts.n[run.counts.n > 0].astype(np.float64)
    of_counts = float(np.log(4 * np.pi * n).sum() - np.log(4 * np.pi * max(n.sum(), 1))) / 2
    return max(of_counts, run.seconds.max.size * _surprise_of_second(run) if run.seconds else 0.0)


def _surprise_of_second(run: RunFigures) -> float:
    """Return -ln of the chance that two seconds have the same largest value, or the same step from the one before."""
    largest = run.seconds.max.astype(np.int64) if run.seconds else np.zeros(0, np.int64)
    if largest.size < FEWEST:
        return 0.0
    counts = (np.unique(each, return_counts=True)[1] / each.size for each in (largest, np.diff(largest)))
    return -float(np.log(max(np.square(shares).sum() for shares in counts)))


def _stretch_s(run: RunFigures) -> int:
    """Return how long the stretches of a run must be, so that chance repeats none in two runs; 0 if none is enough."""
    size, each = run.seconds.max.size if run.seconds else 0, _surprise_of_second(run)
    return next((s for s in STRETCHES_S if size and s * each >= SURE + 2 * np.log(size)), 0)


def _stretches(run: RunFigures, stretch_s: int) -> list[int]:
    """Return a number for each stretch, made of the largest values of its seconds; [] if too many are alike."""
    size = run.seconds.max.size - stretch_s + 1 if run.seconds else 0
    if run.seconds is None or not stretch_s or size < FEWEST:
        return []
    largest = run.seconds.max.astype(np.uint64)
    mixed = np.zeros(size, np.uint64)
    for at, factor in enumerate(_FACTORS[:stretch_s]):
        mixed = (mixed ^ (mixed >> np.uint64(32))) * factor + largest[at : at + size]
    distinct = np.unique(mixed * _FACTORS[0])
    return distinct[:MOST].tolist() if distinct.size >= max(FEWEST, DISTINCT * size) else []
