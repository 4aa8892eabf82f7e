# SPDX-License-Identifier: Apache-2.0
"""Lines of text made from the pages of a trace, by the formats that the kernel states."""

import struct

import pytest
from trace_cases import COMMON, HEADER_PAGE, TextLine, parse_line, traced

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


def test_a_line_has_the_form_of_the_kernels_own() -> None:
    said = line('"irq=%d name=%s", REC->irq, __get_str(name)')
    assert said == "              sh-42      [003] dNh12     2.000000: made_up: irq=-3 name=eth0"
    assert parse_line(said) == TextLine("sh", 42, 3, 2_000_000_000, "made_up")


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ('"%ps at %03d %%", (void *)REC->function, REC->irq', "hrtimer_wakeup at -03 %"),
        ('"f=%pS x=%x", REC->function, REC->common_pid', "f=hrtimer_wakeup x=2a"),
        ('"%s|%-6s|", REC->comm, REC->comm', "task|task  |"),
        ('"%s", __print_symbolic(REC->common_type, { 6, "SIX" }, { 7, "SEVEN, OF" })', "SEVEN, OF"),
        ('"%s", __print_symbolic(REC->irq, { 6, "SIX" })', "0x-3"),
        ('"%llu", (unsigned long long)REC->function', str(0xFFFFFFFF81000150)),
    ],
)
def test_what_c_prints_is_printed(printed: str, message: str) -> None:
    assert line(printed).partition(": made_up: ")[2] == message


@pytest.mark.parametrize(
    "printed",
    [
        '"%s", (REC->irq & 3) ? "a" : "b"',
        '"%s", __print_flags(REC->irq, "|", { 1, "S" })',
        '"%d %d", REC->irq',
        '"%d", REC->no_such_field',
        '"%pI4", REC->comm',
        "nonsense",
    ],
)
def test_where_that_is_not_enough_the_line_has_the_fields(printed: str) -> None:
    said = line(printed).partition(": made_up: ")[2]
    assert said == f"irq=-3 name=eth0 function={0xFFFFFFFF81000150} comm=task"


def test_an_event_that_is_cut_off_or_unknown_has_a_line_too() -> None:
    assert line('"irq=%d", REC->irq', CONTENT[:9]).endswith(": made_up: ")
    assert line('"irq=%d", REC->irq', CONTENT[:3]).startswith("           <...>--1")
    writer = EventWriter(kernel_trace.page_layout(traced()), {}, Functions(""))
    assert writer.line(RawEvent(5, 0, None, memoryview(b"\x07\0"))).endswith(": unknown: 0700")


def test_functions_are_named_by_the_nearest_address_below() -> None:
    known = Functions(KALLSYMS)
    assert [known.name(at) for at in (0xFFFFFFFF810000FF, 0xFFFFFFFF81000100, 0xFFFFFFFFC0000008)] == [
        *(None, "hrtimer_wakeup", "of_module")
    ]
    assert known.name(0xFFFFFFFFC0010000) is None  # a program of BPF, say, which is in no table
