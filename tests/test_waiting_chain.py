# SPDX-License-Identifier: Apache-2.0
"""A thread that waits for another one is charged to whoever took the time of that one."""

from collections.abc import Sequence

import pytest
from explain_cases import (
    DUE_NS,
    HOG,
    HOG_PRIORITY,
    OTHER,
    VICTIM,
    WAKES,
    Cpu,
    begun,
    budget_of,
    check,
    late,
    shown,
    traced_run,
    walked,
)

from rtproof.explain.budget import (
    LONGEST_CHAIN,
    BudgetPart,
    Phase,
    System,
    TimeBudget,
    budget,
    end_of_chain,
    woken_by_interrupt,
)
from rtproof.explain.causes import Cause, NamedCause, advice_on, rank_words, words_with_chain
from rtproof.explain.explanation import Explanation, cause_rows, explain
from rtproof.explain.thread_modes import FAULT, KERNEL, UNCLEAR, UNKNOWN, Mode
from rtproof.explain.trace_events import HARDIRQ, IRQS_OFF, SOFTIRQ
from rtproof.explain.trace_timelines import Change, Context, Layer, Task, ThreadNames
from rtproof.exporters import perfetto

MIDDLE = 50


def blocked() -> Cpu:
    """The victim runs at 7 us and blocks at 10 us, and the hog runs, which has what the victim needs."""
    return begun().timer(1_000).to_victim(7_000).switch(10_000, HOG, state=2)


def ended(cpu: Cpu, time_ns: int) -> Cpu:
    """The thread that runs wakes the victim, which ends 10 us later."""
    return cpu.waking(time_ns).to_victim(time_ns + 5_000)


def chained(found: TimeBudget) -> list[tuple[str, str, int, tuple[str, ...]]]:
    """What followed the blocking: cause, name, length and whom the cause kept."""
    behind = [part for part in found.parts if part.phase.name == "C" and part.from_ns >= DUE_NS + 10_000]
    return [(part.cause.cause.value, part.cause.who, part.length_ns, part.waits_for) for part in behind]


def test_a_hog_that_keeps_the_holder_of_a_lock_is_first_and_the_holder_is_the_way_to_it() -> None:
    cpu = ended(blocked().switch(20_000, OTHER, MIDDLE).switch(520_000, HOG, state=1), 540_000)
    found = budget_of(550_000, cpu)
    assert found.first == NamedCause(Cause.THREAD, "other", OTHER)
    assert chained(found)[:3] == [
        ("blocked", f"hog/{HOG}", 10_000, ()),
        ("thread", f"other/{OTHER}", 500_000, (f"hog/{HOG}",)),
        ("blocked", f"hog/{HOG}", 20_000, ()),
    ]
    (part,) = (part for part in found.parts if part.cause.cause is Cause.THREAD)
    assert part.words() == (f"thread other/{OTHER} of priority 49 in place of hog/{HOG}, for which the thread waited")


def test_a_thread_that_is_woken_anew_is_not_throttled() -> None:
    """The hog has the CPU since 20 us, long after the first waking and long before the last one."""
    cpu = blocked().switch(20_000, OTHER, HOG_PRIORITY).switch(100_000, HOG, state=1)
    parts = chained(budget_of(550_000, ended(cpu, 540_000)))
    assert "throttled" not in {cause for cause, *_ in parts}
    assert ("no-preemption-point", f"hog/{HOG}", 5_000, ()) in parts


def test_the_holder_is_followed_on_another_cpu_too() -> None:
    here = begun().timer(1_000).to_victim(7_000).switch(10_000, 0, state=2).to_victim(545_000)
    there = Cpu(1, HOG).add(-9_000, "hrtimer_start").switch(20_000, OTHER, MIDDLE).switch(520_000, HOG, state=1)
    there.waking(540_000, target=0)
    found = budget_of(550_000, here, there)
    assert found.first == NamedCause(Cause.THREAD, "other", OTHER)
    assert {part.cpu for part in found.parts if part.cause == found.first} == {1}


