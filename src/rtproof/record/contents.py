# SPDX-License-Identifier: Apache-2.0
"""What a record contains, as frozen data: facts, series, samples, slices, levels, counters, the end, damage.

These classes describe and do not judge. All times are signed nanoseconds from the origin of the record.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Int64Array = NDArray[np.int64]

WHOLE_RUN = 0xFFFF
"""Thread number of a fact or event that belongs to the run and not to a thread."""


class Moment(Enum):
    """When a fact was taken."""

    ASKED = 0
    START = 1
    DURING = 2
    END = 3


class View(Enum):
    """OBSERVED: activations that ran. CHARGED: missed ones, each with its lateness. Schedule is both together."""

    OBSERVED = 0
    CHARGED = 1


class EndReason(Enum):
    """Why the agent stopped."""

    AS_ASKED = 0
    INTERRUPTED = 1
    NO_SPACE = 2
    HOST_GONE = 3
    LOAD_DIED = 4
    GUARD = 5
    ERROR = 6


@dataclass(frozen=True)
class Begin:
    major: int
    minor: int
    run_id: bytes
    origin_realtime_ns: int
    origin_monotonic_ns: int
    agent_version: str
    machine: str
    kernel_release: str
    kernel_version: str


@dataclass(frozen=True)
class Fact:
    time_ns: int
    thread: int
    moment: Moment
    key: str
    value: str


@dataclass(frozen=True)
class SystemFile:
    """A file of the target as it was read: ``errno`` 0 and its content, or the reason why not."""

    time_ns: int
    moment: Moment
    path: str
    errno: int
    cut: bool
    content: bytes


@dataclass(frozen=True)
class Series:
    """One stream of values. ``on_grid``: due times are first_due_ns + k * period_ns.

    external: due times come from outside, each a period behind the one before unless a block tells it anew. loop: of
    a probe that is told by the lengths of its cycles. chained: external in a record of 1.0, whose due times within a
    block are those of a thread that sleeps.
    """

    id: int
    thread: int
    cpu: int
    on_grid: bool
    has_samples: bool
    period_ns: int
    first_due_ns: int
    probe: str
    method: str
    field: str
    unit: str
    external: bool = False
    loop: bool = False
    chained: bool = False

    @property
    def by_period(self) -> bool:
        """Whether due times are a period apart, whenever the thread ran; else each follows from the last wake-up."""
        return self.on_grid or (self.external and not self.chained)


@dataclass(frozen=True)
class Block:
    """Consecutive samples of one series; after sample gap_position[i] gap_missed[i] activations were missed."""

    series: int
    first_index: int
    first_due_ns: int
    values: Int64Array
    gap_position: Int64Array
    gap_missed: Int64Array


@dataclass(frozen=True)
class Slice:
    """SUMMARY chunk: statistics of one view of one series over a slice of time. Bins as in docs/record-format.md."""

    series: int
    view: View
    first_due_ns: int
    last_due_ns: int
    count: int
    lost: int
    min: int
    max: int
    sum: int
    sum_squares: int
    pairs: int
    sum_products: int
    catch_up_pairs: int
    bins: Int64Array
    bin_counts: Int64Array


@dataclass(frozen=True)
class Seconds:
    """Per-second numbers of one series; arrays of equal length; ``max`` holds where ``obtained`` > 0."""

    second: Int64Array
    obtained: Int64Array
    missed: Int64Array
    max: Int64Array


@dataclass(frozen=True)
class Top:
    """The K largest values, largest first; ties: the earlier first.

    ``series``: id of each value's series, where there are several.
    """

    k: int
    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    series: Int64Array | None = None


@dataclass(frozen=True)
class Level:
    """A value of a series and what is above it: a limit of the user, or a level learned from the first minute.

    since_ns: due time of the first activation that counts. share: of the ``taught`` values it was learned from that may
    lie above it; both 0 of a limit. second, ran, missed: how many activations of a second were above it, only of the
    seconds that have any. index, due_ns, above: of a limit, the first of those that ran, one by one, and their values;
    all of them unless ``list_ended``.
    """

    number: int
    value: int
    learned: bool
    since_ns: int
    share: float
    taught: int
    second: Int64Array
    ran: Int64Array
    missed: Int64Array
    index: Int64Array
    due_ns: Int64Array
    above: Int64Array
    list_ended: bool


class Condition(Enum):
    """What a measuring thread looks at."""

    CPU = 0
    POLICY = 1
    PRIORITY = 2
    AFFINITY = 3


@dataclass(frozen=True)
class Deviation:
    """Something that a thread saw and that was not asked for; ``count``: how often it was seen."""

    kind: Condition
    count: int
    seen: str


@dataclass(frozen=True)
class Conditions:
    """What one measuring thread noted about itself: a CONDITIONS chunk, or all of a thread's together.

    Arrays of equal length, one entry for each row; each counts what came since the row before. ``noted`` activations at
    which the CPU was read, ``elsewhere`` of them on another CPU than the thread's own. ``checks`` of policy and
    priority; ``other_policy`` and ``other_priority`` of them differed. ``other_affinity`` looks found another affinity.
    deviations: what was seen instead, in the order in which it was first seen.
    """

    thread: int
    time_ns: Int64Array
    noted: Int64Array
    elsewhere: Int64Array
    checks: Int64Array
    other_policy: Int64Array
    other_priority: Int64Array
    other_affinity: Int64Array
    run_delay_ns: Int64Array
    involuntary_switches: Int64Array
    deviations: tuple[Deviation, ...] = ()


@dataclass(frozen=True)
class Counter:
    id: int
    grows: bool
    name: str
    unit: str
    time_ns: Int64Array
    value: Int64Array


@dataclass(frozen=True)
class Event:
    time_ns: int
    thread: int
    kind: str
    text: str


@dataclass(frozen=True)
class SeriesTotals:
    series: int
    obtained: int
    missed: int
    lost: int


@dataclass(frozen=True)
class End:
    time_ns: int
    reason: EndReason
    text: str
    totals: tuple[SeriesTotals, ...]


@dataclass(frozen=True)
class Damage:
    """A stretch of the file that is no valid chunk, or chunks that are gone, in one sentence.

    series: whose chunks were not used, as the one that describes it is gone.
    """

    offset: int
    length: int
    sentence: str
    series: int | None = None


@dataclass(frozen=True)
class ChunkRef:
    """Where a SAMPLES payload lies, so that workers can read it themselves. ``count``: samples in it."""

    offset: int
    length: int
    series: int
    first_index: int
    count: int


@dataclass(frozen=True)
class Record:
    """Everything a record holds except the samples, which are read on demand with ``blocks``.

    levels: of each series that has any, limits first. conditions: of each thread that noted any, by its number.
    """

    path: str
    size: int
    begin: Begin
    facts: tuple[Fact, ...]
    files: tuple[SystemFile, ...]
    series: tuple[Series, ...]
    slices: tuple[Slice, ...]
    seconds: dict[int, Seconds]
    top: dict[int, Top]
    counters: tuple[Counter, ...]
    events: tuple[Event, ...]
    end: End | None
    damage: tuple[Damage, ...]
    chunk_refs: tuple[ChunkRef, ...]
    read_blocks: Callable[[tuple[ChunkRef, ...]], Iterator[Block]] = field(repr=False, compare=False)
    levels: dict[int, tuple[Level, ...]] = field(default_factory=dict)
    conditions: dict[int, Conditions] = field(default_factory=dict)

    def blocks(self, series: int) -> Iterator[Block]:
        """The samples of one series in the order of the file."""
        return self.read_blocks(tuple(ref for ref in self.chunk_refs if ref.series == series))

    def exceeded(self, series: int, limit: int) -> Level | None:
        """What the agent knew to be above a limit that it was given; None of any other limit."""
        return next((one for one in self.levels.get(series, ()) if one.value == limit and not one.learned), None)

    def fact(self, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> str | None:
        """The last value of a fact, or None if the record has none."""
        found = None
        for fact in self.facts:
            if fact.key == key and fact.moment == moment and fact.thread == thread:
                found = fact.value
        return found
