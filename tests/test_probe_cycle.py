# SPDX-License-Identifier: Apache-2.0
"""The probe cycle, really run: what its loop serves, what it makes up for, and what is said of it."""

import signal
from pathlib import Path

import agent_process
import numpy as np
import probe_guest
import pytest
import recompute
from agent_process import measured, policy, running, whole
from probe_guest import Guest, facts, invalid, values

from rtproof.judge.analyse import analyse
from rtproof.record.contents import EndReason, Int64Array, Record
from rtproof.summary.summary_model import Cycles, Severity

MS = 1_000_000
SECOND = 1_000 * MS


def loop_of(record: Record) -> Cycles:
    found = analyse(record).cycles
    assert found is not None
    return found


@pytest.mark.serial
def test_every_due_time_is_served_and_told_by_its_cycles(tmp_path: Path) -> None:
    options = "cycle:ignore=7,low=500us,high=1s"
    record = measured(tmp_path / "record", *policy(), "--probe", options, "--samples", "400", "--threads", "2")
    assert record.end is not None
    assert [(one.obtained, one.missed, one.lost) for one in record.end.totals] == [(400, 0, 0)] * 2
    assert {(one.probe, one.method, one.field) for one in record.series} == {("cycle", "loop", "wake")}
    assert {(one.on_grid, one.external, one.loop) for one in record.series} == {(True, False, True)}
    recompute.check(record)
    found = loop_of(record)
    assert (found.ignored, found.counted, found.low_ns, found.high_ns) == (14, 2 * (399 - 7), 500_000, SECOND)
    assert record.fact("probe_options") == "ignore=7,low=500us,high=1s"


@pytest.mark.serial
def test_a_process_that_was_stopped_stalls_the_loop_which_then_catches_up(tmp_path: Path) -> None:
    """The process is stopped for so long by the record's own clock, read before and after."""
    path = tmp_path / "record"
    arguments = (*policy(), "--probe", "cycle", "--period", "10ms", "--duration", "600s", "--threads", "1")
    with running("-o", path, *arguments) as one:
        one.await_ns(SECOND)
        stopped_ns, woken_ns = one.stop_for(2 * SECOND)
        one.await_more(SECOND)
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 0
    record = whole(path)
    values = np.concatenate([block.values for block in record.blocks(0)])
    assert record.end is not None
    assert [(each.obtained, each.missed) for each in record.end.totals] == [(values.size, 0)]
    found = loop_of(record)
    stall = max(found.stalls, key=lambda each: each.duration_ns)
    assert (stall.thread, stall.over) == (0, True)
    assert stall.duration_ns > woken_ns - stopped_ns - 2 * 10 * MS
    assert found.max_ns == stall.duration_ns
    assert_made_up(values)
    assert "stopped" in [doubt.code for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID]


def assert_made_up(late: Int64Array) -> None:
    """Behind the stall each run is at once: every late value is about a period below the one before it."""
    worst = int(np.argmax(late))
    behind = late[worst : worst + 100]
    assert behind[0] > SECOND
    assert (np.diff(behind) < 0).mean() > 0.5, "another program may hold up some of them, too"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("ignore=few", "option 'ignore' takes a number of cycles, not 'few'"),
        ("low=1001us", "option 'low' takes a time with its unit that is not above the period; not '1001us'"),
        ("high=999us", "option 'high' takes a time with its unit that is not below the period; not '999us'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(tmp_path: Path, options: str, sentence: str) -> None:
    place = tmp_path / "record"
    done = agent_process.run("run", "-o", place, "--probe", f"cycle:{options}", "--samples", "10", "--period", "1ms")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"rtproof-agent: {sentence}")
    assert done.stderr.count("\n") == 1
    assert not place.exists()


SCRIPT = """\
T=/sys/kernel/tracing
settings() { cat $T/osnoise/*_us $T/osnoise/cpus $T/osnoise/options $T/current_tracer 2>/dev/null; ls $T/instances; }
settings > /out/before
run tracer-auto --probe kernel
run tracer --probe timerlat
run tracer-other --probe timerlat --policy other
/agent run --probe timerlat --warmup 100ms --samples 2000 -o /out/silenced & cut=$!
until [ -d $T/instances/rtproof-* ]; do usleep 1000; done
usleep 600000
echo 0 > $(echo $T/instances/rtproof-*)/tracing_on
wait $cut || echo "exit $?" > /out/silenced.said
[ -e /out/silenced.said ] || : > /out/silenced.said
settings > /out/after
/agent run --probe timerlat --period 2ms --duration 1h -o /out/killed & victim=$!
until [ "$(cat $T/osnoise/timerlat_period_us)" = 2000 ]; do usleep 1000; done
usleep 300000
kill -9 $victim
until settings | cmp -s - /out/before; do usleep 10000; done
mkdir $T/instances/rtproof-99999
run tracer-leftover --probe timerlat
settings > /out/after-leftover
"""


@pytest.fixture(scope="module")
def rt(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


@pytest.mark.parametrize("name", ["tracer", "tracer-auto", "tracer-other", "tracer-leftover"])
def test_the_tracer_takes_the_modules_place(rt: Guest, name: str) -> None:
    record = rt.record(name)
    stages = values(record)
    assert list(stages) == ["irq", "thread"]
    assert (stages["irq"] <= stages["thread"]).all()
    assert record.end is not None
    assert [t.obtained + t.missed + t.lost for t in record.end.totals] == [500, 500]
    assert {t.lost for t in record.end.totals} == {0}
    assert invalid(record) == []


def test_the_tracers_task_has_the_policy_that_was_asked(rt: Guest) -> None:
    for name, wanted, priority in (("tracer", "fifo", "80"), ("tracer-other", "other", "0")):
        record = rt.record(name)
        assert (facts(record, "policy"), facts(record, "priority")) == ({wanted}, {priority})


def test_due_times_of_the_tracer_keep_to_its_period(rt: Guest) -> None:
    """So no block has to tell them anew: one holds the whole run of half a second at 1 kHz."""
    record = rt.record("tracer")
    assert {(s.on_grid, s.external, s.chained, s.period_ns) for s in record.series} == {(False, True, False, 1_000_000)}
    for series in record.series:
        (block,) = record.blocks(series.id)
        missed = int(block.gap_missed.sum())
        assert (block.first_index, block.values.size + missed) == (0, 500)
        span_ns = max(part.last_due_ns for part in record.slices if part.series == series.id) - block.first_due_ns
        assert span_ns in (499_000_000, (499 - missed) * 1_000_000)


def test_a_tracer_that_falls_silent_does_not_keep_a_run_that_was_to_have_so_many_samples(rt: Guest) -> None:
    record = rt.record("silenced")
    assert record.end is not None
    assert (record.end.reason, record.end.text) == (EndReason.AS_ASKED, "some threads did not end by themselves")
    assert 0 < record.end.totals[0].obtained < 2_000
    assert [event.kind for event in record.events if event.kind == "stalled"] == ["stalled"]


def test_the_tracers_settings_are_put_back(rt: Guest) -> None:
    """The job itself waits until they are so behind an agent that was killed."""
    assert rt.text("before") == rt.text("after") == rt.text("after-leftover")
    assert (rt.folder / "killed").stat().st_size > 0
