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
TEXT = """\
# tracer: nop
#
# entries-in-buffer/entries-written: 5/9   #P:2
          <idle>-0       [000] d.h3. 23553.413148: sched_waking: comm=rtproof-0 pid=7601 prio=19 target_cpu=000
CPU:1 [LOST 4 EVENTS]
       rtproof-0-7601    [000] ..... 23553.413152: sys_clock_nanosleep -> 0x0
       rtproof-0-7601    [000] ..... 23553.413153: sys_clock_nanosleep(which_clock: 1, flags: 1, rqtp: 7f, rmtp: 0)
       a b-c [d]-7602    [001] d..2. 23553.413154: sched_switch: prev_comm=rtproof-0 ==> next_comm=swapper/0
          <idle>-0       [001] d.h3. 23553.413155: sched_waking: comm=rtproof-0 pid=7601 prio=19 target_cpu=000
"""
FILES = {
    "about": "endian little\nbuffer_kib 64\nplace instance\nmissing spi_* sys_enter_nanosleep*\n",
    "header_page": HEADER_PAGE,
    "header_event": "# compressed entry header\n",
    "events/ftrace/print/format": "name: print\nID: 5\n",
    "events/sched/sched_waking/format": "name: sched_waking\nID: 312\n",
    "events/irq/irq_handler_entry/format": "name: irq_handler_entry\nID: 100\n",
    "events/sched/sched_switch/format": "name: sched_switch\nID: 314\n",
    "saved_cmdlines": "7601 rtproof-0\n",
    "printk_formats": "",
    "trace_clock": "local global [mono] boot\n",
    "text": TEXT,
    "cpu0/stats": "entries: 3\noverrun: 0\ncommit overrun: 0\ndropped events: 0\n",
    "cpu0/raw": "a" * 8192,
    "cpu1/stats": "entries: 2\noverrun: 4\ncommit overrun: 0\ndropped events: 1\n",
}


def traced(encoding: str = "utf-8", **changes: str) -> Record:
    """A run of three activations with the small trace, in which some files are others."""
    kept = {**FILES, **changes}
    empty = {name: file(f"trace/{name}", "", Moment.END) for name in kept}
    files = tuple(replace(empty[name], content=content.encode(encoding)) for name, content in kept.items())
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


def events_of_text(text: str) -> list[tuple[int, int, str]]:
    """The same of the text."""
    found = (kernel_trace.parse_line(line) for line in text.splitlines())
    return sorted((line.cpu, line.time_ns // 1_000, line.event) for line in found if line)


# Pages made by hand, as the kernel's ring buffer lays them out; real ones are read in test_agent_trace.py.


LAYOUTS = [PageLayout(order, 4096, 8, size, 8 + size) for order in "<>" for size in (4, 8)]


def head(of: PageLayout, kind: int, delay: int = 1) -> bytes:
    return struct.pack(f"{of.order}I", kind << 27 | delay if of.big else delay << 5 | kind)


def entry(of: PageLayout, content: bytes) -> bytes:
    """An event: short ones tell their words in the head, others their bytes behind it."""
    words = len(content) // 4
    if words <= 28:
        return head(of, words) + content
    return head(of, 0) + struct.pack(f"{of.order}I", len(content) + 4) + content


def page(of: PageLayout, *entries: bytes, flags: int = 0, time_ns: int = 1_000, behind: bytes = b"") -> bytes:
    """A page of these entries; behind: what stands behind them."""
    content = b"".join(entries)
    code = "I" if of.commit_size == 4 else "Q"
    start = struct.pack(f"{of.order}Q{code}", time_ns, len(content) | flags)
    content += behind
    return (start + content).ljust(of.page, b"\xff")
