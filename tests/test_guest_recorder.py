# SPDX-License-Identifier: Apache-2.0
"""The flight recorder in guests: what it keeps of a run, and what it leaves behind."""

import struct
from collections import Counter

import probe_guest
import pytest
from probe_guest import Guest

from rtproof.experiment.stored_runs import open_run
from rtproof.explain.budget import IN_GAP, IN_SECTION
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.record.contents import Moment, Record, Snapshot, SnapshotReason
from rtproof.record.reading import open_record
from rtproof.report.sections.explained import explained_blocks
from rtproof.summary import kernel_trace
from rtproof.summary.trace_text import RawEvent

SAMPLES = 300
MARKED = 20
FIRST = 20
"""The first windows: before, the trace may not have begun."""
SCRIPT = f"""\
T=/sys/kernel/tracing
state() {{ ls $T/instances; cat $T/tracing_on $T/set_event $T/trace_clock; cat $T/synthetic_events $T/*probe_events; }}
state > /out/before 2> /dev/null
run all --trace recorder,stacks --limit 1us --samples {SAMPLES}
run kept --trace recorder,top=20,ordinary=10
run loaded --trace recorder,stacks,top=30,ordinary=0 --load dd --limit 50us
run short --trace recorder,top=20,ordinary=10,record_kib=16 --limit 1us --samples 1000
run turns --trace recorder,top=0,ordinary=200 --trace-blocks 100ms --samples 1000
/agent run -o /out/killed --trace recorder,stacks --duration 1h & agent=$!
until grep -q 1 $T/instances/rtproof-${{agent}}_*-trace/tracing_on 2> /dev/null; do usleep 10000; done
kill -9 $agent
wait
for i in $(seq 200); do [ -z "$(ls $T/instances)" ] && break; usleep 10000; done
cp /agent /other
MARK="--probe foreign --trace explain,whole,keep_mib=16,calls_of=other"
/agent run -o /out/probed $MARK --begin uprobe:/other:0x1000 --end uretprobe:/other:0x1000 --duration 1h & agent=$!
until grep -q 1 $T/instances/rtproof-${{agent}}_*-trace/tracing_on 2> /dev/null; do usleep 10000; done
cat $T/*probe_events > /out/probes
kill -9 $agent
wait
for i in $(seq 200); do [ -z "$(ls $T/instances)$(cat $T/*probe_events)" ] && break; usleep 10000; done
state > /out/killed-after 2> /dev/null
mount -t tmpfs -o ro none $T/instances
run top --trace recorder,top=5 --samples 200
umount $T/instances
/agent run -o /out/marked $MARK --begin 'marker:begin*' --end marker:end --duration 1s & agent=$!
until grep -q . $T/set_event && grep -q 1 $T/tracing_on; do usleep 10000; done
for i in $(seq {MARKED}); do echo begin $i > $T/trace_marker; usleep 1000; echo end > $T/trace_marker; done
wait $agent
echo global > $T/trace_clock
state > /dev/null
echo local > $T/trace_clock
state > /out/after 2> /dev/null
umount $T
mount -t tmpfs none /sys/kernel
run optional --trace recorder,optional
/agent run -o /out/strict --trace recorder --samples 10 2> /out/strict.said; echo "exit $?" >> /out/strict.said
"""


@pytest.fixture(scope="module", params=["debian-6.1-rt", "debian-6.1"])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(request.param, SCRIPT, tmp_path_factory)


def kept_pages(record: Record, cpu: int) -> list[tuple[int, bytes]]:
    """The time stamp of each page and its bytes."""
    layout = kernel_trace.page_layout(record)
    pages = kernel_trace.cpu_pages(record, cpu, layout)
    whole = [bytes(pages[at : at + layout.page]) for at in range(0, len(pages), layout.page)]
    return [(struct.unpack_from(f"{layout.order}Q", page)[0], page) for page in whole]


def stamps(record: Record, cpu: int) -> list[int]:
    return [stamp for stamp, _ in kept_pages(record, cpu)]


def events(record: Record) -> list[RawEvent]:
    return list(kernel_trace.trace_events(record))


def about(record: Record) -> dict[str, str]:
    return kernel_trace.trace_information(record)


def of_reason(record: Record, reason: SnapshotReason) -> list[Snapshot]:
    return [one for one in record.snapshots if one.reason is reason]


def test_every_activation_above_the_limit_has_a_whole_window(guest: Guest) -> None:
    record = guest.record("all")
    kept = sorted(one.index for one in of_reason(record, SnapshotReason.THRESHOLD))
    assert kept == list(range(SAMPLES))[-len(kept) :]
    assert len(kept) >= SAMPLES - FIRST
    assert all(one.whole for one in record.snapshots)
    assert about(record)["windows_threshold"] == str(SAMPLES)
    assert kernel_trace.recorder_windows(record) == kernel_trace.RecorderWindows(
        SAMPLES, len(kept), {"before": SAMPLES - len(kept)}, 3584 * 1024
    )
    assert "threshold_ns=1000" in about(record)["recorder"]


