# SPDX-License-Identifier: Apache-2.0
"""Files of trace-cmd for the tests: a thread that sleeps, as the exporter writes it and as version 7 has it."""

import zlib
from collections.abc import Sequence
from itertools import groupby

from explain_cases import HOG, LITTLE, VICTIM, Cpu, begun, traced_run

from rtproof.exporters import trace_dat
from rtproof.record.contents import Record
from rtproof.summary import kernel_trace
from rtproof.summary.trace_pages import PageLayout

PERIOD_NS = 1_000_000
WOKEN_NS, RAN_NS, RETURNED_NS, SLEPT_NS = 7_000, 12_000, 14_000, 402_000
TIMER, FUNCTION = 0xABC0, 0x5000
BIG = PageLayout(">", 4096, 8, 4, 12)
KALLSYMS = "5000 t hrtimer_wakeup\n6000 t timerfd_tmrproc\n"


def sleep(cpu: Cpu, due_ns: int, *, function: int = FUNCTION, late_ns: int = 0, on: bool = True) -> None:
    """The thread starts a timer and sleeps; the timer wakes it, it runs, returns, and works until it sleeps again."""
    at = due_ns + late_ns
    start = due_ns - 600_000
    if on:
        cpu.pid = VICTIM
        cpu.add(start, "hrtimer_start", hrtimer=TIMER, softexpires=1_000_000 + due_ns, expires=1_000_000 + due_ns + 50)
        cpu.switch(start + 2_000, HOG, state=1)
    cpu.hard(at + 5_000, "irq_vectors/local_timer_entry")
    now = 1_000_000 + at + 5_500
    cpu.hard(at + 6_000, "hrtimer_expire_entry", hrtimer=TIMER, function=function, now=now)
    cpu.waking(at + WOKEN_NS, 8)
    cpu.events[-1] = cpu.events[-1]._replace(values={**cpu.events[-1].values, "comm": "victim"})
    cpu.hard(at + 8_000, "hrtimer_expire_exit", hrtimer=TIMER)
    cpu.hard(at + 9_000, "irq_vectors/local_timer_exit")
    cpu.to_victim(at + RAN_NS)
    cpu.add(at + RETURNED_NS, "sys_exit")


def sleeping(lates_ns: Sequence[int]) -> Cpu:
    """A CPU on which the thread sleeps once for each of these latenesses, one period apart."""
    cpu = begun()
    for number, late_ns in enumerate(lates_ns):
        sleep(cpu, (number + 1) * PERIOD_NS, late_ns=late_ns)
    cpu.switch((len(lates_ns) + 1) * PERIOD_NS - 598_000, HOG, state=1)
    return cpu


def traced(*cpus: Cpu, layout: PageLayout = LITTLE, **changes: str) -> Record:
    return traced_run([1_000], *cpus, layout=layout, kallsyms=KALLSYMS, **changes)


def version_6(record: Record) -> bytes:
    """As the exporter writes it."""
    layout = kernel_trace.page_layout(record)
    pages = [kernel_trace.cpu_pages(record, cpu, layout) for cpu in kernel_trace.trace_cpus(record)]
    return trace_dat.header(record, [len(each) for each in pages], layout) + b"".join(pages)


def version_7(record: Record, compression: str = "none", *, instances: int = 1, copies: int = 0) -> bytes:
    """As trace-cmd.dat.v7(5) says: sections in any order, and the options that tell where they begin.

    copies: so many more CPUs have the place of the last one, as no sound file says.
    """
    layout = kernel_trace.page_layout(record)
    words = trace_dat.Words(layout.order)
    packed = compression != "none"
    whole = trace_dat.MAGIC.replace(b"6", b"7") + bytes([layout.big, layout.commit_size]) + words.number(4096, 4)
    whole += compression.encode() + b"\x001.0\0"
    place, whole = len(whole), whole + bytes(8)
    options = b""
    for number, content in _sections(record, words):
        options += words.number(number, 2) + words.number(8, 4) + words.number(len(whole), 8)
        body = _packed(words, content) if packed else content
        whole += words.number(number, 2) + words.number(packed, 2) + bytes(4) + words.number(len(body), 8) + body
    for cpu in kernel_trace.trace_cpus(record):
        text = f"CPU: {cpu}\n{kernel_trace.trace_text(record, f'cpu{cpu}/stats')}\0".encode()
        options += words.number(2, 2) + words.sized(text, 4)
    for number in range(instances):
        at = len(whole)
        whole += words.number(3, 2) + words.number(packed, 2) + bytes(4) + bytes(8)
        told = words.number(at, 8) + (b"" if not number else b"other") + b"\0mono\0" + words.number(4096, 4)
        cpus = kernel_trace.trace_cpus(record)
        told += words.number(len(cpus) + copies, 4)
        for cpu in cpus:
            pages = kernel_trace.cpu_pages(record, cpu, layout)[: 4096 if number else None]
            body = words.number(1, 4) + _packed(words, pages) if packed else pages
            there = words.number(len(whole), 8) + words.number(len(body), 8)
            told += words.number(cpu, 4) + there
            whole += body
        told += b"".join(words.number(cpu + 1 + more, 4) + there for more in range(copies))
        options += words.number(3, 2) + words.sized(told, 4)
    options += words.number(5, 2) + words.sized(b"Linux host 6.1.0 armv7l\0", 4)
    options += words.number(0, 2) + words.number(8, 4) + bytes(8)
    whole = whole[:place] + words.number(len(whole), 8) + whole[place + 8 :]
    return whole + words.number(0, 2) + bytes(6) + words.number(len(options), 8) + options


def _packed(words: trace_dat.Words, content: bytes) -> bytes:
    packed = zlib.compress(content)
    return words.number(len(packed), 4) + words.number(len(content), 4) + packed


def _sections(record: Record, words: trace_dat.Words) -> list[tuple[int, bytes]]:
    def content(name: str) -> bytes:
        return kernel_trace.trace_content(record, name)

    names = [name for name in kernel_trace.trace_names(record) if name.endswith("/format")]
    systems = [(system, list(of)) for system, of in groupby(sorted(names), key=lambda name: name.split("/")[1])]
    formats = words.number(len(systems), 4)
    for system, of in systems:
        formats += system.encode() + b"\0" + words.number(len(of), 4)
        formats += b"".join(words.sized(content(name)) for name in of)
    header = b"header_page\0" + words.sized(content("header_page")) + b"header_event\0" + words.sized(b"")
    return [
        (16, header),
        (17, words.number(0, 4)),
        (18, formats),
        (19, words.sized(content("kallsyms"), 4)),
        (20, words.sized(b"", 4)),
        (21, words.sized(content("saved_cmdlines"))),
    ]
