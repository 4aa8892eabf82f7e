# SPDX-License-Identifier: Apache-2.0
"""The probe kernel in guests with PREEMPT_RT and without: one boot of each, in virtual time."""

from collections import Counter
from collections.abc import Iterator

import probe_guest
import pytest
from probe_guest import Guest, facts, invalid, values

from rtproof.judge.analyse import analyse
from rtproof.record import histogram_bins
from rtproof.record.contents import Record

pytestmark = pytest.mark.slow

RT, PLAIN = "debian-6.1-rt", "debian-6.1"
LOADS = ("idle", "mmap")
SCRIPT = f"""\
/agent list > /out/list
run tracer --probe timerlat
run nothing --probe kernel
insmod /rtproof.ko || exit
run auto --probe kernel
for load in {" ".join(LOADS)}; do
    [ $load = idle ] && loads= || loads="--load $load"
    for method in timer task user; do run $load-$method $loads --probe kernel --method $method; done
done
for policy in fifo other; do run loop-$policy --probe kernel --method loop --period 5ms --policy $policy; done
run loop-band --probe kernel:ignore=7,high=7ms --method loop --period 5ms
run task-band --probe kernel:ignore=7 --method task
run rr --probe kernel --method task --policy rr --priority 30 --samples 50
run summary --probe kernel --method task --record summary
/agent run --duration 1500ms --period 100us --probe kernel --method task -o /out/slow 2> /out/slow.said & slow=$!
usleep 1500000
kill -STOP $slow
usleep 700000
kill -CONT $slow
wait $slow
run deadline --probe kernel --method task --policy deadline
run too-short --probe kernel --method task --period 10us
rmmod rtproof && echo unloaded > /out/unloaded
"""


@pytest.fixture(scope="module", params=[RT, PLAIN])
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(request.param, SCRIPT, tmp_path_factory)


def kernel_records(guest: Guest) -> Iterator[Record]:
    for load in LOADS:
        for method in ("timer", "task", "user"):
            yield guest.record(f"{load}-{method}")
    for name in ("loop-fifo", "loop-other", "rr"):
        yield guest.record(name)


def account(record: Record, field: str, thread: int = 0) -> Counter[str]:
    """The module's own account of a stage: numbers by name, bins as "bin N"."""
    path = f"rtproof.ko/thread{thread}/{field}"
    (content,) = (file.content.decode() for file in record.files if file.path == path)
    return Counter({name: int(number) for name, _, number in (line.rpartition(" ") for line in content.splitlines())})


def test_every_due_time_is_accounted_for(guest: Guest) -> None:
    for record in kernel_records(guest):
        assert record.end is not None
        asked = int(record.fact("samples") or 0)
        assert {t.obtained + t.missed for t in record.end.totals} == {asked}
        assert {t.lost for t in record.end.totals} == {0}


def test_no_event_has_its_stages_in_another_order(guest: Guest) -> None:
    for load in LOADS:
        for method, deepest in (("task", "task"), ("user", "user")):
            stages = values(guest.record(f"{load}-{method}"))
            assert list(stages) == ["irq", deepest]
            assert (stages["irq"] <= stages[deepest]).all()


def test_each_stage_is_later_than_the_one_before(guest: Guest) -> None:
    """The shortest way: what a load adds to one run and not to another is no matter of the stage."""
    for load in LOADS:
        task, user = (values(guest.record(f"{load}-{method}")) for method in ("task", "user"))
        assert task["irq"].min() < task["task"].min() < user["user"].min()


def test_the_modules_account_is_that_of_the_record(guest: Guest) -> None:
    for record in kernel_records(guest):
        for field, got in values(record).items():
            if field == "user":
                continue
            told = account(record, field)
            assert (told["count"], told["lost"], told["rests"]) == (got.size, 0, 0)
            assert (told["min"], told["max"], told["sum"]) == (got.min(), got.max(), got.sum())
            assert told["sum_squares"] == sum(int(value) ** 2 for value in got)
            found = Counter(f"bin {place}" for place in histogram_bins.bin_of(got).tolist())
            assert {name: n for name, n in told.items() if name.startswith("bin ")} == found


