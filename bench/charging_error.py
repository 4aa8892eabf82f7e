# SPDX-License-Identifier: Apache-2.0
"""How much of an interrupt and of a switch the trace charges to the thread before it: pure functions.

An interrupt begins before its event and ends behind the event of its end, and the scheduler begins before
``sched_switch``. What lies between is charged to the thread that was interrupted or switched out. The executed code
shows how long it is.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from rtproof.explain.cpu_contexts import Stretch
from rtproof.lab.executed_code import FunctionSpan
from rtproof.lab.latency_phases import is_scheduler
from rtproof.summary.trace_text import is_interrupt

SOFTIRQS = ("__do_softirq", "handle_softirqs")


def is_context(name: str) -> bool:
    """Whether a function begins an interrupt or the softirqs. An exception is the thread's own."""
    return name in SOFTIRQS or (is_interrupt(name) and not name.startswith("asm_exc"))


def innermost_context(stack: Sequence[str]) -> int | None:
    """The place of the innermost interrupt or softirq; None if there is none.

    The scheduler that comes at the end of an interrupt belongs to none, and neither does what it calls.
    """
    for at in range(len(stack) - 1, -1, -1):
        if is_scheduler(stack[at]):
            return None
        if is_context(stack[at]):
            return at
    return None


@dataclass(frozen=True)
class ExecutedInterrupt:
    """An interrupt from its first instruction to the last, softirqs at its end included. Times in ns."""

    name: str
    from_ns: int
    to_ns: int


def executed_interrupts(spans: Sequence[FunctionSpan]) -> Iterator[ExecutedInterrupt]:
    """The interrupts that hit a thread and lie wholly within the spans, in order."""
    since_ns, name = -1, ""
    known: dict[int, str] = {}
    for span in spans:
        outermost = known.get(id(span.call))
        if outermost is None:
            outermost = known[id(span.call)] = _outermost_context(span.call.stack())
        if name and not outermost:
            if since_ns >= 0:
                yield ExecutedInterrupt(name, since_ns, span.start_ns)
            name = ""
        elif outermost and not name:
            begins = span.began and span.name == outermost
            since_ns, name = span.start_ns if begins else -1, outermost


def _outermost_context(stack: Sequence[str]) -> str:
    """The interrupt or softirq that hit a thread; "" if none runs."""
    return next(filter(is_context, stack), "") if innermost_context(stack) is not None else ""


@dataclass(frozen=True)
class ChargedInterrupt:
    """What of one interrupt the trace charges to the thread: before its first event, and in all. Times in ns."""

    name: str
    before_ns: int
    in_all_ns: int


def charged_interrupts(
    interrupts: Collection[ExecutedInterrupt], stretches: Sequence[Stretch]
) -> Iterator[ChargedInterrupt]:
    """Each interrupt with what the stretches of the trace charge to the thread. Both have the same clock.

    An interrupt without any event is left out: its vector may have none.
    """
    for each in interrupts:
        within = [one for one in stretches if one.from_ns < each.to_ns and one.to_ns > each.from_ns]
        entered = next((one.from_ns for one in within if one.top is not None), None)
        if entered is None:
            continue
        of_thread = (one for one in within if one.top is None)
        in_all_ns = sum(min(one.to_ns, each.to_ns) - max(one.from_ns, each.from_ns) for one in of_thread)
        yield ChargedInterrupt(each.name, max(0, entered - each.from_ns), in_all_ns)


def scheduler_begins(spans: Sequence[FunctionSpan]) -> list[int]:
    """When the scheduler began, in ns."""
    return [span.start_ns for span in spans if span.began and is_scheduler(span.name)]


def charged_switches(begins_ns: Sequence[int], switches_ns: Sequence[int]) -> Iterator[int]:
    """How long before each event of a switch the scheduler had begun, in ns."""
    for switch_ns in switches_ns:
        before = [begin_ns for begin_ns in begins_ns if begin_ns <= switch_ns]
        if before:
            yield switch_ns - before[-1]
