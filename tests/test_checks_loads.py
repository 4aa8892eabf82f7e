# SPDX-License-Identifier: Apache-2.0
"""Loads that died, stood still, began late, did almost nothing, or of which a part did nothing."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from agent_process import agent, eventually, measured, needs_fifo, policy, running, whole
from analysis_records import MS, SECOND, array, fact
from doubt_cases import Changes, clean, facts, files, said_of
from report_cases import system_file
from test_loads_of_agent import counter

from rtproof.agents import build
from rtproof.judge.analyse import analyse
from rtproof.judge.doubts import load_work
from rtproof.judge.doubts.registry import doubts_about_run
from rtproof.record.contents import WHOLE_RUN, Counter, Event, Fact, Moment, Record, SystemFile
from rtproof.record.reading import open_record
from rtproof.summary.series import summarise
from rtproof.summary.summary_model import Doubt, Severity
from rtproof.summary.target_threads import real_time_threads, target_threads

ASKED, START, DURING, END = Moment


def with_load(
    *values: int, asked: str = "sched", name: str = "load.sched", rest: str = "", lack: str = ""
) -> dict[str, Doubt]:
    """Readings once a second. ``rest``: how many ns the load says that it may rest; ``lack``: what it lacks."""
    times = array(*(i * SECOND for i in range(len(values))))
    counter = Counter(0, True, name, "messages", times, array(*values))
    known = {("loads", ASKED): asked} | ({(f"{name}.rest_ns", START): rest} if rest else {})
    known |= {(f"{name}.lack", START): lack} if lack else {}
    return said_of(clean(facts=facts(known), counters=(counter,)))


def codes(found: dict[str, Doubt]) -> dict[str, Severity]:
    return {each.code: each.severity for each in found.values()}


INVALID, WARNING = Severity.INVALID, Severity.WARNING
IDLE, LATE, PAUSED = {"load-idle": INVALID}, {"load-late": WARNING}, {"load-paused": WARNING}


def test_a_load_that_died() -> None:
    assert codes(said_of(clean(events=(Event(5, WHOLE_RUN, "load_died", "sched"),)))) == {"load-died": INVALID}


def test_a_load_that_works_or_stands_still() -> None:
    assert with_load(10, 20, 20, *range(30, 140, 10)) == {}, "one unit of work took a second"
    assert set(with_load(0, 0, 0)) == {"load-idle", "load-unproven"}
    for values, rest, length in (((10, 20, 20, 20, 40), "", "2.0 s"), ((10, *[20] * 5, 40), str(2 * SECOND), "4.0 s")):
        found = with_load(*values, rest=rest)
        assert codes(found) == IDLE
        assert length in found["load-idle"].whole
    assert with_load(10, 20, 20, 20, 20, 40, rest=str(2 * SECOND)) == {}


def fading(*parts: tuple[int, int]) -> dict[str, Doubt]:
    """A load that works in turn for so many seconds at so many messages a second."""
    rates = [rate for seconds, rate in parts for _ in range(seconds)]
    return with_load(*np.cumsum([0, *rates]).tolist())


def test_a_load_that_fades() -> None:
    """10 s with 4 % of the rate from 1.5 s on, and 11 of 12 h with 2 %, had no word."""
    found = fading((1, 2_477), (1, 1_286), (8, 95))["load-faded"]
    assert (found.severity, found.what) == (INVALID, "load sched fell to 3.8 % of its best rate")
    assert "95 messages a second from 2.0 s to 10.0 s, 2,477 at its best; below a half for 80 % " in found.detail
    found = fading((3_600, 1_000), (11 * 3_600, 20))["load-faded"]
    assert (found.severity, found.what) == (INVALID, "load sched fell to 2 % of its best rate")
    assert "from 54 min to 12 h" in found.detail, "in stretches of 18 min"


def test_a_load_that_is_slow_for_a_part_of_the_run() -> None:
    found = fading((30, 1_000), (10, 300), (60, 900))["load-faded"]
    assert (found.severity, found.what) == (WARNING, "load sched fell to 30 % of its best rate")
    assert "300 messages a second from 30.0 s to 40.0 s" in found.detail
    assert set(fading((53, 1_000), (47, 40))) == {"load-faded"}
    assert fading((53, 1_000), (47, 40))["load-faded"].severity is WARNING, "for less than a half of the time"


@pytest.mark.parametrize(
    ("parts", "what", "when"),
    [
        ([(10, 300), (90, 900)], "began at 33.3 % of its best rate", "from the beginning to 10.0 s"),
        ([(1, 1), (40, 0), (59, 900)], "began at 0 % of its best rate", "from the beginning to 40.0 s"),
        ([(40, 0), (60, 900)], "began at 0 % of its best rate", "from the beginning to 40.0 s"),
        ([(2, 0), (10, 900), (40, 100)], "fell to 11.1 % of its best rate", "from 12.0 s to 52.0 s"),
    ],
)
def test_a_load_that_began_slowly(parts: list[tuple[int, int]], what: str, when: str) -> None:
    """It was told as one that fell to 0 %."""
    found = fading(*parts)["load-faded"]
    assert found.what == f"load sched {what}"
    assert f" {when}, " in found.detail


def test_the_load_that_faded_most_is_told_first() -> None:
    """show names one of a kind: it named a load at 46 % and hid one at 10 %."""
    times = array(*(i * SECOND for i in range(61)))
    rates = {"load.a": [1_000] * 40 + [460] * 20, "load.b": [1_000] * 32 + [104] * 28}
    counters = tuple(
        Counter(number, True, name, "units", times, np.cumsum([0, *each]))
        for number, (name, each) in enumerate(rates.items())
    )
    made = clean(facts=facts({("loads", ASKED): "a,b"}), counters=counters)
    found = [each for each in doubts_about_run(made, summarise(made), None) if each.code == "load-faded"]
    assert [each.what.split()[1] for each in found] == ["b", "a"]


@pytest.mark.parametrize(
    "parts",
    [
        [(100, 1_000), (9, 100)],
        [(50, 1_000), (50, 550)],
        [(1, 1_000), (1, 100), (8, 1_000)],
        [(3, 1_000), (1, 100)],
        [(1, 0), (1, 20)] * 20,
    ],
    ids=["for less than a tenth", "to no less than a half", "for a second", "in a short run", "in slow units of work"],
)
def test_a_load_that_works_on(parts: list[tuple[int, int]]) -> None:
    assert "load-faded" not in fading(*parts)


def test_a_load_that_nobody_counted() -> None:
    assert "1 of 2 loads" in with_load(10, 20, asked="cpu sched")["load-unproven"].whole
    assert set(with_load(10, 20, name="temperature.0")) == {"load-unproven"}
    assert with_load(asked="") == {}


def test_a_load_that_is_bound_to_cpus() -> None:
    two = Counter(1, True, "load.dd@0,2", "MiB", array(0, SECOND), array(1, 900))
    known = {("loads", ASKED): "sched@1 dd@0,2", ("load.dd@0,2.strays", DURING): "0"}
    working = Counter(0, True, "load.sched@1", "messages", array(0, SECOND), array(10, 20))
    assert said_of(clean(facts=facts(known), counters=(working, two))) == {}
    found = said_of(clean(facts=facts({**known, ("load.dd@0,2.strays", END): "3"}), counters=(working, two)))
    assert codes(found) == {"load-strayed": WARNING}
    assert "load-unproven" in said_of(clean(facts=facts(known), counters=(two,)))


def test_a_load_that_went_another_way_than_it_is_meant_to() -> None:
    found = with_load(10, 20, 30, asked="comms", name="load.comms", lack="over 127.0.0.1: no cable")
    assert codes(found) == {"load-lessened": WARNING}


def readings(
    times_s: Sequence[float], values: Sequence[int], *more: Fact, rest: int = 0, unit: str = "messages"
) -> dict[str, Doubt]:
    """Of the load ``sched``, at these times."""
    counter = Counter(0, True, "load.sched", unit, array(*(round(t * SECOND) for t in times_s)), array(*values))
    known = {("loads", ASKED): "sched"} | ({("load.sched.rest_ns", START): str(rest)} if rest else {})
    return said_of(clean(facts=(*facts(known), *more), counters=(counter,)))


def told(key: str, value: int, moment: Moment, time_ns: int = 0) -> Fact:
    return Fact(time_ns, WHOLE_RUN, moment, f"load.sched.{key}", str(value))


USED = (told("cpu_ms", 3, DURING, 400 * MS), told("cpu_ms", 13, END, 4_400 * MS))
BUSY = (told("cpu_ms", 3, DURING, 400 * MS), told("cpu_ms", 103, END, 4_400 * MS))
PARTS = (told("parts", 8, END), told("idle_parts", 3, END))
SLIGHT = {"load-slight": WARNING}
TWELVE = tuple(0.4 + n for n in range(12))


@pytest.mark.parametrize(
    ("times_s", "values", "more", "rest_s", "expected"),
    [
        # It worked in the warm-up only of a short run, in which no standstill of two seconds fits.
        ((0.4, 1.0), (500, 500), (), 0, IDLE),
        ((0.4, 1.0), (500, 501), (), 0, {}),
        ((0.4, 1.0), (500, 500), (), 7, {"load-idle": WARNING}),  # it rested all the time
        ((0.4, 0.8), (500, 500), (), 0, {}),  # of less than half a second nothing is said
        ((0.4, 1.4, 2.4), (0, 9, 20), (), 0, {}),
        ((0.4, 1.4, 2.4), (7, 7, 20), (), 0, LATE),
        ((0.4, 1.4, 1.9, 3.0), (0, 0, 9, 20), (), 0, LATE),
        ((0.4, 1.4, 2.4, 3.4, 4.4), (0, 0, 0, 0, 9), (), 2, LATE),
        ((0.4, 1.4, 2.4, 3.4), (0, 0, 0, 9), (), 2, {}),
        ((0.4, 1.4, 2.4, 3.4, 4.4, 5.4), (0, 0, 0, 0, 0, 9), (), 2, IDLE),
        ((0.4, 1.4, 2.4, 3.4), (0, 9, 9, 20), (), 0, PAUSED),
        (TWELVE[:8], (0, 9, 9, *range(20, 25)), (), 0, PAUSED),  # a sixth of the time
        (tuple(range(9)), (1, 2, 2, 3, 3, 4, 4, 5, 5), (), 0, PAUSED),
        ((0.4, 1.4, 2.4, 3.4), (0, 9, 9, 20), (), 1, {}),
        ((0.4, 1.4, 2.2, 3.2), (0, 9, 9, 20), (), 0, {}),
        ((0.4, 1.4, 2.4, 3.4), (0, 9, 9, 9), (), 0, IDLE),
        # A sleep of 0.4 s in a loop: its counter grows from second to second.
        ((0.4, 1.4, 2.4, 3.4, 4.4), (1, 3, 6, 8, 11), USED, 0, SLIGHT),
        ((0.4, 2.4, 4.4), (1, 3, 6), BUSY, 0, {}),
        ((0.4, 2.4, 4.4), (1, 3, 6), USED, 7, {}),
        ((0.4, 2.4, 4.4), (1, 3, 6), USED[1:], 0, {}),
        ((0.4, 1.4, 2.0), (1, 30, 60), PARTS, 0, {"load-part-idle": WARNING}),
        (TWELVE, range(12), PARTS, 0, {"load-part-idle": INVALID}),
        ((0.4, 1.4, 2.0), (1, 30, 60), PARTS, 7, {}),
        ((0.4, 1.4, 2.0), (1, 30, 60), (told("parts", 8, END), told("idle_parts", 0, END)), 0, {}),
    ],
)
def test_what_a_load_did_while_measuring(
    times_s: Sequence[float],
    values: Sequence[int],
    more: tuple[Fact, ...],
    rest_s: int,
    expected: dict[str, Severity],
) -> None:
    assert codes(readings(times_s, values, *more, rest=rest_s * SECOND)) == expected


def share(record: Record, name: str) -> float:
    """Of a CPU."""
    read = {f.moment: f for f in record.facts if f.key == f"load.{name}.cpu_ms"}
    span_ns = read[END].time_ns - read[DURING].time_ns
    return (int(read[END].value) - int(read[DURING].value)) * 1_000_000 / span_ns


def test_a_shell_that_sleeps_in_a_loop_uses_less_than_one_that_works(tmp_path: Path) -> None:
    """Side by side, until the one has written so much that it needed a CPU for a tenth of a second or more."""
    path = tmp_path / "record"
    both = ("lazy:count=3 sh -c 'while :; do echo; sleep 5; done'", "busy:count=3 sh -c 'while :; do echo; done'")
    asked = (*policy(), "--threads", "1", "--period", "5ms", "--progress", "1s", "--duration", "1h")
    with running("-o", path, *asked, "--program", both[0], "--program", both[1]) as one:
        one.await_ns(2 * SECOND)
        assert eventually(lambda: int(np.ptp(counter(open_record(path), "busy").value)) > 200_000)
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 0
    record = whole(path)
    assert share(record, "lazy") < share(record, "busy")
    slight = [doubt.whole for doubt in analyse(record, None, 1).doubts if doubt.code == "load-slight"]
    for name in ("lazy", "busy"):
        assert any(f"load {name} used" in what for what in slight) is (share(record, name) < load_work.LEAST_SHARE)


# Other threads of the same or a higher real-time priority on a measured CPU: CPU 2, fifo 80 in the records here.


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


@pytest.mark.parametrize("begin_ns", [1_000_000, 5_000_000_000])
def test_another_thread_above_is_named_with_all_that_is_known(begin_ns: int) -> None:
    before, after = (f"411 412 RR 99 1 {ns} 0-3 multi path d\n" for ns in (begin_ns, begin_ns + 40_000_000))
    doubt = said_of(run(NORMAL.format(1) + before, NORMAL.format(2) + after))["rt-threads"]
    assert doubt.severity is WARNING
    assert "multi path d (TID 412, rr 99, last on CPU 1, allowed on 0-3, ran for 40 ms)" in doubt.whole


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
    assert "guest (TID 7" in said_of(run("", "", one))["rt-threads"].whole
    assert "ran for 300 us" in said_of(run("", one, one))["rt-threads"].whole


def test_our_own_threads_are_no_doubt() -> None:
    of_agent = "900 905 FF 81 2 5 2 rtproof-agent\n"
    measured_one = "31 31 FF 80 2 5 2 [timerlatu/2]\n"
    record = run(of_agent, of_agent.replace(" 5 ", " 9 "))
    assert "rt-threads" in said_of(record)
    table = "PID TID CLS RTPRIO NICE PSR COMM\n2 2 TS - 0 0 [kthreadd]\n900 905 FF 81 - 2 x\n"
    told_pid = (*record.facts, fact("agent_pid", 900, START))
    assert said_of(clean(files=(*record.files, system_file("threads", table)), facts=told_pid)) == {}
    own = run(measured_one, measured_one.replace(" 5 ", " 9 "))
    assert said_of(clean(files=own.files, facts=(*own.facts, fact("tid", 31, START, 0)))) == {}


def test_the_measured_thread_of_an_application_is_no_doubt_of_its_own() -> None:
    """Its own priority counts, in place of that with which the agent was asked to measure."""
    lines = "7 7 FF 60 2 {0} 2 motion\n8 8 FF {1} 2 {0} 2 other\n"
    for priority, seen in ((60, True), (59, False)):
        record = run(lines.format(1, priority), lines.format(9_000, priority))
        told = (fact("tid", 7, START, 0), *(one for one in record.facts if one.key != "probe"))
        made = clean(files=record.files, facts=(fact("probe", "foreign", Moment.ASKED), *told))
        said = " ".join(doubt.whole for doubt in analyse(made, None, 1).doubts if doubt.code == "rt-threads")
        assert ("other (TID 8" in said, "motion" in said) == (seen, False)


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
    what = said_of(clean(files=(*files({}), system_file("threads", lines))))["rt-threads"]
    assert what.what == "audio (rr 95) and 1 more could run first"
    assert "audio (TID 4, rr 95, last on CPU 2)" in what.detail
    assert "irq/25-can0" in what.detail


def test_where_only_our_own_threads_are_seen_that_is_said() -> None:
    """In a container, or with hidepid: no thread of the kernel is there, and every kernel has some."""
    alone = "PID TID CLS RTPRIO NICE PSR COMM\n9 9 TS - 0 0 sh\n"
    looked = run("", "").files
    found = said_of(clean(files=(*looked, system_file("threads", alone))))
    assert codes(found) == {"threads-hidden": WARNING}
    whole = system_file("threads", f"{alone}2 2 TS - 0 0 [kthreadd]\n")
    assert said_of(clean(files=(*looked, whole))) == {}


SPIN = """
import os, sys, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
print("ready", flush=True)
for _ in range(60000):
    until = time.monotonic() + 0.0005
    while time.monotonic() < until:
        pass
    time.sleep(0.01)
