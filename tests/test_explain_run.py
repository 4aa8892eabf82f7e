# SPDX-License-Identifier: Apache-2.0
"""A traced run explained: from the pages of the trace to the causes, the command and its exit codes."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from analysis_records import fact
from explain_cases import DUE_NS, HOG, Cpu, begun, check, format_text, traced_run
from msgspec import structs
from trace_cases import LAYOUTS

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment import explained_runs
from rtproof.explain.causes import Blind, Cause, NamedCause
from rtproof.explain.explanation import explain
from rtproof.explain.trace_events import BH_OFF, EventDecoder, TraceEvent
from rtproof.explain.trace_source import clock_anchors, clock_error_ns, monotonic_ns
from rtproof.exporters import perfetto
from rtproof.judge.analyse import analyse
from rtproof.record.contents import (
    WHOLE_RUN,
    Event,
    Moment,
    Record,
    Snapshot,
    SnapshotPages,
    SnapshotReason,
    SystemFile,
)
from rtproof.summary.kernel_trace import event_formats, page_layout, recorder_windows, trace_content
from rtproof.summary.trace_pages import PageLayout

MS = 1_000_000


def several(*, hog_ns: int = 300_000, activations: int = 40, every: int = 10) -> tuple[list[int], Cpu]:
    """Activations of 20 us; in every tenth the hog keeps the CPU with preemption off."""
    cpu, latencies = begun(), []
    for index in range(activations):
        at_ns, held_ns = index * MS, hog_ns if index % every == every - 1 else 2_000
        cpu.timer(at_ns + 8_000, depth=1 if held_ns == hog_ns else 0)
        cpu.to_victim(at_ns + 14_000 + held_ns).switch(at_ns + 30_000 + held_ns, HOG, state=1)
        latencies.append(18_000 + held_ns)
    return latencies, cpu


@pytest.mark.parametrize("layout", LAYOUTS)
def test_events_of_every_kind_of_kernel_come_out_as_they_went_in(layout: PageLayout) -> None:
    _, cpu = several(activations=3)
    cpu.hard(4 * MS, "irq_handler_entry", irq=9, name="eth0").hard(4 * MS + 9, "irq_handler_exit", irq=9)
    cpu.softirq(4 * MS + 20, 3, 4 * MS + 90)
    record = traced_run([1_000], cpu, layout=layout)
    decoder = EventDecoder(event_formats(record).values(), page_layout(record))
    found = list(decoder.events(0, trace_content(record, "cpu0/raw")))
    assert [event._replace(values={}) for event in found] == [event._replace(values={}) for event in cpu.events]
    for event, made in zip(found, cpu.events, strict=True):
        assert {key: value for key, value in event.values.items() if key in made.values} == made.values
    assert decoder.skipped == {}


def test_the_causes_of_all_late_activations_stand_beside_the_ordinary_ones() -> None:
    latencies, cpu = several()
    found = explain(traced_run(latencies, cpu), 100_000)
    assert (found.late, len(found.budgets), found.outside, found.left_out) == (4, 4, 0, 0)
    for each in (*found.budgets, *found.ordinary):
        check(each)
    first = found.rows[0]
    assert first.cause == NamedCause(Cause.PREEMPT_OFF, "hog", HOG)
    assert (first.late, first.first_in, first.threads) == (4, 4, 1)
    assert first.median_ns == first.largest_ns == 302_000
    assert first.typical_ns == 0
    assert sum(row.share for row in found.rows) == pytest.approx(1)
    timer = next(row for row in found.rows if row.cause.cause is Cause.TIMER)
    assert timer.typical_ns == timer.median_ns == 4_000
    assert len(found.ordinary) == 32


@pytest.mark.parametrize(
    ("version", "chosen", "cause"),
    [
        ("#1 SMP PREEMPT_RT Debian", "full (lazy) laziest", Cause.SCHEDULER),
        ("#1 SMP PREEMPT_RT Debian", "", Cause.SCHEDULER),
        ("#1 SMP PREEMPT_DYNAMIC Debian", "none voluntary (full)", Cause.SOFTIRQS_OFF),
    ],
)
def test_softirqs_that_are_off_keep_nobody_waiting_on_any_real_time_kernel(
    version: str, chosen: str, cause: Cause
) -> None:
    counted = begun().hard(-9_000, "irq_vectors/irq_work_entry", depth=1).hard(-8_000, "irq_vectors/irq_work_exit")
    cpu = counted.timer(8_000, flags=BH_OFF).to_victim(114_000).switch(130_000, HOG, state=1)
    made = traced_run([118_000], cpu)
    told = (
        (SystemFile(0, Moment.START, "/sys/kernel/debug/sched/preempt", 0, False, chosen.encode()),) if chosen else ()
    )
    record = replace(made, begin=replace(made.begin, kernel_version=version), files=(*made.files, *told))
    (one,) = explain(record, 100_000).budgets
    assert one.first.cause is cause


def test_idle_alone_does_not_show_that_a_kernel_counts_how_often_preemption_is_off() -> None:
    """The first thread of a kernel begins with a depth of 1, and without the count it stays so."""
    latencies, cpu = several(activations=4, every=2)
    cpu.switch(5 * MS, 0).hard(5 * MS + 9, "irq_vectors/irq_work_entry", depth=1)
    assert explain(traced_run(latencies, cpu), 100_000).counts_preemption
    cpu.events = [event._replace(depth=event.depth if event.pid == 0 else 0) for event in cpu.events]
    found = explain(traced_run(latencies, cpu), 100_000)
    assert not found.counts_preemption
    assert {each.first.cause for each in found.budgets} == {Cause.PREEMPT_OFF_OR_NO_POINT}


def test_a_thread_that_never_slept_is_in_the_trace_too() -> None:
    """It was busy, or the machine was gone, from before its due time until it saw that it was late."""
    cpu = Cpu(0, HOG).timer(-400_000).to_victim(-390_000).add(50_000, "hrtimer_start").switch(400_000, HOG, state=1)
    found = explain(traced_run([350_000], cpu), 100_000)
    assert (found.late, found.outside) == (1, 0)
    assert found.budgets[0].by_cause == {NamedCause(Cause.OWN_PREVIOUS): 350_000}
    holes = Cpu(0, HOG).timer(-400_000).to_victim(-390_000).switch(100_000, HOG, state=1)
    assert explain(traced_run([350_000], holes), 100_000).outside == 1, "it went to sleep"


def test_what_the_trace_does_not_hold_is_counted() -> None:
    latencies, cpu = several()
    cut = Cpu(0, HOG, [event for event in cpu.events if event.time_ns > DUE_NS + 15 * MS])
    found = explain(traced_run(latencies, cut), 100_000)
    assert (found.late, len(found.budgets), found.outside) == (4, 3, 1)
    nothing = explain(traced_run(latencies, Cpu(0)), 100_000)
    assert (nothing.late, nothing.budgets, nothing.rows, nothing.outside) == (4, (), (), 4)


def test_classes_of_events_that_are_missing_are_told() -> None:
    latencies, cpu = several()
    assert explain(traced_run(latencies, cpu)).blind == (Blind.INTERRUPTS, Blind.FAULTS), (
        "of five vectors there are two"
    )
    gone = {f"events/irq/softirq_{way}/format": "" for way in ("entry", "exit")}
    gone["events/irq/irq_handler_entry/format"] = gone["events/timer/hrtimer_expire_entry/format"] = ""
    kept = [event for event in cpu.events if not event.name.startswith("hrtimer_expire")]
    found = explain(changed(gone, latencies, Cpu(0, HOG, kept)))
    assert found.blind == tuple(Blind)
    assert Cause.UNEXPLAINED not in {row.cause.cause for row in found.rows}


def changed(files: dict[str, str], latencies: list[int], *cpus: Cpu) -> Record:
    """A traced run in which some files of the trace are others."""
    return traced_run(latencies, *cpus, **files)  # type: ignore[arg-type]


TIMER_FORMAT = "events/timer/hrtimer_expire_entry/format"


def untraced() -> Record:
    return replace(traced_run([1_000]), files=())


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (untraced(), "no trace"),
        (changed({"events/sched/sched_switch/format": ""}, [1_000]), "lacks sched_switch"),
        (changed({"events/sched/sched_waking/format": ""}, [1_000]), "lacks sched_waking"),
        (changed({"trace_clock": "[local] mono\n", TIMER_FORMAT: ""}, [1_000]), "another clock"),
        (replace(traced_run([1_000]), chunk_refs=()), "no samples"),
        (traced_run([1_000], header_page="x"), "its trace's pages"),
    ],
)
def test_what_cannot_be_explained_is_refused_in_words(record: Record, why: str) -> None:
    with pytest.raises(UserError, match=why):
        explain(record)


BEYOND = ("offset:2;\tsize:1", "offset:999999;\tsize:1")


@pytest.mark.parametrize(
    ("files", "skipped"),
    [
        ({"saved_cmdlines": "\N{SUPERSCRIPT TWO} x\n" + "9" * 5_000 + " y\n"}, {}),
        ({TIMER_FORMAT: format_text("hrtimer_expire_entry").replace(*BEYOND)}, {"short": 40}),
        ({TIMER_FORMAT: format_text("hrtimer_expire_entry").replace("size:8", "size:999999")}, {"short": 40}),
        ({"events/irq/softirq_entry/format": format_text("softirq_entry").replace("{ 1,", "{ 010,")}, {}),
    ],
)
def test_a_damaged_file_beside_the_pages_costs_no_more_than_it_told(
    files: dict[str, str], skipped: dict[str, int]
) -> None:
    latencies, cpu = several()
    found = explain(changed(files, latencies, cpu), 100_000)
    assert len(found.budgets) == 4
    assert found.skipped == skipped


@pytest.mark.parametrize("now", [(1 << 63) - 1, -(1 << 63)])
def test_timers_of_an_impossible_clock_bring_no_time_to_the_records(now: int) -> None:
    latencies, cpu = several()
    for at, event in enumerate(cpu.events):
        if event.name == "hrtimer_expire_entry":
            cpu.events[at] = event._replace(values={**event.values, "now": now})
    found = explain(traced_run(latencies, cpu, trace_clock="[local] mono\n"), 100_000)
    assert (found.budgets, found.outside) == ((), 4)
    assert found.skipped["time"] > 100


def test_damaged_traces_are_explained_as_far_as_they_go() -> None:
    latencies, cpu = several(activations=20)
    record = traced_run(latencies, cpu)
    chance = random.Random(7)
    for _ in range(100):
        files = list(record.files)
        at = chance.randrange(len(files))
        damaged = bytearray(files[at].content)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        files[at] = replace(files[at], content=bytes(damaged[: chance.choice((len(damaged), chance.randrange(4096)))]))
        try:
            found = explain(replace(record, files=tuple(files)), 100_000)
        except UserError:
            continue
        for each in found.budgets:
            check(each)
        assert len(found.budgets) + found.outside == 2


@pytest.mark.parametrize("ahead_ns", [123_456_789, -500_000])
def test_a_trace_with_a_clock_of_its_own_is_brought_to_the_records(ahead_ns: int) -> None:
    """Each timer tells the time of the record's clock 300 ns before its event, and some of it later."""
    latencies, cpu = several()
    timers = 0
    for at, event in enumerate(cpu.events):
        values = event.values
        if event.name == "hrtimer_expire_entry":
            values, timers = {**values, "now": event.time_ns - 300 - (timers % 7) * 100}, timers + 1
        cpu.events[at] = event._replace(time_ns=event.time_ns + ahead_ns, values=values)
    plain, moved = explain(traced_run(*several()), 100_000), traced_run(latencies, cpu, trace_clock="[global] local\n")
    found = explain(moved, 100_000)
    assert [each.first for each in found.budgets] == [each.first for each in plain.budgets]
    assert found.clock_error_ns == 0
    for ours, theirs in zip(found.budgets, plain.budgets, strict=True):
        assert ours.woken_ns is not None
        assert theirs.woken_ns is not None
        assert theirs.woken_ns - ours.woken_ns == 300


