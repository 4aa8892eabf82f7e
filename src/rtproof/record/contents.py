# SPDX-License-Identifier: Apache-2.0
"""What a record contains, as frozen data: facts, series, samples, slices, levels, counters, the end, damage.

These classes only hold data; no judgement is made here. All times are signed nanoseconds from the origin of the record.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum

import msgspec
import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import RecordError
from rtproof.record.encoding import MalformedError
from rtproof.record.histogram_bins import histogram_arrays

Int64Array = NDArray[np.int64]

NONE: Int64Array = np.zeros(0, np.int64)
WHOLE_RUN = 0xFFFF
"""Thread number of a fact or event that belongs to the run and not to a thread."""


class Moment(Enum):
    """When a fact was taken."""

    ASKED = 0
    START = 1
    DURING = 2
    END = 3


class View(Enum):
    """OBSERVED: activations that ran. CHARGED: missed activations, each with its lateness.

    Both together are the view that pages call schedule.
    """

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
    """The BEGIN chunk: format, identity and time origin of a record, and the machine that was measured.

    origin_realtime_ns: the origin as time since 1970. agent_version: of the agent that wrote it. machine: the
    architecture.
    kernel_release: as ``uname -r`` prints it. kernel_version: as ``uname -v`` prints it.
    """

    major: int
    minor: int
    run_id: bytes
    origin_realtime_ns: int
    origin_monotonic_ns: int
    agent_version: str
    machine: str
    kernel_release: str
    kernel_version: str


class Fact(msgspec.Struct, frozen=True):
    """One property of the system or of the request, as text. ``thread`` is ``WHOLE_RUN`` if it belongs to no thread."""

    time_ns: int
    thread: int
    moment: Moment
    key: str
    value: str


@dataclass(frozen=True)
class SystemFile:
    """A file of the target: its content with ``errno`` 0, or the ``errno`` that says why it could not be read.

    ``cut``: whether ``content`` is only the beginning of the file.
    """

    time_ns: int
    moment: Moment
    path: str
    errno: int
    cut: bool
    content: bytes


@dataclass(frozen=True)
class Series:
    """One stream of values.

    id: its number. thread: its measuring thread. cpu: -1 if the thread is not bound.
    on_grid: whether due times are ``first_due_ns + k * period_ns``. first_due_ns: the first due time. period_ns: from
    one due time to the next.
    external: due times come from outside. Each block states its first due time, and the others follow at one period
    each.
    loop: the probe runs a loop, which is described by the lengths of its cycles.
    chained: an external series in a record of format 1.0. There, each due time within a block follows from the wake-up
    before.
    has_samples: whether the record keeps single values. probe: what measured it. method: how the thread waited. field:
    which of the probe's values it is. unit: of the values.
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
    def bound_cpu(self) -> int | None:
        """The CPU that the thread is bound to; None: it is not bound."""
        return self.cpu if self.cpu >= 0 else None

    @property
    def by_period(self) -> bool:
        """Whether due times are one period apart. Otherwise each due time follows from the wake-up before."""
        return self.on_grid or (self.external and not self.chained)


@dataclass(frozen=True)
class Block:
    """Consecutive samples of one series. After sample gap_position[i], gap_missed[i] activations were missed."""

    series: int
    first_index: int
    first_due_ns: int
    values: Int64Array
    gap_position: Int64Array
    gap_missed: Int64Array


class Slice(msgspec.Struct, frozen=True):
    """A SUMMARY chunk: statistics of one view of one series over a slice of time.

    docs/record-format.md defines the fields and the bins. The histogram stays packed, and is unpacked whenever ``bins``
    or ``bin_counts`` is read: unpacked, the 20,000 slices of a run of 54 hours would take gigabytes.
    """

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
    stored: bytes

    @property
    def bins(self) -> Int64Array:
        """The bins that are not empty, increasing. RecordError if the histogram is wrong."""
        return self._unpacked()[0]

    @property
    def bin_counts(self) -> Int64Array:
        """How many values each of these bins has."""
        return self._unpacked()[1]

    def _unpacked(self) -> tuple[Int64Array, Int64Array]:
        try:
            return histogram_arrays(self.stored, self.count)
        except MalformedError as problem:
            raise RecordError(f"a summary of series {self.series} is wrong: {problem}") from None


class Seconds(msgspec.Struct, frozen=True):
    """The numbers of one series for each second, as arrays of equal length. ``max`` is valid where ``obtained`` > 0."""

    second: Int64Array
    obtained: Int64Array
    missed: Int64Array
    max: Int64Array


class Top(msgspec.Struct, frozen=True):
    """The K largest values, largest first. Of equal values, the earlier comes first.

    ``series``: the series id of each value, if the values come from several series.
    """

    k: int
    index: Int64Array
    due_ns: Int64Array
    value: Int64Array
    series: Int64Array | None = None


class Level(msgspec.Struct, frozen=True):
    """A level of a series and the activations above it: a limit of the user, or a level learned from the first minute.

    value: the level. learned: the agent learned it from the thread's first minute; otherwise it is a limit.
    since_ns: the due time of the first activation that counts. taught: how many values the level was learned from.
    share: the share of these values that may lie above it. Both are 0 for a limit.
    second, ran, missed: how many activations of a second were above the level. Other seconds have no entry.
    index, due_ns, above: for a limit, the first activations above it that ran, with their latencies.
    list_ended: whether there were more than these.
    series: the id of its series.
    """

    number: int
    value: int
    learned: bool
    since_ns: int
    share: float = 0.0
    taught: int = 0
    second: Int64Array = NONE
    ran: Int64Array = NONE
    missed: Int64Array = NONE
    index: Int64Array = NONE
    due_ns: Int64Array = NONE
    above: Int64Array = NONE
    list_ended: bool = False
    series: int = 0


