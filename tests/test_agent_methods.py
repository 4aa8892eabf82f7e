# SPDX-License-Identifier: Apache-2.0
"""Every way to measure, really run: what is counted and what the record says of it, never how fast this machine is."""

import os
from pathlib import Path

import agent_process
import pytest
import recompute
from agent_process import measured, needs_fifo

from rtproof.judge.analyse import analyse
from rtproof.record.contents import Moment, Record, View

pytestmark = pytest.mark.real

ON_GRID = ("clock_nanosleep", "setitimer", "posix_timer", "timerfd")
OFF_GRID = ("clock_nanosleep_relative", "nanosleep")


def obtained(record: Record) -> list[int]:
    assert record.end is not None
    return [total.obtained for total in record.end.totals]


def all_due(record: Record) -> list[int]:
    assert record.end is not None
    return [total.obtained + total.missed + total.lost for total in record.end.totals]


@pytest.mark.parametrize("method", ON_GRID)
def test_methods_on_the_grid_serve_every_due_time(tmp_path: Path, method: str) -> None:
    threads = 1 if method == "setitimer" else 2
    record = measured(
        tmp_path / "record", *agent_process.policy(), "--method", method, "--samples", "500", "--period", "1ms",
        "--threads", str(threads), "--checkpoint", "100ms",
    )  # fmt: skip
    assert all_due(record) == [500] * threads
    assert min(obtained(record)) > 0
    assert {series.method for series in record.series} == {method}
    recompute.check(record)


@pytest.mark.parametrize("length", [("--samples", "300"), ("--duration", "300ms")])
def test_each_thread_may_have_a_period_of_its_own(tmp_path: Path, length: tuple[str, str]) -> None:
    """As cyclictest's distance: all end with the first thread."""
    record = measured(
        tmp_path / "record", *agent_process.policy(), *length, "--period-step", "500us", "--threads", "4",
    )  # fmt: skip
    assert [series.period_ns for series in record.series] == [1_000_000, 1_500_000, 2_000_000, 2_500_000]
    assert all_due(record) == [300, 200, 150, 120]
    assert record.fact("period_step_ns") == "500000"
    recompute.check(record)
    analysis = analyse(record)
    assert not {"samples-missing", "samples-surplus"} & {doubt.code for doubt in analysis.doubts}
    assert (analysis.pooled.expected, analysis.pooled.series.period_ns) == (770, round(4 / (77 / 30) * 1_000_000))


def test_a_run_begins_at_its_part_of_a_second_and_ends_with_the_first_latency_above_the_break(tmp_path: Path) -> None:
    record = measured(
        tmp_path / "record", *agent_process.policy(), "--samples", "500", "--threads", "1", "--warmup", "10ms",
        "--align", "250ms", "--break", "1ns",
    )  # fmt: skip
    assert record.begin.origin_monotonic_ns % 1_000_000_000 == 250_000_000
    assert obtained(record) == [1]
    (event,) = (event for event in record.events if event.kind == "limit")
    assert event.text.endswith(" ns is above --break")


@pytest.mark.serial  # its writer must get a CPU for each checkpoint
@pytest.mark.parametrize("method", OFF_GRID)
def test_methods_off_the_grid_count_from_each_wake_up(tmp_path: Path, method: str) -> None:
    """Each latency stretches the time to the next due time, which is why there are fewer in the end."""
    record = measured(
        tmp_path / "record", *agent_process.policy(), "--method", method, "--duration", "500ms", "--period", "1ms",
        "--threads", "2", "--checkpoint", "100ms",
    )  # fmt: skip
    for series in record.series:
        samples = recompute.ran(record, series)
        assert not series.on_grid
        assert samples.due_ns[-1] + samples.value[-1] >= 500_000_000 - 1_000_000
        assert samples.due_ns[-1] < 500_000_000
        assert samples.due_ns[0] >= series.first_due_ns
    recompute.check(record)


