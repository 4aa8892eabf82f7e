# SPDX-License-Identifier: Apache-2.0
"""The kernel's events during a run for ``trace-cmd report`` and KernelShark: a trace.dat of version 6.

trace-cmd.dat.v6(5) describes the layout. The pages of the buffers are those of the target's kernel, byte for byte.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from struct import Struct

from rtproof.core import files
from rtproof.core.errors import UserError
from rtproof.core.phrases import quantity
from rtproof.exporters import _columns
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.summary import kernel_trace
from rtproof.summary.trace_pages import PageLayout, page_events

BINARY = True
SUFFIX = ".trace.dat"
OPTIONS: dict[str, str] = {}
NEEDS = "a trace (rtproof run --trace)"
MAGIC = b"\x17\x08\x44tracing6\0"
STATISTICS_OPTION, CLOCK_OPTION = 2, 4
FORMAT = re.compile(r"events/([^/]+)/[^/]+/format")
ENTRIES = re.compile(r"(?m)^entries: *\d+")


class Words:
    """Writes numbers in the byte order of the target, and contents with their size in front."""

    def __init__(self, order: str) -> None:
        self._structs = {size: Struct(order + code) for size, code in ((2, "H"), (4, "I"), (8, "Q"))}

    def number(self, value: int, size: int) -> bytes:
        return self._structs[size].pack(value)

    def sized(self, content: bytes, size: int = 8) -> bytes:
        return self.number(len(content), size) + content


def export(analysis: Analysis, path: Path, options: dict[str, str]) -> str:
    """Write the pages of each CPU's buffer behind a header that says how to read them."""
    record = analysis.record
    _columns.require_trace(record)
    layout = kernel_trace.page_layout(record)
    pages = [kernel_trace.cpu_pages(record, cpu, layout) for cpu in kernel_trace.trace_cpus(record)]
    if any(len(content) % layout.page for content in pages):
        raise UserError("the record lost a part of its trace, so there is no trace.dat to be made of it")
    with files.whole_file(path, new=True) as part, part.open("xb") as file:
        file.write(header(record, [len(content) for content in pages], layout))
        file.writelines(pages)
    events = sum(1 for content in pages for _ in page_events(content, layout))
    count = quantity(sum(map(len, pages)) // layout.page, "page")
    return f"{path}: {quantity(events, 'event')} on {count} of {layout.page} bytes from {quantity(len(pages), 'CPU')}"


def header(record: Record, sizes: list[int], layout: PageLayout) -> bytes:
    """The bytes in front of the pages, filled with zeros up to the first page."""
    words = Words(layout.order)
    clock = words.sized(kernel_trace.trace_content(record, "trace_clock"))
    start = MAGIC + bytes([layout.big, layout.commit_size]) + words.number(layout.page, 4)
    start += b"".join(_descriptions(record, words))
    start += words.number(len(sizes), 4) + _options(record, words) + b"flyrecord\0"
    first = -(-(len(start) + 16 * len(sizes) + len(clock)) // layout.page) * layout.page
    for size in sizes:
        start += words.number(first, 8) + words.number(size, 8)
        first += size
    start += clock
    return start + bytes(-len(start) % layout.page)


def _descriptions(record: Record, words: Words) -> Iterator[bytes]:
    """The formats of pages and events, the functions that wrote marks, the kernel's print formats, names of tasks."""
    for name in ("header_page", "header_event"):
        yield name.encode() + b"\0" + words.sized(kernel_trace.trace_content(record, name))
    formats = {name: match[1] for name in kernel_trace.trace_names(record) if (match := FORMAT.fullmatch(name))}
    own = [name for name, system in formats.items() if system == "ftrace"]
    yield words.number(len(own), 4) + b"".join(words.sized(kernel_trace.trace_content(record, name)) for name in own)
    systems: dict[str, list[str]] = {}
    for name, system in sorted(formats.items(), key=lambda item: item[1]):
        systems.setdefault(system, []).append(name)
    systems.pop("ftrace", None)
    yield words.number(len(systems), 4)
    for system, names in systems.items():
        yield system.encode() + b"\0" + words.number(len(names), 4)
        yield from (words.sized(kernel_trace.trace_content(record, name)) for name in names)
    yield words.sized(_functions(record), 4)
    yield words.sized(kernel_trace.trace_content(record, "printk_formats"), 4)
    yield words.sized(kernel_trace.trace_content(record, "saved_cmdlines"))


def _functions(record: Record) -> bytes:
    """Lines as in /proc/kallsyms."""
    addresses = sorted(kernel_trace.print_addresses(record).items())  # trace-cmd names marks by their very addresses
    lines = "".join(f"{at:x} t {name}\n" for at, name in addresses)
    return kernel_trace.trace_content(record, "kallsyms") + lines.encode()


def _options(record: Record, words: Words) -> bytes:
    """The options of the file: statistics of each CPU's buffer, with what it lost, and the clock."""
    found = [_option(words, STATISTICS_OPTION, _statistics(record, cpu)) for cpu in kernel_trace.trace_cpus(record)]
    found.append(_option(words, CLOCK_OPTION, kernel_trace.trace_content(record, "trace_clock")))
    return b"options  \0" + b"".join(found) + words.number(0, 2)


def _option(words: Words, number: int, content: bytes) -> bytes:
    return words.number(number, 2) + words.sized(content + b"\0", 4)


def _statistics(record: Record, cpu: int) -> bytes:
    """The statistics of a CPU's buffer. trace-cmd counts as ``entries`` those left in the kernel, so they are 0."""
    return f"CPU: {cpu}\n{ENTRIES.sub('entries: 0', kernel_trace.trace_text(record, f'cpu{cpu}/stats'))}".encode()
