# SPDX-License-Identifier: Apache-2.0
"""The result of a comparison as frozen data. A ratio is always A over B: below 1, A has the smaller figure."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from rtproof.compare.run_metrics import RunFigures


class DifferenceWeight(StrEnum):
    """What a difference means for the comparison.

    FORBIDS: the sides are not compared. UNLIKE: the sides are compared only if the user names the difference.
    TOLD: the sides are compared, and the difference is a possible reason of what is found.
    """

    FORBIDS = "forbids"
    UNLIKE = "unlike"
    TOLD = "told"


@dataclass(frozen=True)
class FactDifference:
    """A fact in which the two sides differ.

    Attributes:
        key: The fact.
        a: What it says of A; several texts where the runs of A differ.
        b: What it says of B, likewise.
        weight: "forbids" or "unlike": the sides are not compared unless the user names the fact. "told": a possible
            reason of what is found.
        why: Why it matters; empty where nothing is known.
        source: Who says so; empty where nothing is known.
        said: Whether the user named it.
    """

    key: str
    a: str
    b: str
    weight: DifferenceWeight
    why: str
    source: str
    said: bool = False


class ComparisonFinding(StrEnum):
    """The finding of one metric, or of all metrics together.

    NOT_JUDGED: there are too few runs. MIXED: A is better in some metrics and B in others.
    NOT_INTERLEAVED: there are enough runs, but the sides were not measured by turns. UNKNOWN_ORDER: the order of the
    runs is not known. OPEN: some runs are slower in a rhythm, in an order that was not drawn by chance. In these cases
    no side is called better: a change with time would look like a difference.
    """

    A_BETTER = "A is better"
    B_BETTER = "B is better"
    MIXED = "each is better in something"
    NO_DIFFERENCE = "no difference shown"
    NOT_JUDGED = "not judged"
    NOT_INTERLEAVED = "not interleaved"
    UNKNOWN_ORDER = "not known to be interleaved"
    OPEN = "open"


def named_finding(finding: ComparisonFinding, names: tuple[str, str]) -> str:
    """The words of a finding for people, with the names of the sides. The JSON has the finding's value."""
    words = {
        ComparisonFinding.A_BETTER: f"{names[0]} is faster",
        ComparisonFinding.B_BETTER: f"{names[1]} is faster",
        ComparisonFinding.MIXED: "each is faster in some figures",
        ComparisonFinding.NOT_INTERLEAVED: "not judged: not by turns",
        ComparisonFinding.UNKNOWN_ORDER: "not judged: order not known",
        ComparisonFinding.OPEN: "open: the runs have a rhythm",
    }
    return words.get(finding, finding.value)


@dataclass(frozen=True)
class ComparisonSide:
    """One side.

    name: as the user calls it. runs: its runs.
    """

    name: str
    runs: tuple[RunFigures, ...]


@dataclass(frozen=True)
class RunTurns:
    """How the sides were measured.

    interleaved: whether the sides were measured by turns; None: not known. order: the letters A and B in order of time,
    "" if not known.
    order_seed: what ``--abba`` drew the order from; None if chance did not draw it. why: a clause that says what is
    missing, or "".
    rhythm: a clause on runs that are slower in a rhythm, or "". unseen: a clause on a rhythm that these runs would not
    show and that would look the same, or "".
    """

    interleaved: bool | None
    order: str
    why: str
    order_seed: int | None = None
    rhythm: str = ""
    unseen: str = ""

    @property
    def withheld(self) -> ComparisonFinding | None:
        """The finding in place of a better side; None if the order of the runs allows to call a side better."""
        if self.interleaved is not True:
            return ComparisonFinding.UNKNOWN_ORDER if self.interleaved is None else ComparisonFinding.NOT_INTERLEAVED
        return ComparisonFinding.OPEN if self.rhythm and self.order_seed is None else None


@dataclass(frozen=True)
class LeftOutRun:
    """A run that did not measure what was asked, or a copy of another one. No figure contains it.

    run: its name. why: a sentence. side: ``A`` or ``B``; empty where there are no sides.
    """

    run: str
    why: str
    side: str = ""
    is_copy: bool = False


