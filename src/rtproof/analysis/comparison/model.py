# SPDX-License-Identifier: Apache-2.0
"""What is said about two sides, as frozen data. A ratio is always A over B, so below 1 A has the smaller figure."""

from dataclasses import dataclass
from enum import Enum

from rtproof.analysis.comparison.alike import Difference, Variation
from rtproof.analysis.comparison.figures import RunFigures
from rtproof.analysis.counts import Counts


class Finding(Enum):
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
class Side:
    """name: what the user calls it. counts: of all runs that are compared; overflow: values beyond their scales."""

    name: str
    runs: tuple[RunFigures, ...]
    counts: Counts
    overflow: int
    varying: tuple[Variation, ...]


@dataclass(frozen=True)
class Turns:
    """Whether the sides were measured by turns; None: not known. order: A and B in order of time, "" if not known.

    why: a clause on what is in the way, "" if nothing is.
    """

    interleaved: bool | None
    order: str
    why: str


@dataclass(frozen=True)
class LeftOut:
    """A run that did not measure what was asked, and is in no figure."""

    side: str
    run: str
    why: str


@dataclass(frozen=True)
class Effect:
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
    finding: Finding
    a_runs: tuple[float, ...]
    b_runs: tuple[float, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Impossible:
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
class Shift:
    """The shift function (Doksum 1974). method: what the band is; why_no_band: "" if there is one."""

    points: tuple[ShiftPoint, ...]
    method: str
    why_no_band: str


@dataclass(frozen=True)
class Crossing:
    """Above ``value`` the other side has more values than below. share: of values above it, both sides together.

    between: the nearest values at which the sides surely differ, one on each side of the crossing.
    """

    value: int
    share: float
    between: tuple[int, int]
    a_lower_below: bool


@dataclass(frozen=True)
class Order:
    """Whether one distribution lies below the other throughout, as far as the runs tell.

    lower: "A", "B" or None (they cross, or nowhere surely differ). surely: from which value to which they differ.
    """

    lower: str | None
    surely: tuple[int, int] | None
    crossings: tuple[Crossing, ...]
    method: str


@dataclass(frozen=True)
class Comparison:
    """Everything said about two sides. sentences: label and text, line by line; an empty label carries on.

    levels: the values whose excess is a metric. differences: what the sides differ in, ranked by what is known to
    matter; those that the user said are marked.
    """

    a: Side
    b: Side
    unit: str
    finding: Finding
    sentences: tuple[tuple[str, str], ...]
    effects: tuple[Effect, ...]
    impossible: tuple[Impossible, ...]
    levels: tuple[int, ...]
    shift: Shift
    order: Order
    differences: tuple[Difference, ...]
    left_out: tuple[LeftOut, ...]
    turns: Turns
