# SPDX-License-Identifier: Apache-2.0
"""Lines of text made from the pages of a trace, by the formats that the kernel states."""

import struct

from trace_cases import COMMON, HEADER_PAGE, parse_line, traced

from rtproof.summary import kernel_trace
from rtproof.summary.trace_text import EventFormat, EventWriter, Functions, RawEvent, event_format

FIELDS = """\
\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;
\tfield:u64 function;\toffset:16;\tsize:8;\tsigned:0;
\tfield:char comm[8];\toffset:24;\tsize:8;\tsigned:0;
"""
KALLSYMS = (
    "ffffffff81000100 t hrtimer_wakeup\nffffffff81000200 T tracing_mark_write\nffffffffc0000000 t of_module\t[one]\n"
)
CONTENT = struct.pack("<HBBiiIQ8s", 7, 0x0D, 0x21, 42, -3, (5 << 16) | 32, 0xFFFFFFFF81000150, b"task") + b"eth0\0"


def layout(printed: str) -> EventFormat:
    found = event_format("made/made_up", f"name: made_up\nID: 7\nformat:\n{COMMON}\n{FIELDS}\nprint fmt: {printed}\n")
    assert found is not None
    return found


def line(printed: str, content: bytes = CONTENT) -> str:
    record = traced(header_page=HEADER_PAGE)
    writer = EventWriter(kernel_trace.page_layout(record), {42: "sh"}, Functions(KALLSYMS))
    return writer.line(RawEvent(1_999_999_600, 3, layout(printed), memoryview(content)))


def test_a_line_begins_as_the_kernels_own_and_has_the_fields() -> None:
    said = line('"irq=%d name=%s", REC->irq, __get_str(name)')
    assert said == (
        "              sh-42      [003] dNh12     2.000000: made_up: irq=-3 name=eth0 function=hrtimer_wakeup comm=task"
    )
    assert parse_line(said) == ("sh", 42, 3, 2_000_000_000, "made_up")


def test_a_number_has_the_name_that_the_kernel_prints_for_it() -> None:
    printed = '"%d [%s]", REC->irq, __print_symbolic(REC->irq, { 6, "SIX" }, { 5, "FIVE, OF" })'
    assert "irq=FIVE, OF name" in line(printed, CONTENT.replace(struct.pack("<i", -3), struct.pack("<i", 5)))
    assert "irq=-3 name" in line(printed)


def test_an_event_that_is_cut_off_or_unknown_has_a_line_too() -> None:
    assert line("", CONTENT[:9]).endswith(": made_up: ")
    assert line("", CONTENT[:3]).startswith("           <...>--1")
    writer = EventWriter(kernel_trace.page_layout(traced()), {}, Functions(""))
    assert writer.line(RawEvent(5, 0, None, memoryview(b"\x07\0"))).endswith(": unknown: 0700")


def test_functions_are_named_by_the_nearest_address_below() -> None:
    known = Functions(KALLSYMS)
    assert [known.name(at) for at in (0xFFFFFFFF810000FF, 0xFFFFFFFF81000100, 0xFFFFFFFFC0000008)] == [
        *(None, "hrtimer_wakeup", "of_module")
    ]
    assert known.name(0xFFFFFFFFC0010000) is None  # a program of BPF, say, which is in no table