def test_a_thread_that_slept_by_its_own_timer_is_late_by_its_own_sleep() -> None:
    cpu = begun().timer(1_000).to_victim(7_000).switch(10_000, 0, state=1)
    cpu = cpu.timer_wakes(300_000, VICTIM, WAKES).to_victim(305_000)
    found = budget_of(310_000, cpu)
    assert found.first == NamedCause(Cause.SLEEP)
    assert found.first.words() == "the thread's own sleep"
    assert chained(found)[:3] == [("sleep", "", 290_000, ()), ("timer", "", 1_000, ()), ("scheduler", "", 4_000, ())]


def test_a_partner_that_slept_by_its_own_timer_is_named_with_its_sleep() -> None:
    cpu = blocked().switch(20_000, 0, state=1)
    cpu = ended(cpu.timer_wakes(300_000, HOG, WAKES).switch(303_000, HOG), 310_000)
    found = budget_of(320_000, cpu)
    assert found.first == NamedCause(Cause.SLEEP, "hog", HOG)
    assert found.first.words() == f"blocked by hog/{HOG}, which slept until its own timer"
    assert chained(found)[:4] == [
        ("blocked", f"hog/{HOG}", 10_000, ()),
        ("sleep", f"hog/{HOG}", 280_000, ()),
        ("timer", "", 1_000, (f"hog/{HOG}",)),
        ("scheduler", "", 2_000, (f"hog/{HOG}",)),
    ]


def test_another_timer_and_a_device_are_named_and_the_disk_where_its_request_ended() -> None:
    cpu = blocked().switch(20_000, 0, state=1).timer_wakes(300_000, HOG, 9).switch(303_000, HOG)
    assert budget_of(320_000, ended(cpu, 310_000)).first == NamedCause(Cause.INTERRUPT_WAIT, "timer function 0x9")
    for dev, name in ((None, "interrupt virtio0"), (254 << 20 | 3, "disk 254:3, interrupt virtio0")):
        cpu = blocked().switch(20_000, 0, state=2).hard(298_000, "irq_handler_entry", irq=9, name="virtio0")
        if dev is not None:
            cpu.hard(299_000, "block_rq_complete", dev=dev)
        cpu.wakes(300_000, HOG, HARDIRQ).hard(301_000, "irq_handler_exit", irq=9).switch(303_000, HOG)
        found = budget_of(320_000, ended(cpu, 310_000))
        assert found.first == NamedCause(Cause.INTERRUPT_WAIT, name)
        assert found.parts[-5].waits_for == (f"hog/{HOG}",)


def test_a_thread_of_rcu_that_the_tick_wakes_shows_a_grace_period() -> None:
    tick = Change(9, "waking", 0, 0, True, None, HOG_PRIORITY, context=Context(Layer.TIMER, "tick_sched_timer", 0, 5))
    found = woken_by_interrupt(tick, Task(19, "rcuc/0", 98))
    assert found == NamedCause(Cause.INTERRUPT_WAIT, "a grace period of RCU, timer tick_sched_timer")
    advice = advice_on(found)
    assert advice is not None
    assert advice.short == "make the call outside of the cycle"


@pytest.mark.parametrize(
    ("doing", "behind"),
    [
        (Mode(FAULT), ", in a page fault"),
        (Mode(FAULT, file="/srv/map.bin on 254:0"), ", in a page fault, file /srv/map.bin on 254:0"),
        (Mode(KERNEL, "read", file="with inode 12 on 254:0"), ", in system call read, file with inode 12 on 254:0"),
        (Mode(KERNEL, "fsync"), ", in system call fsync"),
        (Mode(KERNEL), ""),
        (Mode(UNCLEAR, "the thread's own code, or a page fault"), ""),
        (UNKNOWN, ""),
    ],
)
def test_a_device_is_waited_for_in_what_the_thread_surely_did(doing: Mode, behind: str) -> None:
    interrupt = Context(Layer.INTERRUPT, "virtio0", 0, 5)
    waking = Change(9, "waking", 0, 0, True, None, HOG_PRIORITY, context=interrupt, disk="254:0")
    name = f"disk 254:0, interrupt virtio0{behind}"
    assert woken_by_interrupt(waking, None, doing) == NamedCause(Cause.INTERRUPT_WAIT, name)


