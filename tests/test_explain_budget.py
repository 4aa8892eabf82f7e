# SPDX-License-Identifier: Apache-2.0
"""The budget of an activation: every cause from the events that show it, and 100 % whatever the events."""

from dataclasses import replace

import pytest
from explain_cases import (
    CALLS,
    DUE_NS,
    ENTRY,
    FUNCTIONS,
    HOG,
    HOLDS,
    MEANING,
    OTHER,
    OTHER_TIMER,
    RESTORE,
    URGENT,
    VICTIM,
    VICTIM_PRIORITY,
    Cpu,
    begun,
    budget_of,
    check,
    late,
    shown,
    told,
    walked,
)
from hypothesis import given
from hypothesis import strategies as st

from rtproof.explain.budget import System, budget
from rtproof.explain.causes import Cause, NamedCause
from rtproof.explain.cpu_contexts import IDLE_LEAVES
from rtproof.explain.explanation import CommonPath, common_path
from rtproof.explain.trace_events import BH_OFF, HARDIRQ, IRQS_OFF, LOST, SOFTIRQ, VALUES, TraceEvent
from rtproof.summary.trace_text import Value

NOT_SUPPORTED = 0x02


def test_a_timer_that_comes_late_over_a_thread_had_interrupts_off_or_the_machine_gone() -> None:
    found = budget_of(310_000, begun().timer(300_000).to_victim(308_000))
    assert told(shown(found)) == (
        "A irqoff-or-machine hog/200 300; A timer 2; B timer 2; B no-preemption-point hog/200 4; C return 2"
    )
    assert found.first == NamedCause(Cause.IRQ_OFF_OR_GONE, "hog", HOG)
    assert found.whole
    assert (found.woken_ns, found.ran_ns) == (DUE_NS + 302_000, DUE_NS + 308_000)


def test_an_event_with_interrupts_off_in_the_gap_shows_that_they_were_off() -> None:
    cpu = begun().add(100_000, "cpu_idle", IRQS_OFF, state=0).timer(300_000).to_victim(308_000)
    assert shown(budget_of(310_000, cpu))[0] == ("A", "irqoff", "hog/200", 300_000)


def test_a_long_silence_of_a_guest_may_be_its_host_although_an_event_had_interrupts_off() -> None:
    """QEMU was stopped behind an event with interrupts off: the event tells only of its own instant."""
    cpu = begun().add(30_000, "cpu_idle", IRQS_OFF, state=0).timer(3_300_000).to_victim(3_308_000)
    found = budget_of(3_310_000, cpu, system=System(can_be_gone=True))
    assert told(shown(found)[:2]) == "A irqoff hog/200 30; A irqoff-or-machine hog/200 3270"
    assert shown(budget_of(3_310_000, cpu))[0] == ("A", "irqoff", "hog/200", 3_300_000)


def test_a_kernel_that_never_says_whether_interrupts_are_off_shows_no_late_timer() -> None:
    """Old kernels of some architectures do not trace it: bit 1 of the flags says so, and bit 0 is never set."""
    cpu = begun().add(100_000, "hrtimer_start").timer(300_000).to_victim(308_000)
    cpu.events = [event._replace(flags=event.flags & ~IRQS_OFF | NOT_SUPPORTED) for event in cpu.events]
    assert shown(budget_of(310_000, cpu))[0] == ("A", "irqoff-or-machine", "hog/200", 300_000)


def test_user_code_cannot_switch_interrupts_off() -> None:
    """Told only where every system call was traced."""
    cpu = begun().add(-10_000, "sys_exit").timer(300_000).to_victim(308_000)
    every = replace(MEANING, every_call=True)
    assert shown(budget_of(310_000, cpu, meaning=every))[0] == ("A", "machine", "", 300_000)
    assert shown(budget_of(310_000, cpu))[0] == ("A", "irqoff-or-machine", "hog/200", 300_000)


