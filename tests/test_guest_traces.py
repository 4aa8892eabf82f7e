# SPDX-License-Identifier: Apache-2.0
"""The trace in guests of the virtual lab: another kernel, and virtual time."""

from collections import Counter
from pathlib import Path

import probe_guest
import pytest
from probe_guest import Guest, account, facts, invalid, values
from test_probe_ipc import METHODS, totals
from trace_cases import events_of_text, report_of_trace_cmd, text_lines

from rtproof.exporters import trace_dat
from rtproof.judge.analyse import analyse
from rtproof.summary import kernel_trace
from rtproof.summary.kernel_trace import trace_summary
from rtproof.summary.measured_kernel import Confidence, PreemptionModel, preemption_model
from rtproof.summary.tracing_effect import tracing_effects

SCRIPT = """\
T=/sys/kernel/tracing
settings() { ls $T/instances; cat $T/tracing_on $T/set_event $T/options/record-cmd; mount | grep -c tracefs; }
settings > /out/before
run traced --trace on
run explained --trace explain
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
    events = events_of_text("\n".join(kernel_trace.text_of_events(record)))
    assert report_of_trace_cmd(tmp_path / "trace.dat") == events
    found = trace_summary(record)
    assert found.entries == len(events)
    assert (found.overrun, found.dropped) == (0, 0)
    assert found.kinds["sys_exit_clock_nanosleep"] >= 500


def test_in_virtual_time_every_activation_wakes_its_thread_at_its_due_time(rt: Guest) -> None:
    record = rt.record("traced")
    lines = text_lines(record)
    wakes = [time_ns for *_, time_ns, event in lines if event == "sched_waking"]
    origin_ns = record.begin.origin_monotonic_ns
    begun_ns = next(event.time_ns for event in record.events if event.kind == "trace_on")
    assert begun_ns < 5_000_000
    due_ns = [origin_ns + index * 1_000_000 for index in range(1, 499) if index * 1_000_000 > begun_ns]
    assert all(any(-1_000 < wake - due < 100_000 for wake in wakes) for due in due_ns)


def test_settings_are_put_back_and_a_mount_of_ones_own_is_nobody_elses(rt: Guest) -> None:
    assert rt.text("before") == rt.text("after")
    assert rt.text("still-unmounted") == ""


def test_what_explains_has_no_event_that_another_one_tells(rt: Guest) -> None:
    record = rt.record("explained")
    lines = text_lines(record)
    kinds = Counter(event for *_, event in lines)
    assert min(kinds["hrtimer_expire_entry"], kinds["local_timer_exit"], kinds["sched_waking"]) >= 500
    assert kinds.keys() & {"hrtimer_expire_exit", "local_timer_entry", "sys_exit_clock_nanosleep"} == set()
    assert {task for task, *_, event in lines if event == "hrtimer_start"} >= {"rtproof-0", "<idle>"}


def test_in_virtual_time_tracing_adds_its_instructions_to_every_activation(rt: Guest) -> None:
    found = tracing_effects(rt.record("turns"))
    assert found is not None
    assert (found.blocks, found.sets, found.refused) == (40, 10, "")
    effects = {effect.statistic: effect for effect in found.effects}
    median = effects["median"]
    assert 0 < median.low <= median.difference <= median.high < 100_000
    assert median.high - median.low < median.difference / 2


# The preemption model of real kernels: of one that can be told another while it runs, and of PREEMPT_RT.


DYNAMIC = """\
P=/sys/kernel/debug/sched/preempt
for model in none voluntary full; do
    echo $model > $P
    run $model
done
{ usleep 300000; echo none > $P; } &
run changed
wait
"""


@pytest.fixture(scope="module")
def dynamic(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1", DYNAMIC, tmp_path_factory)


def model(guest: Guest, name: str) -> PreemptionModel:
    return preemption_model(guest.record(name))


@pytest.mark.parametrize("name", ["none", "voluntary", "full"])
def test_what_the_kernel_does_now_is_told_beside_what_it_was_built_for(dynamic: Guest, name: str) -> None:
    found = model(dynamic, name)
    assert (found.built.value, found.effective.value, found.effective.confidence) == (
        *("dynamic", name),
        Confidence.CERTAIN,
    )
    assert (found.core.value, found.disagreements) == ("linux", ())


# The probe ipc in virtual time, where the kernel alone makes a value; and what a guest tells of itself.


RT, PLAIN_PROBE_IPC = "debian-6.1-rt", "debian-6.1"
SCRIPT_PROBE_IPC = f"""\
for method in {" ".join(METHODS)}; do run $method --probe ipc --method $method; done
true
"""
SAMPLES = 500


@pytest.fixture(scope="module", params=[RT, PLAIN_PROBE_IPC])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(request.param, SCRIPT_PROBE_IPC, tmp_path_factory)


def test_every_post_is_answered_before_the_next(guest: Guest) -> None:
    for method in METHODS:
        record = guest.record(method)
        assert totals(record) == [(SAMPLES, 0, 0)], method
        (wake,) = values(record).values()
        assert wake.min() > 0
        assert account(record)["skipped"] == "0"
        assert facts(record, "policy") == {"fifo"}
        assert invalid(record) == []
