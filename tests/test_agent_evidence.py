# SPDX-License-Identifier: Apache-2.0
"""What a measuring thread counts about itself: that its loop makes no calls but its own (a printf there would show)."""

import subprocess
from pathlib import Path

import pytest
from agent_process import agent, measured, policy

from rtproof.record.contents import Moment, Record
from rtproof.record.reading import open_record
from rtproof.summary.kernel_model import ModeSwitches, mode_switches

pytestmark = pytest.mark.serial
SHORT = (*policy(), "--threads", "1", "--samples", "100", "--warmup", "50ms", "--period", "5ms")


def number(record: Record, key: str, moment: Moment) -> int:
    value = record.fact(key, moment, 0)
    if value is None or value.startswith("unavailable"):
        pytest.skip(f"{key} cannot be had here: {value}")
    return int(value)


def test_threads_of_evl_are_asked_for_at_both_ends(tmp_path: Path) -> None:
    """In a namespace that has such a thread; its count of in-band switches goes on while the agent measures."""
    script = f"""
    cd /sys/devices/virtual && mount -t tmpfs none $PWD && cd $PWD && mkdir -p thread/sampler:7 || exit 77
    echo "3 50 60 0 70 1" > thread/sampler:7/stats
    {agent()} run -o {tmp_path}/record {" ".join(SHORT)} &
    until grep -q "3 50 60 0 70 1" {tmp_path}/record; do kill -0 $! || exit 1; done 2> /dev/null
    echo "44 90 99 0 80 1" > thread/sampler:7/stats
    wait $!
    """
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, timeout=60, check=False)
    if done.returncode == 77 or done.stderr.startswith(b"unshare"):
        pytest.skip(f"no namespace to try it in: {done.stderr.decode().strip()}")
    assert done.returncode == 0
    assert mode_switches(open_record(tmp_path / "record")) == (ModeSwitches("sampler:7", 3, 44),)


def test_a_loop_that_only_sleeps_neither_reads_nor_writes(tmp_path: Path) -> None:
    assert number(measured(tmp_path / "record", *SHORT), "io_calls", Moment.END) == 0


def test_each_reading_of_the_sensor_is_counted_the_warm_up_included(tmp_path: Path) -> None:
    sensor = tmp_path / "temp1_input"
    sensor.write_text("41000\n")
    record = measured(tmp_path / "record", "--probe", f"app:work=sensor,sensor={sensor}", *SHORT)
    loops = 100 + number(record, "warmup_activations", Moment.START)
    assert number(record, "io_calls", Moment.END) == loops
