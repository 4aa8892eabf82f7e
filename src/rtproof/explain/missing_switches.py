# SPDX-License-Identifier: Apache-2.0
"""Whether the events of a CPU contradict its switches, which shows that a switch between threads has no event.

Each event names the thread that ran, and each switch names both. So what one switch gave the CPU to is what all events
up to the next switch must name. Seen on a kernel that writes no event of a switch away from some threads.
"""

from rtproof.explain.trace_events import HARDIRQ, IRQS_OFF, LOST, TraceEvent, Window

SWITCH = "sched_switch"


class SwitchCheck:
    """Looks at the events of one CPU in order, and keeps which thread has the CPU.

    A window is the time of the CPU in which a switch without an event lies. There may be several.

    between: whether the last event came between the event of a switch and the switch itself, when the thread before
    still has the CPU. No hard interrupt can come there, because interrupts are off.
    """

    def __init__(self) -> None:
        self.between = False
        self._task: int | None = None
        self._before: int | None = None
        self._sure_ns = 0
        self._doubt_ns: int | None = None

    def see(self, event: TraceEvent) -> Window | None:
        """The time in which a switch without an event lies, if this event shows that there is one."""
        self.between = False
        if event.name == LOST:
            missing = self.end()
            self._task = self._before = None
            return missing
        missing = self._who(event)
        if event.name == SWITCH:
            self._switch(event)
        return missing

    def end(self) -> Window | None:
        """The same at the end of the events, or where some were lost, if nothing shows that a switch was done."""
        missing = None if self._doubt_ns is None else Window(self._sure_ns, self._doubt_ns)
        self._doubt_ns = None
        return missing

    def _who(self, event: TraceEvent) -> Window | None:
        """Whom the event names, against who should have the CPU."""
        missing = None
        if event.pid < 0:
            return None
        if self._is_between(event):
            self.between, self._doubt_ns = True, event.time_ns
            return None
        if self._task is not None and event.pid != self._task:
            missing = Window(self._sure_ns, event.time_ns)
        self._sure(event.pid, None, event.time_ns)
        return missing

    def _is_between(self, event: TraceEvent) -> bool:
        switching = event.flags & IRQS_OFF and not event.flags & HARDIRQ and event.name != SWITCH
        return bool(switching) and event.pid == self._before and event.pid != self._task

    def _sure(self, task: int, before: int | None, time_ns: int) -> None:
        self._task, self._before, self._sure_ns, self._doubt_ns = task, before, time_ns, None

    def _switch(self, event: TraceEvent) -> None:
        after = event.values.get("next_pid")
        if isinstance(after, int):
            self._sure(after, event.pid, event.time_ns)
