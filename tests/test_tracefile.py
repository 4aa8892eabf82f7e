# SPDX-License-Identifier: Apache-2.0

import pytest
from analysis_records import block, file, record
from trace_cases import traced

from rtproof.record.contents import Moment
from rtproof.summary import kernel_trace


def test_a_run_without_a_trace_has_none() -> None:
    plain = record([block([1_000])])
    assert not kernel_trace.has_trace(plain)
    assert kernel_trace.trace_lines(plain) == []
    assert kernel_trace.trace_clock(plain) == ""


def test_parts_of_a_file_are_put_together_in_their_order() -> None:
    parts = [file("trace/text", part, Moment.END) for part in ("one", "two", "three")]
    found = record([block([1_000])], files=(parts[0], file("/proc/stat", "x"), *parts[1:]))
    assert kernel_trace.trace_content(found, "text") == b"onetwothree"
    assert kernel_trace.trace_names(found) == ["text"]


def test_what_the_agent_and_the_kernel_say_of_the_trace() -> None:
    found = traced()
    assert kernel_trace.trace_information(found)["missing"] == "spi_* sys_enter_nanosleep*"
    assert kernel_trace.trace_information(found)["buffer_kib"] == "64"
    assert kernel_trace.trace_clock(found) == "mono"
    assert kernel_trace.trace_cpus(found) == [0, 1]
    assert kernel_trace.trace_statistics(found, 1)["dropped events"] == "1"


def test_lines_are_events_with_the_names_that_tracefs_has_for_them() -> None:
    lines = kernel_trace.trace_lines(traced())
    assert [line.event for line in lines] == [
        "sched_waking",
        "sys_exit_clock_nanosleep",
        "sys_enter_clock_nanosleep",
        "sched_switch",
        "sched_waking",
    ]
    assert lines[3] == kernel_trace.TraceLine("a b-c [d]", 7602, 1, 23553_413_154_000, "sched_switch")
    assert next(iter(kernel_trace.event_kinds(lines).items())) == ("sched_waking", 2)


@pytest.mark.parametrize(
    ("line", "event", "time_ns"),
    [
        ("     bash-12  [003]  12.000001: irq_handler_entry: irq=3 name=x: y", "irq_handler_entry", 12_000_001_000),
        ("rtproof-0-26824 [000] ...1. 2.000000: tracing_mark_write: work 1", "print", 2_000_000_000),
        ("     bash-12  (   12) [003] d.h1.  12.5: sched_wakeup: comm=x", "sched_wakeup", 12_500_000_000),
        ("   <...>-12  [000] ..... 1.000000001: sys_nanosleep -> 0x0", "sys_exit_nanosleep", 1_000_000_001),
    ],
)
def test_lines_of_other_kernels_and_clocks(line: str, event: str, time_ns: int) -> None:
    found = kernel_trace.parse_line(line)
    assert found is not None
    assert (found.event, found.time_ns) == (event, time_ns)


@pytest.mark.parametrize("line", ["", "# tracer: nop", "CPU:1 [LOST 4 EVENTS]", "##### CPU 1 buffer started ####"])
def test_remarks_are_no_events(line: str) -> None:
    assert kernel_trace.parse_line(line) is None
