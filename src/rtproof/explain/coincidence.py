# SPDX-License-Identifier: Apache-2.0
"""What coincides with late activations in a run without a trace: what the kernel counted more of in the late seconds.

This is evidence and no attribution. Each count has the chance that it would move so by chance, if no count had to do
with the late activations. The time for which a thread was ready and waited for a CPU is measured, not guessed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
from numpy.typing import NDArray

from rtproof.core.errors import UserError
from rtproof.explain.explanation import DEFAULT_TOP, late_above_ns, measured_activations
from rtproof.record.contents import Conditions, Int64Array, Record, Series
from rtproof.summary.recorded_facts import requested_limits_ns

COINCIDENCE_LEVEL = 0.05
"""A count coincides if chance alone would make any of all counts move so in at most this share of runs."""
SHUFFLES = 1_999
MOST_CELLS = 8_000_000
"""Seconds times shuffles at most: a long run is shuffled less often."""
BATCH_CELLS = 2_000_000
"""Of these so many at a time, for the memory."""
FEWEST_SHUFFLES = 199
SHORTEST_NS = 500_000_000
"""A second that was cut shorter belongs to the one before."""
ROUNDED_NS = 1_000_000
"""The time of a row may be this much too early."""
CLOCK = "clock.raw"
COINCIDENCE_METHOD = (
    "sums of ranks over the late seconds, each divided by its spread; the late seconds are shuffled among all seconds, "
    "and a count is held against the largest sum of any count in each shuffle, which allows for how many were looked "
    "at. It assumes that seconds could be exchanged: what drifts through the run as the lateness does coincides too"
)

ROUNDING = 1e-9

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class MovedCount:
    """What the kernel counted more of in the seconds with late activations. It coincides, and is no cause.

    Attributes:
        name: Of the count, as in the record.
        words: What it is.
        unit: Of ``late`` and ``ordinary``.
        late: The median of its change per second in late seconds; of a gauge, of its value.
        ordinary: The same in the other seconds.
        chance: The chance that any of all counts would move so without a reason, from 0 to 1.
    """

    name: str
    words: str
    unit: str
    late: float
    ordinary: float
    chance: float


@dataclass(frozen=True)
class WaitedForCpu:
    """How much of a thread's lateness it was ready to run and waited for a CPU, from the kernel's own account.

    thread: the measuring thread. late_ns: the latencies of its late activations together.
    waited_ns: for how long it was ready and waited in late seconds, without what is usual in ordinary seconds; None if
    the kernel does not tell, or if all seconds are late.
    """

    thread: int
    late_ns: int
    waited_ns: int | None

    @property
    def share(self) -> float | None:
        """Of the late time; never above 1, because the account covers all activations of these seconds."""
        return None if self.waited_ns is None else min(1.0, self.waited_ns / self.late_ns)


@dataclass(frozen=True)
class Coincidences:
    """What coincides with the late activations of a run.

    limit_ns: above which an activation is late; None: the largest were taken. late: late activations of the run.
    late_seconds: the seconds that have one. seconds: the seconds of the run, from reading to reading. looked_at: how
    many counts moved at all.
    moved: those that coincide, the smallest chance first. waited: of each thread with late activations. too_few: why
    nothing can coincide, or "".
    """

    limit_ns: int | None
    late: int
    late_seconds: int
    seconds: int
    looked_at: int
    moved: tuple[MovedCount, ...]
    waited: tuple[WaitedForCpu, ...]
    too_few: str

    @property
    def waited_share(self) -> float | None:
        """The share of the late time of all threads; None if it is not known of one of them."""
        if not self.waited or any(each.share is None for each in self.waited):
            return None
        total_ns = sum(each.late_ns for each in self.waited)
        return sum((each.share or 0) * each.late_ns for each in self.waited) / total_ns


def coincidences(record: Record, limit_ns: int | None = None, top: int = DEFAULT_TOP) -> Coincidences:
    """What coincides with the late activations. limit_ns and top as for ``explain``.

    UserError if the record does not tell which activations were late, or what happened when.
    """
    limit_ns = limit_ns or min(requested_limits_ns(record), default=None)
    times = _ticks(record)
    if times.size < 2:
        raise UserError(
            "the record has fewer than two readings of the kernel's counters, so no coincidence can be seen"
        )
    measured = measured_activations(record)
    above_ns = late_above_ns(measured, limit_ns, top)
    late = [(series, some.where(some.value > above_ns)) for series, some in measured]
    flags = {series: _late_seconds(times, some.due_ns, some.value) for series, some in late}
    anywhere = np.logical_or.reduce([*flags.values()])
    every = _columns(record, times, flags)
    columns = [column for column in every if column[3].size and np.ptp(column[3])]  # a count that never changes is none
    moved, too_few = _coinciding(columns, anywhere)
    return Coincidences(
        limit_ns=limit_ns,
        late=sum(some.value.size for _, some in late),
        late_seconds=int(anywhere.sum()),
        seconds=anywhere.size,
        looked_at=len(columns),
        moved=moved,
        waited=tuple(
            _waited(record, times, series, flags[series], some.value) for series, some in late if some.value.size
        ),
        too_few=too_few,
    )


# The seconds.


def _ticks(record: Record) -> Int64Array:
    """The times of the readings, at least half a second apart; ns from the origin."""
    every = [counter.time_ns for counter in record.counters] or [each.time_ns for each in record.conditions.values()]
    times = np.unique(np.concatenate(every)) if every else np.zeros(0, np.int64)
    kept: list[int] = []
    for time_ns in times.tolist():
        if not kept or time_ns - kept[-1] >= SHORTEST_NS:
            kept.append(time_ns)
    return np.array(kept, np.int64)


def _late_seconds(times: Int64Array, due_ns: Int64Array, value: Int64Array) -> BoolArray:
    """Which seconds have a part of a late activation, from its due time to its end."""
    flags = np.zeros(times.size - 1, bool)
    first = np.clip(np.searchsorted(times, due_ns, "right") - 1, 0, flags.size - 1)
    last = np.clip(np.searchsorted(times, due_ns + value, "right") - 1, 0, flags.size - 1)
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        flags[begin : end + 1] = True
    return flags


# What the kernel counts, as a column of one number for each second.


Column = tuple[str, str, str, FloatArray, int, BoolArray]
"""Name, words and unit of a count as changes per second, or of a gauge as values; -1 if the small ones are looked at,
else 1; and which seconds are late for it.
"""


def _columns(record: Record, times: Int64Array, flags: dict[Series, BoolArray]) -> Iterator[Column]:
    seconds = np.diff(times) / 1e9
    for counter in record.counters:
        if counter.name == CLOCK or not counter.time_ns.size:
            continue
        late = _late_of(counter.name, flags)
        # Its value at each time: a counter may have a reading only where it has changed.
        held = counter.value[np.maximum(np.searchsorted(counter.time_ns, times, "right") - 1, 0)]
        words = _words(record, counter.name)
        if counter.grows:
            yield counter.name, words, f"{counter.unit}/s", np.diff(held) / seconds, 1, late
        else:
            values = held[1:].astype(float)
            yield counter.name, f"{words}, higher", counter.unit, values, 1, late
            yield counter.name, f"{words}, lower", counter.unit, values, -1, late
    for of, late in flags.items():
        conditions = record.conditions.get(of.thread)
        if conditions is not None:
            words = f"the kernel took the CPU away from thread {of.thread}"
            values = _by_second(conditions, conditions.involuntary_switches, times) / seconds
            yield f"involuntary_switches.thread{of.thread}", words, "switches/s", values, 1, late


def _by_second(conditions: Conditions, counts: Int64Array, times: Int64Array) -> FloatArray:
    """What a thread noted, by second. A row is written just behind the readings that end its second."""
    second = np.searchsorted(times, conditions.time_ns + ROUNDED_NS, "right") - 2
    found = np.zeros(times.size - 1)
    np.add.at(found, np.clip(second, 0, found.size - 1), counts)
    return found


def _late_of(name: str, flags: dict[Series, BoolArray]) -> BoolArray:
    """The seconds that are late on the CPU or for the thread that a counter is of; for others, those late anywhere."""
    found = re.search(r"\.(cpu|thread)(\d+)$", name)
    numbers = {of: of.thread if found and found[1] == "thread" else of.cpu for of in flags}
    own = [late for of, late in flags.items() if not found or numbers[of] in (int(found[2]), -1)]
    late: BoolArray = np.logical_or.reduce(own or [np.zeros_like(late) for late in flags.values()])
    return late


KINDS = {
    "interrupts": "interrupt {}",
    "softirqs": "softirq {}",
    "steal": "time that the hypervisor took",
    "smi": "SMIs",
    "pressure": "threads waited for {}",
    "minor_faults": "page faults",
    "major_faults": "page faults that read from a disk",
    "throttled": "throttling by heat",
    "load": "work of the load {}",
    "temperature": "temperature {}",
    "frequency": "frequency",
}


def _words(record: Record, name: str) -> str:
    """What a counter is: the kind, what of it, and where."""
    kind, *rest = name.split(".")
    place = ""
    if rest and (where := re.fullmatch(r"(cpu|thread)(\d+)", rest[-1])):
        rest = rest[:-1]
        place = f" on CPU {where[2]}" if where[1] == "cpu" else f" of thread {where[2]}"
    label = ".".join(rest)
    if kind == "interrupts":
        label = f"{label} {_device(record, label)}".rstrip()
    # A record may name a counter of another kind, in any characters: its name is no pattern.
    return (KINDS[kind].format(label) if kind in KINDS else name) + place


def _device(record: Record, label: str) -> str:
    """Who has an interrupt: the last words of its line in /proc/interrupts at the start."""
    content = next((each.content for each in record.files if each.path == "/proc/interrupts"), b"")
    text = content.decode(errors="replace")
    line = next((each for each in text.splitlines() if each.strip().startswith(f"{label}:")), "")
    words = re.sub(r"^[\s\d]+", "", line.partition(":")[2]).split()
    return (words[-1] if label.isdigit() else " ".join(words)) if words else ""


# Which of them coincide.


def _coinciding(columns: Sequence[Column], anywhere: BoolArray) -> tuple[tuple[MovedCount, ...], str]:
    """The columns that coincide, the smallest chance first; or why none can."""
    late, every = int(anywhere.sum()), anywhere.size
    if not late:
        return (), "no second was late"
    if late == every:
        return (), "every second was late, so there is no ordinary one to compare with: give a larger --limit"
    if not columns:
        return (), "no counter changed"
    if 1 / comb(every, late) > COINCIDENCE_LEVEL:
        few = f"{late} late seconds of {every} are" if late > 1 else f"1 late second of {every} is"
        return (), f"{few} too few; measure for longer"
    found = []
    chances = chances_of([sign * values for *_, values, sign, _ in columns], [flags for *_, flags in columns])
    for chance, (name, words, unit, values, _, flags) in zip(chances, columns, strict=True):
        if chance <= COINCIDENCE_LEVEL:
            medians = float(np.median(values[flags])), float(np.median(values[~flags]))
            found.append(MovedCount(name, words, unit, *medians, chance))
    return tuple(sorted(found, key=lambda each: (each.chance, each.name))), ""


def chances_of(columns: Sequence[FloatArray], late: Sequence[BoolArray], shuffles: int = SHUFFLES) -> list[float]:
    """For each column the chance that any of them would have so large values in its late seconds by chance.

    columns: a number for each second. late: which seconds are late for the column. All are shuffled together, so those
    that move together count as what they are (Westfall and Young, Resampling-Based Multiple Testing, 1993, 2.3: the
    largest statistic).
    """
    seconds = columns[0].size
    shuffles = max(FEWEST_SHUFFLES, min(shuffles, MOST_CELLS // seconds))
    flags, number = np.unique(np.array(late), axis=0, return_inverse=True)
    observed = np.full(len(columns), -np.inf)
    groups = []  # the late seconds that columns share, and the ranks of these over the spread of the late ones' sum
    for at, flag in enumerate(flags):
        count, members = int(flag.sum()), np.flatnonzero(number.ravel() == at)
        if 0 < count < seconds:
            scores = np.array([_ranks(columns[member]) for member in members.tolist()])
            spread = np.sqrt((scores**2).sum(1) * count * (seconds - count) / (seconds * (seconds - 1)))
            scores /= np.where(spread > 0, spread, 1.0)[:, None]  # the ranks of what never moves are 0, and stay so
            observed[members] = scores[:, flag].sum(1)
            groups.append((flag, scores))
    random = np.random.default_rng(0)
    largest = np.full(shuffles, -np.inf)
    batch = max(1, BATCH_CELLS // seconds)
    for begin in range(0, shuffles, batch):
        part = largest[begin : begin + batch]
        order = np.argsort(random.random((part.size, seconds)), axis=1)
        for flag, scores in groups:
            np.maximum(part, (flag[order].astype(float) @ scores.T).max(1), out=part)
    return [float((1 + (largest >= each - ROUNDING).sum()) / (1 + shuffles)) for each in observed]


def _ranks(values: FloatArray) -> FloatArray:
    """The ranks from 0 on less their mean; equal values share theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: FloatArray = ((ends - counts + ends - 1) / 2)[inverse.ravel()]
    centred: FloatArray = ranks - ranks.mean()
    return centred


# What is measured.


def _waited(record: Record, times: Int64Array, series: Series, late: BoolArray, value: Int64Array) -> WaitedForCpu:
    """value: of the late activations of this thread."""
    late_ns, conditions = int(value.sum()), record.conditions.get(series.thread)
    if conditions is None or not conditions.run_delay_ns.any() or late.all():
        return WaitedForCpu(series.thread, late_ns, None)
    waited = _by_second(conditions, conditions.run_delay_ns, times)
    usual = float(np.median(waited[~late]))
    return WaitedForCpu(series.thread, late_ns, int(np.maximum(waited[late] - usual, 0).sum()))
