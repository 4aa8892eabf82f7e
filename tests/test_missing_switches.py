# SPDX-License-Identifier: Apache-2.0
"""Switches without an event: they are found, nobody is charged for them, and windows that have them are told."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from analysis_records import fact
from explain_cases import DUE_NS, HOG, MEANING, NAMES, OTHER, VICTIM, Cpu, begun, budget_of, shown, traced_run
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.explain.cpu_contexts import SWITCH, CpuWalk, SwitchCheck
from rtproof.explain.explanation import TraceWindows, count_windows, explain, meets
from rtproof.explain.trace_events import IRQS_OFF, LOST, TraceEvent, Window
from rtproof.explain.trace_source import with_holes
from rtproof.explain.trace_timelines import Timelines
from rtproof.record.contents import WHOLE_RUN, Event
from rtproof.summary.tracing_effect import untraced_times

MS = 1_000_000
MISSING = "a switch is missing on CPU 0"


def missing_switches(events: Sequence[TraceEvent]) -> list[Window]:
    """The times of a CPU in each of which a switch without an event lies, in order."""
    check = SwitchCheck()
    found = [check.see(event) for event in events]
    return [missing for missing in (*found, check.end()) if missing]


def without(cpu: Cpu, *switches: int) -> Cpu:
    """The same CPU without some of its switches, by their places among these."""
    places = [at for at, event in enumerate(cpu.events) if event.name == SWITCH]
    dropped = {places[at] for at in switches}
    return Cpu(cpu.number, cpu.pid, [event for at, event in enumerate(cpu.events) if at not in dropped])


@st.composite
def streams(draw: st.DrawFn) -> Cpu:
    """What a kernel may write of one CPU: switches with, between them, what the thread, interrupts and softirqs do."""
    cpu, at_ns = Cpu(0, draw(st.sampled_from((0, VICTIM, HOG, OTHER)))), 0
    for _ in range(draw(st.integers(1, 12))):
        for what in draw(st.lists(st.sampled_from(("own", "off", "hard", "soft", "lost")), max_size=3)):
            at_ns += draw(st.sampled_from((0, 1, 700)))
            if what == "own":
                cpu.add(at_ns, "sys_exit")
            elif what == "off":
                cpu.waking(at_ns)
            elif what == "soft":
                cpu.softirq(at_ns, 3, at_ns + 5)
                at_ns += 5
            elif what == "hard":
                cpu.timer(at_ns)
                at_ns += 4_000
            elif not draw(st.integers(0, 4)):
                cpu.lost(at_ns)
        at_ns += draw(st.sampled_from((1, 700)))
        before = cpu.pid
        cpu.switch(at_ns, draw(st.sampled_from([tid for tid in (0, VICTIM, HOG, OTHER) if tid != before])))
        after, cpu.pid = cpu.pid, before
        within = draw(st.sampled_from((0, 0, 0, 1, 2)))
        for _ in range(within):  # the thread before still has the CPU
            cpu.add(at_ns, "hrtimer_start", IRQS_OFF, 2)
        cpu.pid = after
        if within or draw(st.booleans()):
            cpu.add(at_ns, "sys_exit")
    return cpu


def owners(cpu: Cpu) -> list[tuple[int, int, int]]:
    """From when to when which thread had the CPU, by all switches of a stream."""
    switches = [event for event in cpu.events if event.name == SWITCH]
    spans = [(one.time_ns, other.time_ns, int(str(one.values["next_pid"]))) for one, other in pairwise(switches)]
    first, last = switches[0], switches[-1]
    return [
        (0, first.time_ns, int(str(first.values["prev_pid"]))), *spans,
        (last.time_ns, 1 << 60, int(str(last.values["next_pid"]))),
    ]  # fmt: skip


def wrongly_named(events: Sequence[TraceEvent], truth: list[tuple[int, int, int]]) -> list[object]:
    """Stretches that name a thread which had the CPU not all of their time."""
    walk = CpuWalk(0, MEANING, [Window(0, 1 << 60)], Timelines({VICTIM}, dict(NAMES)))
    return [
        stretch
        for stretch in walk.walk(events).stretches
        for from_ns, to_ns, tid in truth
        if stretch.task and stretch.task.tid != tid and min(to_ns, stretch.to_ns) > max(from_ns, stretch.from_ns)
    ]


@settings(max_examples=60)
@given(cpu=streams(), which=st.integers(0, 11))
def test_any_switch_that_is_dropped_is_found_or_cannot_matter(cpu: Cpu, which: int) -> None:
    truth = owners(cpu)
    assert not missing_switches(cpu.events), "nothing is missing"
    assert not wrongly_named(cpu.events, truth)
    switches = [event for event in cpu.events if event.name == SWITCH]
    dropped = switches[which % len(switches)]
    torn = without(cpu, which % len(switches))
    assert not wrongly_named(torn.events, truth)
    found = missing_switches(torn.events)
    assert len(found) <= 1
    assert all(one.from_ns <= dropped.time_ns <= one.to_ns for one in found)


@settings(max_examples=60)
@given(cpu=streams(), hidden=st.sampled_from((0, HOG)))
def test_a_kernel_that_hides_every_switch_from_a_thread_makes_nobody_wrong(cpu: Cpu, hidden: int) -> None:
    switches = [event for event in cpu.events if event.name == SWITCH]
    away = [at for at, event in enumerate(switches) if event.values["prev_pid"] == hidden]
    torn = without(cpu, *away)
    assert not wrongly_named(torn.events, owners(cpu))
    found = missing_switches(torn.events)
    assert len(found) <= len(away)
    assert all(any(one.from_ns <= switches[at].time_ns <= one.to_ns for at in away) for one in found)


def test_a_switch_is_missing_where_the_next_one_is_from_another_thread() -> None:
    cpu = begun().timer(100_000).to_victim(108_000).switch(150_000, OTHER, state=1).switch(200_000, HOG)
    assert missing_switches(cpu.events) == []
    assert missing_switches(without(cpu, 2).events) == [(DUE_NS + 108_000, DUE_NS + 200_000)]
    assert missing_switches(without(cpu, 1).events) == [(DUE_NS + 104_000, DUE_NS + 150_000)]
    assert missing_switches(without(cpu, 0, 3).events) == [], "the first event tells who had the CPU; none follows"


def test_what_a_switch_itself_writes_still_names_the_thread_before() -> None:
    cpu = begun().to_victim(108_000)
    early = Cpu(0, HOG, list(cpu.events)).add(108_100, "hrtimer_start", IRQS_OFF, 2)
    assert missing_switches(early.events) == [(DUE_NS + 108_000, DUE_NS + 108_100)], "nothing shows that it was done"
    late = Cpu(0, VICTIM, list(early.events)).add(109_000, "sys_exit")
    assert missing_switches(late.events) == []
    hit = begun().to_victim(108_000)
    hit.pid = HOG
    hit.hard(108_100, "irq_vectors/local_timer_entry")
    assert missing_switches(hit.events) == [(DUE_NS + 108_000, DUE_NS + 108_100)], "interrupts are off in a switch"


def test_a_budget_tells_the_missing_switch_and_all_else() -> None:
    """The thread's waking hit another one, whose switch to it has no event; the return from its call shows it."""
    cpu = begun().timer(300_000).to_victim(308_000).add(309_000, "sys_exit").switch(900_000, HOG, state=1)
    whole = [("A", "irqoff-or-machine", "hog/200", 300_000), ("A", "timer", "", 2_000), ("B", "timer", "", 2_000)]
    assert shown(budget_of(310_000, cpu))[:3] == whole
    found = budget_of(310_000, without(cpu, 1))
    assert shown(found)[:3] == whole
    assert shown(found)[3:] == [("B", "unexplained", MISSING, 5_000), ("C", "own-code", "", 1_000)]
    assert not found.whole
    assert found.parts[3].cause.words() == f"unexplained: {MISSING}"
    assert found.ran_ns == DUE_NS + 309_000