def test_a_stack_behind_a_restore_says_in_which_function_interrupts_were_probably_off() -> None:
    cpu = begun().timer(300_000, stack=(RESTORE, HOLDS, CALLS)).to_victim(308_000)
    found = budget_of(310_000, cpu)
    assert found.first == NamedCause(Cause.IRQ_OFF_LIKELY, "hog", HOG, "holds")
    assert found.parts[0].stack == ("_raw_spin_unlock_irqrestore", "holds", "calls")
    assert (
        found.first.words()
        == "probably interrupts off while holds() of hog/200 ran, else the host or an SMI stopped the CPU"
    )
    softirq = begun().add(-20_000, "softirq_entry", SOFTIRQ, vec=3).timer(300_000, 0, SOFTIRQ, (RESTORE, HOLDS))
    found = budget_of(325_000, softirq.add(310_000, "softirq_exit", SOFTIRQ, vec=3).to_victim(320_000))
    assert found.first == NamedCause(Cause.IRQ_OFF_LIKELY, "softirq NET_RX", None, "holds")


def test_a_stack_that_ends_elsewhere_decides_nothing_but_is_kept() -> None:
    cpu = begun().timer(300_000, stack=(HOLDS, CALLS)).to_victim(308_000)
    found = budget_of(310_000, cpu)
    assert found.first == NamedCause(Cause.IRQ_OFF_OR_GONE, "hog", HOG)
    assert found.parts[0].stack == ("holds", "calls")
    whole = budget_of(310_000, begun().timer(300_000, stack=(RESTORE,)).to_victim(308_000))
    assert whole.first.cause is Cause.IRQ_OFF_OR_GONE, "the stack does not reach the function that had them off"


def test_an_interrupt_that_hit_user_code_had_not_to_wait_for_the_kernel() -> None:
    """Told only where every interrupt has an event, since another one may have run before."""
    cpu = begun().hard(300_000, "irq_vectors/local_timer_entry").hard(300_500, "kernel_stack", caller=(ENTRY,))
    cpu.waking(302_000, HARDIRQ).hard(304_000, "irq_vectors/local_timer_exit").to_victim(308_000)
    assert budget_of(310_000, cpu, system=System(sees_interrupts=True)).first == NamedCause(Cause.MACHINE)
    assert budget_of(310_000, cpu).first.cause is Cause.IRQ_OFF_OR_GONE


def test_a_stack_is_shown_only_where_it_was_in_the_charged_section() -> None:
    section = begun().timer(1_000, 1, stack=(HOLDS, CALLS)).to_victim(315_000)
    parts = {part.cause.cause: part.stack for part in budget_of(320_000, section).parts}
    assert parts[Cause.PREEMPT_OFF] == ("holds", "calls")
    assert parts[Cause.TIMER] == parts[Cause.RETURN] == ()
    earlier = begun().hard(-90_000, "irq_vectors/irq_work_entry", 0, 1)
    earlier.hard(-89_000, "kernel_stack", caller=(ENTRY, HOLDS)).hard(-88_000, "irq_vectors/irq_work_exit")
    other = Cpu(1, OTHER).add(-9_000, "hrtimer_start").waking(2_000, HARDIRQ, target=0)
    late_by_other = budget_of(320_000, earlier.to_victim(315_000), other)
    assert late_by_other.first == NamedCause(Cause.PREEMPT_OFF, "hog", HOG)
    assert {part.stack for part in late_by_other.parts} == {()}


def test_the_unlocking_that_an_interrupt_hit_does_not_count_as_preemption_off() -> None:
    for depth, cause in ((1, Cause.NO_POINT), (2, Cause.PREEMPT_OFF)):
        cpu = begun().timer(1_000, depth, stack=(RESTORE, HOLDS)).to_victim(315_000)
        assert budget_of(320_000, cpu).first == NamedCause(cause, "hog", HOG)


def test_stacks_have_in_common_what_takes_more_than_half_of_the_time() -> None:
    stacks = [
        (("a", "hold", "call"), 20),
        (("b", "hold", "call"), 20),
        (("c", "d", "call"), 10),
        (("hold", "call"), 30),
    ]
    assert common_path(stacks) == CommonPath(("call", "hold"), 0.875, 4)
    assert common_path([(("a",), 1), (("b",), 1)]) == CommonPath((), 0, 2)
    assert common_path([((), 5)]) == CommonPath((), 0, 1)


