# SPDX-License-Identifier: Apache-2.0
"""In what a running thread spends its time: own code, a system call, a page fault or a signal handler.

The kernel has no event where a page fault ends, and the agent cannot probe it everywhere. Not all system calls have
events. So a mode lasts as long as events prove it. Behind that it is unclear, and its name has each possibility.
"""

import signal
from collections.abc import Callable, Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

KERNEL, USER, FAULT, HANDLER, AT_END, UNCLEAR = "kernel", "user", "fault", "handler", "end", "unclear"
"""A system call, own code, a page fault, the handler of a signal, the kernel behind the last event of a call or of a
fault, or one of several.
"""
OWN_CODE, A_FAULT = "the thread's own code", "a page fault"
IN_FAULT = ("mmap_lock_released", "rss_stat")
"""Events within a page fault, close to its end: which of them a kernel has depends on its version."""
EDGE_NS = 2_500
"""So much of two page faults may lie between their events: in virtual time 0.8 to 1.7 us, by probes on arm64 2.4."""
LONGEST_EDGE_NS = 5_000
"""On a CPU that is slow at the moment it may be as much as lies before that event, but no more than this."""
RELEASES = ("close", "close_range", "dup2", "dup3", "munmap")
"""Calls that may let go of a file. The kernel then releases it behind the call's last event (``task_work``)."""
SIGNAL_RETURNS = ("rt_sigreturn", "sigreturn")
DEFAULT_ACTIONS = (0, 1)
"""Values of ``sa_handler`` of a signal that has no handler: SIG_DFL and SIG_IGN."""
ARCHITECTURES = {"aarch64": "generic", "riscv64": "generic", "loongarch64": "generic", "i686": "i386", "i586": "i386"}
"""Whose numbers of system calls a machine has, where that is not its own name."""


class Mode(NamedTuple):
    """name: of the system call or the signal, or what else it may be. since_ns: when it began.

    file: the first that it reads from a disk; "" if no event tells.
    """

    kind: str = ""
    name: str = ""
    since_ns: int = 0
    file: str = ""

    @property
    def words(self) -> str:
        """What a sentence calls it, where it is one of several."""
        told = {KERNEL: call_words(self.name), HANDLER: f"the handler of {self.name}", UNCLEAR: self.name}
        return told.get(self.kind, OWN_CODE)

    def or_else(self, other: str, since_ns: int | None = None) -> "Mode":
        """This mode or another one. since_ns: when it became unclear."""
        name = self.words if self.words.endswith(other) else f"{self.words}, or {other}"
        return Mode(UNCLEAR, name, self.since_ns if since_ns is None else since_ns)


UNKNOWN = Mode()


def call_words(call: str) -> str:
    return f"system call {call}" if call else "a system call"


Revision = tuple[int, Callable[[Mode], Mode]]
"""What an event tells of the time before it, from a time on: what a mode there really was."""