def test_a_window_has_the_activation_from_its_timer_to_its_thread(guest: Guest) -> None:
    """In virtual time the trace and the agent read one clock: the thread wakes and runs within its window."""
    record = guest.record("all")
    tid = int(record.fact("tid", Moment.START, 0) or 0)
    writer = kernel_trace.event_writer(record)
    origin_ns = record.begin.origin_monotonic_ns
    runs = [
        event.time_ns - origin_ns
        for event in events(record)
        if event.format and event.format.name == "sched_switch" and writer.values(event)["next_pid"] == tid
    ]
    assert len(record.snapshots) > 20
    for one in record.snapshots:
        assert any(one.due_ns <= time_ns <= one.due_ns + one.value for time_ns in runs), one


def test_pages_are_kept_once_and_only_where_a_window_names_them(guest: Guest) -> None:
    record = guest.record("kept")
    named = {stamp for one in record.snapshots for pages in one.pages for stamp in pages.stamps}
    kept = kept_pages(record, 0)
    assert {stamp for stamp, _ in kept} == named
    # Two pages have one stamp if the kernel began a new one between two events of the same nanosecond.
    assert len(kept) == len(set(kept))
    assert len(kept) < int(about(record)["pages_read"])


def test_where_the_record_has_no_room_the_largest_stay_and_the_others_are_counted(guest: Guest) -> None:
    """Every activation is above the limit. A part of the room is there at once, and the rest comes with the time."""
    record = guest.record("short")
    windows = kernel_trace.recorder_windows(record)
    assert windows is not None
    kept = of_reason(record, SnapshotReason.THRESHOLD)
    assert (windows.above, windows.kept) == (1000, len(kept))
    assert 0 < windows.kept < 900
    assert windows.kept + sum(windows.lost.values()) == 1000
    assert windows.lost["record"] > 0
    assert all(one.whole for one in kept)
    assert record.top[0].value.max() == max(one.value for one in kept)
    used = int(about(record)["record_used"])
    assert 14 * 1024 <= used < 32 * 1024
    text = explained_blocks(explain(record), record)[0]
    assert f"The flight recorder kept {windows.kept} of 1,000 activations above its threshold. " in str(text)


def test_at_the_top_of_tracefs_it_works_too_and_all_is_put_back(guest: Guest) -> None:
    record = guest.record("top")
    assert about(record)["place"] == "top"
    assert 0 < len(of_reason(record, SnapshotReason.TOP)) <= 5
    assert guest.text("before") == guest.text("after")
    assert guest.text("probes").count(":rtproof_") == 3, "a mark at each end, and where page faults end"


def test_what_a_program_writes_is_measured_where_an_instance_has_no_copy_of_it(guest: Guest) -> None:
    """The shell waits for a child that sleeps for a millisecond of virtual time. It has no real-time policy."""
    record = open_run(guest.folder / "marked").record
    assert about(record)["place"] == "top"
    values = [int(value) for block in record.blocks(0) for value in block.values]
    assert len(values) == MARKED
    assert all(1_000_000 < value < 10_000_000 for value in values)
    firsts = Counter((each.first.cause, each.first.name) for each in explain(record, 1_000_000).budgets)
    assert firsts[Cause.SLEEP, "usleep"] >= MARKED - 1


def test_stacks_name_the_functions_in_which_a_load_keeps_the_thread_waiting(guest: Guest) -> None:
    """The load frees pages of a file. The plain kernel does that with interrupts off, PREEMPT_RT does not."""
    found = explain(guest.record("loaded"), 50_000)
    parts = [part for each in found.budgets for part in each.parts]
    assert {part.cause.cause for part in parts if part.stack} <= {*IN_GAP, *IN_SECTION}
    likely = [part for part in parts if part.cause.cause is Cause.IRQ_OFF_LIKELY]
    assert all(part.cause.function in part.stack for part in likely)
    assert (max((part.length_ns for part in likely), default=0) > 50_000) == (guest.name == "debian-6.1")


def test_without_tracefs_an_optional_recorder_is_told_and_a_strict_one_refused(guest: Guest) -> None:
    record = open_record(guest.folder / "optional")
    assert record.damage == ()
    assert guest.said("optional").startswith("rtproof-agent: no events of the kernel, so causes can only be guessed")
    assert (record.fact("trace_refused") or "").startswith("there is no trace: this kernel has no tracefs")
    assert not kernel_trace.has_trace(record)
    assert record.end is not None
    assert record.end.totals[0].obtained > 400
    assert guest.text("strict.said").endswith("has no tracefs (CONFIG_TRACING)\nexit 2\n")
