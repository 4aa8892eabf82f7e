# SPDX-License-Identifier: Apache-2.0
"""What a CPU did when: its events as stretches without gaps or overlaps, each with the stack of what ran.

The top of the stack ran: an NMI over a hard interrupt over a softirq over a task. Within a hard interrupt, the vector
is below its handler, and the handler below the function of a timer. Softirqs are kept with the task that runs them,
because PREEMPT_RT preempts them.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

from rtproof.explain.missing_switches import SwitchCheck
from rtproof.explain.stacks import hit_functions
from rtproof.explain.thread_modes import DEFAULT_ACTIONS, IN_FAULT, UNKNOWN, Mode, ModeWalk, Revision
from rtproof.explain.thread_names import ThreadNames
from rtproof.explain.trace_events import (
    DEPTH_MASK,
    HARDIRQ,
    IRQS_OFF,
    LOST,
    NMI,
    SOFTIRQ,
    TraceEvent,
    Window,
)
from rtproof.summary.trace_text import SYSTEM_CALL, VECTOR

LEAST_URGENT = 139
"""The kernel's priority of the nicest thread."""
UNINTERRUPTIBLE = 2
"""The state of ``sched_switch`` of a thread that sleeps until the kernel lets it go on."""
MINOR_BITS = 20
WAKINGS = ("sched_waking", "sched_wakeup")
BEGINS = ("irq_handler_entry", "ipi_entry", "hrtimer_expire_entry")
BEHIND_NS = 10_000
"""So soon behind the end of an interrupt, or of the softirq before, begin the softirqs that it has brought."""
RAISED_BY_THREADS = (0, 2, 3, 4, 6)
"""The numbers of softirqs that threads raise: HI, NET_TX, NET_RX, BLOCK, TASKLET. The others come with timers."""
NOT_BY_TIMERS = (2, 3, 4)
"""Those of them that the interrupt of the CPU's timer does not bring."""
TIMER_BEGINS, TIMER_ENDS = ("irq_vectors/local_timer_entry", "hrtimer_expire_entry"), "irq_vectors/local_timer_exit"
SOFTIRQ_THREADS = "ksoftirqd/"
STOPPERS = ("migration/", "stopper/")
"""The beginnings of the names of threads that move others as they are told."""
OF_USER = {"page_fault_user": True, "page_fault_kernel": False, "fault_begin": None}
"""Whether the event that begins a page fault tells that it is of user code; None: it does not tell."""
IDLE_LEAVES = 0xFFFFFFFF
"""The state of ``cpu_idle`` that says that the CPU is idle no more."""


class Layer(Enum):
    """A kind of context, and how pages name it."""

    SOFTIRQ = "softirq"
    INTERRUPT = "interrupt"
    TIMER = "timer"
    NMI = "NMI"


class Context(NamedTuple):
    """One context on the stack. key: the address of a timer or its function. since_ns: when it was entered.

    hard: whether the kernel says that it runs in a hard interrupt. by_thread: a softirq that no interrupt has brought:
    the thread below raised it and runs it itself, as who sends to the loopback device does.
    """

    layer: Layer
    name: str
    key: int
    since_ns: int
    hard: bool = True
    by_thread: bool = False


class Task(NamedTuple):
    """A thread as the scheduler sees it. priority: of the kernel, where less is more urgent; None if unknown."""

    tid: int
    name: str
    priority: int | None

    @property
    def idle(self) -> bool:
        return self.tid == 0


class TaskState(NamedTuple):
    """How an interrupt found the task that it hit: how often preemption was off, the flags, and when it came."""

    depth: int
    flags: int
    hit_ns: int


class Stretch(NamedTuple):
    """A part of a CPU's time between two events. Nothing changed in it.

    top: what ran over the task, or None if the task ran. task: None where the trace does not tell.
    task_since_ns: when the task got the CPU. evidence: of the latest interrupt that hit the task since then.
    irqs_off: exact, where the kernel traces it; else None. mode: of the task.
    idle_state: of an idle CPU, or -1. irqs_off_at_end: what the closing event says, if it is one of the task itself.
    missing: whether a switch without an event lies in it, so that it has no task.
    """

    from_ns: int
    to_ns: int
    top: Context | None
    task: Task | None
    task_since_ns: int
    evidence: TaskState | None
    irqs_off: bool | None
    mode: Mode
    idle_state: int
    irqs_off_at_end: bool | None
    missing: bool = False