"""


@needs_fifo
@pytest.mark.serial
def test_a_fifo_thread_beside_the_agent_is_seen_as_it_is(tmp_path: Path) -> None:
    """It takes a twentieth of the CPU until it is killed. None of the agent's own threads is told of."""
    rival = subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE)
    try:
        assert rival.stdout is not None
        assert rival.stdout.readline() == b"ready\n"
        cpu = ("--cpus", "0", "--threads", "1", "--duration", "1s", "--warmup", "100ms")
        record = measured(tmp_path / "record", "--policy", "fifo", "--priority", "85", *cpu)
    finally:
        rival.kill()
        rival.communicate()
    found = {thread.id: thread for thread in real_time_threads(record)}
    assert (found[rival.pid].policy, found[rival.pid].priority, found[rival.pid].cpu) == ("FF", 90, 0)
    assert found[rival.pid].cpus == frozenset({0})
    assert found[rival.pid].ran_ns
    own = {thread.id for thread in target_threads(record) if str(thread.process) == record.fact("agent_pid", START)}
    assert own
    assert not own & set(found)
    (doubt,) = [doubt for doubt in analyse(record, None, 1).doubts if doubt.code == "rt-threads"]
    assert f"TID {rival.pid}, fifo 90, last on CPU 0, allowed on 0, ran for" in doubt.whole or "more" in doubt.whole


