# SPDX-License-Identifier: Apache-2.0
"""Marks of a real application in a real trace: what they measure, what is refused, and that nothing of them stays."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import agent_process
import numpy as np
import pytest
from agent_process import PATIENCE_S, eventually, running
from test_agent_trace import OWN_MOUNTS, REACH, SECOND, SHORT, in_tracefs, left_behind, skip_without_trace

from rtproof.experiment.application_runs import agent_marks
from rtproof.experiment.stored_runs import open_run
from rtproof.record.contents import Record

pytestmark = pytest.mark.serial
APP = Path(__file__).parent / "marked_app.c"
MARKER = "/sys/kernel/tracing/trace_marker"
N = 200
FOREIGN = ("--probe", "foreign", "--trace", "explain,whole,buffer_kib=4096", "--duration", "600s")


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("app") / "app"
    done = subprocess.run(["cc", "-O2", "-o", program, APP, "-lpthread"], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("there is no compiler here")
    return program


@pytest.fixture(scope="module", autouse=True)
def tracing(tmp_path_factory: pytest.TempPathFactory) -> None:
    skip_without_trace(tmp_path_factory.mktemp("try") / "record")
    if not in_tracefs("ls uprobe_events 2>/dev/null || true"):
        pytest.skip("this kernel has no uprobes")


@pytest.fixture(autouse=True)
def nothing_stays() -> Iterator[None]:
    yield
    assert eventually(lambda: left_behind() == [])


def words(begin: str, end: str) -> tuple[str, str, str, str]:
    first, last = agent_marks(begin, end)
    return "--begin", first, "--end", last


def measured(app: Path, record: Path, begin: str, end: str) -> tuple[Record, list[int]]:
    """The record of a run, and how long each activation took by the application's own clock."""
    with running("-o", record, *FOREIGN, *words(begin, end)) as one:
        one.await_ns(SECOND // 10)
        command = [*OWN_MOUNTS, f"{REACH}; exec {app} {MARKER} {N}"]
        own = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
        one.process.send_signal(signal.SIGINT)
        assert one.end() == 0
    return open_run(record).record, [int(line) for line in own.split()]


def check(found: Record, own_ns: list[int]) -> list[str]:
    """Each activation is one of the application's, which is shorter by the time that its marks take. What is told."""
    texts = [event.text for event in found.events]
    traced_ns = np.concatenate([block.values for block in found.blocks(0)])
    assert [fact.value for fact in found.facts if fact.key == "name"] == ["app-marked"]
    if not any("events are missing" in text for text in texts):  # a busy machine may be too slow for its trace
        assert traced_ns.size == N == len(own_ns)
        assert (traced_ns > np.array(own_ns)).all()
    assert traced_ns.size <= N
    return texts


def test_what_the_application_writes_is_measured(app: Path, tmp_path: Path) -> None:
    texts = check(*measured(app, tmp_path / "record", "marker:begin*", "marker:end"))
    told = "\n".join(texts)
    assert "an activation begins with marker:begin*, and ends with marker:end" in told
    if "events are missing" not in told:
        assert ": 4 begins without an end and 1 end without a begin" in told
        assert "1 thread had marks, but no activation" in told


def test_a_function_and_its_return_are_measured(app: Path, tmp_path: Path) -> None:
    texts = check(*measured(app, tmp_path / "record", f"uprobe:{app}:work", f"uretprobe:{app}:work"))
    assert any(f"begins with uprobe:{app}:work, and ends with uretprobe:{app}:work" in text for text in texts)


def test_nothing_stays_of_an_agent_that_is_killed(app: Path, tmp_path: Path) -> None:
    """Its keeper removes the uprobes. If that is killed too, the next agent does."""
    marks = words(f"uprobe:{app}:work", f"uretprobe:{app}:work")
    for with_keeper in (False, True):
        with running("-o", tmp_path / f"record-{with_keeper}", *FOREIGN, *marks) as one:
            one.await_ns(SECOND // 10)
            pid = one.process.pid
            assert in_tracefs("cat uprobe_events").count(f"rtproof_{pid}_") == 2
            keepers = [each for each in one.processes() if each != pid]
            assert len(keepers) == 1
            for each in (*(keepers if with_keeper else ()), pid):
                os.kill(each, signal.SIGKILL)
            one.process.wait(timeout=PATIENCE_S)
            if with_keeper:
                assert in_tracefs("cat uprobe_events").count(f"rtproof_{pid}_") == 2
                agent_process.run("run", "-o", tmp_path / "next", "--trace", "on", "--samples", "1", *SHORT)
            assert eventually(lambda: left_behind() == [])