@pytest.mark.parametrize(
    ("read", "behind"), [([], ""), ([77], ", file with inode 77 on 0:1"), ([77, 0], ", file with inode 77 on 0:1")]
)
def test_a_page_fault_that_reads_from_a_disk_is_named_with_it(read: Sequence[int], behind: str) -> None:
    """The second inode is that of the disk itself: where the file lies on it is read from there."""
    cpu = begun().timer(1_000).to_victim(7_000).add(8_000, "sys_enter", id=0).add(9_000, "sys_exit", id=0)
    cpu.add(9_500, "page_fault_user")
    for at, inode in enumerate(read):
        cpu.add(9_600 + at, "mm_filemap_add_to_page_cache", i_ino=inode, s_dev=1)
    cpu.switch(10_000, 0, state=2).hard(298_000, "irq_handler_entry", irq=9, name="virtio0")
    cpu.hard(299_000, "block_rq_complete", dev=1).wakes(300_000, VICTIM, HARDIRQ)
    found = budget_of(320_000, cpu.hard(301_000, "irq_handler_exit", irq=9).to_victim(303_000))
    assert found.first == NamedCause(Cause.INTERRUPT_WAIT, f"disk 0:1, interrupt virtio0, in a page fault{behind}")


def test_a_request_that_ended_before_is_not_the_one_that_was_waited_for() -> None:
    cpu = blocked().switch(20_000, 0, state=2).hard(298_000, "block_rq_complete", dev=1)
    cpu.hard(298_500, "irq_handler_entry", irq=9, name="eth0")
    cpu.wakes(300_000, HOG, HARDIRQ).hard(301_000, "irq_handler_exit", irq=9).switch(303_000, HOG)
    assert budget_of(320_000, ended(cpu, 310_000)).first == NamedCause(Cause.INTERRUPT_WAIT, "interrupt eth0")


def nested(depth: int) -> TimeBudget:
    """Threads 1000 and on each wait for the next one; the last one runs, and each wakes the one before."""
    tids = [HOG, *range(1000, 1000 + depth)]
    cpu, at_ns = blocked(), 10_000
    for tid in tids[1:]:
        at_ns += 1_000
        cpu.switch(at_ns, tid, state=2)
    at_ns += 500_000
    for tid in reversed(tids[:-1]):
        cpu.wakes(at_ns, tid).switch(at_ns + 1_000, tid, state=1)
        at_ns += 2_000
    return budget_of(at_ns + 10_000, ended(cpu, at_ns))


@pytest.mark.parametrize("depth", [0, 1, 3, LONGEST_CHAIN - 1, LONGEST_CHAIN, LONGEST_CHAIN + 3])
def test_a_chain_is_followed_to_its_end_but_not_for_ever(depth: int) -> None:
    found = nested(depth)
    followed = min(depth, LONGEST_CHAIN)
    first = found.first
    assert first.tid == (1000 + followed - 1 if followed else HOG)
    longest = max(found.parts, key=lambda part: part.length_ns)
    kept = (f"hog/{HOG}", *(f"idle/{tid}" for tid in range(1000, 1000 + followed - 1)))
    assert [each.partition("/")[2] for each in longest.waits_for] == [
        each.partition("/")[2] for each in kept[:followed]
    ]


def test_threads_that_wait_for_each_other_are_told_as_a_circle() -> None:
    """No thread that sleeps wakes another one, so only events that contradict each other lead to this."""
    a, b, c = Task(1, "a", None), Task(2, "b", None), Task(3, "c", None)
    assert end_of_chain((a, b, c), b) == NamedCause(Cause.BLOCKED, "a circle of b/2 and c/3")
    assert end_of_chain((a, b, c), Task(4, "d", None)) is None


