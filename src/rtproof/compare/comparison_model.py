# SPDX-License-Identifier: Apache-2.0
"""What is said about two sides, as frozen data. A ratio is always A over B, so below 1 A has the smaller figure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from rtproof.compare.run_metrics import RunFigures
from rtproof.summary.counts import Counts


class DifferenceWeight(Enum):
    """FORBIDS: no comparison. UNLIKE: none unless the user says so. TOLD: a possible reason of what is found."""

    FORBIDS = "forbids"
    UNLIKE = "unlike"
    TOLD = "told"


@dataclass(frozen=True)
class FactDifference:
    """A fact that the two sides do not share. a, b: as each says; several texts where its runs differ.

    why, source: of the ranking, "" where nothing is known. said: the user said that the sides differ in it.
    """

    key: str
    a: str
    b: str
    weight: DifferenceWeight
    why: str
    source: str
    said: bool = False


@dataclass(frozen=True)
class FactVariation:
    """A fact in which the runs of one side differ among themselves. texts: each with the number of its runs."""

    key: str
    texts: tuple[tuple[str, int], ...]
    weight: DifferenceWeight


class ComparisonFinding(Enum):
    """Of one metric, or of all together. NOT_JUDGED: too few runs. MIXED: A is better in some, B in others.

    NOT_INTERLEAVED, UNKNOWN_ORDER: enough runs, but not taken by turns, or nobody knows whether they were. Then nothing
    is called better: what changed with time cannot be told from what is compared.
    """

    A_BETTER = "A is better"
    B_BETTER = "B is better"
    MIXED = "each is better in something"
    NO_DIFFERENCE = "no difference shown"
    NOT_JUDGED = "not judged"
    NOT_INTERLEAVED = "not interleaved"
    UNKNOWN_ORDER = "not known to be interleaved"


@dataclass(frozen=True)
class ComparisonSide:
    """name: what the user calls it. counts: of all runs that are compared; overflow: values beyond their scales."""

    name: str
    runs: tuple[RunFigures, ...]
    counts: Counts
    overflow: int
    varying: tuple[FactVariation, ...]


@dataclass(frozen=True)
class RunTurns:
    """Whether the sides were measured by turns; None: not known. order: A and B in order of time, "" if not known.

    why: a clause on what is in the way, "" if nothing is.
    """

    interleaved: bool | None
    order: str
    why: str


@dataclass(frozen=True)
class LeftOutRun:
    """A run that did not measure what was asked, and is in no figure."""

    side: str
    run: str
    why: str


@dataclass(frozen=True)
class MetricEffect:
    """One metric. a, b: geometric means over the runs, in ``unit`` (a share for unit "share").

    ratio, low, high: A over B with its 95 % interval, by ``method``; both None without one. Where a side has no value
    at all above a level, the interval is open: low 0 or high None. p: of no difference,
    p_holm: adjusted for all metrics of the table (Holm 1979); None below MIN_RUNS a side. margin: a ratio closer to 1
    than this (on either side) is taken for none. run_factor: what runs of one side differ by, exp of the standard
    deviation of their logarithms; None for one run a side. detectable: the ratio that would have been found with 80 %
    probability. runs_for: by ratio, how many runs a side find it with 80 % probability (None: none do, or unknown).
    a_runs, b_runs: the figures of each run.
    """

    metric: str
    label: str
    unit: str
    a: float
    b: float
    ratio: float
    low: float | None
    high: float | None
    p: float | None
    p_holm: float | None
    method: str
    margin: float
    run_factor: float | None
    detectable: float | None
    runs_for: tuple[tuple[float, int | None], ...]
    finding: ComparisonFinding
    a_runs: tuple[float, ...]
    b_runs: tuple[float, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImpossibleComparison:
    """A metric that these runs do not have, and why."""

    metric: str
    label: str
    why: str


@dataclass(frozen=True)
class ShiftPoint:
    """share: of values that are not larger. difference: a minus b; low, high: of the band, None without one."""

    share: float
    a: float
    b: float
    difference: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class QuantileShift:
    """The shift function (Doksum 1974). method: what the band is; why_no_band: "" if there is one."""

    points: tuple[ShiftPoint, ...]
    method: str
    why_no_band: str


@dataclass(frozen=True)
class SideCrossing:
    """Above ``value`` the other side has more values than below. share: of values above it, both sides together.

    between: the nearest values at which the sides surely differ, one on each side of the crossing.
    """

    value: int
    share: float
    between: tuple[int, int]
    a_lower_below: bool


@dataclass(frozen=True)
class SideOrder:
    """Whether one distribution lies below the other throughout, as far as the runs tell.

    lower: "A", "B" or None (they cross, or nowhere surely differ). surely: from which value to which they differ.
    """

    lower: str | None
    surely: tuple[int, int] | None
    crossings: tuple[SideCrossing, ...]
    method: str


@dataclass(frozen=True)
class Comparison:
    """Everything said about two sides. sentences: label and text, line by line; an empty label carries on.

    levels: the values whose excess is a metric. differences: what the sides differ in, ranked by what is known to
    matter; those that the user said are marked.
    """

    a: ComparisonSide
    b: ComparisonSide
    unit: str
    finding: ComparisonFinding
    sentences: tuple[tuple[str, str], ...]
    effects: tuple[MetricEffect, ...]
    impossible: tuple[ImpossibleComparison, ...]
    levels: tuple[int, ...]
    shift: QuantileShift
    order: SideOrder
    differences: tuple[FactDifference, ...]
    left_out: tuple[LeftOutRun, ...]
    turns: RunTurns


# A comparison of runs in virtual time, which has no interval, no p-value and no power.
#
# Such runs are deterministic: run again they give the same bytes. How runs of one system differ is then not chance,
# and
# nothing that rests on chance may be said of them. The figures themselves and their ratios stay.


WHY = "the runs are deterministic (virtual time): each gives the same bytes again, and nothing in them is chance"


FACT = "virtual time"


def deterministic_comparison(said: Comparison) -> bool:
    """Whether a run of either side was made in virtual time."""
    return any(sides_in_virtual_time(side.runs) for side in (said.a, said.b))


def sides_in_virtual_time(runs: Iterable[RunFigures]) -> bool:
    """Whether one of the runs was made in virtual time."""
    return any(run.facts.get(FACT, "no") != "no" for run in runs)
