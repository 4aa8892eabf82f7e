# SPDX-License-Identifier: Apache-2.0
"""Did the kernel stop real-time threads because a budget was used up? By the delays themselves.

The kernel's log tells of throttling once per boot only, and of its fair server never. But each stop ends a whole number
of the budget's periods behind the one before and lasts no longer than the budget allows, and the thread was ready.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rtproof.analysis.checks.case import INVALID, WARNING, Case, Check
from rtproof.analysis.model import Doubt, Severity, Summary
from rtproof.analysis.phrases import duration
from rtproof.record import Int64Array, Moment

RT_RUNTIME = "/proc/sys/kernel/sched_rt_runtime_us"
RT_PERIOD = "/proc/sys/kernel/sched_rt_period_us"
GROUPS, FAIR_SERVER = "rt-group", "fair-server"
FAIR_SINCE = (6, 12)
FAIR_NS, FAIR_PERIOD_NS = 50_000_000, 1_000_000_000
"""What the fair server has unless somebody changes it (kernel/sched/fair.c)."""
LEAST_STOPS = 3
LEAST_NS = 2_000_000
"""A shorter stop could be anything."""
TICK_NS = 10_000_000
"""Budgets are looked at from tick to tick; at HZ=100 that is so long."""
NEAR = 0.05
"""Share of a period by which the distance of two stops may miss a whole number of periods."""
MOSTLY = 0.75
"""Share of the distances that have to fit, and of the delays that have to be no longer than the budget allows."""
WHOLE = 0.7
"""Share of the longest possible stop from which the longest one seen shows a budget that was used up."""
READY = 0.5
"""Share of the stops that the thread must have spent waiting for a CPU, where the kernel tells."""


@dataclass(frozen=True)
class Budget:
    """Real-time threads may be kept from running for up to ``stop_ns`` of each period. name: what keeps them."""

    name: str
    stop_ns: int
    period_ns: int


@dataclass(frozen=True)
class Stops:
    """Ends and lengths of the long delays of a thread; activations that were late together are one."""

    end_ns: Int64Array
    length_ns: Int64Array


def budget_stops(case: Case) -> Iterator[Doubt]:
    """Delays in the rhythm of a budget. With their full length they are its doing; shorter ones may be chance."""
    if case.fact("policy") not in ("fifo", "rr"):
        return
    for summary in case.summaries:
        of = [(budget, _stops(summary, budget)) for budget in budgets(case, summary.series.cpu)]
        fitting = [(budget, stops) for budget, stops in of if _fits(stops, budget) and _was_ready(case, summary, stops)]
        if not fitting:
            continue
        best, stops = min(fitting, key=lambda one: abs(int(one[1].length_ns.max()) - one[0].stop_ns))
        thread, longest = summary.series.thread, int(stops.length_ns.max())
        what = (
            f"thread {thread} was stopped {stops.end_ns.size} times for up to {duration(longest)}, in step with a "
            f"period of {duration(best.period_ns)}: {best.name} may take up to {duration(best.stop_ns)} of each"
        )
        remedy = "find the real-time thread that uses up the budget, or give real-time threads a larger one"
        yield Doubt("budget-stops", _severity(longest, best), what, remedy)


def budgets(case: Case, cpu: int) -> list[Budget]:
    """Every budget that the record tells of, or that this version of Linux has."""
    found = [*_fair_server(case, cpu), *_groups(case)]
    runtime, period = (case.file(path, Moment.START) or "" for path in (RT_RUNTIME, RT_PERIOD))
    if _version(case) < FAIR_SINCE or case.file(GROUPS, Moment.START) is not None:
        found += _of("the kernel's throttling of real-time threads", runtime, period)
    return found


def _of(name: str, runtime_us: str, period_us: str) -> list[Budget]:
    """None where real-time threads may run all the time, which is said with -1."""
    if not runtime_us.isdigit() or not period_us.isdigit() or not int(runtime_us) < int(period_us):
        return []
    return [Budget(name, (int(period_us) - int(runtime_us)) * 1000, int(period_us) * 1000)]


def _groups(case: Case) -> Iterator[Budget]:
    for line in (case.file(GROUPS, Moment.START) or "").splitlines():
        path, runtime, period = line.rsplit(" ", 2) if line.count(" ") >= 2 else (line, "", "")
        yield from _of(f"the throttling of the control group {path}", runtime, period)


def _fair_server(case: Case, cpu: int) -> list[Budget]:
    name = "the kernel's fair server"
    lines = (case.file(FAIR_SERVER, Moment.START) or "").splitlines()
    for words in map(str.split, lines):
        if len(words) == 3 and (words[0] == f"cpu{cpu}" or cpu < 0) and words[1].isdigit() and words[2].isdigit():
            runtime, period = int(words[1]), int(words[2])
            return [Budget(name, runtime, period)] if 0 < runtime < period else []
    return [Budget(name, FAIR_NS, FAIR_PERIOD_NS)] if not lines and _version(case) >= FAIR_SINCE else []


def _version(case: Case) -> tuple[int, int]:
    numbers = re.match(r"(\d+)\.(\d+)", case.record.begin.kernel_release)
    return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


def _stops(summary: Summary, budget: Budget) -> Stops:
    """From the largest values. What ended together was one stop, as long as its longest delay.

    A delay that is longer than the budget allows has another cause, or a second one such as a hypervisor that took the
    CPU too. It is left out; where too many delays are longer, there are no stops of this budget.
    """
    most_ns = budget.stop_ns + TICK_NS
    end_ns, length_ns = summary.top.due_ns + summary.top.value, summary.top.value
    longest = int(length_ns[length_ns <= most_ns].max(initial=0))
    order = np.argsort(end_ns, kind="stable")
    order = order[length_ns[order] >= max(LEAST_NS, longest / 4)]
    if not order.size:
        return Stops(end_ns[order], length_ns[order])
    first = np.flatnonzero(np.diff(end_ns[order], prepend=-(1 << 62)) > TICK_NS)
    end_ns, length_ns = end_ns[order][first], np.maximum.reduceat(length_ns[order], first)
    keep = length_ns <= most_ns
    keep &= keep.mean() >= MOSTLY
    return Stops(end_ns[keep], length_ns[keep])


def _fits(stops: Stops, budget: Budget) -> bool:
    if stops.end_ns.size < LEAST_STOPS:
        return False
    periods = np.diff(stops.end_ns) / budget.period_ns
    fits = (np.abs(periods - np.round(periods)) <= NEAR) & (np.round(periods) >= 1)
    return bool(fits.mean() >= MOSTLY)


def _was_ready(case: Case, summary: Summary, stops: Stops) -> bool:
    """Where the kernel does not tell how long the thread waited, the rhythm alone has to do."""
    found = case.record.conditions.get(summary.series.thread)
    if found is None or case.fact("run_delay", Moment.START, summary.series.thread) != "schedstat":
        return True
    return int(found.run_delay_ns.sum()) >= READY * int(stops.length_ns.sum())


def _severity(longest_ns: int, budget: Budget) -> Severity:
    return INVALID if longest_ns >= WHOLE * budget.stop_ns else WARNING


CHECKS: tuple[Check, ...] = (budget_stops,)
