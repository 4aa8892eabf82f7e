# SPDX-License-Identifier: Apache-2.0
"""Activations between two marks: how they are paired, what goes wrong with them, and the budget of one."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from analysis_records import fact
from explain_cases import DUE_NS, HEADER_FIELDS, HOG, LITTLE, OTHER, VICTIM, Cpu, begun, check, late, shown, walked
from test_elf_symbols import BASE, CODE_AT, FUNC, Elf
from trace_dat_cases import sleeping, traced, version_6

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment.application_runs import agent_marks, refuse_replaced
from rtproof.explain.budget import System, budget
from rtproof.explain.foreign_records import WantedThreads, mark_sentences, wanted_in, with_activations
from rtproof.explain.marks import Marks, mark_events, parse_mark
from rtproof.explain.thread_activations import ThreadWalk, WatchedThread, marked_activations
from rtproof.explain.trace_events import FORK, LOST, EventDecoder, TraceEvent
from rtproof.record.contents import Moment, Record
from rtproof.summary.trace_text import event_format

A, B = VICTIM, OTHER
PATHS = ("ftrace/print", "rtproof_12/begin", "rtproof_12/end", "sched/sched_switch", "syscalls/sys_enter_read", FORK)


def marks(begin: str, end: str) -> Marks:
    return parse_mark(begin), parse_mark(end)


WRITTEN = marks("marker:begin*", "marker:end")


def walk_of(told: Marks, *events: tuple[int, int, str]) -> ThreadWalk:
    """A walk over events of threads: time, thread, and the text that it wrote or the name of another event."""
    walk = ThreadWalk(0xFF, told, mark_events(told, PATHS))
    walk.walk(_event(*each) for each in events)
    return walk


def _event(time_ns: int, tid: int, what: str) -> TraceEvent:
    known = what in PATHS or what in (LOST, "sched_switch")
    return TraceEvent(time_ns, 0, what if known else "ftrace/print", 0, 0, tid, {} if known else {"buf": f"{what}\n"})


def marked(walk: ThreadWalk) -> list[WatchedThread]:
    return [thread for thread in walk.every() if thread.marked]


def spans(walk: ThreadWalk) -> dict[int, list[tuple[int, int]]]:
    return {thread.tid: thread.spans for thread in marked(walk)}


def sentences(walk: ThreadWalk) -> list[str]:
    return list(mark_sentences(marked(walk)))


def test_the_marks_of_each_thread_are_paired_apart() -> None:
    walk = walk_of(WRITTEN, (10, A, "begin 1"), (20, B, "begin 1"), (30, A, "end"), (35, B, "no mark"), (50, B, "end"))
    assert spans(walk) == {A: [(10, 30)], B: [(20, 50)]}
    assert sentences(walk) == []


def test_what_has_no_partner_is_counted_and_told() -> None:
    walk = walk_of(
        WRITTEN, (1, A, "end"), (2, A, "begin"), (3, A, "begin again"), (5, A, "end"), (6, A, "end"), (9, A, "begin")
    )
    assert spans(walk) == {A: [(3, 5)]}
    assert sentences(walk) == ["unpaired marks: 2 begins without an end and 2 ends without a begin"]


def test_an_end_in_another_thread_is_no_end() -> None:
    walk = walk_of(WRITTEN, (1, A, "begin"), (2, B, "end"))
    assert spans(walk) == {A: [], B: []}
    assert sentences(walk) == ["2 threads had marks, but no activation"]


def test_an_activation_with_missing_events_is_left_out() -> None:
    walk = walk_of(WRITTEN, (1, A, "begin"), (5, -1, LOST), (6, A, "end"), (7, A, "begin"), (9, A, "end"))
    assert spans(walk) == {A: [(7, 9)]}
    assert (walk.lost, walk.cut) == (1, 1)


def test_a_text_that_fits_both_marks_is_the_one_that_names_more_of_it() -> None:
    walk = walk_of(marks("marker:cycle*", "marker:cycle end"), (1, A, "cycle 7"), (4, A, "cycle end"))
    assert spans(walk) == {A: [(1, 4)]}
    walk = walk_of(marks("marker:cycle begin", "marker:*"), (1, A, "cycle begin"), (4, A, "anything"))
    assert spans(walk) == {A: [(1, 4)]}
    assert walk_of(marks("marker:begin", "marker:end"), (1, A, "begin 7")).threads == {}


def test_functions_and_events_are_marks_too() -> None:
    told = marks("uprobe:/app:0x1149 cycle", "uretprobe:/app:0x1149 cycle")
    assert spans(walk_of(told, (1, A, "rtproof_12/begin"), (3, A, "rtproof_12/end"))) == {A: [(1, 3)]}
    assert [mark.shown for mark in told] == ["uprobe:/app:cycle", "uretprobe:/app:cycle"]
    told = marks("event:sched/sched_switch", "event:syscalls/sys_enter_read:fd == 3")
    assert spans(walk_of(told, (1, A, "sched_switch"), (3, A, "syscalls/sys_enter_read"))) == {A: [(1, 3)]}
    with pytest.raises(UserError, match="the trace has no event of the mark event:no/such"):
        mark_events(marks("event:no/such", "marker:a"), PATHS)
    with pytest.raises(UserError, match="the two marks are the same event, event:sched/sched_switch"):
        mark_events(marks("event:sched/sched_switch", "event:sched/sched_switch:next_pid == 1"), PATHS)


def test_a_new_thread_is_of_the_process_of_who_began_it() -> None:
    walk = ThreadWalk(0xFF, WRITTEN, mark_events(WRITTEN, PATHS))
    for parent, child in ((50, 60), (60, 70), (80, 90), (90, 80)):
        walk.walk([TraceEvent(1, 0, FORK, 0, 0, parent, {"parent_pid": parent, "child_pid": child})])
    threads = [WatchedThread(tid, begun_by=walk.parents.get(tid)) for tid in (50, 60, 70, 80, 99)]
    assert [walk.process_of(thread, {50: 50}) for thread in threads] == [50, 50, 50, None, None]


def test_a_number_that_the_kernel_gives_again_is_another_thread() -> None:
    """The first one ended before its end came, and the next one is of another process."""
    walk = ThreadWalk(0xFF, WRITTEN, mark_events(WRITTEN, PATHS))
    walk.walk([_event(1, A, "begin 1"), _event(5, A, "end"), _event(10, A, "begin 2")])
    walk.walk([TraceEvent(20, 0, FORK, 0, 0, B, {"parent_pid": B, "child_pid": A})])
    walk.walk([_event(30, A, "end"), _event(40, A, "begin 1"), _event(45, A, "end")])
    first, second = marked(walk)
    assert (first.spans, second.spans) == ([(1, 5)], [(40, 45)])
    assert sentences(walk) == ["unpaired marks: 1 begin without an end and 1 end without a begin"]
    assert [walk.process_of(thread, {A: A, B: B}) for thread in (first, second)] == [A, B]


def test_a_thread_learns_its_period_from_its_begins() -> None:
    walk = walk_of(
        WRITTEN, *[(at + step, A, text) for at in (0, 100, 210) for step, text in ((0, "begin"), (9, "end"))]
    )
    found = marked_activations(marked(walk)[0])
    assert (found.due_ns, found.latency_ns, found.period_ns, found.missed) == ((0, 100, 210), (9, 9, 9), 105, (0, 0, 0))


def test_the_text_of_a_mark_is_read_to_the_end_of_its_event() -> None:
    fields = (
        HEADER_FIELDS
        + "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\tfield:char buf[];\toffset:16;\tsize:0;\n"
    )
    known = event_format("ftrace/print", f"name: print\nID: 5\nformat:\n{fields}\n")
    assert known is not None
    content = struct.pack("<HBBiQ", 5, 0, 0, A, 1) + b"begin 17\n\0\0\0\0"
    found = EventDecoder([known], LITTLE, 0, mark_events(WRITTEN, PATHS)).event(0, 1, memoryview(content))
    assert found is not None
    assert (found.name, found.pid, found.values) == ("ftrace/print", A, {"buf": "begin 17\n"})
    assert EventDecoder([known], LITTLE).event(0, 1, memoryview(content)) is None


def asked(**facts: str) -> Record:
    """A record of the probe with six sleeps: a system call returns, and 386 us later the thread starts its timer."""
    told = tuple(fact(key, value, Moment.ASKED) for key, value in facts.items())
    return replace(traced(sleeping((0,) * 6)), facts=told, chunk_refs=())


def test_a_record_has_the_activations_between_the_marks_that_it_was_asked_for() -> None:
    record = asked(probe="foreign", begin_mark="event:raw_syscalls/sys_exit", end_mark="event:timer/hrtimer_start")
    found = with_activations(record, wanted_in(record))
    assert [int(value) for block in found.blocks(0) for value in block.values] == [386_000] * 5
    assert found.series[0].method == "mark"
    texts = [event.text for event in found.events]
    shown_marks = "begins with event:raw_syscalls/sys_exit, and ends with event:timer/hrtimer_start"
    assert f"victim/{A}: an activation {shown_marks}" in texts
    assert "unpaired marks: 1 begin without an end and 1 end without a begin" in texts
    with pytest.raises(UserError, match="never came in a thread that is wanted; 1 other thread had marks"):
        with_activations(record, WantedThreads(("other",)).or_else(wanted_in(record)))


def marked_budget(latency_ns: int, cpu: Cpu) -> list[tuple[str, str, str, int]]:
    trace = walked([cpu.add(20_000_000, "hrtimer_start")])
    found = budget(replace(late(latency_ns), marked=True), trace, System())
    check(found)
    return shown(found)


def test_between_marks_the_thread_has_the_cpu_from_the_begin() -> None:
    """Its own code, what interrupts it, what it waits for, and who takes its CPU."""
    cpu = begun().to_victim(-20_000)
    cpu.hard(100_000, "irq_vectors/local_timer_entry").hard(104_000, "irq_vectors/local_timer_exit")
    cpu.switch(150_000, HOG, state=1)
    cpu.waking(180_000)
    cpu.to_victim(190_000)
    assert marked_budget(200_000, cpu) == [
        ("C", "own-code", "", 100_000),
        ("C", "timer", "", 4_000),
        ("C", "own-code", "", 46_000),
        ("C", "blocked", f"hog/{HOG}", 30_000),
        ("C", "no-preemption-point", f"hog/{HOG}", 10_000),
        ("C", "own-code", "", 10_000),
    ]
    assert marked_budget(50_000, begun().to_victim(-DUE_NS + 1)) == [("C", "own-code", "", 50_000)]


def program(folder: Path) -> Path:
    path = folder / "app"
    path.write_bytes(Elf(kind=3).of((("cycle", BASE + CODE_AT + 0x10, FUNC),)))
    return path


def test_the_agent_gets_the_place_of_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path)
    monkeypatch.chdir(tmp_path)
    found = agent_marks("uprobe:app:cycle+4", f"uretprobe:{path}:cycle")
    assert found == (f"uprobe:{path}:0x1014 cycle+4", f"uretprobe:{path}:0x1010 cycle")
    assert agent_marks("uprobe:app:+0x1000", "marker:a b")[0] == f"uprobe:{path}:0x1000 +0x1000"


@pytest.mark.parametrize(
    ("begin", "said"),
    [
        ("cycle", "'cycle' is no mark: write marker:TEXT, uprobe:FILE:FUNCTION or event:SYSTEM/NAME"),
        ("marker:end", "--begin and --end are the same mark, marker:end"),
        ("marker: a", "is no text of one line without blanks around it"),
        ("marker:" + "x" * 400, "a mark has 400 characters at most, not 407"),
        ("uprobe:app", "is no mark: write uprobe:FILE:FUNCTION"),
        ("uprobe:no such app:cycle", "the kernel's uprobes take no path with blanks"),
        ("uprobe:no#:cycle", "the kernel's uprobes take no path with blanks or #"),
        ("event:sched/sched_switch:a\udcff", "has characters that no filter of the kernel can have"),
        ("uretprobe:app:cycle+4", "marks the return of a function, so it takes no"),
    ],
)
def test_marks_that_make_no_sense_are_refused(
    begin: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=said):
        agent_marks(begin, "marker:end")


def test_a_file_that_was_replaced_under_its_process_is_refused(tmp_path: Path) -> None:
    """The kernel would put the probe into the new file, which the process does not run."""
    path, maps = tmp_path / "app", tmp_path / "maps"
    marks = (f"uprobe:{path}:0x1014 cycle+4", "marker:end (deleted)")
    maps.write_text(f"55d0-55d1 r-xp 00001000 fe:00 12   {path}\n")
    refuse_replaced(marks, maps)
    refuse_replaced(marks, tmp_path / "gone")
    maps.write_text(f"55d0-55d1 r-xp 00001000 fe:00 12   {path} (deleted)\n")
    refuse_replaced(("marker:begin", "marker:end"), maps)
    with pytest.raises(UserError, match="app was replaced after the process had begun, which runs the old one"):
        refuse_replaced(marks, maps)


def test_a_trace_of_trace_cmd_is_measured_between_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.dat"
    path.write_bytes(version_6(traced(sleeping((0,) * 6))))
    words = ["--begin", "event:raw_syscalls/sys_exit", "--end", "event:timer/hrtimer_start"]
    assert main(["explain", str(path), *words, "--limit", "300us"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "100.0 % of the time of 5 activations above 300 us: the thread's own code, or a page fault (not tr" in said
    assert main(["explain", str(path), *words[:3], "event:sched/sched_waking", "--thread", "victim"]) == 2
    assert "sys_exit came 6 times and event:sched/sched_waking never came in a thread" in capsys.readouterr().err
    assert main(["explain", str(path), *words[:3], "event:no/such"]) == 2
    assert "the trace has no event of the mark event:no/such" in capsys.readouterr().err