@pytest.mark.parametrize("probe", ["timer", "ipc:sender=other"])
def test_cpus_outside_of_the_own_affinity_are_measured(tmp_path: Path, probe: str) -> None:
    """As isolated CPUs are (isolcpus=): in no affinity until a thread binds itself to them."""
    own, other, *_ = (*sorted(os.sched_getaffinity(0)), None)
    if other is None:
        pytest.skip("there is only one CPU")
    asked = ("--warmup", "20ms", "--cpus", str(other), "--probe", probe, "--samples", "200")
    path, alone = tmp_path / "record", ("taskset", "-c", str(own))
    done = agent_process.run("run", "-o", path, *agent_process.policy(), *asked, prefix=alone)
    assert (done.returncode, done.stderr) == (0, "")
    record = agent_process.whole(path)
    assert [series.cpu for series in record.series] == [other]
    assert record.fact("affinity", Moment.END, 0) == record.fact("cpu", Moment.END, 0) == str(other)
    assert str(record.fact("writer", Moment.START)).endswith(f"CPUs {own}")
    assert not {doubt.code for doubt in analyse(record).doubts} & {"cpu", "affinity"}
    if probe != "timer":
        (account,) = (file.content.decode() for file in record.files if file.path == "ipc/thread0")
        assert account.startswith(f"sender_cpu {own}\n")


@pytest.mark.parametrize(("phase", "between_us"), [("250us", 250), ("5250us", 250), ("3600s", 0), ("700us", 700)])
def test_neighbours_are_a_phase_apart_but_never_a_period(tmp_path: Path, phase: str, between_us: int) -> None:
    record = measured(
        tmp_path / "record", *agent_process.policy(), "--phase", phase, "--threads", "3", "--samples", "100",
        "--until-decided",
    )  # fmt: skip
    assert [series.first_due_ns for series in record.series] == [n * between_us * 1000 % 1_000_000 for n in range(3)]
    assert all_due(record) == [100] * 3
    assert record.fact("until_decided") == "yes"


@pytest.mark.serial  # all threads of policy deadline share what the kernel gives to it
@pytest.mark.parametrize("policy", ["other", *(pytest.param(p, marks=needs_fifo) for p in ("fifo", "rr", "deadline"))])
def test_threads_have_the_policy_that_was_asked_for(tmp_path: Path, policy: str) -> None:
    if policy == "deadline" and len(os.sched_getaffinity(0)) < (os.cpu_count() or 0):
        pytest.skip("this process may not use every CPU, which policy deadline needs")
    priority = "41" if policy in ("fifo", "rr") else "0"
    asked = ("--priority", priority) if priority != "0" else ()
    record = measured(tmp_path / "record", "--policy", policy, *asked, "--samples", "1000", "--threads", "2")
    assert record.fact("policy") == policy
    for thread in (0, 1):
        for moment in (Moment.START, Moment.DURING, Moment.END):
            assert record.fact("policy", moment, thread) == policy
            assert record.fact("priority", moment, thread) == priority
    assert all_due(record) == [1000, 1000]
    assert min(obtained(record)) > 0


def test_the_warm_up_is_not_in_the_record(tmp_path: Path) -> None:
    path = tmp_path / "record"
    done = agent_process.run("run", "-o", path, *agent_process.policy(), "--samples", "200", "--warmup", "300ms")
    assert done.returncode == 0
    record = agent_process.whole(path)
    assert set(all_due(record)) == {200}
    for series in record.series:
        assert int(record.fact("warmup_activations", Moment.START, series.thread) or 0) > 0
        assert recompute.ran(record, series).due_ns[0] >= series.first_due_ns >= 0


def test_a_summary_has_no_samples_and_all_their_numbers(tmp_path: Path) -> None:
    """More activations than fit into a block of samples, which are not kept here."""
    record = measured(
        tmp_path / "record", *agent_process.policy(), "--record", "summary", "--period", "100us", "--samples", "10000",
        "--threads", "1",
    )  # fmt: skip
    assert record.chunk_refs == ()
    assert all_due(record) == [10_000]
    counts = {view: sum(one.count for one in record.slices if one.view is view) for view in View}
    assert counts[View.OBSERVED] == obtained(record)[0]
    assert counts[View.OBSERVED] + counts[View.CHARGED] + sum(one.lost for one in record.slices) == 10_000
    assert int(record.seconds[0].obtained.sum() + record.seconds[0].missed.sum()) == sum(counts.values())
    assert record.top[0].value.size == min(record.top[0].k, obtained(record)[0])