def test_a_softirq_that_woke_the_partner_is_named() -> None:
    cpu = blocked().switch(20_000, 0, state=1).add(250_000, "softirq_entry", SOFTIRQ, vec=3)
    cpu.wakes(300_000, HOG, SOFTIRQ).add(301_000, "softirq_exit", SOFTIRQ, vec=3).switch(303_000, HOG)
    assert budget_of(320_000, ended(cpu, 310_000)).first == NamedCause(Cause.INTERRUPT_WAIT, "softirq NET_RX")


def test_what_a_partner_did_long_before_tells_nothing_of_its_state() -> None:
    """Partners are known around late activations only, so the latest of an earlier one says nothing here."""
    here = begun(task=0).timer(1_000).to_victim(7_000).switch(10_000, 0, state=2).to_victim(545_000)
    there = Cpu(1, HOG).add(-9_000, "hrtimer_start").add(500_000, "hrtimer_start").waking(540_000, target=0)
    trace = walked([here, there.add(20_000_000, "hrtimer_start")])
    assert HOG not in trace.changes
    trace.changes[HOG] = [Change(DUE_NS - 30_000_000, "out", 1, 1, False, None, HOG_PRIORITY)]
    found = budget(late(550_000), trace, System())
    check(found)
    assert chained(found)[0] == ("blocked", f"a thread/{HOG}", 530_000, ())


def renamed(event: bool) -> Cpu:
    """The hog begins with the name of the victim, and takes its own before it wakes the victim."""
    cpu = begun(task=0).timer(1_000).to_victim(7_000)
    cpu.add(8_000, "sched_wakeup_new", IRQS_OFF, 1, comm="victim", pid=HOG, prio=HOG_PRIORITY)
    cpu.add(
        10_000, "sched_switch", IRQS_OFF, 1, prev_comm="victim", prev_pid=VICTIM, prev_prio=19, prev_state=2,
        next_comm="victim", next_pid=HOG, next_prio=HOG_PRIORITY,
    )  # fmt: skip
    cpu.pid = HOG
    if event:
        cpu.add(20_000, "task_rename", pid=HOG, oldcomm="victim", newcomm="hog")
    return ended(cpu, 310_000)


@pytest.mark.parametrize("event", [True, False])
def test_a_child_never_has_the_name_of_its_parent(event: bool) -> None:
    found = budget_of(320_000, renamed(event))
    assert found.first == NamedCause(Cause.BLOCKED, "hog", HOG)
    assert f"victim/{HOG}" not in {cause for _, _, cause, _ in shown(found)}


def test_a_thread_has_the_name_that_it_took_before_it_ran_on() -> None:
    """chrt and other programs start the one that matters by exec, long after the switch to them."""
    cpu = begun(task=OTHER).timer(1_000)
    cpu.add(2_500, "task_rename", pid=OTHER, oldcomm="other", newcomm="motor")
    cpu.add(
        310_000, "sched_switch", IRQS_OFF, 1, prev_comm="motor", prev_pid=OTHER, prev_prio=HOG_PRIORITY, prev_state=0,
        next_comm="victim", next_pid=VICTIM, next_prio=19,
    )  # fmt: skip
    cpu.pid = VICTIM
    assert budget_of(320_000, cpu).first == NamedCause(Cause.NO_POINT, "motor", OTHER)


def test_a_name_holds_from_one_event_to_the_next_and_the_newer_one_between_them() -> None:
    named = ThreadNames()
    named.see(7, "a", 10)
    named.see(7, "a", 20)
    named.rename(7, ("b", "c"), 60)
    named.begin_cpu()
    named.see(7, "b", 40)
    assert [named.at(7, time_ns) for time_ns in (0, 10, 20, 21, 40, 59, 60, 99)] == list("aaabbbcc")
    assert named.at(8, 0) == ""


def test_the_number_of_a_thread_that_ended_is_another_one() -> None:
    named = ThreadNames()
    named.see(7, "old", 10)
    named.begin(7, "sh", 50)
    named.see(7, "sh", 60)
    named.rename(7, ("sh", "tool"), 70)
    assert [named.at(7, time_ns) for time_ns in (10, 50, 60, 80)] == ["old", "tool", "tool", "tool"]


