# SPDX-License-Identifier: Apache-2.0
"""Divide a latency into phases, by the functions that the measured processor ran from the due time on: pure functions.

Of a thread that another processor woke, nothing tells when that was: its first phase ends when the scheduler came.
"""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from rtproof.lab import executed_code
from rtproof.lab.executed_code import CalledFunction, FunctionSpan, Symbols, last_begun, length_ns, of_cpu, within
from rtproof.summary.trace_text import is_interrupt

SHOWN_FUNCTIONS = 5


@dataclass(frozen=True)
class ExecutedPhase:
    """A part of a latency. ``start_ns``: from the due time.

    ``path``: the functions under which most of it was spent, from the outermost inwards. ``functions``: those that ran
    longest, without what they called, with their nanoseconds. Both are of the measured processor. ``others_ns``: how
    much of the phase were turns of other processors.
    """

    name: str
    start_ns: int
    length_ns: int
    path: tuple[str, ...]
    functions: tuple[tuple[str, int], ...]
    others_ns: int = 0

    @property
    def own_ns(self) -> int:
        """The instructions of the measured processor."""
        return self.length_ns - self.others_ns


SCHEDULER = "__schedule"
BEFORE_INTERRUPT = "until the timer's interrupt"
IN_INTERRUPT = "in the interrupt, until the wake-up"
BEFORE_WAKE_UP = "until the wake-up"
BEFORE_SCHEDULER = "from the wake-up until the scheduler came"
UNTIL_SCHEDULER = "until the scheduler came"
AFTER_SCHEDULER = "from the scheduler to the reading of the clock"
WITHOUT_SWITCH = "without a switch of tasks"
_SENT_INTERRUPT = re.compile(r"(asm_)?sysvec_(reschedule_ipi|call_function(_single)?)|(do_)?handle_IPI|ipi_handler")
"""The functions that handle an interrupt which another processor sent (arch/*/kernel/smp.c)."""


def divide_latency(
    spans: Sequence[FunctionSpan], symbols: Symbols, due_ns: int, cpu: int = 0
) -> tuple[tuple[ExecutedPhase, ...], int | None, tuple[str, ...]]:
    """The phases of a latency; when a switch of tasks was asked for; and the functions through which it came.

    ``spans``: all functions of all processors from the due time to the reading of the clock, without a hole.
    ``cpu``: the measured processor.
    """
    own, end_ns = of_cpu(spans, cpu), spans[-1].end_ns
    switched = last_begun(own, lambda name: name == symbols.task_switch)
    if switched is None:
        return (_phase(WITHOUT_SWITCH, own, (due_ns, end_ns), due_ns),), None, ()
    before = [span for span in own if span.start_ns <= switched.start_ns]
    came = last_begun(before, is_scheduler)
    came_ns = came.start_ns if came else switched.start_ns
    # What puts a real-time task on the queue of those that can run (kernel/sched/rt.c, deadline.c).
    enqueues = ("enqueue_task_rt", "enqueue_task_dl")
    woken = last_begun([span for span in before if span.start_ns < came_ns], lambda name: name in enqueues)
    ends = [*_ends_before_wake_up(before, woken)] if woken else []
    ends += [(BEFORE_SCHEDULER if woken else UNTIL_SCHEDULER, came_ns), (AFTER_SCHEDULER, end_ns)]
    phases, start_ns = [], due_ns
    for name, stop_ns in ends:
        phases.append(_phase(name, own, (start_ns, stop_ns), due_ns))
        start_ns = stop_ns
    marked = last_begun(within(own, due_ns, came_ns), lambda name: name.lstrip("_").startswith("resched_curr"))
    marked_ns = marked.start_ns - due_ns if marked and woken and marked.start_ns >= woken.start_ns else None
    return tuple(phases), marked_ns, came.call.stack()[:-1] if came else ()


def is_scheduler(name: str) -> bool:
    """Whether a function is the scheduler, or a part that the compiler made of it."""
    return name.partition(".")[0] == SCHEDULER


def _entered(inside: CalledFunction) -> CalledFunction | None:
    """Where the innermost interrupt entered the kernel. On 64-bit ARM two functions in a row are named after it."""
    calls = itertools.dropwhile(lambda call: not is_interrupt(call.name), (inside, *inside.callers()))
    *_, last = (None, *itertools.takewhile(lambda call: is_interrupt(call.name), calls))
    return last


def _ends_before_wake_up(before: Sequence[FunctionSpan], woken: FunctionSpan) -> list[tuple[str, int]]:
    """The phases until the wake-up: two if it came in an interrupt that no other processor sent."""
    entered = _entered(woken.call)
    interrupt = next((span for span in before if span.call is entered and span.began), None)
    sent = any(_SENT_INTERRUPT.fullmatch(name.partition(".")[0]) for name in woken.call.stack())
    if interrupt is None or sent:
        return [(BEFORE_WAKE_UP, woken.start_ns)]
    return [(BEFORE_INTERRUPT, interrupt.start_ns), (IN_INTERRUPT, woken.start_ns)]


def _phase(name: str, own: Sequence[FunctionSpan], window_ns: tuple[int, int], due_ns: int) -> ExecutedPhase:
    start_ns, stop_ns = window_ns
    inside = within(own, start_ns, stop_ns)
    longest = tuple(list(executed_code.time_by_function(inside).items())[:SHOWN_FUNCTIONS])
    whole_ns = stop_ns - start_ns
    others_ns = whole_ns - length_ns(inside)
    return ExecutedPhase(name, start_ns - due_ns, whole_ns, executed_code.main_path(inside), longest, others_ns)