class Condition(Enum):
    """A condition that a measuring thread checks about itself."""

    CPU = 0
    POLICY = 1
    PRIORITY = 2
    AFFINITY = 3


class Deviation(msgspec.Struct, frozen=True):
    """A condition that differed from the request. ``seen``: what the thread saw instead. ``count``: how often."""

    kind: Condition
    count: int
    seen: str


class Conditions(msgspec.Struct, frozen=True):
    """What one measuring thread noted about itself: one CONDITIONS chunk, or all chunks of the thread together.

    The arrays have equal length, with one entry for each row. A row counts what happened since the row before.
    ``noted``: activations at which the thread read its CPU. ``elsewhere``: how many of them ran on another CPU.
    ``checks``: how often the thread checked its policy and priority. ``other_policy``, ``other_priority``: how many of
    these checks found another one. ``other_affinity``: how many checks found another affinity.
    ``deviations``: what was seen instead, in the order in which each was first seen.
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


class SnapshotReason(Enum):
    """Why the flight recorder kept the trace of an activation.

    THRESHOLD: its value was above the threshold. TOP: it was among the largest so far. ORDINARY: a random choice among
    the others.
    """

    THRESHOLD = 0
    TOP = 1
    ORDINARY = 2


class SnapshotPages(msgspec.Struct, frozen=True):
    """The pages of one CPU in a snapshot, each named by its time stamp, by the clock of the trace.

    ``whole``: whether they have every event of the window.
    """

    cpu: int
    whole: bool
    stamps: tuple[int, ...]


class Snapshot(msgspec.Struct, frozen=True):
    """One SNAPSHOT chunk: an activation for which pages of the trace were kept, from ``from_ns`` to ``to_ns``."""

    series: int
    reason: SnapshotReason
    index: int
    due_ns: int
    value: int
    from_ns: int
    to_ns: int
    pages: tuple[SnapshotPages, ...]

    @property
    def whole(self) -> bool:
        """Whether no event of the window is missing on any CPU."""
        return all(lane.whole for lane in self.pages)


@dataclass(frozen=True)
class Counter:
    """A number of the system that is read once per second. ``grows``: it only grows; otherwise it is a gauge.

    ``time_ns`` and ``value``: the readings, as arrays of equal length.
    """

    id: int
    grows: bool
    name: str
    unit: str
    time_ns: Int64Array
    value: Int64Array


class Event(msgspec.Struct, frozen=True):
    """Something that happened during the run. ``thread`` is ``WHOLE_RUN`` if it belongs to no thread."""

    time_ns: int
    thread: int
    kind: str
    text: str


class SeriesTotals(msgspec.Struct, frozen=True):
    """The totals of one series: activations whose latency was obtained, missed ones, and lost ones."""

    series: int
    obtained: int
    missed: int
    lost: int


@dataclass(frozen=True)
class End:
    """The END chunk: when and why the agent stopped, and the totals of each series."""

    time_ns: int
    reason: EndReason
    text: str
    totals: tuple[SeriesTotals, ...]


class Damage(msgspec.Struct, frozen=True):
    """A part of the file that is no valid chunk, or chunks that are missing, in one sentence.

    ``lost``: whether content of the record is missing. Bytes that are no chunk, and a chunk that is there twice
    with the same content, are damage only. ``series``: the series whose chunks were not used because no chunk describes
    it.
    """

    offset: int
    length: int
    sentence: str
    lost: bool = False
    series: int | None = None


class ChunkRef(msgspec.Struct, frozen=True):
    """Where in the file a SAMPLES payload lies, so that workers can read it, and what its head says.

    ``count``: number of its samples. ``next_index``: the smallest first index of a later chunk.
    """

    offset: int
    length: int
    series: int
    first_index: int
    count: int
    first_due_ns: int = 0
    next_index: int = 0


@dataclass(frozen=True, eq=False)
class Record:
    """Everything that a record holds, except the samples, which ``blocks`` reads on demand.

    Only the very same object is equal to it, so that results for the last record can be kept (``lru_cache``).

    path: the file. size: its size.
    seconds, top, levels: by the id of the series; limits come before learned levels. conditions: by the number of the
    thread. A series or thread without data has no entry.
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
    snapshots: tuple[Snapshot, ...] = ()

    def blocks(self, series: int) -> Iterator[Block]:
        """The blocks of samples of one series, in the order of the file."""
        return self.read_blocks(tuple(ref for ref in self.chunk_refs if ref.series == series))

    def last_value(self, series: int) -> int | None:
        """The last sample of one series; None if the record holds none."""
        chunks = tuple(ref for ref in self.chunk_refs if ref.series == series)[-1:]
        return next((int(block.values[-1]) for block in self.read_blocks(chunks) if block.values.size), None)

    def exceeded(self, series: int, limit: int) -> Level | None:
        """The level of a limit that the agent was given, with the activations above it; None for any other limit."""
        return next((one for one in self.levels.get(series, ()) if one.value == limit and not one.learned), None)

    def fact(self, key: str, moment: Moment = Moment.ASKED, thread: int = WHOLE_RUN) -> str | None:
        """The last value of a fact, or None if the record has none."""
        found = None
        for fact in self.facts:
            if fact.key == key and fact.moment == moment and fact.thread == thread:
                found = fact.value
        return found