def test_a_measured_thread_that_kept_another_one_is_followed_too() -> None:
    found = budget_of(550_000, ended(blocked().switch(20_000, OTHER, MIDDLE).switch(520_000, HOG), 540_000))
    assert found.first == NamedCause(Cause.THREAD, "other", OTHER)


def test_a_holder_that_was_moved_keeps_its_priority() -> None:
    """The event of a migration tells none, and none is no most urgent one."""
    here = begun(task=0).timer(1_000).to_victim(7_000).switch(10_000, 0, state=2).to_victim(545_000)
    there = Cpu(1, HOG).add(-9_000, "hrtimer_start").switch(-5_000, OTHER, MIDDLE - 20, state=1)
    there.add(11_000, "sched_waking", IRQS_OFF | HARDIRQ, 2, pid=HOG, prio=MIDDLE, target_cpu=1)
    there.add(12_000, "sched_migrate_task", IRQS_OFF, pid=HOG, orig_cpu=0, dest_cpu=1)
    found = budget_of(550_000, here, there.switch(520_000, HOG, MIDDLE).waking(540_000, target=0))
    assert found.first == NamedCause(Cause.THREAD, "other", OTHER)


def kept(chains: list[tuple[tuple[str, ...], int]]) -> TimeBudget:
    """A budget in which one cause kept each of these chains so long."""
    parts, at_ns = [], DUE_NS
    for waits_for, length_ns in chains:
        cause = NamedCause(Cause.THREAD, "other", OTHER)
        parts.append(BudgetPart(at_ns, at_ns + length_ns, Phase.C, cause, 0, waits_for=waits_for))
        at_ns += length_ns
    return TimeBudget(late(at_ns - DUE_NS), tuple(parts), None, None)


@pytest.mark.parametrize(
    ("chains", "shown_chain"),
    [
        ([(("a/1",), 3), ((), 2)], ("a/1",)),
        ([(("a/1",), 2), ((), 3)], ()),
        ([(("a/1",), 2), (("a/2",), 2), (("b/3",), 3)], ("a",)),
        ([(("a/1", "b/2"), 2), (("a/1", "b/2"), 2), (("b/3",), 3)], ("a/1", "b/2")),
    ],
)
def test_a_cause_of_a_run_has_the_chain_of_most_of_its_time(
    chains: list[tuple[tuple[str, ...], int]], shown_chain: tuple[str, ...]
) -> None:
    (row,) = cause_rows([kept(chains)], [])
    assert row.waits_for == shown_chain
    assert row.words() == words_with_chain(NamedCause(Cause.THREAD, "other", OTHER), shown_chain)


def test_a_chain_in_words_goes_from_who_was_kept_to_the_late_thread() -> None:
    nmi, other = NamedCause(Cause.NMI, "x"), NamedCause(Cause.THREAD, "other", OTHER, ranks=rank_words(59))
    kept = "c, for which b waited, for which a waited, for which the thread waited"
    assert words_with_chain(nmi, ()) == "NMI x"
    assert words_with_chain(nmi, ("a", "b", "c")) == f"NMI x: it kept {kept}"
    assert words_with_chain(other, ("a", "b", "c")) == f"thread other/{OTHER} of priority 40 in place of {kept}"


@pytest.mark.parametrize(
    ("ran", "kept", "words"),
    [
        (9, 19, "of priority 90, above 80"),
        (19, 19, "of the same priority 80"),
        (-1, 19, "of SCHED_DEADLINE, above 80"),
        (-1, -1, "of SCHED_DEADLINE, too"),
        (59, 120, "of priority 40, above ordinary priority"),
        (120, 139, "of the same ordinary priority"),
        (59, None, "of priority 40"),
    ],
)
def test_the_priorities_of_two_threads_are_told(ran: int, kept: int | None, words: str) -> None:
    assert NamedCause(Cause.THREAD, "x", 7, ranks=rank_words(ran, kept)).words() == f"thread x/7 {words}"
    assert NamedCause(Cause.THREAD, "x", 7).words() == "thread x/7 of the same or a higher priority"