class Change(NamedTuple):
    """What happened to a thread. what: waking, in, out (of the CPU), migrate or gone.

    gone: it lost the CPU at an unknown time behind this one, because its switch has no event.
    cpu: where it happened; of a migration, where the thread goes. target_cpu: of a waking, where the thread shall run.
    ready: of a thread that went out, whether it wants to go on. by: of a waking, who did it, or None for an interrupt
    or a softirq. context: of such an interrupt or softirq, if known. disk: whose request it had just ended; "" if none.
    priority: the thread's, as the kernel has it. why: of a migration, in words. timer: of a waking, which timer did it.
    mode: of a thread that went out, what it was doing. slack: of its own timer.
    """

    time_ns: int
    what: str
    cpu: int
    target_cpu: int
    ready: bool
    by: Task | None
    priority: int
    why: str = ""
    timer: "Expiry | None" = None
    mode: Mode = UNKNOWN
    slack: "Slack | None" = None
    context: Context | None = None
    disk: str = ""


class SentInterrupt(NamedTuple):
    """A thread or an interrupt sends interrupts to other CPUs. kind: a vector of x86, or the reason on ARM.

    call: what tells the queued call of a function from others; 0 for any other interrupt. words: who, and the function.
    """

    time_ns: int
    targets: tuple[int, ...]
    kind: str | int
    call: int
    words: str


class Slack(NamedTuple):
    """How much later than it is due a timer may expire, when that time begins at the earliest, and when it ends."""

    length_ns: int
    begin_ns: int
    end_ns: int


TimerStart = tuple[int, int, int, int]
"""When a thread starts which timer, when it expires, and how much later than it is due it may; times in ns."""


class Expiry(NamedTuple):
    """A timer expires. now_ns: when, by the timer's own clock, read before time_ns.

    entered_ns: the first event of the interrupt. That is time_ns itself where no event shows the interrupt's begin.
    """

    timer: int
    time_ns: int
    now_ns: int
    entered_ns: int


@dataclass(frozen=True)
class CpuTimeline:
    """The stretches of one CPU within the windows, in order.

    times: of all its events. from_ns, to_ns: of the first event and the last; None without any.
    stacks: the functions of the kernel that interrupts hit, by the time of the interrupt; () for other code.
    missing: where switches have no events, in the windows or not.
    """

    cpu: int
    stretches: tuple[Stretch, ...]
    times: Sequence[int]
    lost: tuple[Window, ...]
    stacks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    missing: tuple[Window, ...] = ()

    @property
    def from_ns(self) -> int | None:
        return self.times[0] if self.times else None

    @property
    def to_ns(self) -> int | None:
        return self.times[-1] if self.times else None

    def between(self, from_ns: int, to_ns: int) -> Sequence[Stretch]:
        """The stretches that meet a part of the time, in order; those at its ends may reach beyond it."""
        first = bisect_right(self.stretches, from_ns, key=lambda stretch: stretch.to_ns)
        last = bisect_left(self.stretches, to_ns, key=lambda stretch: stretch.from_ns)
        return self.stretches[first:last]

    def count(self, from_ns: int, to_ns: int) -> int:
        """How many events lie strictly between two times."""
        return max(0, bisect_left(self.times, to_ns) - bisect_right(self.times, from_ns))

    def silences(self, from_ns: int, to_ns: int, least_ns: int) -> int:
        """How often it had no event for so long between two times. Where events were lost, nobody knows."""
        within = self.times[bisect_right(self.times, from_ns) : bisect_left(self.times, to_ns)]
        long = [Window(one, next_one) for one, next_one in pairwise(within) if next_one - one >= least_ns]
        return sum(all(hole.to_ns <= gap.from_ns or hole.from_ns >= gap.to_ns for hole in self.lost) for gap in long)


