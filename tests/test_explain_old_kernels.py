# SPDX-License-Identifier: Apache-2.0
"""Traces as kernels before Linux 3.3 write them, which no guest here boots: their formats, states, clocks and pages."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from explain_cases import DUE_NS, HOG, SYSTEMS, VICTIM, Cpu, pages_of, traced_run

from rtproof.explain.budget import TimeBudget
from rtproof.explain.explanation import Explanation, explain
from rtproof.explain.trace_events import TraceEvent
from rtproof.summary.trace_pages import PageLayout
from rtproof.summary.trace_text import EventFormat, Value, event_format

PAGES = {"32 bits, big": PageLayout(">", 4096, 8, 4, 12), "64 bits, little": PageLayout("<", 4096, 8, 8, 16)}
COMMON = """\
name: {name}
ID: {number}
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;
\tfield:int common_pid;\toffset:4;\tsize:4;
\tfield:int common_lock_depth;\toffset:8;\tsize:4;

"""
FIELDS = {
    "sched/sched_switch": """\
\tfield:char prev_comm[TASK_COMM_LEN];\toffset:12;\tsize:16;
\tfield:pid_t prev_pid;\toffset:28;\tsize:4;
\tfield:int prev_prio;\toffset:32;\tsize:4;
\tfield:long prev_state;\toffset:40;\tsize:{long};
\tfield:char next_comm[TASK_COMM_LEN];\toffset:48;\tsize:16;
\tfield:pid_t next_pid;\toffset:64;\tsize:4;
\tfield:int next_prio;\toffset:68;\tsize:4;

print fmt: "prev_state=%s", {states}
""",
    "sched/sched_wakeup": """\
\tfield:char comm[TASK_COMM_LEN];\toffset:12;\tsize:16;
\tfield:pid_t pid;\toffset:28;\tsize:4;
\tfield:int prio;\toffset:32;\tsize:4;
\tfield:int success;\toffset:36;\tsize:4;
\tfield:int target_cpu;\toffset:40;\tsize:4;
""",
    "irq/irq_handler_entry": """\
\tfield:int irq;\toffset:12;\tsize:4;
\tfield:__data_loc char[] name;\toffset:16;\tsize:4;
""",
    "irq/irq_handler_exit": "\tfield:int irq;\toffset:12;\tsize:4;\n\tfield:int ret;\toffset:16;\tsize:4;\n",
    "timer/hrtimer_expire_entry": """\
