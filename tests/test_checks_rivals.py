# SPDX-License-Identifier: Apache-2.0
"""Other threads of the same or a higher real-time priority on a measured CPU: CPU 2, fifo 80 in the records here."""

import subprocess
import sys
from pathlib import Path

import pytest
from agent_process import measured, needs_fifo
from analysis_records import fact
from doubt_cases import Changes, clean, facts, files, said_of
from report_cases import system_file

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Moment, Record, SystemFile
from rtproof.summary.summary_model import Severity
from rtproof.summary.thread_table import real_time_threads, target_threads

START, DURING, END = Moment.START, Moment.DURING, Moment.END
NAMES = "PID TID CLS RTPRIO PSR RUN_NS CPUS COMM\n"
NORMAL = """\
18 18 FF 99 0 54596072 0 [migration/0]
19 19 FF 99 2 {0} 2 [migration/2]
20 20 FF 99 2 {0} 2 [watchdog/2]
21 21 FF 99 2 {0} 2 [posixcputmr/2]
22 22 FF 1 2 {0} 2 [rcuc/2]
23 23 FF 1 2 {0} 2 [ktimers/2]
24 24 DLN - 2 {0} 0-3 [sugov:0]
50 50 FF 50 2 {0} 2 [irq/24-eth0]
60 60 RR 5 2 {0} 0-3 pipewire
61 61 FF 99 3 {0} 3 elsewhere
62 62 FF 99 2 500 0-3 asleep
"""
"""What a sound system has: nothing but the last two is at 80 or above and no part of every kernel."""


def listed(lines: str, moment: Moment = START) -> SystemFile:
    return system_file("rt-threads", NAMES + lines, moment)


def run(start: str, end: str, during: str = "", changes: Changes | None = None) -> Record:
    some = (listed(start), *((listed(during, DURING),) if during else ()), listed(end, END))
    return clean(files=(*files({}), *some), facts=facts(changes or {}))


def test_a_sound_system_is_no_doubt() -> None:
    assert said_of(run(NORMAL.format(1_000), NORMAL.format(9_000_000))) == {}


def test_another_thread_above_is_named_with_all_that_is_known() -> None:
    before, after = (f"411 412 RR 99 1 {ns} 0-3 multi path d\n" for ns in (1_000_000, 41_000_000))
    doubt = said_of(run(NORMAL.format(1) + before, NORMAL.format(2) + after))["rt-threads"]
    assert doubt.severity is Severity.WARNING
    assert doubt.what == (
        "1 other thread of the same or a higher real-time priority could run on a measured CPU: "
        "multi path d (TID 412, rr 99, last on CPU 1, allowed on 0-3, ran for 40 ms)"
    )


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("7 7 FF 80 2 {} 2 equal", True),
        ("7 7 FF 79 2 {} 2 below", False),
        ("7 7 FF 81 3 {} 3,5 elsewhere", False),
        ("7 7 FF 81 3 {} 2-3 allowed", True),
        ("7 7 FF 81 2 {} - unknown", True),
        ("7 7 DLN - 2 {} 0-3 deadline", True),
        ("7 7 FF 90 2 {} 2 [irq/24-eth0]", True),
        ("7 7 FF 90 2 {} 2 [spi0]", True),
        ("7 7 FF 99 2 {} 2 migration/2", True),  # a program may call itself that
    ],
)
def test_who_could_delay_the_thread(line: str, seen: bool) -> None:
    found = said_of(run(line.format(1_000) + "\n", line.format(2_000) + "\n"))
    assert ("rt-threads" in found) is seen


def test_a_thread_that_came_during_the_run_is_seen_also_if_it_ended() -> None:
    one = "7 7 FF 90 2 300000 2 guest\n"
    assert "guest (TID 7" in said_of(run("", "", one))["rt-threads"].what
    assert "ran for 300 us" in said_of(run("", one, one))["rt-threads"].what


def test_a_thread_that_was_raised_for_a_while_counts_with_its_highest_priority() -> None:
    low, high = "7 7 FF 10 2 {} 2 raised\n", "7 7 FF 90 2 {} 2 raised\n"
    found = said_of(run(low.format(5), low.format(905), high.format(50)))
    assert "raised (TID 7, fifo 90, last on CPU 2, allowed on 2, ran for 900 ns)" in found["rt-threads"].what


