# SPDX-License-Identifier: Apache-2.0
"""What is counted, second by second, of time in which the machine was gone, beside the gaps of a trace.

The hypervisor counts stolen time, and CPUs of Intel count SMIs. A gap in which interrupts may have been off is told as
the host's or the firmware's if such a count rose with it, by a like size, and seldom rises in other seconds. A count
that did not rise excludes nothing: a host that stops a guest, or a hypervisor without such a clock, counts nothing.
"""

import re
from bisect import bisect_left
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rtproof.explain.budget import SILENT_FROM_NS, BudgetPart, TimeBudget
from rtproof.explain.causes import FIRMWARE, HOST, Cause, NamedCause
from rtproof.explain.trace_events import Window
from rtproof.explain.trace_timelines import joined
from rtproof.record.contents import Int64Array, Moment, Record

STEAL_STEP_NS = 10_000_000
"""The kernel tells stolen time in hundredths of a second, whatever its tick, and drops the rest."""
SHORTEST_STOLEN_NS = STEAL_STEP_NS // 2
"""A shorter gap seldom makes the count rise: one of 5 ms does so every other time."""
SETTLED_NS = 20_000_000
"""The kernel adds stolen time at the CPU's next tick, at most 10 ms later, and a reading may be late itself."""
SELDOM = 0.05
"""A rise tells something if at most this share of the run's other seconds has one as large."""

MOST_COUNTED = 1 << 53
"""No CPU counts more hundredths of a second, or SMIs, in its life."""
_CPU = re.compile(r"[0-9]{1,6}")

GAPS = (Cause.IRQ_OFF_OR_GONE, Cause.IRQ_OFF_LIKELY, Cause.IDLE_EXIT, Cause.MACHINE)
"""Causes that leave open who took the time."""
WEAKENED = (Cause.IRQ_OFF, Cause.IRQ_OFF_LIKELY)
"""Causes that say too much if a count rose at all."""


class Counted(Enum):
    """What the counts tell of a gap, from what tells most. The value is the name in JSON."""

    HOST = "host"
    FIRMWARE = "firmware"
    ROSE = "rose"
    NOT_RISEN = "not-risen"
    NOT_READ = "not-read"


@dataclass(frozen=True)
class CountedGap:
    """The longest gap of an activation and what was counted around it.

    cpu: where the gap is. length_ns: the longest part in which the machine may have been gone.
    counted: host: stolen time of like size; firmware: an SMI; rose: a rise that tells nothing; not-risen: no rise,
    which excludes nothing; not-read: no readings around it.
    stolen_steps: stolen time on its CPU between the readings around the gap, in the kernel's steps of STEAL_STEP_NS;
    None: not read. smis: between the readings; None: not read.
    """

    cpu: int
    length_ns: int
    counted: Counted
    stolen_steps: int | None
    smis: int | None

    @property
    def stolen_least_ns(self) -> int | None:
        """Between the readings around it, on its CPU; None: not read."""
        return None if self.stolen_steps is None else max(0, self.stolen_steps - 1) * STEAL_STEP_NS

    @property
    def stolen_most_ns(self) -> int | None:
        """The kernel tells it in steps of 10 ms; None: not read."""
        return None if self.stolen_steps is None else (self.stolen_steps + 1) * STEAL_STEP_NS


@dataclass(frozen=True)
class MachineCounts:
    """What was counted in a run.

    gaps: of late activations, by series and index. steal_read: whether stolen time was read of any CPU. smi_read:
    whether SMIs were counted on any CPU. smi_why: why SMIs were not counted, or "".
    stolen_most_ns: of all CPUs with gaps together, from the first reading to the last.
    """

    gaps: Mapping[tuple[int, int], CountedGap]
    steal_read: bool
    smi_read: bool
    smi_why: str
    stolen_most_ns: int

    @property
    def tally(self) -> Tally[Counted]:
        """In how many activations the counts tell what."""
        return Tally(gap.counted for gap in self.gaps.values())


NOTHING_COUNTED = MachineCounts({}, False, False, "", 0)


