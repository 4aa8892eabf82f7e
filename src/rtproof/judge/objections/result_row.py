# SPDX-License-Identifier: Apache-2.0
"""One result row, published or measured, as far as it is told: what is None was not told. Times are in nanoseconds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from rtproof.judge.checks.case import sentence_list
from rtproof.summary.summary_model import Doubt


class RowKind(Enum):
    """LATENCY: how late something ran, against its due time. LENGTH: of cycles or work. TOP, LOOP: article 3's two."""

    LATENCY = "latency"
    LENGTH = "length"
    TOP = "top"
    LOOP = "loop"


@dataclass(frozen=True)
class Figures:
    """What a row tells of one stream of values: of a thread, or of one of several fields.

    step_ns: unit of the last printed digit, 0 where the figures are exact. low_ns, high_ns: the band that was to be
    kept; below, above, out_of_band: values outside of it. in_bins: sum over the histogram. lattice_ns: what all values
    are multiples of, from an origin. at_least: the largest value was cut off, so that max_ns only bounds it from below.
    """

    name: str
    kind: RowKind = RowKind.LATENCY
    period_ns: int | None = None
    count: int | None = None
    min_ns: float | None = None
    mean_ns: float | None = None
    max_ns: float | None = None
    deviation_ns: float | None = None
    step_ns: int = 0
    at_least: bool = False
    low_ns: float | None = None
    high_ns: float | None = None
    below: int | None = None
    above: int | None = None
    out_of_band: int | None = None
    in_bins: int | None = None
    lattice_ns: int | None = None


@dataclass(frozen=True)
class Span:
    """How long a run lasted, as told, and the shortest and the longest length that this allows."""

    told_ns: int
    shortest_ns: int
    longest_ns: int


def exact_span(length_ns: int) -> Span:
    """Of a length that is known to the nanosecond, or as good as that."""
    return Span(length_ns, length_ns, length_ns)


@dataclass(frozen=True)
class RowThread:
    """A measuring thread: what it was asked to be and what it was. cpu: where it ran. faults: in its measured loop."""

    name: str
    policy_asked: str | None = None
    policy: str | None = None
    priority_asked: int | None = None
    priority: int | None = None
    cpu: int | None = None
    faults: int | None = None


@dataclass(frozen=True)
class ResultClaim:
    """A row and the circumstances that are told with it.

    group: rows of the same group are compared with each other, "" with none. loads: work per second of each load by
    its name; None where nobody counted. load_line: the shell line that was to make the load. judged: the row was
    taken for good beyond its own samples. said_idle: it is said that nothing disturbed it. loadavg_before: the averages
    when it began; loadavg: when it ended. cpu_count: how many CPUs the threads could choose from; online_count: how
    many there were. kernel_lines: what the kernel logged during the run. doubts: of a measured run.
    """

    name: str
    figures: tuple[Figures, ...] = ()
    measured: bool = False
    group: str = ""
    span: Span | None = None
    loadavg: tuple[float, ...] = ()
    loadavg_before: tuple[float, ...] = ()
    said_idle: bool = False
    loads: Mapping[str, float | None] = field(default_factory=dict)
    load_line: str = ""
    judged: bool = False
    threads: tuple[RowThread, ...] = ()
    cpu_count: int | None = None
    online_count: int | None = None
    kernel_lines: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class Objection:
    """A reason not to believe one or more rows. doubt: code of the doubt of a measured run that says the same."""

    code: str
    claims: tuple[str, ...]
    what: str
    doubt: str | None = None


@dataclass(frozen=True)
class Due:
    """How many periods the told length has room for: as told, at least and at most."""

    told: int
    least: int
    most: int


def counted(claim: ResultClaim) -> Iterator[tuple[Figures, int, Due]]:
    """Figures of activations with their count and how many were due; those of which one is not told are left out."""
    for each in claim.figures:
        if claim.span and each.period_ns and each.count is not None and each.kind is RowKind.LATENCY:
            span, period = claim.span, each.period_ns
            room = Due(span.told_ns // period, span.shortest_ns // period, -(-span.longest_ns // period))
            yield each, each.count, room


def of_parts(
    code: str, claim: ResultClaim, found: Iterable[tuple[Figures, str]], tail: str = ""
) -> Iterator[Objection]:
    """One objection to a row, whichever of its threads or fields it is about; none if nothing was found."""
    several = len(claim.figures) > 1
    says = [f"{each.name}: {what}" if several else what for each, what in found]
    if says:
        yield Objection(code, (claim.name,), f"{claim.name}: {sentence_list(says)}{tail}")
