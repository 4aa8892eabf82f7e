# SPDX-License-Identifier: Apache-2.0
"""What must not be done to the machine that runs the tests: its clock slewed, a CPU taken off line."""

from functools import partial
from pathlib import Path

import lab_kernels
import numpy as np
import probe_guest
import pytest
from agent_process import agent
from probe_guest import Guest

from rtproof.agents.build import find_agent
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State
from rtproof.lab import guest_cell
from rtproof.lab.cell_runner import CellResults, run_missing_cells
from rtproof.lab.guest_cell import CellSetting, CellStore, GuestCell, parse_guest_load
from rtproof.lab.systems import NamedKernel, systems
from rtproof.record import run_folder
from rtproof.record.contents import Counter, Moment, Record
from rtproof.record.reading import open_record
from rtproof.record.requirement import Requirement
from rtproof.summary.summary_model import Severity
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow
SECOND = 1_000_000_000
KERNEL = "debian-6.1"
CLOCK = """\
run plain --samples 3000 --period 1ms
adjtimex -t 11000 > /dev/null
run fast --samples 3000 --period 1ms
adjtimex -t 10000 > /dev/null
{ sleep 2; adjtimex -t 9900 > /dev/null; sleep 1; adjtimex -t 10000 > /dev/null; } &
run slow_for_a_second --samples 5000 --period 1ms
wait
"""
HOTPLUG = """\
/agent run --cpus 1 --threads 1 --policy fifo --duration 600s --period 10ms --progress 200ms -o /out/record 2>/told &
more() {
    told=$(($(grep -c obtained= /told) + $1))
    until [ "$(grep -c obtained= /told)" -ge $told ]; do kill -0 $! || exit; sleep 0.1; done
}
more 2; echo 0 > /sys/devices/system/cpu/cpu1/online
more 10; echo 1 > /sys/devices/system/cpu/cpu1/online
more 2; kill -INT $!
wait $!
"""


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(KERNEL, CLOCK, tmp_path_factory)


def invalid(record: Record) -> dict[str, str]:
    found = analyse(record, [Requirement(5 * SECOND)])
    doubts = {doubt.code: doubt.whole for doubt in found.doubts if doubt.severity is Severity.INVALID}
    assert (found.verdict.state is State.INVALID) == bool(doubts)
    return doubts


def slew_ppm(record: Record) -> float:
    (raw,) = [counter for counter in record.counters if counter.name == "clock.raw"]
    return float(-np.polyfit(raw.time_ns, raw.value, 1)[0] * 1e6)


def test_a_clock_left_alone_keeps_to_the_hardware(clocks: Guest) -> None:
    assert abs(slew_ppm(clocks.record("plain"))) < 100
    assert "clock-slewed" not in invalid(clocks.record("plain"))


def test_a_clock_slewed_by_a_tenth_is_invalid(clocks: Guest) -> None:
    record = clocks.record("fast")
    assert slew_ppm(record) == pytest.approx(91_000, rel=0.02)  # of its own time: a tenth more is 1/11 of the whole
    assert "ppm too fast; CLOCK_MONOTONIC_RAW shows its rate" in invalid(record)["clock-slewed"]


def test_a_clock_slewed_for_a_second_is_invalid(clocks: Guest) -> None:
    assert (
        "ppm too slow; CLOCK_MONOTONIC_RAW shows its rate"
        in invalid(clocks.record("slow_for_a_second"))["clock-slewed"]
    )


def test_a_cpu_taken_off_line_and_back(tmp_path: Path) -> None:
    """Real time, because processors take turns in virtual time. The thread goes elsewhere when its CPU goes."""
    machine = Machine(lab_kernels.kernel(KERNEL), cpus=2, in_virtual_time=False)
    outcome = run_job(machine, Job(HOTPLUG, (("/agent", Path(agent())),)), tmp_path / "out")
    assert outcome.exit_code == 0, outcome.said
    record = open_record(tmp_path / "out" / "record")
    conditions = record.conditions[0]
    assert conditions.elsewhere.sum() > 0
    assert [record.fact("affinity", moment, 0) for moment in (Moment.START, Moment.END)] == ["1", "0-1"]
    assert "of the time; on CPU 0 instead of CPU 1 for about" in invalid(record)["cpu"]


# Built-in loads where there is nothing but a kernel and BusyBox, and where a real-time clock is sure to be.


LOADS = ("comms", "pingflood", "rtc", "churn", "irqmix", "lsr", "mem", "serve", "zero")
HZ = 1024
SAMPLES = {"rtc": 200}
"""Of the others half a second shows that they do something."""
SCRIPT = "\n".join(f"run {load} --samples {SAMPLES.get(load, 50)} --period 10ms --load {load}" for load in LOADS)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run("debian-6.1-rt", SCRIPT, tmp_path_factory)


def counter(guest: Guest, load: str) -> Counter:
    return next(one for one in guest.record(load).counters if one.name == f"load.{load}")


@pytest.mark.parametrize("load", LOADS)
def test_every_load_works(guest: Guest, load: str) -> None:
    assert counter(guest, load).value[-1] > 0


def test_the_clock_interrupts_as_often_as_asked(guest: Guest) -> None:
    done = counter(guest, "rtc")
    seconds = (done.time_ns[1] - done.time_ns[0]) / SECOND
    assert done.value[1] - done.value[0] == pytest.approx(HZ * seconds, rel=0.01)


# Real cells: two kernels of Debian's under one load, in QEMU.


INFO = run_folder.RunInfo(
    command=["rtproof"], started="", host="", user="", rtproof_version="", agent_sha256="", agent_arch="", target="qemu"
)


@pytest.fixture(scope="module")
def cells() -> list[GuestCell]:
    names = ("debian-6.1-rt", "debian-6.1")
    kernels = [NamedKernel(name, lab_kernels.kernel(name), catalogue=True) for name in names]
    setting = CellSetting(duration_ns=500_000_000, warmup_ns=200_000_000)
    load, agent = parse_guest_load("mmap"), find_agent("x86_64")
    return [GuestCell(system, load, setting, agent) for system in systems(kernels, ["none"])]


def measured(cells: list[GuestCell], folder: Path, jobs: int) -> CellResults:
    measure = partial(guest_cell.measure_guest_cell, {"x86_64": INFO})
    ran = run_missing_cells(cells, CellStore(folder), measure, jobs, lambda _: None)
    assert [result.failure for result in ran.results] == ["", ""]
    return ran


@pytest.fixture(scope="module")
def first(cells: list[GuestCell], tmp_path_factory: pytest.TempPathFactory) -> CellResults:
    return measured(cells, tmp_path_factory.mktemp("first"), 2)


def test_the_rt_kernel_is_told_from_the_plain_one(first: CellResults) -> None:
    """In virtual time these are numbers of instructions, so that they can be asserted."""
    rt, plain = (result.reading for result in first.results)
    assert rt
    assert plain
    assert 5 * rt.max_ns < plain.max_ns


def test_run_again_one_after_the_other_the_records_have_the_same_bytes(
    cells: list[GuestCell], first: CellResults, tmp_path: Path
) -> None:
    again = measured(cells, tmp_path, 1)
    assert again.fresh == 2
    for one, other in zip(first.results, again.results, strict=True):
        assert one.folder
        assert other.folder
        assert one.folder != other.folder
        assert (one.folder / "run.rtrec").read_bytes() == (other.folder / "run.rtrec").read_bytes()