class Count:
    """One count of one CPU at each reading. It only grows."""

    def __init__(self, times: Int64Array, values: Int64Array) -> None:
        """times, values: of equal length, in order; ns from the origin."""
        self._times, self._values = times, values
        self._usual_ns = max(1.0, float(np.median(np.diff(times)))) if times.size > 1 else 1.0
        self._taken = np.zeros(max(0, times.size - 1), bool)
        self._others: dict[int, Int64Array] = {}

    def around(self, window: Window) -> tuple[int, int] | None:
        """The readings before and after a part of the time, as places; None if it was not read on both sides."""
        before = int(np.searchsorted(self._times, window.from_ns - SETTLED_NS, "right")) - 1
        after = int(np.searchsorted(self._times, window.to_ns + SETTLED_NS, "left"))
        return (before, after) if before >= 0 and after < self._times.size else None

    def take(self, window: Window) -> None:
        """Leave the seconds of a gap out of those that tell what is usual."""
        places = self.around(window)
        if places:
            self._taken[places[0] : places[1]] = True

    def span(self, places: tuple[int, int]) -> Window:
        return Window(int(self._times[places[0]]), int(self._times[places[1]]))

    def rise(self, places: tuple[int, int]) -> int:
        return int(self._values[places[1]] - self._values[places[0]])

    @property
    def newest(self) -> int:
        return int(self._values[-1]) if self._values.size else 0

    @property
    def whole_rise(self) -> int:
        return self.newest - int(self._values[0]) if self._values.size else 0

    def share_of_others(self, places: tuple[int, int]) -> float:
        """The share of times as long, without a gap, that have such a rise; this one counts as one of them.

        Where seconds have no reading, two readings lie as far apart as several others do.
        """
        span = self.span(places)
        length = max(places[1] - places[0], round((span.to_ns - span.from_ns) / self._usual_ns))
        if length not in self._others:
            taken = np.concatenate([[0], np.cumsum(self._taken)])
            free = taken[length:] == taken[: taken.size - length]
            rises = self._values[length:] - self._values[: self._values.size - length]
            self._others[length] = np.sort(rises[free])
        others = self._others[length]
        as_large = others.size - int(np.searchsorted(others, self.rise(places), "left"))
        return (1 + as_large) / (1 + others.size)


Counts = Mapping[str, Mapping[int, Count]]
"""By ``steal``, in steps of STEAL_STEP_NS, or ``smi``, and by CPU."""


def ever_stolen(counts: Counts) -> bool:
    """Whether a hypervisor took time since the system started. So it is a guest, whatever else says nothing."""
    return any(count.newest > 0 for count in counts["steal"].values())


def read_counts(record: Record) -> Counts:
    """The counts of a record. A reading that is not there was as the one before.

    A count that is below zero, falls or is too large for one is left out: nobody can tell by how much it rose.
    """
    every = [counter.time_ns for counter in record.counters]
    ticks = np.unique(np.concatenate(every)) if every else np.zeros(0, np.int64)
    found: dict[str, dict[int, Count]] = {"steal": {}, "smi": {}}
    for counter in record.counters:
        kind, _, cpu = counter.name.partition(".cpu")
        if kind not in found or not _CPU.fullmatch(cpu) or not counter.value.size:
            continue
        order = np.argsort(counter.time_ns, kind="stable")
        times, values = counter.time_ns[order], counter.value[order]
        if values[0] < 0 or values[-1] > MOST_COUNTED or (values[1:] < values[:-1]).any():
            continue
        since = ticks[ticks >= times[0]]
        found[kind][int(cpu)] = Count(since, values[np.searchsorted(times, since, "right") - 1])
    return found


def with_counts(
    record: Record, counts: Counts, budgets: Sequence[TimeBudget]
) -> tuple[tuple[TimeBudget, ...], MachineCounts]:
    """The budgets with the host or the firmware named where the counts tell it, and what was counted.

    Only causes change: no part gets another length.
    """
    judge = _Judge(counts, budgets)
    told = tuple(judge.told(each) for each in budgets)
    smi_why = (record.fact("smi_count", Moment.START) or "").removeprefix("unavailable: ")
    steps = [count.whole_rise + 1 for cpu, count in counts["steal"].items() if cpu in judge.cpus]
    most_ns = sum(steps) * STEAL_STEP_NS
    why = "" if counts["smi"] else smi_why
    return told, MachineCounts(judge.gaps, bool(counts["steal"]), bool(counts["smi"]), why, most_ns)