@pytest.mark.parametrize(
    ("since_interrupt_ns", "cause"),
    [
        (None, NamedCause(Cause.BLOCKED, "hog", HOG)),
        (15_000, NamedCause(Cause.BLOCKED, "hog", HOG)),
        (1_000, NamedCause(Cause.INTERRUPT_WAIT, "softirq NET_RX")),
    ],
)
def test_who_sends_to_this_machine_itself_is_waited_for_and_not_the_softirq(
    since_interrupt_ns: int | None, cause: NamedCause
) -> None:
    """A thread that raises a softirq runs it itself. What an interrupt has raised comes right behind the interrupt."""
    cpu, begins_ns = blocked(), 300_000
    if since_interrupt_ns is not None:
        came_ns = begins_ns - since_interrupt_ns
        cpu.hard(came_ns - 2_000, "irq_handler_entry", irq=9, name="eth0").hard(came_ns, "irq_handler_exit", irq=9)
    assert sent_at(cpu, begins_ns).first == cause


def sent_at(cpu: Cpu, begins_ns: int) -> TimeBudget:
    """The thread sends, and a softirq of the network wakes the victim."""
    cpu.add(begins_ns, "softirq_entry", SOFTIRQ, vec=3).waking(begins_ns + 2_000, SOFTIRQ)
    cpu.add(begins_ns + 4_000, "softirq_exit", SOFTIRQ, vec=3)
    return budget_of(begins_ns + 10_000, cpu.to_victim(begins_ns + 6_000))


@pytest.mark.parametrize(
    ("device_ns", "cause"),
    [(280_000, NamedCause(Cause.BLOCKED, "hog", HOG)), (293_000, NamedCause(Cause.INTERRUPT_WAIT, "softirq NET_RX"))],
)
def test_the_interrupt_of_a_timer_brings_no_packet_but_the_one_before_it_may(device_ns: int, cause: NamedCause) -> None:
    cpu = blocked().hard(device_ns - 2_000, "irq_handler_entry", irq=9, name="eth0")
    cpu.hard(device_ns, "irq_handler_exit", irq=9)
    for began_ns, begin in ((294_000, "irq_vectors/local_timer_entry"), (297_000, "hrtimer_expire_entry")):
        cpu.hard(began_ns, begin, hrtimer=7, function=1).hard(began_ns + 2_000, "irq_vectors/local_timer_exit")
    assert sent_at(cpu, 300_000).first == cause


def kept_holder() -> Explanation:
    """At 10 us the victim blocks on what the hog has; another thread keeps the hog from the CPU."""
    cpu = begun().timer(1_000).to_victim(7_000).switch(10_000, HOG, state=2)
    cpu.switch(20_000, OTHER, 50).switch(520_000, HOG, state=1).waking(540_000).to_victim(545_000)
    return explain(traced_run([550_000], cpu), 100_000)


def test_perfetto_has_the_holder_on_a_track_below_its_activation() -> None:
    events = list(perfetto.trace_events(kept_holder()))
    slices = [event for event in events if (event["ph"], event["pid"], event["tid"]) == ("X", perfetto.BUDGETS, 2)]
    assert [event["name"] for event in slices] == [f"hog/{HOG}"]


def test_a_holder_that_waits_for_another_is_named_before_it() -> None:
    parts = [
        BudgetPart(0, 1, Phase.C, NamedCause(Cause.BLOCKED, "a", 1), 0),
        BudgetPart(1, 2, Phase.C, NamedCause(Cause.BLOCKED, "b", 2), 0, waits_for=("a/1",)),
        BudgetPart(2, 3, Phase.C, NamedCause(Cause.THREAD, "c", 3), 0, waits_for=("a/1", "b/2")),
        BudgetPart(3, 4, Phase.C, NamedCause(Cause.BLOCKED), 0),
        BudgetPart(4, 5, Phase.C, NamedCause(Cause.SLEEP, "a", 1), 0),
    ]
    found = kept_holder().budgets[0]
    assert TimeBudget(found.activation, tuple(parts), None, None).waits == (
        (0, 1, ("a/1",)),
        (1, 3, ("a/1", "b/2")),
        (4, 5, ("a/1",)),
    )
