# SPDX-License-Identifier: Apache-2.0
"""What threads were called when. A new thread has its parent's name until it takes another one."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from rtproof.explain.cpu_contexts import Change, CpuTimeline, Stretch, Task
from rtproof.explain.name_sightings import NameSightings, Sighting


@dataclass(frozen=True)
class ThreadNames:
    """The names of the threads that had more than one, in order of time."""

    sightings: dict[int, list[Sighting]]

    def at(self, tid: int, time_ns: int) -> str:
        """The name of a thread; "" if it had only one. Between two sightings it may have had either: the newer one."""
        sightings = self.sightings.get(tid, [])
        later = bisect_left(sightings, time_ns, key=lambda each: each.to_ns)
        return sightings[min(later, len(sightings) - 1)].name if sightings else ""

    def of(self, task: Task, time_ns: int) -> Task:
        name = self.at(task.tid, time_ns)
        return task._replace(name=name) if name else task

    def in_timeline(self, timeline: CpuTimeline) -> CpuTimeline:
        """The timeline with the newest name of each thread in each stretch."""
        if not self.sightings:
            return timeline
        return replace(timeline, stretches=tuple(map(self._in_stretch, timeline.stretches)))

    def _in_stretch(self, stretch: Stretch) -> Stretch:
        known = stretch.task and self.of(stretch.task, stretch.from_ns + 1)
        return stretch if known == stretch.task else stretch._replace(task=known)

    def in_changes(self, changes: Iterable[Change]) -> list[Change]:
        """The changes, each waker (``by``) with the name that it had then."""
        if not self.sightings:
            return list(changes)
        return [each._replace(by=self.of(each.by, each.time_ns + 1)) if each.by else each for each in changes]


def thread_names(of_cpus: Iterable[NameSightings]) -> ThreadNames:
    """What the sightings on all CPUs tell together."""
    found: dict[int, list[Sighting]] = defaultdict(list)
    inherited: dict[int, Sighting] = {}
    for each in of_cpus:
        inherited |= each.inherited
        for tid, sightings in each.of_threads.items():
            found[tid] += sightings
    several = {tid: some for tid, some in found.items() if len({each.name for each in some}) > 1}
    return ThreadNames({tid: _ordered(some, inherited.get(tid)) for tid, some in several.items()})


def _ordered(sightings: Iterable[Sighting], inherited: Sighting | None) -> list[Sighting]:
    """In order of time, without the name that the thread had from its parent until it took its own."""
    ordered = sorted(sightings, key=lambda each: (each.to_ns, each.from_ns))
    if inherited is None:
        return ordered
    before = [each for each in ordered if each.to_ns < inherited.from_ns]  # another thread had the number
    since = ordered[len(before) :]
    own = next((at for at, each in enumerate(since) if each.name != inherited.name), 0)
    return [*before, *since[own:]]