@dataclass(frozen=True)
class Meaning:
    """What is needed to understand the events of a kernel.

    names: of events whose both ends were traced, without ``_entry``. vectors: names of softirqs by number.
    sleeping: the bits of ``prev_state`` of a thread that wants to run no more. symbol: the name of an address.
    every_call: whether all system calls and page faults were traced, so that user mode can be told.
    call: the name of a system call. file: words for a file by its device and inode. urgent: kernel priorities of
    threads with a real-time policy, by a look beside the trace. shown_by_timers: the interrupt of which only the end
    was traced: the first function of a timer is its begin. faults: whether page faults have events.
    """

    paired: frozenset[str]
    softirqs: dict[int, str]
    sleeping: int
    symbol: Callable[[int], str]
    every_call: bool
    call: Callable[[int], str] = "number {}".format
    file: Callable[[str, int], str] = "with inode {1} on {0}".format
    urgent: Mapping[int, int] = field(default_factory=dict)
    shown_by_timers: str = ""
    faults: bool = True


def joined(windows: Iterable[Window]) -> list[Window]:
    """The same time as windows that do not touch, in order."""
    found: list[Window] = []
    for window in sorted(windows):
        if found and window.from_ns <= found[-1].to_ns:
            found[-1] = Window(found[-1].from_ns, max(found[-1].to_ns, window.to_ns))
        else:
            found.append(window)
    return found


class WalkNotes:
    """What the walks over all CPUs note besides the timelines.

    names: of threads by id, the newest ones. changes: what happened to each thread, CPU by CPU; to threads that are not
    watched, within the windows only. starts: of timers, by watched threads. taken: when each CPU took which interrupts.
    served: when which CPU ran a function that was queued for it, when its interrupt came, and the call as it was sent.
    deepest: how often preemption was off at most; it is off in every switch, so this stays 0 only where nobody counts.
    """

    def __init__(self, watched: frozenset[int], names: dict[int, str]) -> None:
        self.watched, self.names = watched, names
        self.changes: dict[int, list[Change]] = defaultdict(list)
        self.starts: dict[int, list[TimerStart]] = defaultdict(list)
        self.sightings = ThreadNames()
        self.sent: list[SentInterrupt] = []
        self.served: list[tuple[int, int, int, int]] = []
        self.taken: dict[tuple[int, str | int], list[int]] = defaultdict(list)
        self.deepest = 0


