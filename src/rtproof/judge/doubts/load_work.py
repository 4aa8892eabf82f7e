# SPDX-License-Identifier: Apache-2.0
"""Check the loads: did every part of each work, from the first due time on, and enough to disturb the system?"""

import math
import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import duration, percent, quantity
from rtproof.judge.doubts.case import INVALID, WARNING, Check, CheckedRun, sentence_list
from rtproof.record.contents import WHOLE_RUN, Counter, EndReason, Int64Array, Moment
from rtproof.summary.per_second import SECOND_NS
from rtproof.summary.recorded_facts import REQUESTS, virtual_time_clock
from rtproof.summary.summary_model import Doubt

IDLE_WINDOW_NS = 2 * SECOND_NS
SHORTEST_NS = SECOND_NS // 2
"""A shorter time between two readings shows nothing, because one unit of work may take as long."""
LATE_NS = 9 * SECOND_NS // 10
"""Readings come once a second, and each may be a little late."""
PAUSED_SHARE = 0.1
"""A load may stand still for this share of the time without a doubt."""
FADED, FADED_SHARE = 0.5, 0.1
"""Below this share of its best rate a load has faded; for this share of the time it gives a doubt."""
NEARLY_STILL, NEARLY_STILL_SHARE = 0.1, 0.5
"""So little work for so much of the time, and the run did not have the load that it was asked for."""
FEWEST_STRETCHES, MOST_STRETCHES = 5, 40
UNITS_OF_STRETCH = 30
"""So many units of work in a stretch, on average, show a rate."""
RATE_NS = 4 * SECOND_NS // 10
"""A shorter time between two readings shows no rate."""
UNSTEADY_RATIO = 1.5
"""In 192 cells of seven loads and eight systems the rate changed by 9 % at most within a run."""
FEWEST_CYCLES = 10
"""In a cell with few cycles in view, four shifts of the start gave maxima of 137, 271, 464 and 634 us."""
LOADS_OF_REGIONS = ("dd", "mmap", "tmpfs")
"""Loads of the agent that fill a file or a region of so many MiB and begin anew (agent/loads/NAME.c)."""
REGION_MIB = 64
"""How large it is, unless the load's option ``mib`` says otherwise."""
WHOLE_CYCLES = ("jobs", "processes")
"""Units of work that are cycles themselves."""
LEAST_SHARE = 0.02
"""Below this share of one CPU a load does almost nothing.

A shell that sleeps in a loop takes 0.3 % of a CPU, and every load of the agent takes 10 % or more.
"""
SURE_NS = 10 * SECOND_NS
"""A part of a load that does nothing for this long is idle, and not just busy with a slow unit of work."""
BY_DEVICES = ("interrupts", REQUESTS)
"""Units of work that a device or another host does. Such a load disturbs the system without using much CPU time."""
_LOAD_ASKED = r"[^\s,](?:[^\s,]|,(?=\d))*"
"""A load in the list of those asked for. A comma before a digit belongs to its CPUs (mmap@0,2)."""
_BLOCKED = "see what blocks the load"
_UNLOADED = "something blocks the load or takes its CPU, so the latencies are not those under this load"
_SHORT = 12
"""A longer name does not fit into a line of a doubt."""


def died(case: CheckedRun) -> Iterator[Doubt]:
    end, names = case.record.end, [event.text for event in case.events("load_died")]
    if names or (end and end.reason is EndReason.LOAD_DIED):
        reason = end.text if end and end.reason is EndReason.LOAD_DIED else ""
        what, remedy = f"{quantity(len(names) or 1, 'load')} died during the run", "find why, and measure again"
        yield Doubt("load-died", INVALID, what, remedy, reason or sentence_list(names))


