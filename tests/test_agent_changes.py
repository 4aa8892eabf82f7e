# SPDX-License-Identifier: Apache-2.0
"""What somebody else does to the measuring threads while they measure, and that the record tells."""

import os
from pathlib import Path

import pytest
from agent_process import needs_fifo, running, whole

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import State

pytestmark = pytest.mark.serial
SECOND = 1_000_000_000


def measuring_thread(pid: int, name: str = "rtproof-0") -> int:
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == name:
            return int(task.name)
    pytest.fail(f"process {pid} has no thread {name}")


@needs_fifo
def test_a_policy_taken_away_is_noticed_and_spoils_the_run(tmp_path: Path) -> None:
    path = tmp_path / "record"
    with running("-o", path, "--policy", "fifo", "--threads", "1", "--duration", "5s") as one:
        one.await_ns(SECOND)
        os.sched_setscheduler(measuring_thread(one.process.pid), os.SCHED_OTHER, os.sched_param(0))
        assert one.end() == 0
    record = whole(path)
    (event,) = [event for event in record.events if event.kind == "policy_changed"]
    assert (event.thread, event.text) == (0, "other")
    assert event.time_ns > SECOND / 2
    assert analyse(record).verdict.state is State.INVALID
