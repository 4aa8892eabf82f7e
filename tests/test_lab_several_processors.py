# SPDX-License-Identifier: Apache-2.0
"""Faults that only several processors have, planted in guests: each shows where it was planted, and not in its twin.

One twin serves several plants: everything is kept away from the isolated CPU 1, and each plant changes one thing.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import lab_kernels
import lab_qemu
import pytest

from rtproof.cli.main import main
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record import run_folder

pytestmark = pytest.mark.slow

ISOLATED = "isolcpus=domain,managed_irq,1 irqaffinity=0 rcu_nocbs=1"
FIND = (
    'for at in /proc/[0-9]*/task/*; do read name <$at/comm; [ "$name" = %s ] && break; done 2>/dev/null; it=${at##*/}'
)
AGENT = "/lab/rtproof-agent"
WRITER = (
    "dd if=/dev/zero bs=4096 count=1 2>/dev/null | tr '\\0' x >/tmp/page",
    "(while :; do cat /tmp/page; usleep 5000; done) >/dev/ttyS0 &",
)
MOUNTS = "for i in 1 2; do while :; do mount -t unknown none /tmp; usleep 200; done >/dev/null 2>&1 & done"
"""The kernel starts a program at each mount of a kind that it does not know, and that is unbound work."""
SHORT = ("echo 95000 > /proc/sys/kernel/sched_rt_runtime_us", "echo 100000 > /proc/sys/kernel/sched_rt_period_us")
HOG = (
    f"for i in 1 2 3; do {AGENT} run --probe app:work=busy,busy_us=4500 --method shift --period 10ms --duration 3s "
    "--warmup 0ms --priority 50 --cpus %d -o /tmp/hog$i.rtrec >/out/hog$i 2>&1 & done"
)
"""Together they ask for more than a CPU; each for less than the half of it that the agent allows to a thread."""
MOVE = f"(sleep 0.55; {FIND % 'rtproof-0'}; taskset -p 1 $it; sleep 0.1; taskset -p 2 $it) >/out/moves 2>&1 &"


@dataclass(frozen=True)
class Plant:
    """What the setup of a guest plants; the twin has none of it.

    work, serial: the masks of CPUs of the kernel's unbound work, and of the serial line's interrupt.
    """

    work: int = 1
    serial: int = 1
    moves: bool = False

    def setup(self) -> tuple[str, ...]:
        """The lines that do it, and those that make work and interrupts, whoever is served by them."""
        masks = (
            f"echo {self.work} > /sys/devices/virtual/workqueue/cpumask",
            f"echo {self.serial} > /proc/irq/4/smp_affinity",
        )
        return (*masks, *WRITER, MOUNTS, *((MOVE,) if self.moves else ()))


TWIN = Plant()
Measure = Callable[[str, str, str, tuple[str, ...]], Analysis]


@pytest.fixture(scope="module")
def measure(tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """What the lab measured of a kernel, under a load, on CPUs, after a setup; each is measured once."""
    lab_qemu.for_several_processors()

    @functools.cache
    def measured(kernel: str, load: str, cpus: str, setup: tuple[str, ...]) -> Analysis:
        lab_kernels.fetched(kernel)
        output = tmp_path_factory.mktemp("cell") / "result"
        lines = [word for line in setup for word in ("--setup", line)]
        words = ["--processors", "2", "--measured-cpus", cpus, "--kernel", kernel, "--boot", ISOLATED, "--load", load]
        lengths = ["--preempt", "none", "--duration", "300ms", "--warmup", "300ms", "--shifts", "1", "--jobs", "1"]
        assert main(["lab", "compare", *words, *lengths, *lines, "--output", str(output)]) in {0, 3}
        (folder,) = (output / "cells").iterdir()
        return analyse(run_folder.open_run(Path(folder)).record, None, 1)

    return measured


def largest_ns(found: Analysis, cpu: int) -> int:
    (summary,) = (one for one in found.summaries if one.series.cpu == cpu)
    return max(summary.observed.max, summary.stalled_ns)


def plain(measure: Measure, plant: Plant) -> Analysis:
    return measure("debian-6.1", "mmap@0", "1", plant.setup())


def test_unbound_work_of_the_kernel_on_the_isolated_cpu_makes_it_late(measure: Measure) -> None:
    planted, twin = (plain(measure, plant) for plant in (Plant(work=2), TWIN))
    assert largest_ns(planted, 1) > 1.5 * largest_ns(twin, 1)


def test_an_interrupt_that_the_isolated_cpu_serves_makes_it_late(measure: Measure) -> None:
    planted, twin = (plain(measure, plant) for plant in (Plant(serial=2), TWIN))
    assert largest_ns(planted, 1) > 3 * largest_ns(twin, 1)


def test_a_thread_that_moves_is_late_where_the_load_is_and_the_record_says_where_it_ran(measure: Measure) -> None:
    planted, twin = (plain(measure, plant) for plant in (Plant(moves=True), TWIN))
    assert largest_ns(planted, 1) > 3 * largest_ns(twin, 1)
    (doubt,) = (each for each in planted.doubts if each.code == "cpu")
    assert doubt.detail.startswith("on CPU 0 instead of CPU 1 for about ")
    assert "cpu" not in {each.code for each in twin.doubts}


def test_throttling_stops_the_thread_of_one_cpu_and_no_other(measure: Measure) -> None:
    """In each of the two cells one CPU is throttled, and the other CPU of the same cell is not."""
    for late, other in ((1, 0), (0, 1)):
        found = measure("debian-6.1-rt", "idle", "0-1", (*SHORT, HOG % late))
        assert largest_ns(found, late) > 50 * largest_ns(found, other)
        assert "throttled" in {each.code for each in found.doubts}
