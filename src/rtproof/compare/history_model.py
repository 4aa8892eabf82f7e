# SPDX-License-Identifier: Apache-2.0
"""What is said about a history, as frozen data. Runs count from 0 in the order of the history."""

import math
from dataclasses import dataclass

from rtproof.compare.change_points import MeanChange, WeeklyPattern, visible_step
from rtproof.compare.run_metrics import RunFigures

FEWEST = 20
"""Runs with a figure, below which changes are not looked for: both sides would tell too little of the noise."""
NEAR = 3
"""Runs by which a change may be misplaced: 95 % of steps of two deviations are found this near."""


@dataclass(frozen=True)
class FactChange:
    """A fact that another run says otherwise. at: the first run that does. steady: it kept the old text in all of the
    stretch before the change and the new one in all of that behind. why, source: of the ranking, "" if unknown."""

    key: str
    before: str
    after: str
    at: int
    steady: bool
    why: str
    source: str


@dataclass(frozen=True)
class FoundChange:
    """A change of one metric. change: in places among ``places`` of the metric; at: the run. ratio: after to before."""

    metric: str
    label: str
    unit: str
    at: int
    before: float
    after: float
    p: float
    runs: tuple[int, int]

    @property
    def ratio(self) -> float:
        return self.after / self.before


@dataclass(frozen=True)
class ChangePlace:
    """Changes of one or several metrics no more than NEAR runs apart. at: where the surest of them lies."""

    at: int
    found: tuple[FoundChange, ...]
    facts: tuple[FactChange, ...]


@dataclass(frozen=True)
class MetricHistory:
    """One figure of every run. values: its logarithm, None where a run has none. unit: of its exponential.

    places: which runs have one. changes: as places among those. noise: standard deviation of the logarithms within the
    stretches between changes, None if unknown. why: why no changes were looked for, "" if they were. correlation: of
    neighbouring runs, 0 where none is clear. weekly: the pattern of the week, None where none is sure; it was taken out
    before changes were looked for.
    """

    key: str
    label: str
    unit: str
    values: tuple[float | None, ...]
    places: tuple[int, ...]
    changes: tuple[MeanChange, ...]
    noise: float | None
    why: str
    correlation: float = 0.0
    weekly: WeeklyPattern | None = None

    @property
    def run_factor(self) -> float | None:
        """What runs differ by that nothing happened between."""
        return None if self.noise is None else math.exp(self.noise)

    @property
    def visible(self) -> float | None:
        """The step in the middle, as a ratio, that is found 9 times of 10 among so many runs."""
        return None if self.noise is None else math.exp(visible_step(len(self.places), self.correlation) * self.noise)


@dataclass(frozen=True)
class RunSequence:
    """Runs that measured alike. name: in what they differ from the other sequences, "" if there is one only."""

    name: str
    runs: tuple[RunFigures, ...]
    metrics: tuple[MetricHistory, ...]
    places: tuple[ChangePlace, ...]

    @property
    def judged(self) -> bool:
        """Whether there were enough runs to look for changes in any metric."""
        return any(not metric.why for metric in self.metrics)


@dataclass(frozen=True)
class LeftOutOfHistory:
    """A run that is in no figure, and why."""

    run: str
    why: str


@dataclass(frozen=True)
class RunHistory:
    """Everything said about the runs of a folder. by_name: their order is that of their names, not of their start."""

    sequences: tuple[RunSequence, ...]
    left_out: tuple[LeftOutOfHistory, ...]
    by_name: bool = False

    @property
    def runs(self) -> int:
        return sum(len(one.runs) for one in self.sequences)
