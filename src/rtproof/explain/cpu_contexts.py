# SPDX-License-Identifier: Apache-2.0
"""What a CPU did when: its events as stretches without gaps or overlaps, each with the stack of what ran.

The top of the stack ran: an NMI over a hard interrupt over a softirq over a task. Within a hard interrupt, the vector
is below its handler, and the handler below the function of a timer. Softirqs are kept with the task that runs them,
because PREEMPT_RT preempts them.
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence

from rtproof.explain.thread_modes import DEFAULT_ACTIONS, IN_FAULT, UNKNOWN, ModeWalk, Revision
from rtproof.explain.trace_events import DEPTH_MASK, HARDIRQ, IRQS_OFF, LOST, NMI, SOFTIRQ, TraceEvent, Window
from rtproof.explain.trace_timelines import (
    RESCHEDULE,
    STOPPERS,
    Change,
    Context,
    CpuTimeline,
    Layer,
    Meaning,
    Stretch,
    Task,
    Timelines,
)
from rtproof.summary.trace_text import SYSTEM_CALL, VECTOR, is_interrupt

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
OF_USER = {"page_fault_user": True, "page_fault_kernel": False, "fault_begin": None}
"""Whether the event that begins a page fault tells that it is of user code; None: it does not tell."""
IDLE_LEAVES = 0xFFFFFFFF
"""The state of ``cpu_idle`` that says that the CPU is idle no more."""
SWITCH = "sched_switch"


class SwitchCheck:
    """Whether the events of one CPU contradict its switches, which shows that a switch between threads has no event.

    Each event names the thread that ran, and each switch names both. So what one switch gave the CPU to is what all
    events up to the next switch must name. Seen on a kernel that writes no event of a switch away from some threads.
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
        self.between, missing = False, None
        if event.name == LOST:
            missing, self._task, self._before = self.end(), None, None
            return missing
        if event.pid >= 0:
            switching = event.flags & IRQS_OFF and not event.flags & HARDIRQ and event.name != SWITCH
            if switching and event.pid == self._before and event.pid != self._task:
                self.between, self._doubt_ns = True, event.time_ns
                return None
            if self._task is not None and event.pid != self._task:
                missing = Window(self._sure_ns, event.time_ns)
            self._sure(event.pid, None, event.time_ns)
        after = event.values.get("next_pid")
        if event.name == SWITCH and isinstance(after, int):
            self._sure(after, event.pid, event.time_ns)
        return missing

    def end(self) -> Window | None:
        """The same at the end of the events, or where some were lost, if nothing shows that a switch was done."""
        missing = None if self._doubt_ns is None else Window(self._sure_ns, self._doubt_ns)
        self._doubt_ns = None
        return missing

    def _sure(self, task: int, before: int | None, time_ns: int) -> None:
        self._task, self._before, self._sure_ns, self._doubt_ns = task, before, time_ns, None


class CpuWalk:
    """Walks over the events of one CPU once and notes its stretches and what happened to threads."""

    def __init__(self, cpu: int, meaning: Meaning, windows: Sequence[Window], notes: Timelines) -> None:
        """windows: joined. notes: filled by the walks over all CPUs, one after the other."""
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
            **dict.fromkeys(WAKINGS, self._waking),
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
            "csd_queue_cpu": lambda event: self._send(event, event.number("csd"), "func", queues=True),
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
        self._evidence: TraceEvent | None = None
        self._irqs_off: bool | None = None
        self._modes.lose()
        self._idle_state = -1
        self._expiring: TraceEvent | None = None

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
            self._stretches.append(Stretch(
                from_ns, to_ns, self._top, self._task, self._task_since_ns, self._evidence, self._irqs_off,
                self._modes.now, self._idle_state, irqs_off_at_end,
            ))  # fmt: skip

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
            self._evidence = event._replace(depth=max(0, (event.depth & DEPTH_MASK) - 1))
        target = event.number("target_cpu") if "target_cpu" in event.values else self._cpu
        interrupt, priority = event.flags & (HARDIRQ | SOFTIRQ), event.number("prio")
        if not hard and self._top is not None and self._top.by_thread:
            interrupt = 0
        timer = self._expiring if self._top is not None and self._top.layer is Layer.TIMER else None
        outermost = next(iter(self._hard or self._soft), None)
        context = self._top if interrupt else None
        ended_ns, disk = self._ended_request
        change = Change(
            event.time_ns, "waking", self._cpu, target, True, None if interrupt else self._task, priority,
            timer=timer, timer_ns=outermost.since_ns if timer and outermost else 0, context=context,
            disk=disk if context and ended_ns >= context.since_ns else "",
        )  # fmt: skip
        self._note(tid, change)

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
            self._notes.starts[event.pid, event.number("hrtimer")].append((event.time_ns, expires_ns, slack_ns))

    @property
    def _top(self) -> Context | None:
        """What runs over the task; None if the task runs."""
        return self._hard[-1] if self._hard else self._soft[-1] if self._soft else None

    def _enter(self, event: TraceEvent, layer: Layer, name: str, key: int = 0) -> None:
        hard = bool(event.flags & (HARDIRQ | NMI))
        if not self._hard and (hard or layer is Layer.INTERRUPT):
            self._evidence = event._replace(depth=event.depth & DEPTH_MASK)
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

    def _send(self, event: TraceEvent, kind: str | int, function: str = "", *, queues: bool = False) -> None:
        """An interrupt is sent, or a function queued for another CPU."""
        task, top = self._task, self._top
        by = f"{top.layer.value} {top.name}" if top else task.words if task else "a thread"
        named = f": {self._meaning.symbol(event.number(function))}()" if function else ""
        mask = event.number("target_cpus")
        for cpu in [cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1] or [event.number("cpu")]:
            sent = self._notes.queued if queues else self._notes.sent
            sent[cpu, kind].append((event.time_ns, f"{by} on CPU {self._cpu}{named}"))

    def _send_one(self, event: TraceEvent) -> None:
        if not event.values.get("callback"):  # the others are calls, which have an event of their own
            self._send(event, RESCHEDULE, "callsite")

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
        self._enter(event, Layer.TIMER, self._meaning.symbol(event.number("function")), event.number("hrtimer"))
        self._expiring = event

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


def hit_functions(stack: Sequence[str]) -> tuple[str, ...] | None:
    """The functions below the innermost interrupt of a stack; None if it does not show where the interrupt came."""
    entry = next((at for at, name in enumerate(stack) if is_interrupt(name)), None)
    if entry is None:
        return None
    while entry < len(stack) and is_interrupt(stack[entry]):
        entry += 1
    return tuple(stack[entry:])


def _device(event: TraceEvent, field: str) -> str:
    number = event.number(field)
    return f"{number >> MINOR_BITS}:{number & ((1 << MINOR_BITS) - 1)}"


def walk_cpus(
    events: Iterable[tuple[int, Iterable[TraceEvent]]],
    meaning: Meaning,
    windows: Sequence[Window],
    watched: Collection[int],
    names: dict[int, str],
) -> Timelines:
    """events: of each CPU, in order of time. windows: joined. names: of threads, as far as they are known before."""
    found = Timelines(watched, names)
    for cpu, of_cpu in events:
        found.of_cpus[cpu] = CpuWalk(cpu, meaning, windows, found).walk(of_cpu)
    found.finish()
    return found