class ModeWalk:
    """The mode of the thread that has a CPU. Its methods take the events of the thread, in order.

    Some return what is now known of the time before.
    """

    def __init__(self, *, sees_faults: bool) -> None:
        self._sees_faults = sees_faults
        self._complete: set[int] = set()  # threads whose system calls have both events
        self._behind_fault: dict[int, Mode] = {}  # what threads go on with that left the CPU in a page fault
        self._preempted: dict[int, str] = {}  # the call or the fault that ended last, of threads that were preempted
        self.lose()

    def lose(self) -> None:
        """Know nothing, as where another thread gets the CPU."""
        self.now = UNKNOWN
        self._own = Mode(USER)
        self._fault: Mode | None = None
        self._exact = False  # a probe told where the newest page fault ended
        self._left = ""  # the call or the fault that ended last
        self._resumed = UNKNOWN

    def enter(self, tid: int, time_ns: int, call: str) -> None:
        """A system call begins."""
        self._complete.add(tid)
        if call in SIGNAL_RETURNS:
            self._own = Mode(USER)
        self.now, self._fault = Mode(KERNEL, call, time_ns), None

    def leave(self, time_ns: int, call: str) -> Revision | None:
        """A system call ends. Without an event of its beginning it may have begun at any time since the last event."""
        before, self._fault, self._left = self.now, None, call_words(call)
        self.now = self._own._replace(since_ns=time_ns)
        if call in RELEASES:
            self.now = self.now.or_else(f"a file's release behind {call_words(call)}", time_ns)
        if before.kind in ("", KERNEL) or call in SIGNAL_RETURNS:
            return None
        return (before.since_ns, lambda mode: mode.or_else(call_words(call)))

    def fault(self, time_ns: int, *, of_user: bool | None) -> Revision | None:
        """A page fault begins, in own code or in the kernel. The time right behind another one is that one's.

        of_user: None if the event does not tell.
        """
        of_user = self.now.kind != KERNEL if of_user is None else of_user
        before, was, ended_ns = self._fault, self.now, self.now.since_ns
        exact, self._exact = self._exact, False
        lasted_ns = 0 if before is None or exact else ended_ns - before.since_ns
        edge_ns = max(EDGE_NS, min(LONGEST_EDGE_NS, lasted_ns))
        follows = before is not None and self.now.kind != UNCLEAR and time_ns - ended_ns <= edge_ns
        resumed = self._own if of_user or not self.now.kind else self._resumed if self._fault else self.now
        self._resumed = resumed
        self._fault = Mode(FAULT, "", time_ns)
        self.now = resumed.or_else(A_FAULT, time_ns)
        if before and follows:
            return (ended_ns, lambda mode: before)
        close = was.kind == USER and time_ns - ended_ns <= 2 * lasted_ns
        return (ended_ns, lambda mode: mode.or_else(A_FAULT)) if close else None

    def in_fault(self, tid: int, time_ns: int) -> Revision | None:
        """The thread does what it does at the end of a page fault, or of a system call."""
        fault = self._fault
        if fault is None or tid not in self._complete:
            return None
        self.now, self._left = self._resumed._replace(since_ns=time_ns), A_FAULT
        return (fault.since_ns, lambda mode: fault)

    def leaves_cpu(self, tid: int, *, ready: bool, uninterruptible: bool = False) -> Revision | None:
        """The thread sleeps, or another one takes its place. A sleep outside of system calls is in a page fault.

        Without a fault, an uninterruptible one is behind the last event of the fault or the call before, unless page
        faults have no events.
        """
        fault = self._fault
        self._behind_fault.pop(tid, None)
        left = self._preempted.pop(tid, "")
        if self.now.kind:
            left = self._left if self.now.kind in (USER, HANDLER) else ""
        if ready:
            self._preempted[tid] = left
        elif uninterruptible and left and self._sees_faults:
            since_ns, end = self.now.since_ns, f"the kernel at the end of {left}"
            self.now = Mode(AT_END, end, since_ns)
            return (since_ns, lambda mode: mode.or_else(end))
        if fault is None or self.now.kind != UNCLEAR or tid not in self._complete:
            return None
        self._behind_fault[tid] = self._resumed
        if ready:
            return None
        self.now = fault
        return (fault.since_ns, lambda mode: fault)

    def fault_ends(self, tid: int, time_ns: int) -> Revision | None:
        """A page fault ends, maybe one in which the thread left the CPU."""
        self._exact = True
        if self._fault is not None or self.now.kind or tid not in self._behind_fault:
            return self.in_fault(tid, time_ns)
        self.now, self._left = self._behind_fault.pop(tid)._replace(since_ns=time_ns), A_FAULT
        return (0, lambda mode: Mode(FAULT))

    def read(self, file: str) -> None:
        """The thread reads a file from its disk: in a page fault, or in a system call."""
        if self._fault is not None and not self._fault.file:
            self._fault = self._fault._replace(file=file)
        if self.now.kind in (FAULT, KERNEL) and not self.now.file:
            self.now = self.now._replace(file=file)

    def hit_own_code(self, time_ns: int) -> None:
        """An interrupt finds the thread outside of the kernel."""
        if self.now.kind not in (USER, HANDLER):
            self.now, self._fault, self._left = self._own._replace(since_ns=time_ns), None, ""

    def signal(self, tid: int, time_ns: int, number: int) -> None:
        """A handler of a signal begins. Only a system call ends it, so it is unclear where these have no events."""
        self._own = Mode(HANDLER, signal_name(number), time_ns)
        self.now, self._fault, self._left = self._own, None, ""
        if tid not in self._complete:
            self.now = Mode(USER, "", time_ns).or_else(self._own.words)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@cache
def call_names(machine: str) -> Mapping[int, str]:
    """The names of a machine's system calls by their numbers; none of a machine that is not known."""
    lines = resources.files("rtproof.explain").joinpath("system_calls.txt").read_text().splitlines()
    wanted = ARCHITECTURES.get(machine, machine)
    of = next((line.split()[1:] for line in lines if line.split()[:1] == [wanted]), [])
    return {number: name for number, name in enumerate(of) if name != "-"}


def call_namer(machine: str) -> Callable[[int], str]:
    names = call_names(machine)
    return lambda number: names.get(number, f"number {number}")
