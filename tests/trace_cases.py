# SPDX-License-Identifier: Apache-2.0
"""Traces for the tests: a small one made by hand, and what the tests of real ones share."""

import re
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import block, file, record

from rtproof.record.contents import Moment, Record
from rtproof.summary import kernel_trace
from rtproof.summary.trace_pages import PageLayout

HEADER_PAGE = """\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
PRINT_FORMAT = """\
name: print
ID: 5
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:char buf[];\toffset:16;\tsize:0;\tsigned:0;
"""
COMMON = """\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;
"""
LAYOUTS = [PageLayout(order, 4096, 8, size, 8 + size) for order in "<>" for size in (4, 8)]


def head(of: PageLayout, kind: int, delay: int = 1) -> bytes:
    return struct.pack(f"{of.order}I", kind << 27 | delay if of.big else delay << 5 | kind)


def entry(of: PageLayout, content: bytes, delay: int = 1) -> bytes:
    """An event: short ones tell their words in the head, others their bytes behind it."""
    words = len(content) // 4
    if words <= 28:
        return head(of, words, delay) + content
    return head(of, 0, delay) + struct.pack(f"{of.order}I", len(content) + 4) + content


def page(of: PageLayout, *entries: bytes, flags: int = 0, time_ns: int = 1_000, behind: bytes = b"") -> bytes:
    """A page of these entries; behind: what stands behind them."""
    content = b"".join(entries)
    code = "I" if of.commit_size == 4 else "Q"
    start = struct.pack(f"{of.order}Q{code}", time_ns, len(content) | flags)
    content += behind
    return (start + content).ljust(of.page, b"\xff")


def small_page(begin_ns: int, *events: tuple[int, int]) -> str:
    """A page of events, a microsecond apart, each of a number and a thread; as text, a character for each byte."""
    of = LAYOUTS[1]
    entries = (entry(of, struct.pack("<HBBi", number, 1, 2, tid), 1_000) for number, tid in events)
    return page(of, *entries, time_ns=begin_ns).decode("latin-1")


FILES = {
    "about": "endian little\nbuffer_kib 64\nplace instance\nmissing spi_* sys_enter_nanosleep*\n",
    "header_page": HEADER_PAGE,
    "header_event": "# compressed entry header\n",
    "events/ftrace/print/format": "name: print\nID: 5\n",
    "events/sched/sched_waking/format": f"name: sched_waking\nID: 312\nformat:\n{COMMON}",
    "events/irq/irq_handler_entry/format": f"name: irq_handler_entry\nID: 100\nformat:\n{COMMON}",
    "events/sched/sched_switch/format": f"name: sched_switch\nID: 314\nformat:\n{COMMON}",
    "saved_cmdlines": "7601 rtproof-0\n",
    "printk_formats": "",
    "trace_clock": "local global [mono] boot\n",
    "cpu0/stats": "entries: 3\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n",
    "cpu0/raw": small_page(23553_413_147_000, (312, 0), (100, 7601), (314, 7601)),
    "cpu1/stats": "entries: 2\noverrun: 4\ncommit overrun: 0\ndropped events: 1\n",
    "cpu1/raw": small_page(23553_413_153_000, (314, 7602), (312, 0)),
}


def traced(**changes: str) -> Record:
    """A run of three activations with the small trace, in which some files are others."""
    kept = {**FILES, **changes}
    empty = {name: file(f"trace/{name}", "", Moment.END) for name in kept}
    files = tuple(replace(empty[name], content=content.encode("latin-1")) for name, content in kept.items())
    return record([block([1_000, 2_000, 3_000])], files=files)


REPORT_LINE = re.compile(r"^ *.+-\d+ +\[(\d+)\] +(\d+)\.(\d+): (\w+): ")


def trace_cmd(*arguments: str) -> str:
    """What trace-cmd prints; skips without it."""
    if not shutil.which("trace-cmd"):
        pytest.skip("there is no trace-cmd here")
    done = subprocess.run(["trace-cmd", *arguments], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


def report_of_trace_cmd(dat: Path) -> list[tuple[int, int, str]]:
    """CPU, time in microseconds and name of each event that ``trace-cmd report`` finds."""
    found = (REPORT_LINE.match(line) for line in trace_cmd("report", str(dat)).splitlines())
    return sorted((int(m[1]), int(m[2]) * 1_000_000 + int(m[3]), m[4]) for m in found if m)


EVENT_LINE = re.compile(
    r"^ *(?P<task>.+)-(?P<pid>\d{1,9}) +(?:\([ \d-]*\) +)?\[(?P<cpu>\d{1,9})\] +(?:\S+ +)?"
    r"(?P<seconds>\d{1,12})\.(?P<fraction>\d{1,9}): (?P<what>.*)$"
)
"""A line of the kernel's own file ``trace``: task, id, CPU, flags (none before Linux 2.6.39), time and event."""
SYSTEM_CALL = re.compile(r"^(sys_\w+)(\(| -> )")
"""System calls have no name in the kernel's text: ``sys_NAME(...)`` is an entry, ``sys_NAME -> RESULT`` an exit."""
MARKER = "tracing_mark_write"
"""The function that takes what a program writes. Its event is ``print``."""


TextLine = tuple[str, int, int, int, str]
"""One event of the text: task, its number, CPU, time in ns by the trace's clock, as exact as the text, and name."""


def parse_line(line: str) -> TextLine | None:
    """The event in a line of the text; None for a remark, such as how many events were lost."""
    found = EVENT_LINE.match(line)
    if not found:
        return None
    time_ns = int(found["seconds"]) * 1_000_000_000 + int(found["fraction"].ljust(9, "0")[:9])
    call, name = SYSTEM_CALL.match(found["what"]), found["what"].partition(":")[0]
    if call:
        name = call[1].replace("sys_", "sys_enter_" if call[2] == "(" else "sys_exit_", 1)
    return (found["task"], int(found["pid"]), int(found["cpu"]), time_ns, "print" if name == MARKER else name)


def text_lines(record: Record) -> list[TextLine]:
    """The events of a record's trace, as its text tells them."""
    return [line for line in map(parse_line, kernel_trace.text_of_events(record)) if line]


def events_of_text(text: str) -> list[tuple[int, int, str]]:
    """The same of the text."""
    found = (parse_line(line) for line in text.splitlines())
    return sorted((line[2], line[3] // 1_000, line[4]) for line in found if line)