def stood_still(case: CheckedRun) -> Iterator[Doubt]:
    """A load that does nothing for longer than it rests on purpose: all the time, at the beginning, or in pauses."""
    for counter in _loads(case):
        work = np.flatnonzero(np.diff(counter.value) > 0)
        first = int(work[0]) if work.size else counter.value.size - 1
        begun = replace(counter, time_ns=counter.time_ns[first + 1 :], value=counter.value[first + 1 :])
        span_ns, idle_ns, rest_ns = _span_ns(counter), _longest_standstill_ns(counter), _rest_ns(case, counter)
        without_ns = int(counter.time_ns[first] - counter.time_ns[0]) if work.size else 0
        still_ns = int(np.diff(begun.time_ns)[np.diff(begun.value) == 0].sum())
        share = still_ns / max(_span_ns(begun), 1)
        paused = not rest_ns and share > PAUSED_SHARE and _longest_standstill_ns(begun) >= LATE_NS
        if idle_ns >= IDLE_WINDOW_NS + rest_ns or (span_ns >= SHORTEST_NS and idle_ns == span_ns > rest_ns):
            what = f"{{load}} did no work for {duration(idle_ns)}"
            yield _of(counter, Doubt("load-idle", INVALID, what, _BLOCKED, _UNLOADED))
        elif SHORTEST_NS <= span_ns == idle_ns:
            detail = f"it rests for {duration(rest_ns)} on purpose, and the run was no longer"
            yield _of(
                counter, Doubt("load-idle", WARNING, "{load} rested for the whole run", "measure for longer", detail)
            )
        elif without_ns >= LATE_NS and without_ns > rest_ns:
            what = f"{{load}} began {duration(int(counter.time_ns[first]))} late"
            detail = "until then the system was measured without it"
            yield _of(counter, Doubt("load-late", WARNING, what, "lengthen the warm-up", detail))
        elif paused:
            what = f"{{load}} did no work for {percent(round(share, 2))} of the time"
            yield _of(counter, Doubt("load-paused", WARNING, what, _BLOCKED, _UNLOADED))


def faded(case: CheckedRun) -> Iterator[Doubt]:
    """A load that once worked much faster; the load that worked least of its best comes first."""
    found = [(counter, _rates(counter, _rest_ns(case, counter))) for counter in _loads(case)]
    known = [(counter, rates) for counter, rates in found if rates is not None]
    for counter, (begin_ns, end_ns, rate) in sorted(known, key=lambda each: each[1][2].mean() / each[1][2].max()):
        share, span_ns = rate / rate.max(), _span_ns(counter)
        slow_ns, nearly_still_ns = ((end_ns - begin_ns)[share < most].sum() for most in (FADED, NEARLY_STILL))
        if slow_ns < max(FADED_SHARE * span_ns, IDLE_WINDOW_NS):
            continue
        edges = np.flatnonzero(np.diff((share < FADED).astype(np.int8), prepend=0, append=0))
        longest = int((edges[1::2] - edges[::2]).argmax())
        first, last = int(edges[2 * longest]), int(edges[2 * longest + 1]) - 1
        slow = float(np.median(rate[first : last + 1]))
        how, remedy = ("fell to", _BLOCKED) if first else ("began at", "lengthen the warm-up")
        begin = duration(int(begin_ns[first])) if first else "the beginning"
        what = f"{{load}} {how} {percent(round(slow / rate.max(), 3))} of its best rate"
        detail = (
            f"{slow:,.0f} {counter.unit} a second from {begin} to {duration(int(end_ns[last]))}, {rate.max():,.0f} at "
            f"its best; below a half for {percent(round(float(slow_ns / span_ns), 2))} of the time"
        )
        severity = INVALID if nearly_still_ns >= NEARLY_STILL_SHARE * span_ns else WARNING
        yield _of(counter, Doubt("load-faded", severity, what, remedy, detail))


