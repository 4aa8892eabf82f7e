# SPDX-License-Identifier: Apache-2.0
"""The names of threads as the events of one CPU tell them."""

from dataclasses import dataclass


@dataclass(slots=True)
class Sighting:
    """A name that all events from one time to another tell."""

    from_ns: int
    to_ns: int
    name: str


class NameSightings:
    """Collects the names. inherited: of each thread that began, the name that it had from its parent."""

    def __init__(self) -> None:
        self.of_threads: dict[int, list[Sighting]] = {}
        self.inherited: dict[int, Sighting] = {}

    def see(self, tid: int, name: str, time_ns: int) -> None:
        """An event tells the name of a thread."""
        sightings = self.of_threads.setdefault(tid, [])
        if sightings and sightings[-1].name == name:
            sightings[-1].to_ns = max(time_ns, sightings[-1].to_ns)
        else:
            sightings.append(Sighting(time_ns, time_ns, name))

    def begin(self, tid: int, name: str, time_ns: int) -> None:
        """A thread begins with the name of its parent."""
        self.see(tid, name, time_ns)
        self.inherited[tid] = Sighting(time_ns, time_ns, name)

    def rename(self, tid: int, names: tuple[str, str], time_ns: int) -> None:
        """A thread takes another name. names: the one before and the new one."""
        self.see(tid, names[0], time_ns - 1)
        self.see(tid, names[1], time_ns)
