# SPDX-License-Identifier: Apache-2.0
"""A thread that is ready to run while its CPU is idle, or runs less urgent threads: which limit withheld the CPU."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from rtproof.core.units import whole_number
from rtproof.explain.causes import FAIR_FROM
from rtproof.explain.trace_timelines import CpuTimeline, Layer, Stretch
from rtproof.record.contents import Moment, Record

DEADLINE, REAL_TIME, FAIR = "deadline", "real-time", "fair"
RELEASES = {
    "dl_task_timer": DEADLINE,
    "sched_rt_period_timer": REAL_TIME,
    "sched_cfs_period_timer": FAIR,
    "sched_cfs_slack_timer": FAIR,
}
"""Timers of the scheduler at whose end a throttled thread may run again, and of which class."""
RELEASED_NS = 200_000
"""So long after such a timer the thread gets the CPU."""
IDLE_AGAIN_NS = 200_000
"""A CPU that goes into an idle state, and stays for so long, has nothing to run."""
LONGEST_EXIT_NS = 1_000_000
"""So long may a CPU take to leave an idle state."""
SURELY_IDLE_NS = 5_000_000
LONGEST_TURN_NS = 10_000_000
"""A thread of ordinary priority rarely waits longer for its turn beside one other, nor for a tick of the scheduler."""


@dataclass(frozen=True)
class Limits:
    """What may withhold the CPU from threads of each class, in words.

    beside: of real-time threads while others run, which the kernel's fair server may also do.
    of_group: whether the control groups of the application have a cpu.max; None if that is unknown.
    """

    fair: str = "cpu.max of a control group"
    real_time: str = "sched_rt_runtime_us or cpu.rt_runtime_us of a group"
    beside: str = "sched_rt_runtime_us or cpu.rt_runtime_us of a group"
    of_group: bool | None = None

    def words(self, priority: int, *, idle: bool) -> str:
        own = self.real_time if idle else self.beside
        return {DEADLINE: "its DEADLINE budget", FAIR: self.fair}.get(scheduling_class(priority), own)


def scheduling_class(priority: int) -> str:
    """By the kernel's priority."""
    return DEADLINE if priority < 0 else REAL_TIME if priority < FAIR_FROM else FAIR


NO_LIMITS = Limits()
"""Where no record tells which limits there are."""
RT_RUNTIME, GROUPS, CGROUP_FILES = "/proc/sys/kernel/sched_rt_runtime_us", "rt-group", "process/cgroup-files"
SERVER_SINCE = (6, 12)
"""From then on the kernel throttles no real-time threads outside of groups; its fair server runs others before them."""


def recorded_limits(record: Record) -> Limits:
    """The limits that a record tells of."""
    numbers = re.match(r"(\d{1,9})\.(\d{1,9})", record.begin.kernel_release)
    served = numbers is not None and (int(numbers[1]), int(numbers[2])) >= SERVER_SINCE
    groups = _text(record, GROUPS) is not None
    endless = (_text(record, RT_RUNTIME) or "").strip() == "-1"
    words = [] if served or endless else ["sched_rt_runtime_us"]
    words += ["cpu.rt_runtime_us of a group"] if groups else []
    beside = ["the kernel's fair server", *words] if served else words
    text = _text(record, CGROUP_FILES)
    limit = _cpu_max(text or "")
    unknown = "a limit that the run does not show"
    kinds = (" or ".join(words) or unknown, " or ".join(beside) or unknown)
    return Limits(limit or Limits.fair, *kinds, None if text is None else bool(limit))


def _cpu_max(text: str) -> str:
    """The limit of the thread's own group, or else of one above; "" if there is none. cgroup v1 has it in two files."""
    found = dict(line.split(maxsplit=1) for line in text.splitlines() if " " in line)
    for path, value in found.items():
        first = path.endswith("/cpu.cfs_quota_us")
        words = [value, found.get(path.replace("quota", "period"), "")] if first else value.split()
        numbers = [whole_number(word) for word in words]
        if (first or path.endswith("/cpu.max")) and len(numbers) == 2 and all(numbers):
            return f"{path} ({numbers[0]} us of {numbers[1]} us)"
    return ""


def _text(record: Record, path: str) -> str | None:
    found = [file for file in record.files if file.path == path and not file.errno]
    of_start = next((file for file in found if file.moment is Moment.START), found[0] if found else None)
    return of_start.content.decode(errors="replace") if of_start else None


IdleRun = tuple[int, int, str]
"""From when to when a CPU was idle beside a ready thread, and what that shows: CERTAIN, PROVEN, LONG or nothing."""
CERTAIN, PROVEN, LONG = "certain", "proven", "long"
"""An event shows that the scheduler withheld the CPU; so does something else; it took long to leave the idle state."""


def idle_runs(
    stretches: Sequence[Stretch], timelines: Mapping[int, CpuTimeline], priority: int, *, certain_ns: int
) -> Iterator[IdleRun]:
    """The idle times among the stretches of a ready thread, the last one first.

    certain_ns: from when on it is certain that it is ready.
    """
    proven = False  # later, while the thread was ready all the time
    by_idle = groupby(stretches, key=lambda stretch: stretch.task is not None and stretch.task.idle)
    for run in reversed([list(group) for idle, group in by_idle if idle]):
        from_ns, to_ns = run[0].from_ns, run[-1].to_ns
        # The scheduler offers the CPU nothing to run if it goes into an idle state although the thread is ready. A CPU
        # that does so at the very moment of the waking does not know of it yet.
        calm = [stretch for stretch in run if stretch.top is None]
        entered = next((now.from_ns for was, now in pairwise(calm) if was.idle_state < 0 <= now.idle_state), to_ns)
        goes_idle = to_ns - entered > (IDLE_AGAIN_NS if entered >= certain_ns else LONGEST_EXIT_NS)
        # A timer of the scheduler may have let the thread go on.
        if goes_idle or any(True for _ in _releases(timelines.values(), to_ns - RELEASED_NS, to_ns, priority)):
            shows = CERTAIN
        elif to_ns - from_ns > (IDLE_AGAIN_NS if proven else SURELY_IDLE_NS):
            shows = PROVEN
        else:
            shows = LONG if to_ns - from_ns > IDLE_AGAIN_NS else ""
        proven = proven or shows in (CERTAIN, PROVEN)
        yield from_ns, to_ns, shows


def withheld_until(stretches: Sequence[Stretch], timelines: Mapping[int, CpuTimeline], priority: int) -> int | None:
    """Until when a limit may have withheld a CPU that threads of the same class had; None if nothing shows that.

    stretches: of a thread of ordinary priority that is ready. At the end of its limit, the kernel lets it wait for the
    next tick of the scheduler if the CPU is not idle.
    """
    if not stretches or priority < FAIR_FROM:
        return None
    to_ns = stretches[-1].to_ns
    since_ns = max(stretches[0].from_ns + LONGEST_TURN_NS, to_ns - LONGEST_TURN_NS)
    return max(_releases(timelines.values(), since_ns, to_ns, priority), default=None)


def _releases(timelines: Iterable[CpuTimeline], from_ns: int, to_ns: int, priority: int) -> Iterator[int]:
    """When timers of the scheduler for this class of threads expired."""
    wanted = scheduling_class(priority)
    return (
        stretch.from_ns
        for timeline in timelines
        for stretch in (timeline.between(from_ns, to_ns) if from_ns < to_ns else ())
        if stretch.top is not None and stretch.top.layer is Layer.TIMER and RELEASES.get(stretch.top.name) == wanted
    )
