# SPDX-License-Identifier: Apache-2.0
"""Divide a latency into phases, by the functions that a guest's processors ran from the due time on: pure functions.

The phases are those of the measured processor. If another processor woke the thread, they follow that one until its
interrupt has come.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rtproof.lab import executed_code
from rtproof.lab.executed_code import CalledFunction, FunctionSpan, Symbols, last_begun, length_ns, of_cpu, within
from rtproof.summary.trace_text import is_interrupt

SHOWN_FUNCTIONS = 5


@dataclass(frozen=True)
class ExecutedPhase:
    """A part of a latency. ``start_ns``: from the due time.

    ``path``: the functions under which most of it was spent, from the outermost inwards. ``functions``: those that ran
    longest, without what they called, with their nanoseconds. Both are of the processor ``cpu``, to which the phase
    belongs. ``others_ns``: how much of the phase were turns of other processors.
    """

    name: str
    start_ns: int
    length_ns: int
    path: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]
    cpu: int = 0
    others_ns: int = 0

    @property
    def own_ns(self) -> int:
        """The instructions of the phase's processor."""
        return self.length_ns - self.others_ns


SCHEDULER = "__schedule"
BEFORE_INTERRUPT = "until the timer's interrupt"
IN_INTERRUPT = "in the interrupt, until the wake-up"
BEFORE_WAKE_UP = "until the wake-up"
BEFORE_SCHEDULER = "from the wake-up until the scheduler came"
AFTER_SCHEDULER = "from the scheduler to the reading of the clock"
WITHOUT_SWITCH = "without a switch of tasks"
BEFORE_SENDING = "until the other processor sent its interrupt"
BEFORE_TAKING = "until the measured processor took that interrupt"
IN_SENT_INTERRUPT = "in that interrupt, until the wake-up"
AFTER_TAKING = "from that interrupt until the scheduler came"
"""The last four are those of a thread that another processor woke."""


def divide_latency(
    spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int, cpu: int = 0
) -> tuple[tuple[ExecutedPhase, ...], int | None, tuple[str, ...]]:
    """The phases of a latency; when a switch of tasks was asked for; and the functions through which it came.

    ``spans``: all functions of all processors from the due time to the reading of the clock, without a hole.
    ``cpu``: the measured processor.
    """
    switched = _switched(spans, symbols, cpu)
    phases = tuple(_phases(spans, switched, due_ns, cpu))
    if switched is None:
        return phases, None, ()
    return phases, _marked_ns(spans, switched, due_ns, cpu), switched.came.call.stack()[:-1] if switched.came else ()


def _phases(
    spans: Sequence[FunctionSpan], switched: "_Switch | None", due_ns: int, cpu: int
) -> Iterator[ExecutedPhase]:
    end_ns, start_ns = spans[-1].end_ns, due_ns
    if switched is None:
        yield _phase(WITHOUT_SWITCH, spans, (due_ns, end_ns), due_ns, cpu)
        return
    for name, stop_ns, of in (*_ends_until_scheduler(spans, switched, cpu), (AFTER_SCHEDULER, end_ns, cpu)):
        yield _phase(name, spans, (start_ns, stop_ns), due_ns, of)
        start_ns = stop_ns


def _ends_until_scheduler(
    spans: Sequence[FunctionSpan], switched: "_Switch", cpu: int
) -> Iterator[tuple[str, int, int]]:
    """Each phase until the scheduler came: its name, its end, and its processor."""
    remote, woken, came_ns = switched.remote, switched.woken, switched.came_ns
    if remote is None:
        yield from _ends_before_wake_up(switched.before, woken)
        yield BEFORE_SCHEDULER, came_ns, cpu
        return
    yield from _ends_before_wake_up(of_cpu(spans, remote.cpu), remote.woken)
    yield BEFORE_SENDING, remote.sent_ns, remote.cpu
    yield BEFORE_TAKING, came_ns if remote.taken_ns is None else remote.taken_ns, cpu
    if woken is not None:
        yield IN_SENT_INTERRUPT, woken.start_ns, cpu
        yield BEFORE_SCHEDULER, came_ns, cpu
    elif remote.taken_ns is not None:
        yield AFTER_TAKING, came_ns, cpu


