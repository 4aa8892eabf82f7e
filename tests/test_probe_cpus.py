# SPDX-License-Identifier: Apache-2.0
"""The kernel's probes on two CPUs of a newer kernel: function only, since there two CPUs take turns in virtual time."""

import shutil
import subprocess
from pathlib import Path

import probe_guest
import pytest
from probe_guest import Guest

from rtproof.lab import kernel_catalogue
from rtproof.summary.recorded_facts import stalled_since_ns

pytestmark = pytest.mark.slow

NAME = "debian-6.12-rt"
HOG = Path(__file__).parent / "hog.c"

# The hog starves CPU 1 until after the agent has given up; nothing may be left over for those without real-time policy.
SCRIPT = """\
run user --probe timerlat
cat /sys/kernel/tracing/osnoise/options > /out/options
insmod /rtproof.ko || exit
run task --probe kernel --method task
echo -1 > /proc/sys/kernel/sched_rt_runtime_us
for server in /sys/kernel/debug/sched/fair_server/cpu*; do echo 0 > $server/runtime; done
LOOP="--probe kernel --method loop --period 10ms --warmup 100ms --policy other --cpus 1"
/agent run $LOOP --duration 1s -o /out/stalled 2> /out/stalled.said & agent=$!
usleep 500000
/hog 1 50 7
wait $agent
/agent run $LOOP --duration 2s -o /out/resumed 2> /out/resumed.said & agent=$!
usleep 500000
/hog 1 50 1
wait $agent
"""


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    if kernel_catalogue.cached_kernel(kernel_catalogue.catalogue_entry(NAME)) is None:
        pytest.skip(f"{NAME} is not in the cache: rtproof lab kernels fetch {NAME}")
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    hog = tmp_path_factory.mktemp("hog") / "hog"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-o", hog, HOG], check=True)
    return probe_guest.run(NAME, SCRIPT, tmp_path_factory, 2, ("/hog", hog))


def test_a_thread_of_ours_has_three_stages_on_each_cpu(guest: Guest) -> None:
    record = guest.record("user")
    assert [(s.thread, s.cpu, s.field) for s in record.series] == [
        (cpu, cpu, stage) for cpu in (0, 1) for stage in ("irq", "thread", "user")
    ]
    assert record.end is not None
    assert [total.obtained + total.missed + total.lost for total in record.end.totals] == [500] * 6
    for thread in (0, 1):
        irq, woken, back = (
            [value for block in record.blocks(s.id) for value in block.values.tolist()]
            for s in record.series
            if s.thread == thread
        )
        assert all(a <= b <= c for a, b, c in zip(irq, woken, back, strict=True))


def test_two_processors_in_virtual_time_are_invalid(guest: Guest) -> None:
    assert any(
        what.startswith("in virtual time 2 processors share") for what in probe_guest.invalid(guest.record("user"))
    )


def test_the_option_for_threads_of_ours_is_taken_back(guest: Guest) -> None:
    assert "OSNOISE_WORKLOAD" in guest.text("options").split()


def test_each_cpu_has_its_source(guest: Guest) -> None:
    record = guest.record("task")
    assert record.end is not None
    assert [total.obtained + total.missed for total in record.end.totals] == [500] * 4


def test_a_loop_that_stands_still_is_an_event(guest: Guest) -> None:
    """Since when: within the 50 ms in which the module gathers what it hands out."""
    record = guest.record("stalled")
    assert record.end is not None
    (since_ns,) = (ns for ns in map(stalled_since_ns, record.events) if ns is not None)
    (total,) = record.end.totals
    assert 0 < total.obtained < 100
    assert since_ns == total.obtained * 10_000_000


def test_a_loop_that_goes_on_catches_up(guest: Guest) -> None:
    record = guest.record("resumed")
    (cycles,) = probe_guest.values(record).values()
    assert cycles.size == 200
    assert cycles.max() > 500_000_000
    assert [event for event in record.events if event.kind == "stalled"] == []
