# SPDX-License-Identifier: Apache-2.0
"""What a measuring thread counts about itself: that its loop makes no calls but its own (a printf there would show)."""

from pathlib import Path

import pytest
from agent_process import measured, policy

from rtproof.record import Moment, Record

pytestmark = pytest.mark.serial
SHORT = (*policy(), "--threads", "1", "--samples", "100", "--warmup", "50ms", "--period", "5ms")


def number(record: Record, key: str, moment: Moment) -> int:
    value = record.fact(key, moment, 0)
    if value is None or value.startswith("unavailable"):
        pytest.skip(f"{key} cannot be had here: {value}")
    return int(value)


def test_a_loop_that_only_sleeps_neither_reads_nor_writes(tmp_path: Path) -> None:
    assert number(measured(tmp_path / "record", *SHORT), "io_calls", Moment.END) == 0


def test_each_reading_of_the_sensor_is_counted_the_warm_up_included(tmp_path: Path) -> None:
    sensor = tmp_path / "temp1_input"
    sensor.write_text("41000\n")
    record = measured(tmp_path / "record", "--probe", f"app:work=sensor,sensor={sensor}", *SHORT)
    loops = 100 + number(record, "warmup_activations", Moment.START)
    assert number(record, "io_calls", Moment.END) == loops
