# SPDX-License-Identifier: Apache-2.0
"""Events of a trace for the tests of budgets: made one by one, as a kernel would record them."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from analysis_records import SERIES, block, fact, record
from trace_cases import HEADER_PAGE, head, page

from rtproof.explain.budget import LateActivation, System, TimeBudget, budget
from rtproof.explain.cpu_contexts import walk_cpus
from rtproof.explain.trace_events import HARDIRQ, IRQS_OFF, LOST, SOFTIRQ, VALUES, TraceEvent, Window
from rtproof.explain.trace_timelines import Meaning, Timelines
from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.summary.trace_pages import PageLayout
from rtproof.summary.trace_text import Value

VICTIM, HOG, OTHER = 100, 200, 300
VICTIM_PRIORITY, HOG_PRIORITY, URGENT = 19, 120, 2
NAMES = {VICTIM: "victim", HOG: "hog", OTHER: "other"}
PAIRED = frozenset(
    {"irq_vectors/local_timer", "irq_vectors/irq_work", "irq_handler", "softirq", "hrtimer_expire", "ipi"}
)
OWN_TIMER, OTHER_TIMER = 0xA, 0xB
ENTRY, RESTORE, HOLDS, CALLS, WAKES = 0x10, 0x20, 0x30, 0x40, 0x50
FUNCTIONS = {
    ENTRY: "asm_sysvec_apic_timer_interrupt",
    RESTORE: "_raw_spin_unlock_irqrestore",
    HOLDS: "holds",
    CALLS: "calls",
    WAKES: "hrtimer_wakeup",
}
DUE_NS = 1_000_000


def symbol(address: int) -> str:
    return FUNCTIONS.get(address, f"function {address:#x}")


MEANING = Meaning(PAIRED, {1: "TIMER", 3: "NET_RX"}, 0xFF, symbol, every_call=False)


PLAIN = System()
LATER_NS = 20_000_000


@dataclass
class Cpu:
    """A CPU on which things happen in the order in which a test says so."""

    number: int = 0
    pid: int = HOG
    events: list[TraceEvent] = field(default_factory=list)

    def add(self, time_ns: int, event: str, /, flags: int = 0, depth: int = 0, **values: Value) -> "Cpu":
        self.events.append(TraceEvent(DUE_NS + time_ns, self.number, event, flags, depth, self.pid, values))
        return self

    def switch(self, time_ns: int, to: int, priority: int = HOG_PRIORITY, state: int = 0) -> "Cpu":
        names = {"prev_comm": NAMES.get(self.pid, "idle"), "next_comm": NAMES.get(to, "idle")}
        before = VICTIM_PRIORITY if self.pid == VICTIM else HOG_PRIORITY
        self.add(
            time_ns, "sched_switch", IRQS_OFF, 1, prev_pid=self.pid, prev_prio=before, prev_state=state, next_pid=to,
            next_prio=priority, **names,
        )  # fmt: skip
        self.pid = to
        return self

    def to_victim(self, time_ns: int, state: int = 0) -> "Cpu":
        return self.switch(time_ns, VICTIM, VICTIM_PRIORITY, state)

    def hard(self, time_ns: int, event: str, /, flags: int = 0, depth: int = 0, **values: Value) -> "Cpu":
        return self.add(time_ns, event, IRQS_OFF | HARDIRQ | flags, depth, **values)

    def timer(self, time_ns: int, depth: int = 0, flags: int = 0, stack: tuple[int, ...] = ()) -> "Cpu":
        """The timer's interrupt wakes the victim after 2 us, half of them in its function, and ends 2 us later.

        stack: the addresses of what it hit, which the kernel records half a microsecond after its begin.
        """
        self.hard(time_ns, "irq_vectors/local_timer_entry", flags, depth)
        if stack:
            self.hard(time_ns + 500, "kernel_stack", flags, depth, caller=(ENTRY, *stack))
        self.hard(time_ns + 1_000, "hrtimer_expire_entry", flags, depth, hrtimer=OWN_TIMER, function=1)
        self.waking(time_ns + 2_000, HARDIRQ | flags, depth + 1)
        self.hard(time_ns + 3_000, "hrtimer_expire_exit", flags, depth, hrtimer=OWN_TIMER)
        return self.hard(time_ns + 4_000, "irq_vectors/local_timer_exit", flags, depth)

    def waking(self, time_ns: int, flags: int = 0, depth: int = 1, target: int | None = None) -> "Cpu":
        where = self.number if target is None else target
        return self.add(
            time_ns, "sched_waking", IRQS_OFF | flags, depth, pid=VICTIM, prio=VICTIM_PRIORITY, target_cpu=where
        )

    def wakes(self, time_ns: int, tid: int, flags: int = 0) -> "Cpu":
        """The thread that runs, or an interrupt, wakes another thread on this CPU."""
        values = {"pid": tid, "prio": HOG_PRIORITY, "target_cpu": self.number}
        return self.add(time_ns, "sched_waking", IRQS_OFF | flags, 1, **values)

    def timer_wakes(self, time_ns: int, tid: int, function: int) -> "Cpu":
        """A timer with this function wakes another thread; its interrupt began 2 us before and ends 1 us behind."""
        self.hard(time_ns - 2_000, "irq_vectors/local_timer_entry")
        self.hard(time_ns - 1_000, "hrtimer_expire_entry", hrtimer=OTHER_TIMER, function=function)
        self.wakes(time_ns, tid, HARDIRQ).hard(time_ns + 500, "hrtimer_expire_exit", hrtimer=OTHER_TIMER)
        return self.hard(time_ns + 1_000, "irq_vectors/local_timer_exit")

    def softirq(self, time_ns: int, vec: int, until_ns: int) -> "Cpu":
        self.add(time_ns, "softirq_entry", SOFTIRQ, vec=vec)
        return self.add(until_ns, "softirq_exit", SOFTIRQ, vec=vec)

    def pages(self, layout: PageLayout) -> bytes:
        return pages_of(self.events, layout)

    def lost(self, time_ns: int) -> "Cpu":
        self.events.append(TraceEvent(DUE_NS + time_ns, self.number, LOST, 0, 0, -1, {"from_ns": 0}))
        return self


def begun(number: int = 0, task: int = HOG) -> Cpu:
    """A CPU on which the victim went to sleep before its due time, and another thread, or idle, has run since."""
    cpu = Cpu(number, VICTIM)
    return cpu.switch(-500_000, task, state=1)


def walked(cpus: Sequence[Cpu], meaning: Meaning = MEANING) -> Timelines:
    """What the CPUs did and what happened to their threads, of which the victim is measured."""
    return walk_cpus(((cpu.number, cpu.events) for cpu in cpus), meaning, [Window(0, 1 << 60)], {VICTIM}, {})


def late(latency_ns: int) -> LateActivation:
    return LateActivation(0, 0, VICTIM, 1, DUE_NS, latency_ns)


def budget_of(
    latency_ns: int, *cpus: Cpu, system: System = PLAIN, meaning: Meaning = MEANING, marked: bool = False
) -> TimeBudget:
    """The budget of an activation, after a look at what must hold for each."""
    whole = [cpu.add(LATER_NS, "hrtimer_start") for cpu in cpus]
    found = budget(replace(late(latency_ns), marked=marked), walked(whole, meaning), system)
    check(found)
    return found


def check(found: TimeBudget) -> None:
    """Every nanosecond is charged once: the parts follow each other from the due time to the end."""
    edges = [found.activation.due_ns, *(part.to_ns for part in found.parts)]
    assert [part.from_ns for part in found.parts] == edges[:-1]
    assert edges[-1] == found.activation.end_ns
    assert all(part.length_ns > 0 for part in found.parts)


def shown(found: TimeBudget) -> list[tuple[str, str, str, int]]:
    """Phase, cause, name and length of each part."""
    return [(part.phase.name, part.cause.cause.value, part.cause.who, part.length_ns) for part in found.parts]


def told(parts: Sequence[tuple[str | int, ...]]) -> str:
    """The words and the length in microseconds of each part, in one line."""
    return "; ".join(" ".join(filter(None, (*map(str, words), f"{int(ns) / 1_000:.12g}"))) for *words, ns in parts)


# The same events as the pages of a kernel, in a record.


HEADER_FIELDS = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n" + "".join(
    f"\tfield:{kind} common_{name};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
    for kind, name, offset, size, signed in (
        ("unsigned char", "flags", 2, 1, 0),
        ("unsigned char", "preempt_count", 3, 1, 0),
        ("int", "pid", 4, 4, 1),
    )
)
SYSTEMS = {
    "sched_switch": "sched",
    "sched_waking": "sched",
    "irq_handler_entry": "irq",
    "irq_handler_exit": "irq",
    "softirq_entry": "irq",
    "softirq_exit": "irq",
    "hrtimer_expire_entry": "timer",
    "hrtimer_expire_exit": "timer",
    "hrtimer_start": "timer",
    "kernel_stack": "ftrace",
    "local_timer_entry": "irq_vectors",
    "local_timer_exit": "irq_vectors",
    "irq_work_entry": "irq_vectors",
    "irq_work_exit": "irq_vectors",
    "sys_exit": "raw_syscalls",
    "user_stack": "ftrace",
    "sched_process_exec": "sched",
}
WIDE = ("hrtimer", "function", "now", "softexpires", "expires", "prev_state")
PRINTED = {
    "sched_switch": '__print_flags(REC->prev_state, "|", { 0x0001, "S" }, { 0x0002, "D" })',
    "softirq_entry": '__print_symbolic(REC->vec, { 1, "TIMER" }, { 3, "NET_RX" })',
}
COMM = 16
ARRAYS = {"char": "[16]", "unsigned long": "[8]"}
LITTLE = PageLayout("<", 4096, 8, 8, 16)


def fields_of(name: str) -> list[tuple[str, str, int, int]]:
    """Kind, name, offset and size of each field of an event."""
    found, offset = [], 8
    if name == "kernel_stack":
        return [("int", "size", 8, 4), ("unsigned long", "caller", 16, 64)]
    if name == "user_stack":
        return [("int", "tgid", 8, 4), ("unsigned long", "caller", 16, 64)]
    if name == "sched_process_exec":
        return [("int", "pid", 8, 4)]
    for key in VALUES.get(name, ()):
        text = key.endswith("comm")
        kind, size = ("char", COMM) if text else ("s64", 8) if key in WIDE else ("int", 4)
        if name == "irq_handler_entry" and key == "name":
            kind, size = "__data_loc char[]", 4
        offset = -(-offset // min(size, 8)) * min(size, 8) if not text else offset
        found.append((kind, key, offset, size))
        offset += size
    return found


def format_text(name: str) -> str:
    """The file ``format`` of an event."""
    fields = "".join(
        f"\tfield:{kind} {key}{ARRAYS.get(kind, '')};\toffset:{offset};\tsize:{size};\tsigned:1;\n"
        for kind, key, offset, size in fields_of(name)
    )
    number = 100 + list(SYSTEMS).index(name)
    return f'name: {name}\nID: {number}\nformat:\n{HEADER_FIELDS}\n{fields}\nprint fmt: "", {PRINTED.get(name, "")}\n'


def content_of(event: TraceEvent, layout: PageLayout) -> bytes:
    """An event as it stands on a page."""
    name = event.name.rpartition("/")[2]
    order: Literal["big", "little"] = "big" if layout.big else "little"
    fields, behind = fields_of(name), b""
    content = struct.pack(
        f"{layout.order}HBBi", 100 + list(SYSTEMS).index(name), event.flags, event.depth, event.pid
    ).ljust(max([8, *(offset + size for *_, offset, size in fields)]), b"\0")
    for kind, key, offset, size in fields:
        value = event.values.get(key, 0)
        if isinstance(value, tuple):
            packed = b"".join(number.to_bytes(layout.commit_size, order) for number in value).ljust(size, b"\0")
            content = content[:offset] + packed
            continue
        if isinstance(value, str) and kind == "char":
            packed = value.encode().ljust(size, b"\0")
        elif isinstance(value, str):
            packed = (len(content) + len(behind) | (len(value) + 1) << 16).to_bytes(4, order)
            behind += value.encode() + b"\0"
        else:
            packed = value.to_bytes(size, order, signed=True)
        content = content[:offset] + packed + content[offset + size :]
    content += behind
    return content + bytes(-len(content) % 4)


Encoder = Callable[[TraceEvent, PageLayout], bytes]


def pages_of(events: Sequence[TraceEvent], layout: PageLayout, each: int = 8, encode: Encoder = content_of) -> bytes:
    """Pages of a few events each. encode: makes the bytes of an event."""
    found = b""
    for at in range(0, len(events), each):
        some = events[at : at + each]
        delays = [0, *(after.time_ns - before.time_ns for before, after in pairwise(some))]
        entries = [
            head(layout, len(content) // 4, delay) + content
            for delay, content in zip(delays, (encode(event, layout) for event in some), strict=True)
        ]
        found += page(layout, *entries, time_ns=some[0].time_ns)
    return found


def traced_run(latencies_ns: Sequence[int], *cpus: Cpu, layout: PageLayout = LITTLE, **changes: str) -> Record:
    """A record of these latencies, due at DUE_NS and each period later, with the events of the CPUs.

    changes: files of the trace that are others; with the content "" they are not there.
    """
    texts = {
        "about": f"endian {'big' if layout.big else 'little'}\nbuffer_kib 64\n",
        "header_page": HEADER_PAGE.replace("size:8;\tsigned:1", f"size:{layout.commit_size};\tsigned:1")
        .replace("offset:16", f"offset:{layout.data}")
        .replace("4080", str(layout.page - layout.data)),
        "trace_clock": "local [mono]\n",
        "saved_cmdlines": f"{HOG} hog\n",
        **{f"events/{system}/{name}/format": format_text(name) for name, system in SYSTEMS.items()},
        **{f"cpu{cpu.number}/stats": "entries: 1\noverrun: 0\n" for cpu in cpus},
        **changes,
    }
    raw = {f"cpu{cpu.number}/raw": cpu.pages(layout) for cpu in cpus}
    contents = {name: text.encode() for name, text in texts.items() if text} | raw
    files = tuple(SystemFile(0, Moment.END, f"trace/{name}", 0, False, found) for name, found in contents.items())
    series = replace(SERIES, first_due_ns=DUE_NS, cpu=0)
    facts = (fact("tid", VICTIM, Moment.START, 0),)
    return record([block(latencies_ns, series=series)], (series,), files=files, facts=facts)