class CpuWalk:
    """Walks over the events of one CPU once and notes its stretches and what happened to threads."""

    def __init__(self, cpu: int, meaning: Meaning, windows: Sequence[Window], notes: WalkNotes) -> None:
        """windows: joined. notes: shared by the walks over all CPUs, one after the other."""
        self._cpu, self._meaning, self._notes = cpu, meaning, notes
        self._watched, self._names = notes.watched, notes.names
        notes.sightings.begin_cpu()
        self._windows, self._next = windows, 0
        self._times = array("q")
        self._stretches: list[Stretch] = []
        self._lost: list[Window] = []
        self._stacks: dict[int, tuple[str, ...]] = {}
        self._missing: list[Window] = []
        self._switches = SwitchCheck()
        self._tells_irqs = True
        self._since_ns: int | None = None
        self._before: TraceEvent | None = None
        self._before_timer: tuple[TraceEvent, int] | None = None  # and when the timer's interrupt began
        self._last_by_thread = False
        self._priorities: dict[int, int] = {}
        self._ended_request = (0, "")
        self._soft_of: dict[int, list[Context]] = {}
        self._task: Task | None = None
        self._modes = ModeWalk(sees_faults=meaning.faults)
        self._forget()
        self._handlers: dict[str, Callable[[TraceEvent], None]] = {
            "sched_switch": self._switch,
            "sched_waking": self._waking,
            "sched_wakeup": self._waking,
            "sched_migrate_task": self._migrate,
            "sched_pi_setprio": self._priority,
            "hrtimer_start": self._timer_start,
            "signal_deliver": self._signal,
            **dict.fromkeys(IN_FAULT, self._in_fault),
            "irq_handler_entry": self._handler_entry,
            **dict.fromkeys(("irq_handler_exit", "ipi_exit"), lambda event: self._leave(Layer.INTERRUPT)),
            "ipi_entry": self._ipi_entry,
            "ipi_raise": lambda event: self._send(event, event.number("reason")),
            "ipi_send_cpu": self._send_one,
            "csd_queue_cpu": lambda event: self._send(event, "", "func", event.number("csd")),
            "csd_function_entry": self._serve,
            "softirq_entry": self._softirq_entry,
            "softirq_exit": self._softirq_exit,
            "hrtimer_expire_entry": self._timer_entry,
            "hrtimer_expire_exit": lambda event: self._leave(Layer.TIMER),
            "cpu_idle": self._idle,
            "nmi_handler": self._nmi,
            "irq_disable": self._irqs,
            "irq_enable": self._irqs,
            **dict.fromkeys(("sys_enter", "sys_exit"), self._numbered_call),
            **dict.fromkeys(OF_USER, self._fault),
            "fault_end": lambda event: self._revise(self._modes.fault_ends(event.pid, event.time_ns)),
            "kernel_stack": self._stack,
            "block_rq_complete": self._request_ends,
            "mm_filemap_add_to_page_cache": self._read_file,
            "sched_wakeup_new": self._new,
            "task_rename": self._rename,
        }

    def _forget(self) -> None:
        """Know nothing any more, as where events were lost."""
        self._settle()
        self._task = None
        self._task_since_ns = 0
        self._hard: list[Context] = []
        self._soft: list[Context] = []
        self._soft_of.clear()
        self._evidence: TaskState | None = None
        self._irqs_off: bool | None = None
        self._modes.lose()
        self._idle_state = -1
        self._expiring: Expiry | None = None

    def walk(self, events: Iterable[TraceEvent]) -> CpuTimeline:
        """The timeline of all events of the CPU, in order. What goes back in time counts as of the time before."""
        for told in events:
            since_ns = told.time_ns if self._since_ns is None else self._since_ns
            event = told._replace(time_ns=since_ns) if told.time_ns < since_ns else told
            missing = self._switches.see(event)
            if event.name == LOST:
                self._lose_sight(missing)
                self._gap(event)
                continue
            self._times.append(event.time_ns)
            self._close(event)
            self._lose_sight(missing, event)
            self._check(event)
            begins = event.name in TIMER_BEGINS and not self._hard
            if begins and self._before and self._before.name != TIMER_ENDS:
                self._before_timer = self._before, event.time_ns
            self._handle(event)
            self._before = event
        self._lose_sight(self._switches.end())
        self._settle()
        return CpuTimeline(
            self._cpu, tuple(self._stretches), self._times, tuple(self._lost), self._stacks, tuple(self._missing)
        )

    def _lose_sight(self, missing: Window | None, shown_by: TraceEvent | None = None) -> None:
        """Know nothing of a time in which a switch has no event. shown_by: the event of the thread that runs behind it.

        Its stretches are the last ones.
        """
        if missing is None:
            return
        self._missing.append(missing)
        first = bisect_left(self._stretches, missing.to_ns, key=lambda stretch: stretch.to_ns)
        while first and self._stretches[first - 1].to_ns > missing.from_ns:
            first -= 1
        for at in range(first, len(self._stretches)):
            self._stretches[at] = self._stretches[at]._replace(
                top=None, task=None, evidence=None, irqs_off=None, mode=UNKNOWN, irqs_off_at_end=None, missing=True
            )
        if self._task:
            self._note(self._task.tid, Change(missing.from_ns, "gone", self._cpu, self._cpu, True, None, 0))
        if shown_by and shown_by.pid >= 0:
            # The latest priority that an event told of it; the least urgent one if none did.
            before = reversed(self._notes.changes.get(shown_by.pid, ()))
            told = (change.priority for change in before if change.what in ("waking", "in"))
            priority = self._priorities.get(shown_by.pid, next(told, LEAST_URGENT))
            self._note(shown_by.pid, Change(missing.to_ns, "in", self._cpu, self._cpu, True, None, priority))

    def _note(self, tid: int, change: Change) -> None:
        """Note what happened to a watched thread, and to any other within the windows."""
        if tid in self._watched or (tid and self._in_window(change.time_ns)):
            self._notes.changes[tid].append(change)

    def _handle(self, event: TraceEvent) -> None:
        handler = self._handlers.get(event.name)
        if handler:
            handler(event)
            return
        vector, call = VECTOR.fullmatch(event.name), SYSTEM_CALL.fullmatch(event.name)
        if call:
            self._called(event, call["way"], call["name"])
        elif vector and vector["way"] == "exit":
            self._leave(Layer.INTERRUPT)
        elif vector:
            self._enter(event, Layer.INTERRUPT, vector["name"])
            self._notes.taken[self._cpu, vector["name"]].append(event.time_ns)

    def _gap(self, event: TraceEvent) -> None:
        begin_ns = self._since_ns if self._since_ns is not None else event.time_ns
        self._lost.append(Window(begin_ns, event.time_ns))
        self._forget()
        self._keep(event.time_ns, None)
        self._since_ns = event.time_ns

    def _close(self, event: TraceEvent) -> None:
        begins = event.name in BEGINS or event.name.startswith("irq_vectors/")  # of an interrupt
        of_task = self._tells_irqs and not self._hard and not event.flags & (HARDIRQ | NMI) and not begins
        self._keep(event.time_ns, bool(event.flags & IRQS_OFF) if of_task else None)
        self._since_ns = event.time_ns

    def _keep(self, to_ns: int, irqs_off_at_end: bool | None) -> None:
        """Note the stretch that ends now if it meets a window."""
        from_ns = self._since_ns
        while self._next < len(self._windows) and self._windows[self._next].to_ns <= (from_ns or to_ns):
            self._next += 1
        if from_ns is None or from_ns == to_ns or self._next == len(self._windows):
            return
        if to_ns > self._windows[self._next].from_ns:
            self._stretches.append(self._stretch(from_ns, to_ns, irqs_off_at_end))

    def _stretch(self, from_ns: int, to_ns: int, irqs_off_at_end: bool | None) -> Stretch:
        return Stretch(
            from_ns, to_ns, self._top, self._task, self._task_since_ns, self._evidence, self._irqs_off, self._modes.now,
            self._idle_state, irqs_off_at_end,
        )  # fmt: skip

    def _check(self, event: TraceEvent) -> None:
        """Put right what contradicts an event: another thread than noted, or no hard interrupt where one was noted."""
        if self._hard and self._hard[-1].hard and not event.flags & (HARDIRQ | NMI):
            self._hard.clear()
        if self._switches.between or (self._task is not None and event.pid == self._task.tid):
            return
        if event.pid >= 0:
            self._take(Task(event.pid, self._name(event.pid), self._priorities.get(event.pid)), event.time_ns)

    def _name(self, tid: int) -> str:
        return "idle" if tid == 0 else self._names.get(tid, "")

    def _take(self, task: Task, time_ns: int) -> None:
        """Give the CPU to a thread, with the softirq in which it was interrupted."""
        self._hard.clear()
        self._task, self._task_since_ns = task, time_ns
        self._soft = self._soft_of.pop(task.tid, [])
        self._evidence = None
        self._modes.lose()

    def _switch(self, event: TraceEvent) -> None:
        # Interrupts are off in every switch, so a kernel that does not say so here says it nowhere.
        self._tells_irqs = bool(event.flags & IRQS_OFF)
        if event.pid:  # idle has a depth of 1 on kernels that do not count, too
            self._notes.deepest = max(self._notes.deepest, event.depth & DEPTH_MASK)
        before, after = event.number("prev_pid"), event.number("next_pid")
        state = event.number("prev_state")
        ready = not state & self._meaning.sleeping
        self._revise(self._modes.leaves_cpu(before, ready=ready, uninterruptible=state == UNINTERRUPTIBLE))
        mode = self._modes.now
        self._learn(before, event, "prev")
        self._settle(before)
        self._learn(after, event, "next")
        if self._soft:
            self._soft_of[before] = self._soft
        for tid, what in ((before, "out"), (after, "in")):
            change = Change(event.time_ns, what, self._cpu, self._cpu, ready, None, self._priorities[tid])
            self._note(tid, change._replace(mode=mode) if what == "out" else change)
        self._take(Task(after, self._name(after), self._priorities[after]), event.time_ns)
        self._irqs_off = self._irqs_off if self._irqs_off is None else True

    def _settle(self, leaves: int | None = None) -> None:
        """Note the name and the priority of the thread that had the CPU, which an event may tell only afterwards.

        leaves: the thread whose switch says so. Without such an event, a look beside the trace counts. Of two
        priorities, the more urgent one kept others from the CPU: a thread that gives it up loses the CPU then.
        """
        task = self._task
        if task is None or task.idle or (leaves is not None and leaves != task.tid):
            return
        known = (self._meaning.urgent if leaves is None else self._priorities).get(task.tid)
        if known is None or known == task.priority:
            known = None
        name = self._name(task.tid)
        if known is None and name == task.name:
            return

        def settled(stretch: Stretch) -> Stretch:
            then = stretch.task
            if then is None or then.tid != task.tid:
                return stretch
            told = [priority for priority in (then.priority, known) if priority is not None]
            called = name if then.name == task.name else then.name
            return stretch._replace(task=Task(then.tid, called, min(told, default=None)))

        self._of_run(settled)

    def _of_run(self, change: Callable[[Stretch], Stretch], from_ns: int = 0) -> None:
        """Change the stretches since the thread got the CPU, or since a time within its run."""
        begin_ns = max(from_ns, self._task_since_ns)
        for at in range(len(self._stretches) - 1, -1, -1):
            if self._stretches[at].from_ns < begin_ns:
                return
            self._stretches[at] = change(self._stretches[at])

    def _revise(self, revision: Revision | None) -> None:
        """Take what an event tells of the modes before it."""
        if revision:
            from_ns, become = revision
            self._of_run(lambda each: each._replace(mode=become(each.mode)), from_ns)

    def _learn(self, tid: int, event: TraceEvent, which: str) -> None:
        name = event.values.get(f"{which}_comm")
        if tid and isinstance(name, str):
            self._names[tid] = name
            self._notes.sightings.see(tid, name, event.time_ns)
        self._priorities[tid] = event.number(f"{which}_prio")

    def _new(self, event: TraceEvent) -> None:
        name = event.values.get("comm")
        if isinstance(name, str):
            self._notes.sightings.begin(event.number("pid"), name, event.time_ns)

    def _rename(self, event: TraceEvent) -> None:
        """A thread takes another name, as with exec or prctl."""
        before, after = event.values.get("oldcomm"), event.values.get("newcomm")
        tid = event.number("pid") if "pid" in event.values else event.pid
        if isinstance(before, str) and isinstance(after, str):
            self._names[tid] = after
            self._notes.sightings.rename(tid, (before, after), event.time_ns)
            if self._task and self._task.tid == tid:
                self._task = self._task._replace(name=after)

    def _waking(self, event: TraceEvent) -> None:
        tid = event.number("pid")
        watched = tid in self._watched
        if not watched and not self._in_window(event.time_ns):
            return
        hard = bool(event.flags & HARDIRQ)
        if watched and not hard:  # the waking itself holds one lock
            self._evidence = TaskState(max(0, (event.depth & DEPTH_MASK) - 1), event.flags, event.time_ns)
        target = event.number("target_cpu") if "target_cpu" in event.values else self._cpu
        interrupt, priority = event.flags & (HARDIRQ | SOFTIRQ), event.number("prio")
        if not hard and self._top is not None and self._top.by_thread:
            interrupt = 0
        by, in_timer = None if interrupt else self._task, self._top is not None and self._top.layer is Layer.TIMER
        timer = self._expiring if in_timer else None
        context = self._top if interrupt else None
        ended_ns, disk = self._ended_request
        disk = disk if context and ended_ns >= context.since_ns else ""
        change = Change(event.time_ns, "waking", self._cpu, target, True, by, priority, timer=timer)
        self._note(tid, change._replace(context=context, disk=disk))

    def _request_ends(self, event: TraceEvent) -> None:
        """An interrupt brings the end of a request to a disk. The kernel's number has the minor in its low 20 bits."""
        self._ended_request = event.time_ns, _device(event, "dev")

    def _read_file(self, event: TraceEvent) -> None:
        if not event.flags & (HARDIRQ | SOFTIRQ):
            self._modes.read(self._meaning.file(_device(event, "s_dev"), event.number("i_ino")))

    def _migrate(self, event: TraceEvent) -> None:
        tid = event.number("pid")
        where, why = event.number("dest_cpu"), self._why_moved(event, tid)
        self._note(tid, Change(event.time_ns, "migrate", where, where, True, None, 0, why))

    def _why_moved(self, event: TraceEvent, tid: int) -> str:
        before = self._before
        if before and before.name in WAKINGS and before.values.get("pid") == tid:
            return "chosen at its waking"
        if event.flags & SOFTIRQ:
            return "by load balancing"
        if event.flags & HARDIRQ:
            return "pushed by an interrupt"
        if event.number("dest_cpu") == self._cpu:
            return "pulled by its new CPU"
        name = self._task.name if self._task else ""
        return f"by {name}" if name.startswith(STOPPERS) else f"pushed away by {name or 'an unknown thread'}"

    def _priority(self, event: TraceEvent) -> None:
        tid, priority = event.number("pid"), event.number("newprio")
        self._priorities[tid] = priority
        if self._task and self._task.tid == tid:
            self._task = self._task._replace(priority=priority)

    def _timer_start(self, event: TraceEvent) -> None:
        values = event.values
        if event.pid in self._watched and not event.flags & (HARDIRQ | SOFTIRQ) and "softexpires" in values:
            expires_ns = event.number("expires")
            slack_ns = expires_ns - event.number("softexpires")
            start = event.time_ns, event.number("hrtimer"), expires_ns, slack_ns
            self._notes.starts[event.pid].append(start)

    @property
    def _top(self) -> Context | None:
        """What runs over the task; None if the task runs."""
        return self._hard[-1] if self._hard else self._soft[-1] if self._soft else None

    def _enter(self, event: TraceEvent, layer: Layer, name: str, key: int = 0) -> None:
        hard = bool(event.flags & (HARDIRQ | NMI))
        if not self._hard and (hard or layer is Layer.INTERRUPT):
            self._evidence = TaskState(event.depth & DEPTH_MASK, event.flags, event.time_ns)
        in_hard = hard or layer is Layer.INTERRUPT or bool(self._hard)
        stack = self._hard if in_hard else self._soft
        if layer is Layer.TIMER and in_hard and not stack and self._meaning.shown_by_timers:
            stack.append(Context(Layer.INTERRUPT, self._meaning.shown_by_timers, 0, event.time_ns, hard))
        if event.name.removesuffix("_entry") not in self._meaning.paired:
            if layer is not Layer.TIMER or not stack:
                return
            if stack[-1].layer is Layer.TIMER:  # the next function ends it, or the end of what it runs in
                stack.pop()
        stack.append(Context(layer, name, key, event.time_ns, hard))

    def _leave(self, layer: Layer) -> None:
        """Go back below the innermost context of a kind; nothing if there is none, as at the beginning of a trace."""
        for stack in (self._hard, self._soft):
            for at in range(len(stack) - 1, -1, -1):
                if stack[at].layer is layer:
                    del stack[at:]
                    return

    def _handler_entry(self, event: TraceEvent) -> None:
        self._enter(event, Layer.INTERRUPT, str(event.values.get("name") or f"irq {event.values.get('irq')}"))

    def _ipi_entry(self, event: TraceEvent) -> None:
        reason = event.number("reason")
        self._enter(event, Layer.INTERRUPT, "IPI", reason)
        self._notes.taken[self._cpu, reason].append(event.time_ns)

    def _send(self, event: TraceEvent, kind: str | int, function: str = "", call: int = 0) -> None:
        """An interrupt is sent, or a function queued for another CPU."""
        task, top = self._task, self._top
        by = f"{top.layer.value} {top.name}" if top else f"{task.name or 'a thread'}/{task.tid}" if task else "a thread"
        mask = event.number("target_cpus")
        targets = tuple(cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1) or (event.number("cpu"),)
        named = f": {self._meaning.symbol(event.number(function))}()" if function else ""
        self._notes.sent.append(SentInterrupt(event.time_ns, targets, kind, call, f"{by} on CPU {self._cpu}{named}"))

    def _send_one(self, event: TraceEvent) -> None:
        if not event.values.get("callback"):  # the others are calls, which have an event of their own
            self._send(event, "reschedule", "callsite")

    def _serve(self, event: TraceEvent) -> None:
        if self._hard:
            self._notes.served.append((event.time_ns, self._cpu, self._hard[0].since_ns, event.number("csd")))

    def _softirq_entry(self, event: TraceEvent) -> None:
        number = event.number("vec")
        if "softirq" in self._meaning.paired:
            name = self._meaning.softirqs.get(number, f"softirq {number}")
            self._soft.append(Context(Layer.SOFTIRQ, name, number, event.time_ns, False, self._raised_by_thread(event)))

    def _raised_by_thread(self, event: TraceEvent) -> bool:
        """Whether a softirq that begins is one of the thread's own: no interrupt that may bring it came just before."""
        before, task = self._before, self._task
        if before is None or task is None or task.idle or task.name.startswith(SOFTIRQ_THREADS):
            return False
        if "irq_handler" not in self._meaning.paired or event.number("vec") not in RAISED_BY_THREADS:
            return False
        at_ns = event.time_ns
        if before.name == TIMER_ENDS and self._before_timer and event.number("vec") in NOT_BY_TIMERS:
            before, at_ns = self._before_timer
        if at_ns - before.time_ns >= BEHIND_NS:
            return True
        return self._last_by_thread if before.name == "softirq_exit" else not before.flags & (HARDIRQ | NMI)

    def _softirq_exit(self, event: TraceEvent) -> None:
        self._last_by_thread = bool(self._soft and self._soft[-1].by_thread)
        self._leave(Layer.SOFTIRQ)

    def _timer_entry(self, event: TraceEvent) -> None:
        function = event.number("function")
        timer = event.number("hrtimer")
        self._enter(event, Layer.TIMER, self._meaning.symbol(function), timer)
        outermost = next(iter(self._hard or self._soft), None)
        entered_ns = outermost.since_ns if outermost else event.time_ns
        self._expiring = Expiry(timer, event.time_ns, event.number("now"), entered_ns)

    def _idle(self, event: TraceEvent) -> None:
        state = event.number("state")
        self._idle_state = -1 if state == IDLE_LEAVES else state

    def _nmi(self, event: TraceEvent) -> None:
        """Charge an NMI whose only event comes at its end and tells its length."""
        taken_ns = event.number("delta_ns")
        if not self._stretches or taken_ns <= 0 or self._stretches[-1].to_ns != event.time_ns:
            return
        last = self._stretches.pop()
        begin_ns = max(last.from_ns, event.time_ns - taken_ns)
        if begin_ns > last.from_ns:
            self._stretches.append(last._replace(to_ns=begin_ns, irqs_off_at_end=None))
        frame = Context(Layer.NMI, self._meaning.symbol(event.number("handler")), 0, begin_ns)
        self._stretches.append(last._replace(from_ns=begin_ns, top=frame))

    def _irqs(self, event: TraceEvent) -> None:
        self._irqs_off = event.name == "irq_disable"

    def _stack(self, event: TraceEvent) -> None:
        """A stack belongs to the outermost hard interrupt that runs: it shows what this one hit."""
        addresses = event.values.get("caller")
        if not self._hard or not isinstance(addresses, tuple) or not self._in_window(event.time_ns):
            return
        hit_ns = self._hard[0].since_ns
        functions = hit_functions([self._meaning.symbol(address) for address in addresses])
        if functions == () and self._task and self._task.tid in self._watched:
            self._modes.hit_own_code(hit_ns)
        if functions is not None:
            self._stacks.setdefault(hit_ns, functions)

    def _in_window(self, time_ns: int) -> bool:
        return self._next < len(self._windows) and self._windows[self._next].from_ns <= time_ns

    def _called(self, event: TraceEvent, way: str, call: str) -> None:
        """A system call begins or ends. Others may not be traced, so this tells only of watched threads."""
        if not self._meaning.every_call and event.pid not in self._watched:
            return
        if way == "enter":
            self._modes.enter(event.pid, event.time_ns, call)
        else:
            self._revise(self._modes.leave(event.time_ns, call))

    def _numbered_call(self, event: TraceEvent) -> None:
        number = event.values.get("id")
        call = self._meaning.call(number) if isinstance(number, int) else ""
        self._called(event, event.name.removeprefix("sys_"), call)

    def _fault(self, event: TraceEvent) -> None:
        self._revise(self._modes.fault(event.time_ns, of_user=OF_USER[event.name]))

    def _in_fault(self, event: TraceEvent) -> None:
        if not event.flags & (HARDIRQ | SOFTIRQ):
            self._revise(self._modes.in_fault(event.pid, event.time_ns))

    def _signal(self, event: TraceEvent) -> None:
        if event.pid in self._watched and event.values.get("sa_handler") not in DEFAULT_ACTIONS:
            self._modes.signal(event.pid, event.time_ns, event.number("sig"))


def _device(event: TraceEvent, field: str) -> str:
    number = event.number(field)
    return f"{number >> MINOR_BITS}:{number & ((1 << MINOR_BITS) - 1)}"
