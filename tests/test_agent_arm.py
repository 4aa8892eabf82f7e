# SPDX-License-Identifier: Apache-2.0
"""The build for article 3's processor, an ARM920T, runs its application and the timers under an emulator."""

import importlib.util
import subprocess
from pathlib import Path

import pytest
import recompute
from agent_process import PATIENCE_S
from app_cases import account, whole
from test_agents import emulator

from rtproof.agents import build
from rtproof.agents.architectures import architecture
from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.summary.loops import loops_of_threads

ARM920T = architecture("arm920t")
OPTIONS = ("--policy", "other", "--no-lock-memory", "--threads", "1", "--warmup", "50ms", "--period", "20ms")
SAMPLES = 25

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="ziglang is not installed (extra cross)"),
]


def run_emulated(path: Path, *options: str) -> Record:
    """A record of the emulated agent; its times are those of an emulator, and nothing is said of them."""
    agent = str(build.build_agent(ARM920T.name, "zig"))
    command = [*emulator(ARM920T), agent, "run", "-o", str(path), *OPTIONS, *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    record = open_record(path)
    assert record.damage == ()
    assert record.begin.machine.startswith("armv")
    assert record.end is not None
    assert {total.obtained + total.missed + total.lost for total in record.end.totals} == {SAMPLES}
    return record


def test_the_application_runs_on_an_arm920t(tmp_path: Path) -> None:
    sensor = tmp_path / "temp1_input"
    sensor.write_text("23500\n")
    work = f"work=outputs+sensor+usleep+sieve+memory+lock,sensor={sensor},comment=EP9302"
    record = run_emulated(tmp_path / "record", "--probe", f"app:{work}", "--samples", str(SAMPLES))
    loops = whole(record)
    told = account(record)
    assert (told["primes"], told["sensed"]) == ("9592", "23500")
    assert int(told["pulses_work"]) == int(told["loops"]) >= loops.index.size == SAMPLES
    assert (
        (loops.target_ns <= loops.top_ns) & (loops.top_ns <= loops.start_ns) & (loops.start_ns < loops.end_ns)
    ).all()
    (each,) = loops_of_threads(record).values()
    assert each.loop.sum == each.elapsed_ns > 0


def test_the_timer_runs_on_an_arm920t(tmp_path: Path) -> None:
    record = run_emulated(tmp_path / "record", "--samples", str(SAMPLES))
    recompute.check(record)