def _rates(counter: Counter, rest_ns: int) -> tuple[Int64Array, Int64Array, NDArray[np.float64]] | None:
    """Beginning, end and rate of a load's work in equal stretches; None if the run is too short to show a rate."""
    span_ns, work = _span_ns(counter), int(np.ptp(counter.value)) if counter.value.size else 0
    if not work or not span_ns:
        return None
    long_ns = max(span_ns // MOST_STRETCHES, LATE_NS, 4 * rest_ns, UNITS_OF_STRETCH * span_ns // work)
    edges = np.arange(counter.time_ns[0], counter.time_ns[-1] + 1, long_ns)
    at = np.unique(np.searchsorted(counter.time_ns, edges))
    if at.size <= FEWEST_STRETCHES:
        return None
    times, done = counter.time_ns[at], counter.value[at]
    return times[:-1], times[1:], np.diff(done) / (np.diff(times) / SECOND_NS)


def unsteady(case: CheckedRun) -> Iterator[Doubt]:
    """A load in virtual time whose rate changed, where only load and kernel change it: it had not settled."""
    for counter in _loads(case) if virtual_time_clock(case.record) else ():
        long = np.flatnonzero(np.diff(counter.time_ns) >= RATE_NS)
        if long.size < 2 or _rest_ns(case, counter):
            continue
        at = long[[0, -1]]
        rates = np.diff(counter.value)[at] / (np.diff(counter.time_ns)[at] / SECOND_NS)
        if rates.min() > 0 and rates.max() > UNSTEADY_RATIO * rates.min():
            first, last = (f"{rate:,.0f}" for rate in rates)
            quick = "end" if rates[1] > rates[0] else "start"
            what = f"{{load}} was {rates.max() / rates.min():.1f} times as fast at the {quick}"
            detail = f"{first} {counter.unit} a second at the beginning, {last} at the end"
            yield _of(counter, Doubt("load-unsteady", WARNING, what, "lengthen the warm-up", detail))


def few_cycles(case: CheckedRun) -> Iterator[Doubt]:
    """A load of which the run saw few cycles. Which part of a cycle meets which due time is then a matter of chance."""
    for counter in _loads(case):
        parts, each = case.number(f"{counter.name}.parts", Moment.END), _work_of_a_cycle(case, counter)
        work = int(np.ptp(counter.value)) if counter.value.size else 0
        if parts and each and 0 < work < FEWEST_CYCLES * parts * each:
            of_each = f"{each:,} {counter.unit} each" if each > 1 else counter.unit
            what = f"{{load}} went through {math.floor(10 * work / (parts * each)) / 10:g} cycles"
            detail = (
                f"so much on average for each worker in {duration(_span_ns(counter))} (cycles of {of_each}); how a few "
                "cycles meet the due times is chance"
            )
            yield _of(counter, Doubt("load-few-cycles", WARNING, what, "measure for longer", detail))


def _work_of_a_cycle(case: CheckedRun, counter: Counter) -> int:
    """What a worker does until it begins anew, in the counter's unit; 0 where that is not known."""
    name = counter.name.removeprefix("load.").partition("@")[0]
    if counter.unit in WHOLE_CYCLES:
        return 1
    if name not in LOADS_OF_REGIONS:
        return 0
    size = r"--load[ =]" + re.escape(name) + r":\S*?\bmib=(\d{1,9})\b"
    asked = re.findall(size, case.fact("args") or "")
    return max(map(int, asked)) if asked else REGION_MIB if _has_room(case, counter) else 0


def _has_room(case: CheckedRun, counter: Counter) -> bool:
    """Whether the target had memory for whole regions. A load takes a quarter of what is available at most."""
    told = [f.content for f in case.record.files if (f.path, f.moment) == ("/proc/meminfo", Moment.START)]
    found = re.search(rb"^MemAvailable: +(\d{1,15}) kB$", told[0], re.MULTILINE) if told else None
    parts = case.number(f"{counter.name}.parts", Moment.END) or 1
    return found is not None and int(found[1]) // 1024 >= 4 * REGION_MIB * parts


def part_idle(case: CheckedRun) -> Iterator[Doubt]:
    """Workers of a load that stand still. The work of the other workers hides them in the counter."""
    for counter in _loads(case):
        parts, without = (case.number(f"{counter.name}.{key}", Moment.END) for key in ("parts", "idle_parts"))
        span_ns = _span_ns(counter)
        if parts and without and without < parts and span_ns >= SHORTEST_NS and span_ns > _rest_ns(case, counter):
            what = f"{without} of {parts} workers of {{load}} did no work"
            severity = INVALID if span_ns >= SURE_NS else WARNING
            yield _of(counter, Doubt("load-part-idle", severity, what, _BLOCKED, f"in {duration(span_ns)}"))


def slight(case: CheckedRun) -> Iterator[Doubt]:
    """A load that uses almost no CPU time. A growing counter shows that it lives, not that it disturbs anything."""
    for counter in _loads(case):
        start, end = (_cpu_time(case, counter, moment) for moment in (Moment.DURING, Moment.END))
        if start is None or end is None or counter.unit in BY_DEVICES or _rest_ns(case, counter) > IDLE_WINDOW_NS:
            continue
        span_ns, used_ns = end[0] - start[0], end[1] - start[1]
        if span_ns >= SHORTEST_NS and used_ns < LEAST_SHARE * span_ns:
            what = f"{{load}} used {percent(round(max(used_ns, 0) / span_ns, 3))} of one CPU"
            detail = f"in {duration(span_ns)}; the latencies are nearly those without it"
            yield _of(counter, Doubt("load-slight", WARNING, what, "see what it waits for", detail))


def unproven(case: CheckedRun) -> Iterator[Doubt]:
    """Loads that were asked for, but whose work the record does not show."""
    asked = re.findall(_LOAD_ASKED, case.fact("loads") or "")
    without = len(asked) - sum(bool(c.value.size and c.value[-1] > 0) for c in _loads(case))
    if without > 0:
        of = "the load" if len(asked) == 1 else f"{without} of {len(asked)} loads"
        what, detail = f"the record shows no work of {of}", f"asked for: {', '.join(asked)}"
        yield Doubt("load-unproven", INVALID, what, "measure for some seconds", detail)


def another_way(case: CheckedRun) -> Iterator[Doubt]:
    """A load that lacked what it needs, or that was bound to CPUs and had processes that may run on others."""
    for counter in _loads(case):
        if lack := case.fact(f"{counter.name}.lack", Moment.START):
            what = "{load} did less than it is meant to"
            yield _of(counter, Doubt("load-lessened", WARNING, what, "give the load what it lacks", lack))
        strays = max(case.number(f"{counter.name}.strays", moment) or 0 for moment in (Moment.DURING, Moment.END))
        if strays:
            what = f"{strays} process{'es' * (strays > 1)} of {{load}} could leave its CPUs"
            detail = "the load's program itself, cpusets or a CPU that went off line change the affinity"
            yield _of(counter, Doubt("load-strayed", WARNING, what, "find the cause", detail))


def _of(counter: Counter, doubt: Doubt) -> Doubt:
    """The doubt about a load, which is named in place of {load}. The detail has a name that is too long for that."""
    name = counter.name.removeprefix("load.")
    if len(name) <= _SHORT:
        return replace(doubt, what=doubt.what.format(load=f"load {name}"))
    return replace(doubt, what=doubt.what.format(load="a load"), detail=f"{name}: {doubt.detail}")


def _loads(case: CheckedRun) -> list[Counter]:
    return [counter for counter in case.record.counters if counter.name.startswith("load.")]


def _rest_ns(case: CheckedRun, counter: Counter) -> int:
    return case.number(f"{counter.name}.rest_ns", Moment.START) or 0


def _span_ns(counter: Counter) -> int:
    return int(counter.time_ns[-1] - counter.time_ns[0]) if counter.time_ns.size else 0


def _longest_standstill_ns(counter: Counter) -> int:
    """The longest time between readings that show the same value."""
    changes = np.flatnonzero(np.diff(counter.value)) + 1
    starts, ends = np.concatenate(([0], changes)), np.concatenate((changes, [counter.value.size])) - 1
    return int((counter.time_ns[ends] - counter.time_ns[starts]).max()) if counter.value.size else 0


def _cpu_time(case: CheckedRun, counter: Counter, moment: Moment) -> tuple[int, int] | None:
    """When the agent read a load's CPU time, and this CPU time, both in nanoseconds; None without a reading."""
    key = f"{counter.name}.cpu_ms"
    read = [f for f in case.record.facts if (f.key, f.moment, f.thread) == (key, moment, WHOLE_RUN)]
    used_ms = case.number(key, moment)
    return (read[-1].time_ns, used_ms * 1_000_000) if read and used_ms is not None else None


LOAD_CHECKS: tuple[Check, ...] = (
    *(died, stood_still, faded, unsteady, few_cycles, part_idle, slight, unproven, another_way),
)