def test_a_clock_that_drifts_is_followed_from_anchor_to_anchor() -> None:
    """One part in 10,000 faster; timers of CLOCK_REALTIME lie far away and are left out."""
    truth = [1_000_000 * at for at in range(2_100)]
    events = [
        TraceEvent(ns + ns // 10_000 + 5_000, 0, "hrtimer_expire_entry", 0, 0, 0, {"now": ns + (at % 5 == 4) * 10**18})
        for at, ns in enumerate(truth)
    ]
    anchors = clock_anchors(events)
    assert len(anchors) == 3
    assert clock_error_ns(anchors) > 50_000
    middle = truth[900]
    assert abs(monotonic_ns(anchors, middle + middle // 10_000 + 5_000) - middle) <= 1_000
    assert clock_anchors([]) == []


# A flight recorder kept some pages only.


PAGE = 4096


def recorded(keep: Callable[[int], bool], *, whole: bool = True) -> Record:
    """A run of which a recorder kept the late activations and two ordinary ones, with the pages that keep says."""
    latencies, cpu = several()
    record = traced_run(latencies, cpu, about="endian little\nrecorder top=4 ordinary=2 threshold_ns=100000\n")
    (raw,) = (file for file in record.files if file.path == "trace/cpu0/raw")
    pages = [raw.content[at : at + PAGE] for at in range(0, len(raw.content), PAGE)]
    stamps = [int.from_bytes(page[:8], "little") for page in pages]
    snapshots = []
    for index in (3, 9, 14, 19, 29, 39):
        due_ns = DUE_NS + index * MS
        meets = [at for at, stamp in enumerate(stamps) if due_ns - 2 * MS <= stamp <= due_ns + MS and keep(at)]
        kept = SnapshotPages(0, whole, tuple(stamps[at] for at in meets))
        reason = SnapshotReason.THRESHOLD if latencies[index] > 100_000 else SnapshotReason.ORDINARY
        value = latencies[index]
        snapshots.append(Snapshot(0, reason, index, due_ns, value, due_ns - 2 * MS, due_ns + MS, (kept,)))
    needed = {stamp for snapshot in snapshots for lane in snapshot.pages for stamp in lane.stamps}
    there = [page for page, stamp in zip(pages, stamps, strict=True) if stamp in needed]
    files = [replace(file, content=b"".join(reversed(there))) if file is raw else file for file in record.files]
    return replace(record, files=tuple(files), snapshots=tuple(snapshots))


def test_the_windows_of_a_flight_recorder_are_enough() -> None:
    found, every = explain(recorded(lambda at: True)), explain(traced_run(*several()), 100_000)
    assert found.limit_ns == 100_000
    assert (found.late, len(found.budgets), found.outside, len(found.ordinary)) == (4, 4, 0, 2)
    assert [each.parts for each in found.budgets] == [each.parts for each in every.budgets]
    assert found.share_of(Cause.UNEXPLAINED) == 0


def test_between_pages_of_different_windows_nothing_is_known() -> None:
    """Each third page is missing, and no window says that its neighbours follow each other."""
    found = explain(recorded(lambda at: at % 3 != 1))
    for each in (*found.budgets, *found.ordinary):
        check(each)
    assert len(found.budgets) + found.outside == 4
    full = recorded(lambda at: True)
    torn = replace(full, snapshots=tuple(_torn(each) for each in full.snapshots))
    assert explain(torn).share_of(Cause.UNEXPLAINED) > 0


def test_windows_that_lost_all_their_events_are_not_called_kept() -> None:
    """A load may leave the agent's writer no time, so that the events are gone when it asks for them."""
    said = b"endian little\nrecorder top=4\nwindows_threshold 5\nwindows_kept 4\nlost_before 1\n"
    for keep, kept, gone in ((lambda at: True, 4, {}), (lambda at: False, 0, {"gone": 4})):
        record = recorded(keep)
        files = [replace(file, content=said) if file.path == "trace/about" else file for file in record.files]
        windows = recorder_windows(replace(record, files=tuple(files)))
        assert windows is not None
        assert (windows.above, windows.kept, windows.lost) == (5, kept, {"before": 1, **gone})
        assert windows.untold == 0


def _torn(snapshot: Snapshot) -> Snapshot:
    (lane,) = snapshot.pages
    return structs.replace(snapshot, pages=tuple(structs.replace(lane, stamps=(stamp,)) for stamp in lane.stamps))


def test_activations_without_a_window_are_counted() -> None:
    record = recorded(lambda at: True)
    fewer = replace(record, snapshots=record.snapshots[:-1])
    found = explain(fewer)
    assert (found.late, len(found.budgets), found.outside) == (4, 3, 1)
    summary = replace(fewer, chunk_refs=(), series=tuple(replace(each, has_samples=False) for each in fewer.series))
    assert (explain(summary).late, len(explain(summary).budgets)) == (3, 3)
    assert len(explain(record, 1 * MS).budgets) == 0


def test_a_recorder_without_a_threshold_keeps_the_largest() -> None:
    record = recorded(lambda at: True)
    (about,) = (file for file in record.files if file.path == "trace/about")
    plain = replace(about, content=about.content.replace(b"threshold_ns=100000", b"threshold_ns=0"))
    found = explain(replace(record, files=tuple(plain if file is about else file for file in record.files)), top=3)
    assert (found.limit_ns, found.late, len(found.budgets)) == (None, 3, 3)


def test_turns_without_tracing_are_no_part_of_what_is_explained() -> None:
    """Activations 9, 19, 29 and 39 are late; tracing was off while 15 to 24 were due."""
    full = recorded(lambda at: True)
    off_ns = 10 * MS
    turns = tuple(
        Event(at * off_ns, WHOLE_RUN, f"trace_{'off' if at == 1 else 'on'}", f"block={at}; took_ns=9")
        for at in range(4)
    )
    with_turns = replace(full, facts=(*full.facts, fact("trace_blocks_ns", off_ns)), events=turns)
    blocks = {at: (DUE_NS + at * MS) // off_ns for at in (9, 19, 29, 39)}
    found = explain(with_turns)
    assert found.untraced == list(blocks.values()).count(1) == 1
    assert (found.late, len(found.budgets), found.outside) == (3, 3, 0)
    assert explain(full).untraced == 0


# The section of the report and the command.


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A path that the command reads as the record of several activations."""
    latencies, cpu = several()

    class Stored:
        record = traced_run(latencies, cpu)

    monkeypatch.setattr(explained_runs, "open_run", lambda path: Stored)
    return Path("run")


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [((), 0), (("preemptoff:3",), 1), (("preemptoff:4",), 0), (("irqoff:0", "preemptoff:0"), 1), (("irqoff:0",), 0)],
)
def test_continuous_integration_may_forbid_causes(
    stored: Path, words: tuple[str, ...], exit_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [word for each in words for word in ("--explain-at-most", each)]
    assert main(["explain", str(stored), "--limit", "100us", *options]) == exit_code
    assert ("4 late activations had preemptoff first" in capsys.readouterr().out) == bool(exit_code)


@pytest.mark.parametrize("word", ["irqoff", "irqoff:x", ":3", "irqof:0", "irqoff:-1"])
def test_what_is_no_cause_and_number_is_refused(stored: Path, word: str, refused: Callable[..., str]) -> None:
    said = refused("explain", stored, "--explain-at-most", word)
    assert "write a cause and a number" in said or "did you mean 'irqoff'" in said


def test_who_forbids_interrupts_off_forbids_what_may_be_that() -> None:
    cpu = begun().timer(300_000).to_victim(308_000).switch(900_000, HOG, state=1)
    found = explain(traced_run([310_000], cpu), 100_000)
    assert found.budgets[0].first.cause is Cause.IRQ_OFF_OR_GONE
    (said,) = explained_runs.exceeded_causes(found, {Cause.IRQ_OFF: 0})
    assert said == "1 late activation had, or may have had, irqoff first, and 0 may"


def test_a_limit_of_causes_is_not_judged_by_some_of_the_late_activations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless those alone exceed it."""
    full = recorded(lambda at: True)
    monkeypatch.setattr(explained_runs, "_opened", lambda *_: replace(full, snapshots=full.snapshots[:-1]))
    with pytest.raises(UserError, match="the trace holds 3 of 4 late activations, so it is unknown"):
        explained_runs.explain_run(Path("a"), 100_000, 8, {Cause.IRQ_OFF: 0})
    with pytest.raises(UserError, match="the trace holds 3 of 4 late activations"):
        explained_runs.explain_run(Path("a"), 100_000, 8, {Cause.PREEMPT_OFF: 3})
    assert explained_runs.explain_run(Path("a"), 100_000, 8, {Cause.PREEMPT_OFF: 2})[2]
    assert not explained_runs.explain_run(Path("a"), 100_000, 8, {Cause.PREEMPT_OFF: 4})[2]
    assert not explained_runs.explain_run(Path("a"), 100_000, 8, {})[2]


RECORDER = Path(__file__).parent / "data" / "golden" / "recorder-1.4.rtrec"


def test_a_record_whose_trace_was_cut_off_keeps_no_limit_of_causes(tmp_path: Path, refused: Callable[..., str]) -> None:
    cut = tmp_path / "cut.rtrec"
    cut.write_bytes(RECORDER.read_bytes()[:55_400])
    assert main(["explain", str(cut)]) == 0
    said = refused("explain", cut, "--explain-at-most", "irqoff:0")
    assert "the trace holds none of 5 late activations" in said
    cut.write_bytes(RECORDER.read_bytes()[:3_715])
    assert "this record was cut off and holds no trace" in refused("explain", cut)


def test_perfetto_has_a_track_for_each_cpu_and_each_budget(tmp_path: Path) -> None:
    latencies, cpu = several()
    path = tmp_path / "a.json"
    said = perfetto.export(analyse(traced_run(latencies, cpu)), path, {"limit": "100us"})
    assert said == f"{path}: 4 late activations and 1 CPU around them"
    events = json.loads(path.read_text())["traceEvents"]
    tracks = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {track for group, track in tracks if group == 2} == {1, 3, 5, 7}
    for number in (1, 3, 5, 7):
        parts = [event for event in events if (event["ph"], event["pid"], event["tid"]) == ("X", 2, number)]
        assert sum(event["dur"] for event in parts) == pytest.approx(318)
    slices = sorted((event["ts"], event["dur"]) for event in events if (event["ph"], event["pid"]) == ("X", 1))
    assert all(first + length <= second + 1e-6 for (first, length), (second, _) in pairwise(slices))
    assert sum(event["ph"] == "s" for event in events) == sum(event["ph"] == "f" for event in events) == 4


def test_causes_too_close_to_tell_apart_are_all_named() -> None:
    """8 us each: until the timer's interrupt, and then with preemption off. The trace cannot tell which was longer."""
    record = traced_run(*several(hog_ns=6_000))
    found = explain(record, 22_000)
    assert [cause.cause for cause in found.budgets[0].possible_firsts] == [Cause.IRQ_OFF_OR_GONE, Cause.PREEMPT_OFF]
    assert found.open_count == len(found.budgets) == 4
    counted = {row.cause.cause: (row.first_in, row.open_in) for row in found.rows}
    assert (counted[Cause.IRQ_OFF_OR_GONE], counted[Cause.PREEMPT_OFF]) == ((4, 4), (0, 4))
    assert counted[Cause.TIMER] == (0, 0)
    assert explained_runs.exceeded_causes(found, {Cause.PREEMPT_OFF: 4}) == []
    (said,) = explained_runs.exceeded_causes(found, {Cause.PREEMPT_OFF: 3})
    assert said == "4 late activations had, or may have had, preemptoff first, and 3 may"