def test_our_own_threads_are_no_doubt() -> None:
    of_agent = "900 905 FF 81 2 5 2 rtproof-agent\n"
    measured_one = "31 31 FF 80 2 5 2 [timerlatu/2]\n"
    record = run(of_agent, of_agent.replace(" 5 ", " 9 "))
    assert "rt-threads" in said_of(record)
    table = "PID TID CLS RTPRIO NICE PSR COMM\n2 2 TS - 0 0 [kthreadd]\n900 905 FF 81 - 2 x\n"
    known = clean(
        files=(
            *record.files,
            system_file("threads", table),
        ),
        facts=(*record.facts, fact("agent_pid", 900, START)),
    )
    assert said_of(known) == {}
    own = run(measured_one, measured_one.replace(" 5 ", " 9 "))
    assert said_of(clean(files=own.files, facts=(*own.facts, fact("tid", 31, START, 0)))) == {}


def test_without_a_real_time_policy_everything_runs_first_as_asked() -> None:
    one = "7 7 FF 90 2 {} 2 above\n"
    other = {("policy", moment): "other" for moment in Moment}
    assert "rt-threads" not in said_of(run(one.format(1), one.format(2), changes=other))


def test_a_thread_with_a_deadline_yields_to_none_but_such() -> None:
    changes: Changes = {("policy", moment): "deadline" for moment in Moment}
    above, dated = "7 7 FF 99 2 {} 2 above\n", "7 7 DLN - 2 {} 2 dated\n"
    assert "rt-threads" not in said_of(run(above.format(1), above.format(2), changes=changes))
    assert "rt-threads" in said_of(run(dated.format(1), dated.format(2), changes=changes))


def test_an_older_record_has_the_threads_of_its_start_only() -> None:
    """Without CPU time the kernel's own threads are doubted where they handle interrupts."""
    lines = (
        "PID TID CLS RTPRIO NICE PSR COMM\n1 1 FF 99 - 2 [migration/2]\n2 2 FF 50 - 2 [irq/24-eth0]\n"
        "3 3 FF 99 - 2 [idle_inject/2]\n4 4 RR 95 - 2 audio\n5 5 FF 95 - 1 away\n6 6 FF 90 - 2 [irq/25-can0]\n"
    )
    what = said_of(clean(files=(*files({}), system_file("threads", lines))))["rt-threads"].what
    assert what.startswith("2 other threads of")
    assert "audio (TID 4, rr 95, last on CPU 2)" in what
    assert "irq/25-can0" in what


def test_where_only_our_own_threads_are_seen_that_is_said() -> None:
    """In a container, or with hidepid: no thread of the kernel is there, and every kernel has some."""
    alone = "PID TID CLS RTPRIO NICE PSR COMM\n9 9 TS - 0 0 sh\n"
    looked = run("", "").files
    found = said_of(clean(files=(*looked, system_file("threads", alone))))
    assert (set(found), found["threads-hidden"].severity) == ({"threads-hidden"}, Severity.WARNING)
    whole = system_file("threads", f"{alone}2 2 TS - 0 0 [kthreadd]\n")
    assert said_of(clean(files=(*looked, whole))) == {}


def test_lines_that_are_no_thread_are_passed_over() -> None:
    assert real_time_threads(run("what\n1 2 FF\n9 9 FF 1000 0 0 0 far\n\n", "\x00")) == ()


SPIN = """
import os, sys, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
for _ in range(600):
    until = time.monotonic() + 0.0005
    while time.monotonic() < until:
        pass
    time.sleep(0.01)
"""


@needs_fifo
@pytest.mark.serial
def test_a_fifo_thread_beside_the_agent_is_seen_as_it_is(tmp_path: Path) -> None:
    """Bounded to 0.3 s of CPU time in 6 s. Only this thread, and none of the agent's own, is told of."""
    rival = subprocess.Popen([sys.executable, "-c", SPIN])
    try:
        cpu = ("--cpus", "0", "--threads", "1", "--duration", "1s", "--warmup", "100ms")
        record = measured(tmp_path / "record", "--policy", "fifo", "--priority", "85", *cpu)
    finally:
        rival.kill()
        rival.wait()
    found = {thread.id: thread for thread in real_time_threads(record)}
    assert (found[rival.pid].policy, found[rival.pid].priority, found[rival.pid].cpu) == ("FF", 90, 0)
    assert found[rival.pid].cpus == frozenset({0})
    assert found[rival.pid].ran_ns
    own = {thread.id for thread in target_threads(record) if str(thread.process) == record.fact("agent_pid", START)}
    assert own
    assert not own & set(found)
    (doubt,) = [doubt for doubt in analyse(record, None, 1).doubts if doubt.code == "rt-threads"]
    assert f"TID {rival.pid}, fifo 90, last on CPU 0, allowed on 0, ran for" in doubt.what or "more" in doubt.what