def in_virtual_time(times_s: Sequence[float], values: Sequence[int], rest: int = 0) -> dict[str, Doubt]:
    clock = Fact(0, WHOLE_RUN, START, "virtual_time", "QEMU, 1 ns an instruction")
    found = readings(times_s, values, clock, rest=rest)
    return {code: doubt for code, doubt in found.items() if code != "virtual-time"}


def in_cycles(work: int, name: str = "mmap", unit: str = "MiB", available_kib: int = 1 << 20) -> dict[str, Doubt]:
    """Two workers that have done so much work in 10 s. name: with options. available_kib: memory; 0: not known."""
    load = f"load.{name.partition(':')[0]}"
    counter = Counter(0, True, load, unit, array(0, 5 * SECOND, 10 * SECOND), array(7, 7 + work // 2, 7 + work))
    known = {
        ("loads", ASKED): name.partition(":")[0],
        (f"{load}.parts", END): "2",
        ("args", ASKED): f"run --load {name}",
    }
    memory = f"MemTotal: 1 kB\nMemAvailable:   {available_kib} kB\n"
    told = (system_file("/proc/meminfo", memory),) if available_kib else ()
    return said_of(clean(facts=facts(known), counters=(counter,), files=told))


def test_a_run_that_saw_few_cycles_of_a_load() -> None:
    """Two workers with regions of 64 MiB: ten cycles of both are 1,280 MiB."""
    found = in_cycles(1279)
    assert codes(found) == {"load-few-cycles": WARNING}
    assert "went through 9.9 cycles" in found["load-few-cycles"].whole
    assert "went through 0.9 cycles" in in_cycles(127)["load-few-cycles"].whole
    assert in_cycles(1280) == {}


@pytest.mark.parametrize(("name", "enough"), [("mmap:mib=8", 160), ("mmap:workers=2,mib=640", 12_800)])
def test_the_size_that_was_asked_for_makes_the_cycle(name: str, enough: int) -> None:
    assert in_cycles(enough, name, available_kib=0) == {}
    assert set(in_cycles(enough - 1, name, available_kib=0)) == {"load-few-cycles"}


def test_jobs_are_cycles_and_loads_without_cycles_have_no_such_doubt() -> None:
    assert set(in_cycles(19, "churn", "jobs")) == {"load-few-cycles"}
    assert in_cycles(20, "churn", "jobs") == {}
    assert in_cycles(3, "cpu", "65536 steps") == {}


def test_the_agent_has_the_cycles_that_the_check_knows() -> None:
    listed = build.listed_rows(build.agent_prints(Path(agent()), "list"), "load", "load_option")
    of_mib = {row[1]: row[3] for row in listed if row[0] == "load_option" and row[2] == "mib"}
    for name in load_work.LOADS_OF_REGIONS:
        assert f"(default: {load_work.REGION_MIB}" in of_mib[name]


def test_where_memory_makes_the_region_smaller_no_cycle_is_known() -> None:
    assert in_cycles(10, available_kib=511 << 10) == {}
    assert in_cycles(10, available_kib=0) == {}
    assert set(in_cycles(10, available_kib=512 << 10)) == {"load-few-cycles"}


def test_a_load_in_virtual_time_that_has_not_settled() -> None:
    found = in_virtual_time((0.5, 1.0, 2.0), (100, 600, 1200))
    assert codes(found) == {"load-unsteady": WARNING}
    assert "1,000 messages a second at the beginning, 600 at the end" in found["load-unsteady"].whole
    assert set(in_virtual_time((0.5, 1.0, 2.0), (100, 600, 2200))) == {"load-unsteady"}


def test_a_load_in_virtual_time_whose_rate_changes_little_or_is_not_known() -> None:
    assert in_virtual_time((0.5, 1.0, 2.0), (100, 600, 1400)) == {}
    assert in_virtual_time((0.5, 1.0, 2.0, 2.001), (100, 600, 1600, 1600)) == {}, "the last reading closes the run"
    assert in_virtual_time((0.5, 2.0), (100, 600)) == {}
    assert in_virtual_time((0.5, 1.0, 2.0), (100, 600, 1200), rest=3 * SECOND) == {}
    assert readings((0.5, 1.0, 2.0), (100, 600, 1200)) == {}, "on a machine others take time from it"
