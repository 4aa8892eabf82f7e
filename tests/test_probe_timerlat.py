# SPDX-License-Identifier: Apache-2.0
"""The probe timerlat, and the method of the probe kernel that is the same, in a guest with PREEMPT_RT."""

import numpy as np
import probe_guest
import pytest
from probe_guest import Guest, facts, invalid, values

from rtproof.record.contents import EndReason

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
run tracer-short --probe timerlat --period 50us
run tracer-twice --probe timerlat --threads 2
settings > /out/after
/agent run --probe timerlat --period 2ms --duration 1h -o /out/killed & victim=$!
until [ "$(cat $T/osnoise/timerlat_period_us)" = 2000 ]; do usleep 1000; done
usleep 300000
kill -9 $victim
until settings | cmp -s - /out/before; do usleep 10000; done
mkdir $T/instances/rtproof-99999
run tracer-leftover --probe timerlat
settings > /out/after-leftover
mkdir $T/instances/other
echo timerlat > $T/instances/other/current_tracer
run tracer-busy --probe timerlat
rmdir $T/instances/other
insmod /rtproof.ko && run module --probe kernel
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
    for name, policy, priority in (("tracer", "fifo", "80"), ("tracer-other", "other", "0")):
        record = rt.record(name)
        assert (facts(record, "policy"), facts(record, "priority")) == ({policy}, {priority})


def test_the_tracer_sees_what_the_module_sees(rt: Guest) -> None:
    """Its own work is in the way of its task, not in that of the interrupt, which it looks at first."""
    tracer, module = values(rt.record("tracer")), values(rt.record("module"))
    assert np.median(tracer["irq"]) == pytest.approx(np.median(module["irq"]), rel=0.5)
    assert np.median(module["task"]) <= np.median(tracer["thread"]) < 2 * np.median(module["task"])


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


def test_a_tracer_that_cannot_be_had_has_a_sentence(rt: Guest) -> None:
    for name, why in (
        ("tracer-short", "set the timerlat tracer's period (100 us to 1 s): Invalid argument"),
        ("tracer-busy", "have the timerlat tracer, which somebody else uses: Resource busy"),
        ("tracer-twice", "have a timerlat task for itself: each CPU has but one: Resource busy"),
    ):
        said = rt.said(name).replace("Device or resource busy", "Resource busy").replace("thread 1", "thread 0")
        assert said == f"rtproof-agent: thread 0 could not {why}\nexit 2\n"