def test_missed_due_times_are_those_of_the_module(guest: Guest) -> None:
    for record in kernel_records(guest):
        assert record.end is not None
        assert {account(record, s.field)["missed"] for s in record.series if s.field != "user"} == {
            total.missed for total in record.end.totals
        }


def test_a_slow_reader_loses_samples_and_not_the_truth(guest: Guest) -> None:
    """The agent was stopped for longer than the module's buffer lasts."""
    record = guest.record("slow")
    assert record.end is not None
    for series, total in zip(record.series, record.end.totals, strict=True):
        told = account(record, series.field)
        assert total.obtained + total.missed + total.lost == 15_000
        assert total.lost > 0
        assert told["count"] + told["missed"] == 15_000
        assert told["lost"] == total.lost


def test_a_summary_needs_no_samples(guest: Guest) -> None:
    record = guest.record("summary")
    assert record.chunk_refs == ()
    assert account(record, "task")["count"] == 500


def test_the_facts_are_the_kernel_tasks(guest: Guest) -> None:
    for name, policy, priority in (("idle-task", "fifo", "80"), ("rr", "rr", "30"), ("loop-other", "other", "0")):
        record = guest.record(name)
        assert (facts(record, "policy"), facts(record, "priority")) == ({policy}, {priority})
        assert facts(record, "cpu") == facts(record, "affinity") == {"0"}


def test_nothing_accuses_the_reader(guest: Guest) -> None:
    for record in kernel_records(guest):
        assert invalid(record) == []
        assert [event for event in record.events if event.kind != "kernel"] == []


def test_a_loop_is_told_by_cycles_and_its_band_and_the_others_are_not(guest: Guest) -> None:
    record = guest.record("loop-band")
    assert [series.loop for series in record.series] == [True]
    assert [series.loop for series in guest.record("idle-task").series] == [False, False]
    found = analyse(record).cycles
    assert found is not None
    assert (found.ignored, found.counted, found.low_ns, found.high_ns) == (7, 499 - 7, 4_000_000, 7_000_000)
    assert analyse(guest.record("idle-task")).cycles is None
    assert guest.said("task-band") == "rtproof-agent: option 'ignore' is for method loop only\nexit 2\n"


def test_the_loop_wakes_sooner_with_a_real_time_policy(guest: Guest) -> None:
    loops = [values(guest.record(f"loop-{policy}"))["task"].min() for policy in ("fifo", "other")]
    assert loops[0] < loops[1]


def test_the_module_comes_first(guest: Guest) -> None:
    record = guest.record("auto")
    assert {s.method for s in record.series} == {record.fact("method")} == {"task"}


def test_the_list_says_what_is_missing(guest: Guest) -> None:
    lines = {
        tuple(line.split("\t")[1:3]): line for line in guest.text("list").splitlines() if line.startswith("method")
    }
    assert lines["kernel", "task"].endswith("; not here: the module rtproof.ko is not loaded")
    assert ("not here" in lines["kernel", "auto"]) == (guest.name == PLAIN)
    assert ("(CONFIG_TIMERLAT_TRACER)" in lines["timerlat", "thread"]) == (guest.name == PLAIN)


def test_what_cannot_be_has_a_sentence(guest: Guest) -> None:
    assert guest.said("deadline") == (
        "rtproof-agent: method task can't have policy deadline; take fifo, rr or other\nexit 2\n"
    )
    assert guest.said("too-short") == (
        "rtproof-agent: thread 0 could not start the module's source (its periods are from 20 us to 1 h): "
        "Invalid argument\nexit 2\n"
    )
    assert guest.text("unloaded") == "unloaded\n"


def test_without_both_there_is_a_sentence(guest: Guest) -> None:
    """The kernel with PREEMPT_RT has the tracer, which then takes the module's place."""
    if guest.name == RT:
        assert {s.method for s in guest.record("nothing").series} == {"timerlat"}
        return
    why = "this kernel has no timerlat tracer (CONFIG_TIMERLAT_TRACER)"
    assert guest.said("tracer") == f"rtproof-agent: the method can't run here: {why}\nexit 2\n"
    why = f"the module rtproof.ko is not loaded, and {why}"
    assert guest.said("nothing") == f"rtproof-agent: the method can't run here: {why}\nexit 2\n"
