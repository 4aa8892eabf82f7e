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
from collections.abc import Iterable, Mapping, Sequence
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
        """times, values: of equal length and not empty, in order; ns from the origin."""
        self.times, self.values = times, values
        self._usual_ns = max(1.0, float(np.median(np.diff(times)))) if times.size > 1 else 1.0
        self._taken = np.zeros(times.size - 1, bool)  # the seconds of gaps, which do not tell what is usual
        self._others: dict[int, Int64Array] = {}

    @property
    def whole_rise(self) -> int:
        return int(self.values[-1] - self.values[0])

    def around(self, window: Window) -> tuple[int, int] | None:
        """The readings before and after a part of the time, as places; None if it was not read on both sides."""
        before = int(np.searchsorted(self.times, window.from_ns - SETTLED_NS, "right")) - 1
        after = int(np.searchsorted(self.times, window.to_ns + SETTLED_NS, "left"))
        return (before, after) if before >= 0 and after < self.times.size else None

    def take(self, gaps: Iterable[Window]) -> None:
        """Leave the seconds of gaps out of those that tell what is usual."""
        for before, after in filter(None, map(self.around, gaps)):
            self._taken[before:after] = True

    def share_of_others(self, before: int, after: int) -> float:
        """The share of times as long, without a gap, that rise as much; this one counts as one of them.

        Where seconds have no reading, two readings lie as far apart as several others do.
        """
        length = max(after - before, round((self.times[after] - self.times[before]) / self._usual_ns))
        if length not in self._others:
            taken = np.concatenate([[0], np.cumsum(self._taken)])
            free = taken[length:] == taken[: taken.size - length]
            rises = self.values[length:] - self.values[: self.values.size - length]
            self._others[length] = np.sort(rises[free])
        others = self._others[length]
        as_large = others.size - int(np.searchsorted(others, self.values[after] - self.values[before], "left"))
        return (1 + as_large) / (1 + others.size)


Counts = Mapping[str, Mapping[int, Count]]
"""By ``steal``, in steps of STEAL_STEP_NS, or ``smi``, and by CPU."""


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


def ever_stolen(counts: Counts) -> bool:
    """Whether a hypervisor took time since the system started. So it is a guest, whatever else says nothing."""
    return any(count.values[-1] > 0 for count in counts["steal"].values())


def with_counts(
    record: Record, counts: Counts, budgets: Sequence[TimeBudget]
) -> tuple[tuple[TimeBudget, ...], MachineCounts]:
    """The budgets with the host or the firmware named where the counts tell it, and what was counted.

    Only causes change: no part gets another length.
    """
    windows: dict[int, list[Window]] = defaultdict(list)
    for part in (part for each in budgets for part in each.parts if _is_gap(part)):
        windows[part.cpu].append(Window(part.from_ns, part.to_ns))
    gaps = {cpu: joined(some) for cpu, some in windows.items()}
    for kind in counts.values():
        for cpu, count in kind.items():
            count.take(gaps.get(cpu, ()))
    longest: dict[tuple[int, int], CountedGap] = {}
    told = []
    for each in budgets:
        found = {part: _counted(part, counts, gaps[part.cpu]) for part in each.parts if _is_gap(part)}
        told.append(replace(each, parts=tuple(_renamed(part, found.get(part)) for part in each.parts)))
        open_ones = [part for part in found if part.cause.cause in GAPS]
        if open_ones:
            place = each.activation.series, each.activation.index
            longest[place] = found[max(open_ones, key=lambda part: part.length_ns)]
    steal, smi = counts["steal"], counts["smi"]
    smi_why = (record.fact("smi_count", Moment.START) or "").removeprefix("unavailable: ")
    most_ns = sum(count.whole_rise + 1 for cpu, count in steal.items() if cpu in gaps) * STEAL_STEP_NS
    return tuple(told), MachineCounts(longest, bool(steal), bool(smi), "" if smi else smi_why, most_ns)


def _counted(part: BudgetPart, counts: Counts, gaps: Sequence[Window]) -> CountedGap:
    """gaps: all of the part's CPU."""
    (stolen, steps), (firmware, smis) = (_told_by(kind, part, counts, gaps) for kind in ("steal", "smi"))
    counted = next(each for each in Counted if each in (stolen, firmware))
    return CountedGap(part.cpu, part.length_ns, counted, steps, smis)


def _told_by(kind: str, part: BudgetPart, counts: Counts, gaps: Sequence[Window]) -> tuple[Counted, int | None]:
    """What a count tells of a gap, and by how much it rose around it; None: not read."""
    count = counts[kind].get(part.cpu)
    places = count.around(Window(part.from_ns, part.to_ns)) if count else None
    if count is None or places is None:
        return Counted.NOT_READ, None
    before, after = places
    rise = int(count.values[after] - count.values[before])
    if not rise:
        return Counted.NOT_RISEN, 0
    first = bisect_left(gaps, count.times[before], key=lambda gap: gap.to_ns)
    between = gaps[first : bisect_left(gaps, count.times[after], key=lambda gap: gap.from_ns)]
    like = rise >= len(between)
    if kind == "steal":
        # So many steps may be this gap's, beside the others between the same readings.
        all_ns = sum(gap.to_ns - gap.from_ns for gap in between)
        fits = SHORTEST_STOLEN_NS <= part.length_ns < (rise + 1) * STEAL_STEP_NS
        like = fits and all_ns - part.length_ns < rise * STEAL_STEP_NS < all_ns + 2 * STEAL_STEP_NS
    if not like or count.share_of_others(before, after) > SELDOM:
        return Counted.ROSE, rise
    return Counted.HOST if kind == "steal" else Counted.FIRMWARE, rise


def _is_gap(part: BudgetPart) -> bool:
    known = part.cause.cause in GAPS or part.cause.cause in WEAKENED
    return known and part.cpu >= 0 and part.length_ns >= SILENT_FROM_NS


def _renamed(part: BudgetPart, gap: CountedGap | None) -> BudgetPart:
    """A part of the host's or the firmware's. One that says too much is weakened if a count rose."""
    cause, names = part.cause, {Counted.HOST: HOST, Counted.FIRMWARE: FIRMWARE}
    if gap and cause.cause in GAPS and gap.counted in names:
        return replace(part, cause=NamedCause(Cause.MACHINE, names[gap.counted]))
    if gap and cause.cause in WEAKENED and gap.counted in (*names, Counted.ROSE):
        return replace(part, cause=replace(cause, cause=Cause.IRQ_OFF_OR_GONE))
    return part
