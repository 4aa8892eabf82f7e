# SPDX-License-Identifier: Apache-2.0
"""Traces as kernels before Linux 3.3 write them, which no guest here boots: their formats, states, clocks and pages."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from analysis_records import SERIES, block, fact, record
from trace_cases import head, page

from rtproof.explain.budget import TimeBudget
from rtproof.explain.explanation import Explanation, explain
from rtproof.record.contents import Moment, SystemFile
from rtproof.summary.trace_pages import PageLayout
from rtproof.summary.trace_text import EventFormat, event_format

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
VICTIM, HOG = 100, 200
OFF, NOT_SUPPORTED, IN_INTERRUPT = 0x01, 0x02, 0x08
AHEAD_NS = 7_000_000_000_000
DUE_NS, MS = 1_000_000, 1_000_000


class OldTrace:
    """The events of one CPU. ``tells``: whether the flags say that interrupts are off."""

    def __init__(self, layout: PageLayout, states: str, *, tells: bool) -> None:
        self.layout, self.tells = layout, tells
        long = 4 if layout.commit_size == 4 else 8
        self.texts = {
            path: COMMON.format(name=path.partition("/")[2], number=number)
            + fields.replace("{long}", str(long)).replace("{states}", STATES[states])
            for number, (path, fields) in enumerate(FIELDS.items(), 40)
        }
        self.formats = {path.partition("/")[2]: known(path, text) for path, text in self.texts.items()}
        self.events: list[tuple[int, bytes]] = []

    def add(self, at_ns: int, name: str, pid: int, flags: int = 0, /, **values: int | str) -> None:
        off = flags if self.tells else flags & ~OFF | NOT_SUPPORTED
        common = {"common_type": self.formats[name].id, "common_flags": off, "common_pid": pid, "common_lock_depth": -1}
        self.events.append((at_ns, encoded(self.formats[name], {**common, **values}, self.layout.big)))

    def switch(self, at_ns: int, before: int, after: int, state: int) -> None:
        names, urgency = {VICTIM: "rtproof-0", HOG: "hog"}, {VICTIM: 19, HOG: 120}
        self.add(
            at_ns, "sched_switch", before, OFF, prev_comm=names[before], prev_pid=before, prev_prio=urgency[before],
            prev_state=state, next_comm=names[after], next_pid=after, next_prio=urgency[after],
        )  # fmt: skip

    def timer(self, at_ns: int, now_ns: int) -> None:
        """The handler of the timer wakes the victim and 3 us later is done."""
        inside = OFF | IN_INTERRUPT
        self.add(at_ns, "irq_handler_entry", HOG, inside, irq=30, name="gp_timer")
        self.add(at_ns + 1_000, "hrtimer_expire_entry", HOG, inside, hrtimer=0x77, now=now_ns)
        self.add(at_ns + 2_000, "sched_wakeup", HOG, inside, comm="rtproof-0", pid=VICTIM, prio=19, success=1)
        self.add(at_ns + 3_000, "hrtimer_expire_exit", HOG, inside, hrtimer=0x77)
        self.add(at_ns + 4_000, "irq_handler_exit", HOG, inside, irq=30, ret=1)

    def explained(self, *latencies_ns: int) -> Explanation:
        layout = self.layout
        texts = {
            "about": f"endian {'big' if layout.big else 'little'}\nbuffer_kib 64\n",
            "header_page": f"\tfield: u64 timestamp;\toffset:0;\tsize:8;\n\tfield: local_t commit;\toffset:8;\t"
            f"size:{layout.commit_size};\n\tfield: char data;\toffset:{layout.data};\tsize:{4096 - layout.data};\n",
            "trace_clock": "[local] global\n",
            "cpu0/stats": "entries: 1\noverrun: 0\n",
            **{f"events/{path}/format": text for path, text in self.texts.items()},
        }
        delays = [0, *(after - before for (before, _), (after, _) in pairwise(self.events))]
        entries = [
            head(layout, len(content) // 4, delay) + content
            for delay, (_, content) in zip(delays, self.events, strict=True)
        ]
        raw = page(layout, *entries, time_ns=DUE_NS + AHEAD_NS + self.events[0][0])
        contents = {name: text.encode() for name, text in texts.items()} | {"cpu0/raw": raw}
        files = tuple(SystemFile(0, Moment.END, f"trace/{name}", 0, False, found) for name, found in contents.items())
        series = replace(SERIES, first_due_ns=DUE_NS, cpu=0)
        facts = (fact("tid", VICTIM, Moment.START, 0),)
        measured = record([block(latencies_ns, series=series)], (series,), files=files, facts=facts)
        return explain(measured, 1_000)


def known(path: str, text: str) -> EventFormat:
    found = event_format(path, text)
    assert found is not None
    return found


def encoded(of: EventFormat, values: Mapping[str, int | str], big: bool) -> bytes:
    """An event as it stands on a page."""
    content = bytearray(max(field.offset + field.size for field in of.fields))
    for field in of.fields:
        value = values.get(field.name, 0)
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


def late_behind_the_hog(layout: PageLayout, states: str, *, tells: bool = True) -> Explanation:
    """The victim sleeps, is woken when it is due, and gets the CPU 300 us later; then the hog preempts nobody."""
    trace = OldTrace(layout, states, tells=tells)
    trace.switch(-500_000, VICTIM, HOG, SLEEPS)
    trace.timer(1_000, DUE_NS + 1_400)
    trace.switch(301_000, HOG, VICTIM, PREEMPTED[states])
    trace.switch(350_000, VICTIM, HOG, SLEEPS)
    return trace.explained(303_000)


def only(found: Explanation) -> TimeBudget:
    (one,) = found.budgets
    return one


@pytest.mark.parametrize("states", STATES)
@pytest.mark.parametrize("layout", PAGES.values(), ids=PAGES)
def test_the_hog_of_an_old_kernel_is_named_and_the_clock_is_brought_to_the_records(
    layout: PageLayout, states: str
) -> None:
    """Without sched_waking, without a count of preemption, without the clock mono, and without "signed:"."""
    found = late_behind_the_hog(layout, states)
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
    trace = OldTrace(PAGES["64 bits, little"], states, tells=True)
    trace.switch(-500_000, VICTIM, HOG, SLEEPS)
    trace.timer(1_000, DUE_NS + 1_400)
    trace.switch(8_000, HOG, VICTIM, PREEMPTED[states])
    trace.switch(80_000, VICTIM, HOG, PREEMPTED[states])
    trace.switch(280_000, HOG, VICTIM, PREEMPTED[states])
    trace.switch(350_000, VICTIM, HOG, SLEEPS)
    one = only(trace.explained(290_000))
    assert one.first.words() == "throttled by sched_rt_runtime_us, while hog ran"
    assert one.by_cause[one.first] == 200_000


@pytest.mark.parametrize("layout", PAGES.values(), ids=PAGES)
def test_flags_that_do_not_know_whether_interrupts_are_off_are_not_believed(layout: PageLayout) -> None:
    """The hog's own event in the gap would otherwise say that interrupts were on and the timer late."""
    trace = OldTrace(layout, "2.6.31", tells=False)
    trace.switch(-500_000, VICTIM, HOG, SLEEPS)
    trace.add(100_000, "sched_wakeup", HOG, comm="other", pid=300, prio=120, success=1)
    trace.timer(401_000, DUE_NS + 401_400)
    trace.switch(410_000, HOG, VICTIM, 0)
    trace.switch(450_000, VICTIM, HOG, SLEEPS)
    one = only(trace.explained(412_000))
    assert one.first.words() == "interrupts off while hog/200 ran, or the host or an SMI stopped the CPU"
