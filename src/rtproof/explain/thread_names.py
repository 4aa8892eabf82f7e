# SPDX-License-Identifier: Apache-2.0
"""What threads were called when. A new thread has its parent's name until it takes another one."""

from bisect import bisect_left
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property


@dataclass(slots=True)
class Sighting:
    """A name that all events of a CPU from one time to another tell."""

    from_ns: int
    to_ns: int
    name: str


class ThreadNames:
    """The names of threads, as the events of one CPU after the other tell them. Ask for them behind the last CPU."""

    def __init__(self) -> None:
        self._sightings: dict[int, list[Sighting]] = defaultdict(list)
        self._inherited: dict[int, Sighting] = {}
        self._latest: dict[int, Sighting] = {}

    def begin_cpu(self) -> None:
        """The next events are of another CPU, in order of time again."""
        self._latest.clear()

    def see(self, tid: int, name: str, time_ns: int) -> None:
        """An event tells the name of a thread."""
        latest = self._latest.get(tid)
        if latest and latest.name == name:
            latest.to_ns = max(time_ns, latest.to_ns)
        else:
            self._latest[tid] = Sighting(time_ns, time_ns, name)
            self._sightings[tid].append(self._latest[tid])

    def begin(self, tid: int, name: str, time_ns: int) -> None:
        """A thread begins with the name of its parent."""
        self.see(tid, name, time_ns)
        self._inherited[tid] = Sighting(time_ns, time_ns, name)

    def rename(self, tid: int, names: tuple[str, str], time_ns: int) -> None:
        """A thread takes another name. names: the one before and the new one."""
        self.see(tid, names[0], time_ns - 1)
        self.see(tid, names[1], time_ns)

    def at(self, tid: int, time_ns: int) -> str:
        """The name of a thread; "" if it had only one. Between two sightings it may have had either: the newer one."""
        sightings = self._of_several.get(tid, [])
        later = bisect_left(sightings, time_ns, key=lambda each: each.to_ns)
        return sightings[min(later, len(sightings) - 1)].name if sightings else ""

    @property
    def changed(self) -> bool:
        """Whether any thread had more than one name."""
        return bool(self._of_several)

    @cached_property
    def _of_several(self) -> dict[int, list[Sighting]]:
        """The sightings of the threads that had more than one name, in order of time."""
        several = {tid: some for tid, some in self._sightings.items() if len({each.name for each in some}) > 1}
        return {tid: _ordered(some, self._inherited.get(tid)) for tid, some in several.items()}


def _ordered(sightings: list[Sighting], inherited: Sighting | None) -> list[Sighting]:
    """In order of time, without the name that the thread had from its parent until it took its own."""
    ordered = sorted(sightings, key=lambda each: (each.to_ns, each.from_ns))
    if inherited is None:
        return ordered
    before = [each for each in ordered if each.to_ns < inherited.from_ns]  # another thread had the number
    since = ordered[len(before) :]
    own = next((at for at, each in enumerate(since) if each.name != inherited.name), 0)
    return [*before, *since[own:]]
