# SPDX-License-Identifier: Apache-2.0
"""Loads that died, stood still, began late, did almost nothing, or of which a part did nothing."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from agent_process import agent, measured, policy
from analysis_records import MS, SECOND, array
from doubt_cases import clean, facts, said_of

from rtproof.judge.analyse import analyse
from rtproof.record.contents import WHOLE_RUN, Counter, Event, Fact, Moment, Record
from rtproof.record.reading import open_record
from rtproof.summary.summary_model import Doubt, Severity

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


def test_a_load_that_died() -> None:
    found = said_of(clean(events=(Event(5, WHOLE_RUN, "load_died", "sched"),)))
    assert (set(found), found["load-died"].severity) == ({"load-died"}, Severity.INVALID)
    assert found["load-died"].what == "a load died during the run: sched"


def test_a_load_that_works() -> None:
    assert with_load(10, 20, 20, *range(30, 140, 10)) == {}, "one unit of work took a second"


def test_a_load_that_stood_still_for_two_seconds() -> None:
    found = with_load(10, 20, 20, 20, 40)
    assert (set(found), found["load-idle"].severity) == ({"load-idle"}, Severity.INVALID)
    assert found["load-idle"].what == "the load sched did no work for 2.0 s"


def test_a_load_may_rest_as_long_as_it_said_and_no_longer() -> None:
    assert with_load(10, 20, 20, 20, 20, 40, rest=str(2 * SECOND)) == {}
    found = with_load(10, 20, 20, 20, 20, 20, 40, rest=str(2 * SECOND))
    assert found["load-idle"].what == "the load sched did no work for 4.0 s"


def test_a_load_that_never_began() -> None:
    assert set(with_load(0, 0, 0)) == {"load-idle", "load-unproven"}


def test_a_load_that_nobody_counted() -> None:
    found = with_load(10, 20, asked="cpu sched")
    assert "no work is to be seen of 1 of the loads asked for (cpu, sched)" in found["load-unproven"].what
    assert set(with_load(10, 20, name="temperature.0")) == {"load-unproven"}
    assert with_load(asked="") == {}


def test_a_load_that_went_another_way_than_it_is_meant_to() -> None:
    found = with_load(10, 20, 30, asked="comms", name="load.comms", lack="over 127.0.0.1: no cable")
    assert (set(found), found["load-lessened"].severity) == ({"load-lessened"}, Severity.WARNING)
    assert found["load-lessened"].what == "the load comms did less than it is meant to: over 127.0.0.1: no cable"


def readings(
    times_s: Sequence[float], values: Sequence[int], *more: Fact, rest: int = 0, unit: str = "messages"
) -> dict[str, Doubt]:
    """Of the load ``sched``, at these times."""
    counter = Counter(0, True, "load.sched", unit, array(*(round(t * SECOND) for t in times_s)), array(*values))
    known = {("loads", ASKED): "sched"} | ({("load.sched.rest_ns", START): str(rest)} if rest else {})
    return said_of(clean(facts=(*facts(known), *more), counters=(counter,)))


def told(key: str, value: int, moment: Moment, time_ns: int = 0) -> Fact:
    return Fact(time_ns, WHOLE_RUN, moment, f"load.sched.{key}", str(value))


def test_a_load_that_worked_in_the_warm_up_only_of_a_short_run() -> None:
    """Its counter is not 0, and no standstill of two seconds fits into the run."""
    found = readings((0.4, 1.0), (500, 500))
    assert (set(found), found["load-idle"].severity) == ({"load-idle"}, Severity.INVALID)
    assert found["load-idle"].what == "the load sched did no work while measuring (600 ms)"
    assert readings((0.4, 1.0), (500, 501)) == {}
    assert readings((0.4, 1.0), (500, 500), rest=7 * SECOND) == {}


def test_of_less_than_half_a_second_nothing_is_said() -> None:
    assert readings((0.4, 0.8), (500, 500)) == {}


def test_a_load_that_began_late() -> None:
    late = readings((0.4, 1.4, 1.9, 3.0), (0, 0, 9, 20))
    assert late["load-late"].severity is Severity.WARNING
    assert late["load-late"].what == "the load sched did no work until 1.4 s after the start"
    assert readings((0.4, 1.4, 2.4), (0, 9, 20)) == {}
    assert set(readings((0.4, 1.4, 2.4), (7, 7, 20))) == {"load-late"}


def test_a_program_that_began_later_than_it_may_rest() -> None:
    """Every program may rest for two seconds; one that began after three was neither late nor idle."""
    rest = 2 * SECOND
    assert set(readings((0.4, 1.4, 2.4, 3.4, 4.4), (0, 0, 0, 0, 9), rest=rest)) == {"load-late"}
    assert readings((0.4, 1.4, 2.4, 3.4), (0, 0, 0, 9), rest=rest) == {}
    assert set(readings((0.4, 1.4, 2.4, 3.4, 4.4, 5.4), (0, 0, 0, 0, 0, 9), rest=rest)) == {"load-idle"}


def test_a_load_that_paused() -> None:
    found = readings((0.4, 1.4, 2.4, 3.4), (0, 9, 9, 20))
    assert (set(found), found["load-paused"].severity) == ({"load-paused"}, Severity.WARNING)
    assert found["load-paused"].what == "the load sched did no work for 1.0 s of 2.0 s"
    assert set(with_load(1, 2, 2, 3, 3, 4, 4, 5, 5)) == {"load-paused"}
    assert readings((0.4, 1.4, 2.4, 3.4), (0, 9, 9, 20), rest=SECOND) == {}
    assert readings((0.4, 1.4, 2.2, 3.2), (0, 9, 9, 20)) == {}
    assert set(readings((0.4, 1.4, 2.4, 3.4), (0, 9, 9, 9))) == {"load-idle"}


def test_a_load_that_did_almost_nothing() -> None:
    """A sleep of 0.4 s in a loop: its counter grows from second to second."""
    used = (told("cpu_ms", 3, DURING, 400 * MS), told("cpu_ms", 13, END, 4_400 * MS))
    found = readings((0.4, 1.4, 2.4, 3.4, 4.4), (1, 3, 6, 8, 11), *used)
    assert (set(found), found["load-slight"].severity) == ({"load-slight"}, Severity.WARNING)
    assert found["load-slight"].what == "the load sched used 0.3 % of one CPU in 4.0 s: it did almost nothing"


def test_a_load_that_takes_its_share_is_no_doubt() -> None:
    used = (told("cpu_ms", 3, DURING, 400 * MS), told("cpu_ms", 103, END, 4_400 * MS))
    assert readings((0.4, 2.4, 4.4), (1, 3, 6), *used) == {}
    slight = (told("cpu_ms", 3, DURING, 400 * MS), told("cpu_ms", 4, END, 4_400 * MS))
    assert readings((0.4, 2.4, 4.4), (1, 3, 6), *slight, rest=7 * SECOND) == {}
    assert readings((0.4, 2.4, 4.4), (1, 3, 6), slight[1]) == {}
    assert readings((0.4, 2.4, 4.4), (1, 3, 6), *slight, unit="interrupts") == {}


def test_a_part_of_a_load_that_did_nothing() -> None:
    idle = (told("parts", 8, END), told("idle_parts", 3, END))
    found = readings((0.4, 1.4, 2.0), (1, 30, 60), *idle)
    assert (set(found), found["load-part-idle"].severity) == ({"load-part-idle"}, Severity.WARNING)
    assert found["load-part-idle"].what == "3 of 8 workers of the load sched did no work in 1.6 s"
    times, values = [0.4 + n for n in range(12)], range(12)
    assert readings(times, values, *idle)["load-part-idle"].severity is Severity.INVALID
    assert readings((0.4, 1.4, 2.0), (1, 30, 60), *idle, rest=7 * SECOND) == {}
    assert readings((0.4, 1.4, 2.0), (1, 30, 60), told("parts", 8, END), told("idle_parts", 0, END)) == {}


LAZY = "lazy:count=3 sh -c 'while :; do echo; sleep 0.4; done'"
SHORT = (*policy(), "--threads", "1", "--period", "5ms", "--warmup", "200ms", "--duration")


def share(record: Record, name: str) -> float:
    """Of a CPU."""
    read = {f.moment: f for f in record.facts if f.key == f"load.{name}.cpu_ms"}
    span_ns = read[END].time_ns - read[DURING].time_ns
    return (int(read[END].value) - int(read[DURING].value)) * 1_000_000 / span_ns


@pytest.mark.serial
def test_a_shell_that_sleeps_in_a_loop_is_told_from_one_that_works(tmp_path: Path) -> None:
    sleeps = measured(
        tmp_path / "a", *SHORT, "3s", "--program", "lazy:count=3 sh -c 'while :; do echo; sleep 0.4; done'"
    )
    works = measured(tmp_path / "b", *SHORT, "3s", "--program", "busy:count=3 sh -c 'while :; do echo; done'")
    assert share(sleeps, "lazy") < share(works, "busy") / 2
    doubts = {doubt.code for doubt in analyse(sleeps, None, 1).doubts}
    assert "load-slight" in doubts
    assert not {"load-idle", "load-unproven"} & doubts
    assert "load-slight" not in {doubt.code for doubt in analyse(works, None, 1).doubts}


@pytest.mark.serial
def test_workers_of_a_load_are_counted_one_by_one(tmp_path: Path) -> None:
    """Stopped from outside, one of two workers counts nothing; the other one's work goes on."""
    script = tmp_path / "stop"
    script.write_text(
        f"{agent()} run -o {tmp_path / 'record'} {' '.join(SHORT)} 2s --load cpu:workers=2 &\n"
        "agent=$!\n"
        'until leader=$(pgrep -P $agent) && worker=$(pgrep -P $leader | tail -1) && test -n "$worker"; do :; done\n'
        "kill -STOP $worker; wait $agent\n"
    )
    done = subprocess.run(["sh", str(script)], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    record = open_record(tmp_path / "record")
    assert (record.fact("load.cpu.parts", END), record.fact("load.cpu.idle_parts", END)) == ("2", "1")
    assert "load-part-idle" in {doubt.code for doubt in analyse(record, None, 1).doubts}
