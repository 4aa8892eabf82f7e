# SPDX-License-Identifier: Apache-2.0
"""The trace of ``--explain`` leaves out what another event tells: begins of timer interrupts, ends of functions."""

import struct
from dataclasses import replace

import pytest
from analysis_records import file, record
from explain_cases import LITTLE, MEANING, OTHER, OTHER_TIMER, OWN_TIMER, VICTIM, Cpu, begun, budget_of, shown

from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.thread_activations import Start, ThreadWalk
from rtproof.explain.trace_events import HARDIRQ, SOFTIRQ
from rtproof.explain.trace_source import meaning_of
from rtproof.explain.trace_timelines import Meaning
from rtproof.summary import kernel_trace
from rtproof.summary.trace_text import EventFormat, EventWriter, Functions, RawEvent, event_format

OF_VECTOR = replace(
    MEANING, paired=MEANING.paired - {"irq_vectors/local_timer", "hrtimer_expire"}, shown_by_timers="local_timer"
)
OF_HANDLER = replace(MEANING, paired=MEANING.paired - {"irq_vectors/local_timer", "hrtimer_expire"})
TIMER = NamedCause(Cause.TIMER)


def fires(cpu: Cpu, time_ns: int, function: int, timer: int = OTHER_TIMER, flags: int = 0) -> Cpu:
    return cpu.hard(time_ns, "hrtimer_expire_entry", flags, hrtimer=timer, function=function)


def test_the_first_timer_begins_the_interrupt_and_the_next_one_ends_a_function() -> None:
    cpu = fires(fires(begun(), 2_000, 7), 152_000, 1, OWN_TIMER).waking(154_000, HARDIRQ)
    fires(cpu, 156_000, 8).hard(186_000, "irq_vectors/local_timer_exit")
    found = budget_of(190_000, cpu.to_victim(189_000), meaning=OF_VECTOR)
    named = {part.cause.name: part.length_ns for part in found.parts if part.cause.cause is Cause.OTHER_TIMERS}
    assert named == {"function 0x7": 150_000, "function 0x8": 30_000}
    assert found.by_cause[TIMER] == 4_000
    assert shown(found)[0] == ("A", "irqoff-or-machine", "hog/200", 2_000)
    assert ("B", "no-preemption-point", "hog/200", 3_000) in shown(found), "the interrupt is over"


def test_the_first_timer_is_the_evidence_of_what_the_interrupt_hit() -> None:
    cpu = begun()
    cpu.hard(1_000, "hrtimer_expire_entry", depth=1, hrtimer=OWN_TIMER, function=1).waking(2_000, HARDIRQ, depth=2)
    cpu.hard(3_000, "irq_vectors/local_timer_exit", depth=1)
    found = budget_of(320_000, cpu.to_victim(315_000), meaning=OF_VECTOR)
    assert ("B", "preemptoff", "hog/200", 312_000) in shown(found)


def test_a_handler_ends_the_functions_of_its_timers() -> None:
    cpu = begun().hard(1_000, "irq_handler_entry", irq=3, name="arch_timer")
    fires(fires(cpu, 2_000, 7), 52_000, 1, OWN_TIMER).waking(53_000, HARDIRQ).hard(54_000, "irq_handler_exit", irq=3)
    found = budget_of(60_000, cpu.to_victim(58_000), meaning=OF_HANDLER)
    assert found.by_cause[NamedCause(Cause.OTHER_TIMERS, "function 0x7")] == 50_000
    assert found.by_cause[TIMER] == 3_000
    assert ("B", "no-preemption-point", "hog/200", 4_000) in shown(found)


@pytest.mark.parametrize("known", [True, False])
def test_a_timer_without_an_interrupt_around_it_has_no_known_end(known: bool) -> None:
    """So nothing is charged to it, unless the end of the local timer's interrupt is traced."""
    cpu = fires(begun(), 2_000, 7)
    fires(cpu, 152_000, 1, OWN_TIMER).waking(154_000, HARDIRQ).hard(156_000, "irq_vectors/local_timer_exit")
    found = budget_of(160_000, cpu.to_victim(158_000), meaning=OF_VECTOR if known else OF_HANDLER)
    assert (NamedCause(Cause.OTHER_TIMERS, "function 0x7") in found.by_cause) is known


