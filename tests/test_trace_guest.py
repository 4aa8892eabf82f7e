# SPDX-License-Identifier: Apache-2.0
"""The trace in guests of the virtual lab: another kernel, and virtual time."""

from pathlib import Path

import probe_guest
import pytest
from probe_guest import Guest
from trace_cases import events_of_text, report_of_trace_cmd

from rtproof.exporters import trace_dat
from rtproof.judge.analyse import analyse
from rtproof.summary import kernel_trace
from rtproof.summary.kernel_trace import trace_summary
from rtproof.summary.tracing_effect import tracing_effects

SCRIPT = """\
T=/sys/kernel/tracing
settings() { ls $T/instances; cat $T/tracing_on $T/set_event; mount | grep -c tracefs; }
settings > /out/before
run traced --trace on
run turns --trace-blocks 100ms --samples 4000
umount $T
run unmounted --trace on
ls $T > /out/still-unmounted
mount -t tracefs tracefs $T
settings > /out/after
"""


@pytest.fixture(scope="module")
def rt(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


@pytest.mark.parametrize("name", ["traced", "unmounted"])
def test_trace_cmd_reads_the_trace_of_another_kernel(rt: Guest, name: str, tmp_path: Path) -> None:
    record = rt.record(name)
    trace_dat.export(analyse(record), tmp_path / "trace.dat", {})
    events = events_of_text(kernel_trace.trace_text(record, "text"))
    assert report_of_trace_cmd(tmp_path / "trace.dat") == events
    found = trace_summary(record)
    assert found.entries == len(events)
    assert (found.overrun, found.dropped) == (0, 0)
    assert found.kinds["sys_exit_clock_nanosleep"] >= 500


def test_in_virtual_time_every_activation_wakes_its_thread_at_its_due_time(rt: Guest) -> None:
    record = rt.record("traced")
    lines = kernel_trace.trace_lines(record)
    wakes = [line.time_ns for line in lines if line.event == "sched_waking"]
    origin_ns = record.begin.origin_monotonic_ns
    due_ns = [origin_ns + index * 1_000_000 for index in range(1, 499)]
    assert all(any(0 <= wake - due < 100_000 for wake in wakes) for due in due_ns)


def test_settings_are_put_back_and_a_mount_of_ones_own_is_nobody_elses(rt: Guest) -> None:
    assert rt.text("before") == rt.text("after")
    assert rt.text("still-unmounted") == ""


def test_turns_are_told_block_by_block(rt: Guest) -> None:
    events = [event for event in rt.record("turns").events if event.text.startswith("block=")]
    assert len(events) == 40
    on = [event.kind == "trace_on" for event in events]
    for first in range(0, 40, 4):
        assert on[first : first + 4] in ([True, False, False, True], [False, True, True, False])
    assert len({on[first] for first in range(0, 40, 4)}) == 2
    assert [int(event.text[6:].split(";")[0]) for event in events] == list(range(40))


def test_in_virtual_time_tracing_adds_its_instructions_to_every_activation(rt: Guest) -> None:
    found = tracing_effects(rt.record("turns"))
    assert found is not None
    assert (found.blocks, found.sets, found.refused) == (40, 10, "")
    (field,) = found.fields
    effects = {effect.statistic: effect for effect in field.effects}
    median = effects["median"]
    assert 0 < median.low <= median.difference <= median.high < 100_000
    assert median.high - median.low < median.difference / 2
