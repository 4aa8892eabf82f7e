# SPDX-License-Identifier: Apache-2.0
"""What must not be done to the machine that runs the tests: its clock slewed, a CPU taken off line."""

from pathlib import Path

import lab_kernels
import numpy as np
import probe_guest
import pytest
from agent_process import agent
from probe_guest import Guest

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement, State
from rtproof.record.contents import Moment, Record
from rtproof.record.reading import open_record
from rtproof.summary.summary_model import Severity
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine, Mode

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
/agent run --cpus 1 --threads 1 --policy fifo --duration 6s --period 10ms -o /out/record &
sleep 2
echo 0 > /sys/devices/system/cpu/cpu1/online
sleep 2
echo 1 > /sys/devices/system/cpu/cpu1/online
wait
"""


@pytest.fixture(scope="module")
def clocks(tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return probe_guest.run(KERNEL, CLOCK, tmp_path_factory)


def invalid(record: Record) -> dict[str, str]:
    found = analyse(record, [Requirement(5 * SECOND)])
    doubts = {doubt.code: doubt.what for doubt in found.doubts if doubt.severity is Severity.INVALID}
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
    assert "ppm too fast against the hardware's clock" in invalid(record)["clock-slewed"]


def test_a_clock_slewed_for_a_second_is_invalid(clocks: Guest) -> None:
    assert "ppm too slow against the hardware's clock" in invalid(clocks.record("slow_for_a_second"))["clock-slewed"]


def test_a_cpu_taken_off_line_and_back(tmp_path: Path) -> None:
    """Real time, because processors take turns in virtual time. The thread goes elsewhere when its CPU goes."""
    machine = Machine(lab_kernels.kernel(KERNEL), cpus=2, mode=Mode.WALL_CLOCK)
    outcome = run_job(machine, Job(HOTPLUG, (("/agent", Path(agent())),)), tmp_path / "out")
    assert outcome.exit_code == 0, outcome.said
    record = open_record(tmp_path / "out" / "record")
    conditions = record.conditions[0]
    assert conditions.elsewhere.sum() > 0
    assert [record.fact("affinity", moment, 0) for moment in (Moment.START, Moment.END)] == ["1", "0-1"]
    assert "thread 0 ran on CPU 0 instead of CPU 1" in invalid(record)["cpu"]
