# SPDX-License-Identifier: Apache-2.0
"""Find runs that copy another one, wholly or but for a few values: they are no further evidence."""

from collections import Counter

import numpy as np

from rtproof.compare.comparison_model import sides_in_virtual_time
from rtproof.compare.run_metrics import RunFigures
from rtproof.core.phrases import percent

COPY = "it has the same values as {0}, so it is no further run"
NEAR_COPY = "{1} of its stretches of 8 s have the largest values of {0}, second for second, so it is no further run"
FEWEST_VALUES = 2
"""Independent runs may be alike if all their values are one."""
STRETCH_S = 8
FEWEST, DISTINCT = 20, 0.9
"""So many stretches of a run, and this share of them, must differ: few values are alike in independent runs, too."""
MOST = 256
"""Of a run so many stretches are kept, those with the smallest numbers: the same of a copy."""
ALIKE = 0.2
"""Runs with this share of stretches in common are copies. Of a quarter of a run, a quarter is among those kept."""
_FACTORS = np.random.default_rng(8).integers(0, 2**63, STRETCH_S, np.uint64) * np.uint64(2) + np.uint64(1)


class SeenRuns:
    """What two independent runs never have alike, of the runs so far. Runs in virtual time are alike by design."""

    def __init__(self) -> None:
        self._whole: dict[tuple[object, ...], str] = {}
        self._stretches: dict[int, str] = {}

    def copied_by(self, run: RunFigures) -> str:
        """Say which of them a run copies; "" if none, and then it is one of them."""
        if sides_in_virtual_time([run]) or run.counts.n.size < FEWEST_VALUES:
            return ""
        values = _values(run)
        if values in self._whole:
            return COPY.format(self._whole[values])
        stretches = _stretches(run)
        common = Counter(self._stretches[each] for each in stretches if each in self._stretches)
        for name, n in common.most_common(1):
            if n >= ALIKE * len(stretches):
                return NEAR_COPY.format(name, percent(round(n / len(stretches), 2)))
        self._whole[values] = run.name
        self._stretches |= dict.fromkeys(stretches, run.name)
        return ""


def _values(run: RunFigures) -> tuple[object, ...]:
    """Return all counts, and the largest value of each second."""
    of_seconds = run.seconds.max.tobytes() if run.seconds else b""
    counts = run.counts
    return run.overflow, run.largest, of_seconds, counts.lo.tobytes(), counts.hi.tobytes(), counts.n.tobytes()


def _stretches(run: RunFigures) -> list[int]:
    """Return a number for each stretch, made of the largest values of its seconds; [] if too many are alike."""
    size = run.seconds.max.size - STRETCH_S + 1 if run.seconds else 0
    if run.seconds is None or size < FEWEST:
        return []
    largest = run.seconds.max.astype(np.uint64)
    mixed = np.zeros(size, np.uint64)
    for at, factor in enumerate(_FACTORS):
        mixed = (mixed ^ (mixed >> np.uint64(32))) * factor + largest[at : at + size]
    distinct = np.unique(mixed * _FACTORS[0])
    return distinct[:MOST].tolist() if distinct.size >= max(FEWEST, DISTINCT * size) else []