def is_scheduler(name: str) -> bool:
    """Whether a function is the scheduler, or a part that the compiler made of it."""
    return name.partition(".")[0] == SCHEDULER


@dataclass(frozen=True)
class _RemoteWakeUp:
    """A wake-up by another processor, ``cpu``. ``woken``: where it put the thread on the queue of the measured one.

    None if it left that to the measured processor. ``sent_ns``: when it had sent its interrupt. ``taken_ns``: when that
    interrupt came; None if the scheduler came before.
    """

    cpu: int
    woken: FunctionSpan | None
    sent_ns: int
    taken_ns: int | None


@dataclass(frozen=True)
class _Switch:
    """The last switch of tasks. ``before``: the spans of the measured processor up to it.

    ``came``: where the scheduler came for it. ``woken``: where this processor put the thread on its queue before.
    """

    before: list[FunctionSpan]
    came: FunctionSpan | None
    woken: FunctionSpan | None
    remote: _RemoteWakeUp | None

    @property
    def came_ns(self) -> int:
        return self.came.start_ns if self.came else self.before[-1].start_ns


def _switched(spans: Sequence[FunctionSpan], symbols: Symbols, cpu: int) -> _Switch | None:
    """The last switch of tasks on the measured processor, and the wake-up before it."""
    own = of_cpu(spans, cpu)
    switched = last_begun(own, lambda name: name == symbols.task_switch)
    if switched is None:
        return None
    before = [span for span in own if span.start_ns <= switched.start_ns]
    came = last_begun(before, is_scheduler)
    came_ns = came.start_ns if came else switched.start_ns
    woken = last_begun([span for span in before if span.start_ns < came_ns], _is_enqueue)
    remote = _remote_wake_up(spans, before, woken, came_ns, cpu)
    if remote is not None and remote.woken is not None:
        woken = None
    return _Switch(before, came, woken, remote)


def _remote_wake_up(
    spans: Sequence[FunctionSpan], before: Sequence[FunctionSpan], woken: FunctionSpan | None, came_ns: int, cpu: int
) -> _RemoteWakeUp | None:
    """The wake-up by another processor, if the last one before the scheduler came was one.

    ``woken``: the last time that the measured processor itself put a thread on its queue.
    """
    others = [span for span in spans if span.cpu != cpu and span.start_ns < came_ns]
    if woken is not None and any(map(_is_sent_interrupt, woken.call.stack())):
        taken_ns = _interrupt_begin_ns(before, woken)
        sent = last_begun([span for span in others if span.start_ns <= taken_ns], _is_sending)
        return _RemoteWakeUp(sent.cpu, None, _sent_ns(others, sent, taken_ns), taken_ns) if sent else None
    for enqueued in reversed(others):
        if woken is not None and enqueued.start_ns < woken.start_ns:
            return None
        if not (enqueued.began and _is_enqueue(enqueued.name)):
            continue
        sent = next((span for span in others if _sends_after(enqueued, span)), None)
        if sent is not None:
            taken = next((one for one in before if sent.start_ns <= one.start_ns < came_ns and _is_taken(one)), None)
            begin_ns = _interrupt_begin_ns(before, taken) if taken else None
            latest_ns = came_ns if begin_ns is None else begin_ns
            return _RemoteWakeUp(sent.cpu, enqueued, _sent_ns(others, sent, latest_ns), begin_ns)
    return None


SENDING_LEVELS = 5
"""So many calls lie at most between what puts a thread on a queue and what sends the interrupt for the same wake-up."""


def _sends_after(enqueued: FunctionSpan, span: FunctionSpan) -> bool:
    """Whether a span sends the interrupt that belongs to this wake-up: both were called by the same call."""
    if span.cpu != enqueued.cpu or span.start_ns < enqueued.start_ns or not (span.began and _is_sending(span.name)):
        return False
    callers = list(itertools.islice(enqueued.call.callers(), SENDING_LEVELS))
    return any(caller is call for caller in span.call.callers() for call in callers)


