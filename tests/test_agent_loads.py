# SPDX-License-Identifier: Apache-2.0
"""Every load there is: its counter moves, its death is noticed, and nothing of it remains, whoever is killed."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from agent_process import PATIENCE_S, TOKEN, Running, agent, eventually, marked, needs_root, run, running, whole

from rtproof import loads
from rtproof.agents.build import source_dir
from rtproof.cli.commands.loads import rows
from rtproof.judge.analyse import analyse
from rtproof.record.contents import EndReason, Record
from rtproof.summary.summary_model import Severity

pytestmark = pytest.mark.real

MS = 1_000_000
OTHER = ("--policy", "other")
SECOND = 1_000 * MS
SMALLER = {
    "dd": "dd:mib=4",
    "doload": "doload:restart=30s",
    "files": "files:workers=1",
    "fs": "fs:mib=4",
    "hackbench": "hackbench:loops=5",
    "mem": "mem:workers=1",
    "sched": "sched:groups=1",
}
"""Where what they do by themselves is more than a test needs."""
EVERY = sorted({*(path.stem for path in (source_dir() / "loads").glob("*.c")), *loads.names()})
TOGETHER = (
    "cpu:workers=1",
    "sched:groups=1,restart=500ms",
    "comms",
    "serve",
    "dd:mib=4",
    "stress-ng",
    "hackbench:loops=5",
)
PROGRAM = ("--program", "runaway:count=2 sh -c 'for i in 1 2 3; do setsid sleep 98 & done; echo; exec sleep 97'")


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file, no network device and no named network namespace."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    before = _network()
    yield
    assert eventually(lambda: not list(folder.iterdir()))
    assert eventually(lambda: _network() <= before)


def _network() -> set[str]:
    return {str(entry) for place in ("/sys/class/net", "/run/netns") for entry in Path(place).glob("*")}


def main_process(one: Running) -> int:
    """A child of the agent that has children: what keeps files has none. A program may be between two runs."""
    found: list[int] = []

    def look() -> bool:
        living = one.processes()
        parents = [parent(pid) for pid in living]
        found.extend(pid for pid in living if parent(pid) == one.process.pid and pid in parents)
        return bool(found)

    assert eventually(look)
    return found[0]


def parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def refuted_by_death(record: Record, killed_ns: int) -> None:
    """It was noticed within two seconds, ended the run, and makes it no measurement of what was asked."""
    assert record.end is not None
    assert record.end.reason is EndReason.LOAD_DIED
    noticed_ns = next(event.time_ns for event in record.events if event.kind == "load_died")
    assert noticed_ns < killed_ns - record.begin.origin_monotonic_ns + 2 * SECOND
    grave = {doubt.code for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID}
    assert "load-died" in grave


def idle(record: Record) -> list[str]:
    """Loads that have done nothing yet, as far as the record has got."""
    counters = [counter for counter in record.counters if counter.name.startswith("load.")]
    return [counter.name for counter in counters if counter.value[-1] <= 0] if counters else ["all"]


@pytest.mark.parametrize("load", [("--load", "sched:groups=1"), ("--load", "cpu:restart=30s"), PROGRAM], ids=str)
def test_the_death_of_all_processes_of_a_load_ends_the_run(tmp_path: Path, load: Sequence[str]) -> None:
    path = tmp_path / "record"
    with running("-o", path, "--policy", "other", "--threads", "1", "--duration", "60s", *load) as one:
        one.await_ns(200 * MS)
        killed_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for pid in one.processes():
            if pid != one.process.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        assert one.end() == 0
        assert eventually(lambda: not one.processes())
    refuted_by_death(whole(path), killed_ns)


def all_together() -> tuple[str, ...]:
    able = {row.name for row in rows() if not row.missing}
    return (*loads.resolve([text for text in TOGETHER if text.partition(":")[0] in able]), *PROGRAM)


def test_nothing_remains_of_many_loads_when_the_run_ends(tmp_path: Path) -> None:
    arguments = ("--policy", "other", "--threads", "1", "--duration", "1s", *all_together())
    with running("-o", tmp_path / "record", *arguments) as one:
        one.await_ns(500 * MS)
        assert len(one.processes()) > len(TOGETHER)
        assert one.end() == 0
        assert one.processes() == []
    assert EndReason.AS_ASKED is getattr(whole(tmp_path / "record").end, "reason", None)


def test_nothing_remains_when_the_agent_is_killed(tmp_path: Path) -> None:
    arguments = ("--policy", "other", "--threads", "1", "--duration", "60s", *all_together())
    with running("-o", tmp_path / "record", *arguments) as one:
        one.await_ns(500 * MS)
        os.kill(one.process.pid, signal.SIGKILL)
        assert eventually(lambda: not one.processes())


@needs_root
def test_nothing_remains_when_the_host_program_is_killed(tmp_path: Path) -> None:
    token = uuid.uuid4().hex
    names = [word for load in TOGETHER for word in ("--load", load)]
    arguments = ("--policy", "other", "--threads", "1", "--duration", "60s", "--output", str(tmp_path / "run"))
    with subprocess.Popen(
        [sys.executable, "-m", "rtproof", "run", "--no-report", *arguments, *names],
        env={**os.environ, TOKEN: token},
        stderr=subprocess.DEVNULL,
    ) as host:
        assert eventually(lambda: len(marked(token)) > 2 * len(TOGETHER) or host.poll() is not None)
        assert host.poll() is None
        host.kill()
        assert eventually(lambda: not marked(token))


def test_two_of_a_kind_are_counted_apart(tmp_path: Path) -> None:
    path = tmp_path / "record"
    twice = (
        "--load",
        "cpu:workers=1",
        "--load",
        "cpu:workers=1",
        "--program",
        "y:count=2 yes",
        "--program",
        "y:count=3 yes",
    )
    with running("-o", path, "--policy", "other", "--threads", "1", "--duration", "1500ms", *twice) as one:
        assert one.end() == 0
    found = {counter.name: counter.unit for counter in whole(path).counters if counter.value[-1] > 0}
    assert {name: unit for name, unit in found.items() if name.startswith("load.")} == {
        "load.cpu": "65536 steps",
        "load.cpu.2": "65536 steps",
        "load.y": "lines",
        "load.y.2": "bytes",
    }


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("n rtproof-no-such", "load n can't run here: there is no program 'rtproof-no-such'"),
        ("n sh -c 'echo no room >&2; exit 7'", "load n died: it ended with exit code 7: no room"),
        ("n:count=9 sh", "option 'count' of load 'n' takes a whole number from 0 to 3"),
    ],
)
def test_programs_of_no_use_are_refused_before_anything_is_measured(
    tmp_path: Path, program: str, sentence: str
) -> None:
    path = tmp_path / "record"
    done = run("run", "-o", path, "--policy", "other", "--duration", "10s", "--program", program)
    assert (done.returncode, done.stderr) == (2, f"rtproof-agent: {sentence}\n")
    assert not path.exists()


def test_loads_run_without_measuring() -> None:
    done = run("load", "cpu:workers=1", "sched:groups=1", "--duration", "1100ms")
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert line.startswith("1 s: cpu ")
    assert ", sched " in line


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "end of input", "end of its reader"])
def test_loads_alone_end_when_asked(end: str) -> None:
    token = uuid.uuid4().hex
    with subprocess.Popen(
        [agent(), "load", "sched:groups=1", *PROGRAM, "--stop-on-eof"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, TOKEN: token},
    ) as alone:
        assert alone.stdin
        assert alone.stdout
        assert alone.stdout.readline().startswith(b"1 s: sched ")
        if end == "end of input":
            alone.stdin.close()
        elif end == "end of its reader":
            alone.stdout.close()
        else:
            alone.send_signal(signal.Signals[end])
        assert alone.wait(PATIENCE_S) == 0
        assert eventually(lambda: not marked(token))


def test_what_was_killed_all_at_once_leaves_goes_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    with running("-o", tmp_path / "killed", *OTHER, "--duration", "1h", "--load", "dd:mib=4") as one:
        one.await_ns(100 * MS)
        (left,) = place.iterdir()
        assert left.name.startswith(f"rtproof-load-{one.process.pid}-")
        with running("-o", tmp_path / "beside", *OTHER, "--duration", "1h") as other:
            other.await_ns(0)
            assert left.exists()  # its owner lives
        everything = one.processes()
        for number in (signal.SIGSTOP, signal.SIGKILL):  # so that none can react to the end of another
            for pid in everything:
                os.kill(pid, number)
    assert eventually(lambda: not one.processes())
    assert list(place.iterdir()) == [left]
    assert run("run", "-o", tmp_path / "next", *OTHER, "--duration", "20ms").returncode == 0
    assert list(place.iterdir()) == []