\tfield:void * hrtimer;\toffset:16;\tsize:{long};
\tfield:s64 now;\toffset:24;\tsize:8;
""",
    "timer/hrtimer_expire_exit": "\tfield:void * hrtimer;\toffset:16;\tsize:{long};\n",
}
NAMES_OF_STATES = '{ 1, "S"} , { 2, "D" }, { 4, "T" }, { 8, "t" }, { 16, "Z" }, { 32, "X" }'
STATES = {
    "2.6.31": f'__print_flags(REC->prev_state, "|", {NAMES_OF_STATES})',
    "3.2": f'REC->prev_state & (1024-1) ? __print_flags(REC->prev_state & (1024-1), "|", {NAMES_OF_STATES}, '
    '{ 64, "x" }, { 128, "W" }) : "R", REC->prev_state & 1024 ? "+" : ""',
}
SLEEPS, PREEMPTED = 1, {"2.6.31": 0, "3.2": 1024}
OFF, NOT_SUPPORTED = 0x01, 0x02
AHEAD_NS = 7_000_000_000_000


def texts_of(layout: PageLayout, states: str) -> dict[str, str]:
    """The formats of the events."""
    long = "4" if layout.commit_size == 4 else "8"
    return {
        path: COMMON.format(name=path.partition("/")[2], number=number)
        + fields.replace("{long}", long).replace("{states}", STATES[states])
        for number, (path, fields) in enumerate(FIELDS.items(), 40)
    }


@dataclass
class OldCpu(Cpu):
    """tells: whether the flags say that interrupts are off."""

    states: str = "2.6.31"
    tells: bool = True

    def handler(self, at_ns: int) -> None:
        """The handler of the timer wakes the victim and 3 us later is done."""
        self.hard(at_ns, "irq_handler_entry", irq=30, name="gp_timer")
        self.hard(at_ns + 1_000, "hrtimer_expire_entry", hrtimer=0x77, now=DUE_NS + at_ns + 400)
        self.hard(at_ns + 2_000, "sched_wakeup", comm="rtproof-0", pid=VICTIM, prio=19, success=1)
        self.hard(at_ns + 3_000, "hrtimer_expire_exit", hrtimer=0x77)
        self.hard(at_ns + 4_000, "irq_handler_exit", irq=30, ret=1)

    def pages(self, layout: PageLayout) -> bytes:
        texts = texts_of(layout, self.states)
        formats = {path.partition("/")[2]: event_format(path, text) for path, text in texts.items()}

        def encode(event: TraceEvent, layout: PageLayout) -> bytes:
            of = formats[event.name]
            assert of is not None
            off = event.flags if self.tells else event.flags & ~OFF | NOT_SUPPORTED
            common = {"common_type": of.id, "common_flags": off, "common_pid": event.pid, "common_lock_depth": -1}
            return encoded(of, {**common, **event.values}, layout.big)

        moved = [event._replace(time_ns=event.time_ns + AHEAD_NS) for event in self.events]
        return pages_of(moved, layout, encode=encode)

    def explained(self, latency_ns: int, layout: PageLayout) -> Explanation:
        files = {
            **{f"events/{system}/{name}/format": "" for name, system in SYSTEMS.items()},
            **{f"events/{path}/format": text for path, text in texts_of(layout, self.states).items()},
            "header_page": f"\tfield: u64 timestamp;\toffset:0;\tsize:8;\n\tfield: local_t commit;\toffset:8;\t"
            f"size:{layout.commit_size};\n\tfield: char data;\toffset:{layout.data};\tsize:{4096 - layout.data};\n",
            "trace_clock": "[local] global\n",
        }
        return explain(traced_run([latency_ns], self, layout=layout, **files), 1_000)


def encoded(of: EventFormat, values: Mapping[str, Value], big: bool) -> bytes:
    """An event as it stands on a page."""
    content = bytearray(max(field.offset + field.size for field in of.fields))
    for field in of.fields:
        value = values.get(field.name, 0)
        assert not isinstance(value, tuple)
        if field.kind == "place":
            text = str(value).encode() + b"\0"
            value = len(content) | len(text) << 16
            content += text
        packed = (
            value.encode().ljust(field.size, b"\0")
            if isinstance(value, str)
            else (value % (1 << 8 * field.size)).to_bytes(field.size, "big" if big else "little")
        )
        content[field.offset : field.offset + field.size] = packed
    return bytes(content) + bytes(-len(content) % 4)


def late_cpu(states: str, *, tells: bool = True) -> OldCpu:
    cpu = OldCpu(0, VICTIM, states=states, tells=tells)
    cpu.switch(-500_000, HOG, state=SLEEPS)
    return cpu


def only(found: Explanation) -> TimeBudget:
    (one,) = found.budgets
    return one


@pytest.mark.parametrize("states", STATES)
@pytest.mark.parametrize("layout", PAGES.values(), ids=PAGES)
def test_the_hog_of_an_old_kernel_is_named_and_the_clock_is_brought_to_the_records(
    layout: PageLayout, states: str
) -> None:
    """Without sched_waking, without a count of preemption, without the clock mono, and without "signed:"."""
    cpu = late_cpu(states)
    cpu.handler(1_000)
    cpu.to_victim(301_000, PREEMPTED[states]).switch(350_000, HOG, state=SLEEPS)
    found = cpu.explained(303_000, layout)
    one = only(found)
    assert one.first.words() == "preemption off or no preemption point while hog/200 ran"
    assert one.by_cause[one.first] == pytest.approx(296_000, abs=2_000)
    assert one.whole
    assert not found.counts_preemption
    assert found.outside == 0
    assert found.skipped == {}


@pytest.mark.parametrize("states", STATES)
def test_a_thread_that_was_preempted_still_wants_to_run(states: str) -> None:
    """It is not blocked: no waking comes, and the one that took the CPU is less urgent."""
    cpu, preempted = late_cpu(states), PREEMPTED[states]
    cpu.handler(1_000)
    cpu.to_victim(8_000, preempted).switch(80_000, HOG, state=preempted)
    cpu.to_victim(280_000, preempted).switch(350_000, HOG, state=SLEEPS)
    one = only(cpu.explained(290_000, PAGES["64 bits, little"]))
    assert one.first.words() == "throttled by sched_rt_runtime_us, while hog ran"
    assert one.by_cause[one.first] == 200_000


@pytest.mark.parametrize("layout", PAGES.values(), ids=PAGES)
def test_flags_that_do_not_know_whether_interrupts_are_off_are_not_believed(layout: PageLayout) -> None:
    """The hog's own event in the gap would otherwise say that interrupts were on and the timer late."""
    cpu = late_cpu("2.6.31", tells=False)
    cpu.add(100_000, "sched_wakeup", comm="other", pid=300, prio=120, success=1)
    cpu.handler(401_000)
    cpu.to_victim(410_000).switch(450_000, HOG, state=SLEEPS)
    one = only(cpu.explained(412_000, layout))
    assert one.first.words() == "interrupts off while hog/200 ran, or the host or an SMI stopped the CPU"