@dataclass(frozen=True)
class MetricEffect:
    """The ratio of the two sides in one metric, and how sure it is.

    A ratio is always A over B: below 1, A has the smaller figure.

    Attributes:
        metric: Its key.
        label: Its name.
        unit: The unit of ``a`` and ``b``, such as "ns"; "share" for a share.
        a: The geometric mean over the runs of A.
        b: The same of B.
        ratio: The ratio of A over B.
        low: The lower end of the interval of the ratio at 95 %; None, as ``high``: no interval; 0: open to that side,
            as a side has no value at all above a level.
        high: The upper end; None alone: open to that side.
        p: The p-value that the sides do not differ; None below five runs a side.
        p_holm: The same, corrected for the number of metrics (Holm 1979).
        method: The method of the interval and the test.
        margin: A ratio closer to 1 than this is no difference.
        run_factor: What runs of one side differ by: exp of the standard deviation of their logarithms; None where each
            side has one run.
        detectable: The ratio that would have been found with 80 % probability; None: nothing is, or unknown.
        finding: What it shows, in words.
        a_runs: The figure of each run of A.
        b_runs: The same of B.
        notes: Sentences.
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
    finding: ComparisonFinding
    a_runs: tuple[float, ...]
    b_runs: tuple[float, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class ImpossibleComparison:
    """A metric that these runs do not have.

    metric: its key. label: its name. why: why not.
    """

    metric: str
    label: str
    why: str


@dataclass(frozen=True)
class SideCrossing:
    """A value at which the two distributions cross. Below it one side is the lower one, above it the other side is.

    value: where the curves cross. share: the share of values above it, both sides together.
    between: the nearest values at which the sides surely differ, one on each side of the crossing.
    a_lower_below: whether A is the lower side below the crossing.
    """

    value: int
    share: float
    between: tuple[int, int]
    a_lower_below: bool


@dataclass(frozen=True)
class SideOrder:
    """Whether one distribution lies below the other throughout, as far as the runs tell.

    lower: ``A`` or ``B``; None where the distributions cross, or surely differ nowhere.
    surely: the first and the last value at which they surely differ. crossings: where the curves cross. method: of the
    comparison.
    """

    lower: str | None
    surely: tuple[int, int] | None
    crossings: tuple[SideCrossing, ...]
    method: str


@dataclass(frozen=True)
class Comparison:
    """Everything said about two sides.

    finding: over all metrics. ``not interleaved``, ``not known to be interleaved``, ``open``: enough runs, but nothing
    is called better.
    turns: how the sides were measured. sentences: label and text of each line; an empty label continues the line
    before.
    effects: one for each metric that both sides have. impossible: metrics that a run lacks. levels: the share of values
    above each of them is a metric.
    order: which side is lower, and where.
    differences: the facts in which the sides differ, those that forbid or have to agree first, then by what is known to
    matter.
    left_out: runs that are INVALID or empty, and copies.
    """

    a: ComparisonSide
    b: ComparisonSide
    unit: str
    finding: ComparisonFinding
    sentences: tuple[tuple[str, str], ...]
    effects: tuple[MetricEffect, ...]
    impossible: tuple[ImpossibleComparison, ...]
    levels: tuple[int, ...]
    order: SideOrder
    differences: tuple[FactDifference, ...]
    left_out: tuple[LeftOutRun, ...]
    turns: RunTurns


WHY = "the runs are deterministic (virtual time): each gives the same bytes again, so no difference is chance"
"""Such a comparison has figures and ratios, and nothing that rests on chance: no interval, p or power."""
FACT = "virtual time"
MIN_RUNS_OF_CURVES = 3
"""Two runs can be alike by chance, and then every difference looks sure."""
FEW_RUNS = f"fewer than {MIN_RUNS_OF_CURVES} runs on a side tell nothing of how runs differ"


def deterministic_comparison(said: Comparison) -> bool:
    """Whether a run of either side was made in virtual time."""
    return any(sides_in_virtual_time(side.runs) for side in (said.a, said.b))


def sides_in_virtual_time(runs: Iterable[RunFigures]) -> bool:
    """Whether one of the runs was made in virtual time."""
    return any(run.facts.get(FACT, "no") != "no" for run in runs)