class _Judge:
    """Holds the gaps of all activations against the counts."""

    def __init__(self, counts: Counts, budgets: Iterable[TimeBudget]) -> None:
        self._counts = counts
        gaps: dict[int, list[Window]] = defaultdict(list)
        for part in (part for each in budgets for part in each.parts if _is_gap(part)):
            gaps[part.cpu].append(Window(part.from_ns, part.to_ns))
        self._gaps = {cpu: joined(some) for cpu, some in gaps.items()}
        self.gaps: dict[tuple[int, int], CountedGap] = {}
        for kind in counts.values():
            for cpu, count in kind.items():
                for gap in self._gaps.get(cpu, ()):
                    count.take(gap)

    @property
    def cpus(self) -> Collection[int]:
        return self._gaps.keys()

    def told(self, of: TimeBudget) -> TimeBudget:
        found = {part: self._gap(part) for part in of.parts if _is_gap(part)}
        if not found:
            return of
        open_ones = [part for part in found if part.cause.cause in GAPS]
        if open_ones:
            longest = max(open_ones, key=lambda part: part.length_ns)
            self.gaps[of.activation.series, of.activation.index] = found[longest]
        return replace(of, parts=tuple(_renamed(part, found[part]) if part in found else part for part in of.parts))

    def _gap(self, part: BudgetPart) -> CountedGap:
        (stolen, steps), (firmware, smis) = self._told_by("steal", part), self._told_by("smi", part)
        counted = next(each for each in Counted if each in (stolen, firmware))
        return CountedGap(part.cpu, part.length_ns, counted, steps, smis)

    def _told_by(self, kind: str, part: BudgetPart) -> tuple[Counted, int | None]:
        """What a count tells of a gap, and by how much it rose around it; None: not read."""
        count = self._counts[kind].get(part.cpu)
        places = count.around(Window(part.from_ns, part.to_ns)) if count else None
        if count is None or places is None:
            return Counted.NOT_READ, None
        rise, between = count.rise(places), count.span(places)
        if not rise:
            return Counted.NOT_RISEN, 0
        every = self._gaps[part.cpu]
        first = bisect_left(every, between.from_ns, key=lambda gap: gap.to_ns)
        gaps = every[first : bisect_left(every, between.to_ns, key=lambda gap: gap.from_ns)]
        like = rise >= len(gaps)
        if kind == "steal":
            # So many steps may be this gap's, beside the others between the same readings.
            all_ns = sum(gap.to_ns - gap.from_ns for gap in gaps)
            fits = SHORTEST_STOLEN_NS <= part.length_ns < (rise + 1) * STEAL_STEP_NS
            like = fits and all_ns - part.length_ns < rise * STEAL_STEP_NS < all_ns + 2 * STEAL_STEP_NS
        if not like or count.share_of_others(places) > SELDOM:
            return Counted.ROSE, rise
        return Counted.HOST if kind == "steal" else Counted.FIRMWARE, rise


def _is_gap(part: BudgetPart) -> bool:
    known = part.cause.cause in GAPS or part.cause.cause in WEAKENED
    return known and part.cpu >= 0 and part.length_ns >= SILENT_FROM_NS


def _renamed(part: BudgetPart, gap: CountedGap) -> BudgetPart:
    """A part of the host's or the firmware's. One that says too much is weakened if a count rose."""
    cause, names = part.cause, {Counted.HOST: HOST, Counted.FIRMWARE: FIRMWARE}
    if cause.cause in GAPS and gap.counted in names:
        return replace(part, cause=NamedCause(Cause.MACHINE, names[gap.counted]))
    if cause.cause in WEAKENED and gap.counted in (*names, Counted.ROSE):
        return replace(part, cause=replace(cause, cause=Cause.IRQ_OFF_OR_GONE))
    return part
