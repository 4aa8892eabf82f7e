# SPDX-License-Identifier: Apache-2.0
"""One result row, published or measured, as far as it is told: what is None was not told. Times are in nanoseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from rtproof.analysis.model import Doubt


class Kind(Enum):
    """LATENCY: how late something ran, against its due time. LENGTH: of cycles or work. TOP, LOOP: article 3's two."""

    LATENCY = "latency"
    LENGTH = "length"
    TOP = "top"
    LOOP = "loop"


@dataclass(frozen=True)
class Figures:
    """What a row tells of one stream of values: of a thread, or of one of several fields.

    step_ns: unit of the last printed digit, 0 where the figures are exact. out_of_band: values outside of the limits
    that were to be kept. in_bins: sum over the histogram. lattice_ns: what all values are multiples of, from an origin.
    at_least: the largest value was cut off, so that max_ns only bounds it from below.
    """

    name: str
    kind: Kind = Kind.LATENCY
    period_ns: int | None = None
    count: int | None = None
    min_ns: float | None = None
    mean_ns: float | None = None
    max_ns: float | None = None
    deviation_ns: float | None = None
    step_ns: int = 0
    at_least: bool = False
    out_of_band: int | None = None
    in_bins: int | None = None
    lattice_ns: int | None = None


@dataclass(frozen=True)
class Span:
    """How long a run lasted: its shortest and longest length that what is told of it allows."""

    shortest_ns: int
    longest_ns: int


@dataclass(frozen=True)
class Claim:
    """A row and the circumstances that are told with it.

    group: rows of the same group are compared with each other, "" with none. loads: work per second of each load by
    its name; the rate is None where nobody counted. load_line: the shell line that was to make the load. judged: the
    row was taken for good beyond its own samples. cpus: per thread where it ran; cpu_count: how many it could choose
    from. kernel_lines: what the kernel logged during the run. doubts: of a measured run.
    """

    name: str
    figures: tuple[Figures, ...] = ()
    measured: bool = False
    group: str = ""
    span: Span | None = None
    loadavg: tuple[float, ...] = ()
    loads: Mapping[str, float | None] = field(default_factory=dict)
    load_line: str = ""
    judged: bool = False
    cpus: tuple[int, ...] = ()
    cpu_count: int | None = None
    kernel_lines: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class Objection:
    """A reason not to believe one or more rows. doubt: code of the doubt of a measured run that says the same."""

    code: str
    claims: tuple[str, ...]
    what: str
    doubt: str | None = None
