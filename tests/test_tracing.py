# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import BEGIN
from trace_cases import FILES, traced

from rtproof.judge.analyse import analyse
from rtproof.record.contents import WHOLE_RUN, Event, Record
from rtproof.summary.kernel_trace import lost_trace_events, trace_summary

ORIGIN_NS = 23553_413_000_000


def made(**changes: str) -> Record:
    events = (
        Event(300_000, WHOLE_RUN, "trace_on", "loop=begins; took_ns=30000"),
        Event(900_000, WHOLE_RUN, "trace_off", "loop=ends; took_ns=40000"),
    )
    return replace(traced(**changes), begin=replace(BEGIN, origin_monotonic_ns=ORIGIN_NS), events=events)


def test_numbers_of_a_trace() -> None:
    found = trace_summary(made())
    assert found.clock == "mono"
    assert found.kinds["sched_waking"] == 2
    assert found.missing == ("spi_*", "sys_enter_nanosleep*")
    assert (found.entries, found.overrun, found.dropped) == (5, 4, 1)
    assert (found.on_ns, found.off_ns) == (300_000, 900_000)
    assert (found.oldest_ns, found.newest_ns) == (148_000, 155_000)


def test_it_is_whole_from_the_oldest_event_of_the_cpu_that_forgot() -> None:
    """CPU 1 lost four, and what is left of it begins at 154 us."""
    assert trace_summary(made()).whole_from_ns == 154_000
    assert trace_summary(made(**{"cpu1/stats": FILES["cpu0/stats"]})).whole_from_ns is None


def test_what_would_have_been_enough_is_that_of_the_busiest_cpu() -> None:
    """CPU 1 has two events left of six in 64 KiB."""
    assert trace_summary(made()).enough_kib == 192
    assert trace_summary(made(**{"cpu1/stats": FILES["cpu0/stats"]})).enough_kib is None
    assert trace_summary(made(about="endian little\n")).enough_kib is None
    assert trace_summary(made(**{"cpu0/stats": "entries: 0\noverrun: 9\n"})).enough_kib == 192


def test_times_of_another_clock_are_not_those_of_the_record() -> None:
    found = trace_summary(made(trace_clock="[local] global mono\n"))
    assert found.clock == "local"
    assert (found.oldest_ns, found.newest_ns, found.whole_from_ns) == (None, None, None)
    assert found.kinds["sched_waking"] == 2


def test_a_trace_of_which_nothing_is_left_has_numbers_too() -> None:
    found = trace_summary(replace(made(text="", trace_clock=""), events=()))
    assert (found.kinds, found.oldest_ns, found.on_ns, found.clock) == ({}, None, None, "")


def test_what_is_gone_is_known_without_the_text() -> None:
    assert lost_trace_events(made()) == lost_trace_events(made(text="")) == (4, 1)
    whole = {"cpu1/stats": FILES["cpu0/stats"]}
    assert lost_trace_events(made(**whole)) == (0, 0)
    assert [doubt.code for doubt in analyse(made(**whole)).doubts if doubt.code == "trace-lost"] == []
    (told,) = (doubt for doubt in analyse(made()).doubts if doubt.code == "trace-lost")
    assert "4 events were overwritten by later ones and 1 event was dropped" in told.what
