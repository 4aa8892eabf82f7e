# SPDX-License-Identifier: Apache-2.0
"""The probe app on this machine: what it refuses, the same sieve by itself, and overruns. See test_probe_app.py too."""

import os
import signal
import subprocess
from pathlib import Path

import agent_process
import numpy as np
import pytest
from agent_process import measured, needs_fifo, running
from app_cases import account, whole
from test_agent_refusals import refusal

from rtproof.summary.loops import loops_of_threads, relation_holds

MS = 1_000_000
CPU = str(max(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("work=naps", "there is no work 'naps': work= takes none, or some of outputs, sensor"),
        ("work=sensor", "the sensor's file '/sys/class/hwmon/hwmon0/temp1_input' can't be read: No such file"),
        ("sensor=/dev/null", "sensor= of probe app is for work=sensor, which is not asked for"),
        ("work=sieve,sieve_to=1", "sieve_to= of probe app takes a whole number from 2 to 100000000, not '1'"),
        ("work=busy", "work=busy of probe app needs busy_us=, such as busy_us=500"),
        ("increment=5", "increment= of probe app takes a number with a unit (ns, us, ms, s), such as 500us, not '5'"),
        ("work=outputs,marks=1", "marks= of probe app takes yes or no"),
        ("work=outputs,lines=1+x+3", "three numbers of lines"),
        ("work=outputs,chip=0", "chip= of probe app takes a GPIO chip together with lines="),
        ("work=outputs,chip=none,lines=1+2+3", "there is no GPIO chip 'none'"),
    ],
)
def test_options_without_sense_get_one_sentence(tmp_path: Path, options: str, sentence: str) -> None:
    if options == "work=sensor" and Path("/sys/class/hwmon/hwmon0/temp1_input").exists():
        pytest.skip("this machine has the sensor that article 3 reads")
    probe = f"app:{options}"
    assert sentence in refusal("run", "-o", tmp_path / "record", "--samples", "10", "--probe", probe)
    assert list(tmp_path.iterdir()) == []


@agent_process.needs_root
def test_a_sensor_that_may_not_be_read_is_refused(tmp_path: Path) -> None:
    sensor = tmp_path / "sensor"
    sensor.write_text("1")
    sensor.chmod(0)
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    probe = f"app:work=sensor,sensor={sensor}"
    done = agent_process.run("run", "-o", tmp_path / "record", "--samples", "10", "--probe", probe, prefix=nobody)
    assert done.returncode == 2
    assert "can't be read: Permission denied; say which" in done.stderr


def test_a_sensor_that_disappears_ends_the_run_in_a_sentence(tmp_path: Path) -> None:
    """The state of a process, which is gone once that has ended. What was measured until then is there."""
    path = tmp_path / "record"
    with subprocess.Popen(["sleep", "1000"]) as sensed:
        sensor = f"/proc/{sensed.pid}/stat"
        arguments = ("--threads", "1", *agent_process.policy(), "--period", "5ms", "--duration", "1h")
        with running("-o", path, "--probe", f"app:work=sensor,sensor={sensor}", *arguments) as agent:
            agent.await_ns(200 * MS)
            sensed.kill()
            sensed.wait()
            assert agent.end() == 2
    why = f"thread 0 could not do its work: the sensor's file '{sensor}' can't be read any more: No such process"
    assert agent.messages == [f"rtproof-agent: {why}"]
    record = agent_process.whole(path)
    assert record.end
    assert (record.end.reason.name, record.end.text) == ("ERROR", why)
    assert whole(record).index.size >= 1
    assert account(record)["sensed"].startswith(f"{sensed.pid} (sleep)")


@pytest.mark.serial
@needs_fifo
@pytest.mark.parametrize("method", ["absolute", "shift"])
def test_a_loop_that_was_stopped_catches_up_or_moves_its_target(tmp_path: Path, method: str) -> None:
    """Stopped for at least three and a half periods. Any other loop may be as late on a busy machine."""
    period_ns = 200 * MS
    path = tmp_path / "record"
    with running(
        *("-o", path, "--probe", "app:work=usleep", "--method", method, "--period", "200ms", "--duration", "600s"),
        *("--threads", "1", "--policy", "fifo"),
    ) as agent:
        agent.await_ns(450 * MS)
        agent.stop_for(7 * period_ns // 2)
        agent.await_more(5 * period_ns)
        agent.process.send_signal(signal.SIGINT)
        assert agent.end() == 0
    record = agent_process.whole(path)
    loops = whole(record)
    ends_ns, targets_ns = loops.end_ns[:-1], loops.target_ns[:-1] + period_ns
    overrun = ends_ns >= targets_ns
    late = int(np.argmax(loops.error_ns))
    assert loops.followed[:-1].all()
    assert loops.error_ns[late] > 2 * period_ns
    assert loops.loop_ns[:-1].max() > 3 * period_ns
    assert ((loops.slack_ns[:-1] <= 0) == overrun).all()
    assert (loops.target_ns[1:] == (np.where(overrun, ends_ns, targets_ns) if method == "shift" else targets_ns)).all()
    assert overrun[late : late + (1 if method == "shift" else 2)].all(), "the loop behind it is still behind"
    (told,) = loops_of_threads(record).values()
    assert relation_holds(told.loop.count, told.loop.sum, told.elapsed_ns)


def test_a_delay_beyond_the_end_of_the_run_ends_it(tmp_path: Path) -> None:
    """The third loop would be due an hour later: nobody waits for it, and nobody takes the thread for stalled."""
    record = measured(
        tmp_path / "record", *agent_process.policy(), "--cpus", CPU, "--period", "10ms", "--duration", "1s",
        "--probe", "app:increment=1h",
    )  # fmt: skip
    assert record.end
    assert record.end.text == ""
    assert [total.obtained for total in record.end.totals] == [2, 2, 2]
    assert [event.kind for event in record.events if event.kind == "stalled"] == []