def test_a_blocked_thread_waited_for_whoever_kept_its_waker_waiting() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).switch(10_000, HOG, state=2)
    cpu.switch(20_000, OTHER, state=1).add(50_000, "sched_waking", IRQS_OFF, 1, pid=HOG, prio=120, target_cpu=0)
    parts = shown(budget_of(100_000, cpu.switch(60_000, HOG).waking(90_000).to_victim(95_000)))
    assert told(parts[-6:-2]) == (
        "C blocked hog/200 10; C blocked other/300 30; C thread other/300 10; C blocked hog/200 30"
    )


def dense(number: int, *silent: tuple[int, int]) -> Cpu:
    cpu = Cpu(number, OTHER)
    for time_ns in range(-4_000_000, 5_000_000, 10_000):
        if not any(low < time_ns < high for low, high in silent):
            cpu.add(time_ns, "hrtimer_start")
    return cpu


def test_when_all_cpus_are_silent_the_machine_was_gone() -> None:
    cpu = begun().timer(300_000).to_victim(308_000)
    assert shown(budget_of(310_000, cpu, dense(1, (0, 300_000))))[0] == ("A", "machine", "", 300_000)
    assert shown(budget_of(310_000, cpu, dense(1)))[0][1] == "irqoff-or-machine"
    assert shown(budget_of(310_000, cpu, Cpu(1)))[0][1] == "irqoff-or-machine", "an idle CPU is always silent"
    both = (dense(1, (0, 300_000)), dense(2))
    assert shown(budget_of(310_000, cpu, *both))[0][1] == "irqoff-or-machine"


def test_a_guest_that_may_be_gone_is_never_said_to_have_had_interrupts_off() -> None:
    """QEMU was stopped: whatever the events around it say, they tell of their own instants only."""
    guest = System(can_be_gone=True, sees_interrupts=True)
    stops = [
        begun().timer(300_000, stack=(RESTORE, HOLDS)).to_victim(308_000),
        begun().add(-10_000, "irq_disable").add(290_000, "irq_enable").timer(300_000).to_victim(308_000),
        begun().add(299_000, "cpu_idle", 1, state=0).timer(300_000).to_victim(308_000),
    ]
    for cpu in stops:
        found = budget_of(310_000, cpu, system=guest)
        assert found.first.cause is Cause.IRQ_OFF_OR_GONE, shown(found)
        assert "or the host or an SMI stopped the CPU" in found.first.words()
    found = budget_of(310_000, begun().timer(300_000, stack=(RESTORE, HOLDS)).to_victim(308_000), system=guest)
    assert found.first.words() == "interrupts off while holds() of hog/200 ran, or the host or an SMI stopped the CPU"


def test_a_cpu_that_is_often_silent_does_not_show_that_the_machine_was_gone() -> None:
    """A burst each millisecond and silence between: dense on the average, and silent in most gaps."""
    other = Cpu(1, OTHER)
    for burst in range(-4, 6):
        for at in range(25):
            other.add(burst * 1_000_000 + at * 4_000 - 150_000, "hrtimer_start")
    found = budget_of(310_000, begun().timer(300_000).to_victim(308_000), other)
    assert found.first == NamedCause(Cause.IRQ_OFF_OR_GONE, "hog", HOG)


def test_an_idle_state_that_ends_with_interrupts_off_is_no_section_of_the_kernel() -> None:
    """Many drivers leave the state, with an event, before they let the interrupt in."""
    cpu = begun(task=0).add(-490_000, "cpu_idle", IRQS_OFF, 1, state=2)
    cpu.add(295_000, "cpu_idle", IRQS_OFF, 1, state=IDLE_LEAVES).timer(300_000, depth=1).to_victim(308_000)
    assert shown(budget_of(310_000, cpu))[0] == ("A", "idle-exit", "", 300_000)


def test_interrupts_off_behind_an_idle_state_are_told() -> None:
    cpu = begun(task=0).add(-490_000, "cpu_idle", IRQS_OFF, 1, state=2)
    cpu.add(20_000, "cpu_idle", IRQS_OFF, 1, state=IDLE_LEAVES).add(290_000, "hrtimer_start", IRQS_OFF, 1)
    cpu.timer(300_000, depth=1).to_victim(308_000)
    assert shown(budget_of(310_000, cpu))[:2] == [("A", "idle-exit", "", 20_000), ("A", "irqoff", "idle", 280_000)]