def test_a_thread_that_lost_the_cpu_without_an_event_is_not_said_to_run() -> None:
    cpu = begun().timer(1_000).to_victim(8_000).add(9_000, "sys_exit").switch(20_000, OTHER)
    cpu.add(50_000, "sys_exit").to_victim(90_000).add(95_000, "sys_exit")
    found = budget_of(100_000, without(cpu, 2))
    parts = [(cause, name, length) for _, cause, name, length in shown(found)]
    assert ("unexplained", MISSING, 81_000) in parts, "ready or asleep, until its next switch tells"
    assert not any(name.startswith("other") for _, name, _ in parts)


def test_a_thread_that_never_shows_again_before_its_end_has_a_place_too() -> None:
    """Its first event behind the waking comes after its end."""
    cpu = begun().timer(100_000).to_victim(108_000).switch(900_000, HOG, state=1).add(950_000, "sys_exit")
    record = traced_run([110_000], without(cpu, 1))
    found = explain(record, 100_000)
    assert (found.late, found.outside, len(found.budgets)) == (1, 0, 1)
    (budget,) = found.budgets
    assert shown(budget)[-1] == ("B", "unexplained", MISSING, 6_000)


def test_windows_are_counted_by_what_they_lack() -> None:
    kept = [(Window(0, 10), False), (Window(20, 30), True), (Window(40, 50), False), (Window(60, 70), False)]
    found = count_windows(kept, [(45, 60)], {0: [(8, 22)], 1: [(9, 10), (55, 56)], 3: []})
    assert found == TraceWindows(count=4, whole=1, lost=1, untraced=1, missing=2, missing_on={0: 2, 1: 1})


@pytest.mark.parametrize(("hole", "there"), [((0, 10), False), ((5, 11), True), ((15, 16), True), ((20, 30), True)])
def test_a_hole_meets_a_window_if_a_part_of_it_lies_within(hole: tuple[int, int], there: bool) -> None:
    assert meets(Window(10, 20), [hole]) is there


def turns(*on: bool, took_ns: int = 1_000, recorder: bool = True) -> list[tuple[int, int]]:
    about = "endian little\n" + ("recorder top=4\n" if recorder else "")
    record = traced_run([10_000], begun(), about=about)
    events = tuple(
        Event(at * 10 * MS + 5_000, WHOLE_RUN, f"trace_{'on' if is_on else 'off'}", f"block={at}; took_ns={took_ns}")
        for at, is_on in enumerate(on)
    )
    return untraced_times(replace(record, events=events, facts=(*record.facts, fact("trace_blocks_ns", 10 * MS))))


def test_a_turn_without_tracing_is_a_hole_until_the_next_one_with() -> None:
    assert turns(True, False, False, True) == [(10 * MS + 5_000, 30 * MS + 4_000)]
    assert turns(True, False, True, recorder=False) == [(10 * MS + 4_000, 20 * MS + 5_000)], "events one by one"
    assert turns(True, True) == turns(False) == []


def test_behind_a_hole_nothing_is_known_any_more() -> None:
    events = [TraceEvent(at, 0, "sys_exit", 0, 0, HOG, {}) for at in (1, 5, 20, 25)]
    found = list(with_holes(events, 0, [(3, 10), (30, 40)]))
    assert [(event.time_ns, event.name) for event in found] == [
        (1, "sys_exit"),
        (20, LOST),
        (20, "sys_exit"),
        (25, "sys_exit"),
    ]
    assert found[1].values["from_ns"] == 1
    assert list(with_holes(events, 0, [])) == events