def test_a_softirq_ends_the_functions_of_its_timers() -> None:
    cpu = begun().timer(1_000).add(6_000, "softirq_entry", SOFTIRQ, vec=8)
    cpu.add(7_000, "hrtimer_expire_entry", SOFTIRQ, hrtimer=OTHER_TIMER, function=7)
    cpu.add(57_000, "softirq_exit", SOFTIRQ, vec=8)
    found = budget_of(
        70_000, cpu.to_victim(67_000), meaning=replace(OF_HANDLER, paired=MEANING.paired - {"hrtimer_expire"})
    )
    assert found.by_cause[NamedCause(Cause.SOFTIRQ, "HRTIMER", function="function 0x7")] == 50_000


@pytest.mark.parametrize(
    ("traced_events", "half", "paired"),
    [
        ("local_timer_entry local_timer_exit hrtimer_expire_entry hrtimer_expire_exit", "", True),
        ("local_timer_exit hrtimer_expire_entry", "local_timer", False),
        ("local_timer_entry hrtimer_expire_entry", "", False),
    ],
)
def test_what_was_traced_tells_how_an_interrupt_is_known(traced_events: str, half: str, paired: bool) -> None:
    def path(name: str) -> str:
        return f"irq_vectors/{name}" if name.startswith("local") else f"timer/{name}"

    names = ["sched/sched_switch", *map(path, traced_events.split())]
    found: Meaning = meaning_of({at: EventFormat(at, name, ()) for at, name in enumerate(names)}, str)
    assert found.shown_by_timers == half
    assert ("hrtimer_expire" in found.paired) is paired


@pytest.mark.parametrize("end", ["irq_vectors/local_timer_exit", "irq_handler_exit", "softirq_exit"])
def test_whom_the_next_interrupt_wakes_was_not_woken_by_the_timer_before(end: str) -> None:
    walk = ThreadWalk(0)
    flags = SOFTIRQ if end == "softirq_exit" else 0
    cpu = begun()

    def add(time_ns: int, event: str, **values: int) -> None:
        cpu.add(time_ns, event, flags or HARDIRQ, **values)

    add(1_000, "hrtimer_expire_entry", hrtimer=OTHER_TIMER, function=7, now=0)
    cpu.wakes(2_000, VICTIM, flags or HARDIRQ)
    add(3_000, end)
    cpu.wakes(4_000, OTHER, flags or HARDIRQ)
    walk.walk(cpu.events)
    assert [walk.threads[tid].wakings[-1].start for tid in (VICTIM, OTHER)] == [Start.TIMER, Start.WAKING]


def test_threads_without_names_of_the_kernels_have_those_of_lists_and_of_events() -> None:
    threads = file("threads", "7 7 TS - 0 0 early\n8 8 TS - 0 0 before\n")
    listed = replace(record([]), files=(threads, file("trace/saved_cmdlines", "8 later\n")))
    assert kernel_trace.task_names(listed) == {7: "early", 8: "later"}


WAKING = """\
name: sched_waking
ID: 7
format:
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
\tfield:char comm[8];\toffset:8;\tsize:8;\tsigned:0;
\tfield:pid_t pid;\toffset:16;\tsize:4;\tsigned:1;
"""


def test_a_line_has_the_name_that_an_earlier_event_told() -> None:
    known = event_format("sched/sched_waking", WAKING)
    writer = EventWriter(LITTLE, {OTHER: "known"}, Functions(""))

    def named(tid: int, wakes: int, name: bytes) -> str:
        content = struct.pack("<ii8si", 0, tid, name, wakes)
        return writer.line(RawEvent(0, 0, known, memoryview(content))).split("-")[0].strip()

    assert [named(VICTIM, OTHER, b"another"), named(OTHER, VICTIM, b"victim")] == ["<...>", "known"]
    assert named(VICTIM, OTHER, b"another") == "victim"