def test_a_softirq_that_ran_over_the_due_time_had_interrupts_off() -> None:
    cpu = begun().add(-20_000, "softirq_entry", SOFTIRQ, vec=3).timer(300_000, flags=SOFTIRQ)
    cpu.add(310_000, "softirq_exit", SOFTIRQ, vec=3).to_victim(320_000)
    parts = shown(budget_of(325_000, cpu))
    assert parts[0] == ("A", "irqoff-or-machine", "softirq NET_RX", 300_000)
    assert ("B", "softirq", "NET_RX", 6_000) in parts


def test_other_timers_of_the_same_interrupt_come_first_or_after() -> None:
    cpu = begun().hard(1_000, "irq_vectors/local_timer_entry")
    cpu.hard(2_000, "hrtimer_expire_entry", hrtimer=OTHER_TIMER, function=7)
    cpu.hard(152_000, "hrtimer_expire_exit", hrtimer=OTHER_TIMER)
    cpu.hard(153_000, "hrtimer_expire_entry", hrtimer=1, function=1).waking(154_000, HARDIRQ)
    cpu.hard(155_000, "hrtimer_expire_exit", hrtimer=1)
    cpu.hard(156_000, "hrtimer_expire_entry", hrtimer=OTHER_TIMER, function=8)
    cpu.hard(186_000, "hrtimer_expire_exit", hrtimer=OTHER_TIMER).hard(187_000, "irq_vectors/local_timer_exit")
    found = budget_of(190_000, cpu.to_victim(189_000))
    named = {part.cause.name: part.length_ns for part in found.parts if part.cause.cause is Cause.OTHER_TIMERS}
    assert named == {"function 0x7": 150_000, "function 0x8": 30_000}
    assert found.by_cause[NamedCause(Cause.TIMER)] == 6_000


@pytest.mark.parametrize(
    ("depth", "flags", "system", "cause"),
    [
        (1, 0, System(), Cause.PREEMPT_OFF),
        (1, 0, System(real_time=True, preempts=True), Cause.PREEMPT_OFF),
        (0, BH_OFF, System(), Cause.SOFTIRQS_OFF),
        (0, SOFTIRQ, System(), Cause.SOFTIRQS_OFF),
        (0, BH_OFF, System(real_time=True, preempts=True), Cause.SCHEDULER),
        (0, 0, System(), Cause.NO_POINT),
        (0, 0, System(preempts=True), Cause.SCHEDULER),
        (0, 0, System(counts=False), Cause.PREEMPT_OFF_OR_NO_POINT),
        (0, BH_OFF, System(counts=False), Cause.SOFTIRQS_OFF),
        (0x20, 0, System(), Cause.NO_POINT),
    ],
)
def test_what_the_interrupt_found_says_why_a_less_urgent_thread_kept_the_cpu(
    depth: int, flags: int, system: System, cause: Cause
) -> None:
    found = budget_of(320_000, begun().timer(1_000, depth, flags).to_victim(315_000), system=system)
    who = "" if cause is Cause.SCHEDULER else "hog/200"
    assert ("B", cause.value, who, 310_000) in shown(found)


def test_without_an_interrupt_there_is_no_evidence() -> None:
    other = Cpu(1, OTHER).add(-9_000, "hrtimer_start").waking(2_000, HARDIRQ, target=0)
    found = budget_of(320_000, begun().to_victim(315_000), other)
    assert ("B", "preemptoff-or-no-point", "hog/200", 313_000) in shown(found)


def test_a_more_urgent_thread_is_named_and_an_equal_one_too() -> None:
    for priority in (URGENT, VICTIM_PRIORITY, -1):
        cpu = begun().timer(1_000).switch(8_000, OTHER, priority).to_victim(208_000)
        assert ("B", "thread", "other/300", 200_000) in shown(budget_of(210_000, cpu))