def _sent_ns(others: Sequence[FunctionSpan], sent: FunctionSpan, latest_ns: int) -> int:
    """When the function that sends an interrupt had returned; at the latest when the interrupt came."""
    after = (one for one in others if one.cpu == sent.cpu and one.start_ns >= sent.start_ns)
    returned = next((one for one in after if one.call is not sent.call and sent.call not in one.call.callers()), None)
    return min(returned.start_ns, latest_ns) if returned else latest_ns


def _is_taken(span: FunctionSpan) -> bool:
    return span.began and _is_sent_interrupt(span.name)


def _interrupt_begin_ns(before: Sequence[FunctionSpan], inside: FunctionSpan) -> int:
    """When the interrupt began in which this span ran."""
    entered = _entered(inside.call) or inside.call
    return next(span.start_ns for span in before if span.call is entered)


def _entered(inside: CalledFunction) -> CalledFunction | None:
    """Where the innermost interrupt entered the kernel. On 64-bit ARM two functions in a row are named after it."""
    calls = itertools.dropwhile(lambda call: not is_interrupt(call.name), (inside, *inside.callers()))
    *_, last = (None, *itertools.takewhile(lambda call: is_interrupt(call.name), calls))
    return last


def _marked_ns(spans: Sequence[FunctionSpan], switched: _Switch, due_ns: int, cpu: int) -> int | None:
    """When a switch of tasks was asked for after the wake-up, from the due time on."""
    remote = switched.remote if switched.remote and switched.remote.woken else None
    waker, woken = (remote.cpu, remote.woken) if remote else (cpu, switched.woken)
    latest_ns = remote.sent_ns if remote else switched.came_ns
    marked = last_begun(within(of_cpu(spans, waker), due_ns, latest_ns), _is_mark_for_switch)
    return marked.start_ns - due_ns if marked and woken and marked.start_ns >= woken.start_ns else None


_SENDING = re.compile(r"(native_|arch_)?smp_send_reschedule|(native|arch)_send_call_func\w*_single_ipi")
_SENT_INTERRUPT = re.compile(r"(asm_)?sysvec_(reschedule_ipi|call_function(_single)?)|(do_)?handle_IPI|ipi_handler")


def _is_sending(name: str) -> bool:
    """Whether a function sends an interrupt to another processor for a wake-up (arch/*/kernel/smp.c)."""
    return _SENDING.fullmatch(name.partition(".")[0]) is not None


def _is_sent_interrupt(name: str) -> bool:
    """Whether a function handles an interrupt that another processor sent."""
    return _SENT_INTERRUPT.fullmatch(name.partition(".")[0]) is not None


def _is_enqueue(name: str) -> bool:
    """Whether a function puts a real-time task on the queue of those that can run (kernel/sched/rt.c, deadline.c)."""
    return name in ("enqueue_task_rt", "enqueue_task_dl")


def _is_mark_for_switch(name: str) -> bool:
    return name.lstrip("_").startswith("resched_curr")


def _ends_before_wake_up(before: Sequence[FunctionSpan], woken: FunctionSpan | None) -> Iterator[tuple[str, int, int]]:
    if woken is None:
        return
    entered = _entered(woken.call)
    interrupt = next((span for span in before if span.call is entered and span.began), None)
    if interrupt is None:
        yield BEFORE_WAKE_UP, woken.start_ns, woken.cpu
        return
    yield BEFORE_INTERRUPT, interrupt.start_ns, woken.cpu
    yield IN_INTERRUPT, woken.start_ns, woken.cpu


def _phase(
    name: str, spans: Sequence[FunctionSpan], window_ns: tuple[int, int], due_ns: int, cpu: int
) -> ExecutedPhase:
    """cpu: the processor whose functions tell what happened."""
    start_ns, stop_ns = window_ns
    inside = of_cpu(within(spans, start_ns, stop_ns), cpu)
    longest = tuple(list(executed_code.time_by_function(inside).items())[:SHOWN_FUNCTIONS])
    whole_ns = stop_ns - start_ns
    others_ns = whole_ns - length_ns(inside)
    return ExecutedPhase(name, start_ns - due_ns, whole_ns, executed_code.main_path(inside), longest, cpu, others_ns)