def test_a_softirq_between_waking_and_switch_is_charged_by_its_name() -> None:
    cpu = begun().timer(1_000).softirq(6_000, 3, 206_000).to_victim(208_000)
    assert budget_of(210_000, cpu).first == NamedCause(Cause.SOFTIRQ, "NET_RX")


def test_a_softirq_that_is_preempted_stays_with_its_thread() -> None:
    """On PREEMPT_RT: another thread runs in between, and its time is not the softirq's."""
    cpu = begun().add(-90_000, "softirq_entry", SOFTIRQ, vec=3).switch(-50_000, OTHER).timer(100_000)
    cpu.switch(106_000, HOG).to_victim(206_000)
    parts = shown(budget_of(210_000, cpu, system=System(preempts=True, real_time=True)))
    assert parts[0] == ("A", "irqoff-or-machine", "other/300", 100_000)
    assert ("B", "softirq", "NET_RX", 100_000) in parts


def test_after_its_first_switch_a_thread_may_block_or_be_preempted() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).switch(10_000, OTHER, URGENT).to_victim(40_000)
    cpu.switch(50_000, HOG, state=2).waking(90_000).to_victim(95_000)
    parts = shown(budget_of(100_000, cpu))
    assert ("C", "thread", "other/300", 30_000) in parts
    assert ("C", "blocked", "hog/200", 40_000) in parts


def test_a_thread_that_another_one_had_stopped_waited_for_no_interrupt() -> None:
    """SIGSTOP before the due time, SIGCONT behind it: the sleep goes on, and its timer is due long ago."""
    cpu = begun().waking(-20_000).to_victim(-10_000).switch(-5_000, HOG, state=4)
    cpu.waking(300_000).to_victim(304_000).timer(306_000)
    parts = shown(budget_of(310_000, cpu))
    assert parts[0] == ("A", "blocked", "hog/200", 300_000)
    assert "irqoff-or-machine" not in {cause for _, cause, _, _ in parts}


def test_a_softirq_that_wakes_a_thread_is_not_the_thread_that_it_hit() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).switch(50_000, HOG, state=2)
    cpu.hard(78_000, "irq_handler_entry", irq=9, name="eth0").hard(79_000, "irq_handler_exit", irq=9)
    cpu.add(80_000, "softirq_entry", SOFTIRQ, vec=3).waking(90_000, SOFTIRQ)
    cpu.add(99_000, "softirq_exit", SOFTIRQ, vec=3).to_victim(105_000)
    assert ("C", "interrupt-wait", "softirq NET_RX", 40_000) in shown(budget_of(110_000, cpu))


def test_own_code_and_a_page_fault_without_an_end_and_a_system_call_are_told_apart() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).add(9_000, "syscalls/sys_exit_clock_nanosleep")
    cpu.add(12_000, "page_fault_user").add(62_000, "syscalls/sys_enter_read")
    parts = shown(budget_of(80_000, cpu.switch(90_000, HOG, state=1)))
    assert told(parts[-4:]) == (
        "C return 2; C own-code 3; C own-code-or-kernel the thread's own code, or a page fault 50; "
        "C system-call read 18"
    )


def test_where_events_were_lost_nothing_is_explained() -> None:
    cpu = begun().lost(100_000).timer(200_000).to_victim(208_000)
    found = budget_of(210_000, cpu)
    assert shown(found)[0] == ("A", "unexplained", "", 200_000)
    assert not found.whole
    assert shown(budget_of(210_000)) == [("A", "unexplained", "", 210_000)]


def test_an_interrupt_whose_end_is_missing_ends_where_an_event_says_so() -> None:
    cpu = begun().hard(-9_000, "irq_handler_entry", irq=3, name="eth0").add(-1_000, "hrtimer_start")
    assert shown(budget_of(110_000, cpu.timer(100_000).to_victim(108_000)))[0][1] == "irqoff-or-machine"


# Whatever the events, every nanosecond is charged once.


PIDS = st.sampled_from((0, VICTIM, HOG, OTHER, 7))
NUMBERS = st.sampled_from((0, 1, 2, 7, 100, 0xFFFFFFFF))
KINDS = st.sampled_from((
    *VALUES, LOST, "irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit", "irq_vectors/irq_work_entry",
    "irq_vectors/irq_work_exit", "syscalls/sys_exit_read", "syscalls/sys_enter_read", "never heard of",
))  # fmt: skip


@st.composite
def any_event(draw: st.DrawFn) -> TraceEvent:
    name = draw(KINDS)
    values: dict[str, Value] = {}
    for key in VALUES.get(name, ()):
        if key in ("name", "comm", "prev_comm", "next_comm"):
            values[key] = draw(st.sampled_from(("", "a", "timer")))
        elif key == "caller":
            values[key] = tuple(draw(st.lists(st.sampled_from((*FUNCTIONS, 1)), max_size=4)))
        elif draw(st.integers(0, 9)):
            values[key] = draw(PIDS if key.endswith("pid") else NUMBERS)
    step_ns = draw(st.sampled_from((0, 0, 1, 1_000, 70_000, -5)))
    return TraceEvent(
        step_ns, draw(st.integers(0, 1)), name, draw(st.integers(0, 255)), draw(NUMBERS), draw(PIDS), values
    )


@given(
    events=st.lists(any_event(), max_size=60),
    due_ns=st.integers(-10_000, 400_000),
    latency_ns=st.integers(1, 500_000),
    system=st.builds(System, st.just(frozenset({OTHER})), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    every_call=st.booleans(),
)
def test_whatever_happens_the_parts_add_up_and_do_not_overlap(
    events: list[TraceEvent], due_ns: int, latency_ns: int, system: System, every_call: bool
) -> None:
    cpus, at_ns = (Cpu(0), Cpu(1)), DUE_NS
    for event in events:
        at_ns += event.time_ns
        cpus[event.cpu].events.append(event._replace(time_ns=at_ns))
    trace = walked(cpus, replace(MEANING, every_call=every_call))
    activation = replace(late(latency_ns), due_ns=DUE_NS + due_ns)
    found = budget(activation, trace, system)
    check(found)
    assert sum(found.by_cause.values()) == latency_ns
    for timeline in trace.of_cpus.values():
        edges = [stretch.to_ns for stretch in timeline.stretches]
        assert all(stretch.from_ns < stretch.to_ns for stretch in timeline.stretches)
        assert all(stretch.from_ns >= end for stretch, end in zip(timeline.stretches[1:], edges, strict=False))


CLOSE = [  # how long the thread held the CPU beyond the timer's 8 us, and who may then have taken the most
    (-1_000, ["timer"]),
    (1_000, ["no-preemption-point", "timer"]),
    (2_900, ["no-preemption-point", "timer"]),
    (3_100, ["no-preemption-point"]),
]


@pytest.mark.parametrize(("longer_ns", "firsts"), CLOSE)
def test_a_thread_may_be_first_only_because_parts_of_an_interrupt_and_of_the_switch_are_charged_to_it(
    longer_ns: int, firsts: list[str]
) -> None:
    """The thread is charged with too much, and never the interrupt: so it is left open in one direction only.

    One edge of half a microsecond goes from the one to the other, and the switch takes 2 us from the thread.
    """
    cpu = begun().hard(-9_000, "irq_vectors/irq_work_entry").hard(-8_000, "irq_vectors/irq_work_exit")
    cpu.timer(0).hard(4_000, "irq_vectors/local_timer_entry").hard(8_000, "irq_vectors/local_timer_exit")
    held_ns = 8_000 + longer_ns
    found = budget_of(16_500 + longer_ns, cpu.to_victim(8_000 + held_ns))
    assert [(cause.cause.value, found.by_cause[cause]) for cause in found.possible_firsts] == [
        (name, 8_000 if name == "timer" else held_ns) for name in firsts
    ]
    assert found.first == found.possible_firsts[0]


def test_a_thread_that_no_interrupt_hit_is_too_long_by_the_switch_only() -> None:
    cpu = begun().waking(1_000)
    clear = budget_of(10_900, cpu.to_victim(8_000))
    assert [cause.cause for cause in clear.possible_firsts] == [Cause.NO_POINT], "7 us against 2.9 us"
    close = budget_of(12_500, begun().waking(1_000).to_victim(7_000))
    assert [cause.cause for cause in close.possible_firsts] == [Cause.NO_POINT, Cause.RETURN]
