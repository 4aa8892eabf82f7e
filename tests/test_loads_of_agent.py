# SPDX-License-Identifier: Apache-2.0
"""The agent's built-in loads: their counters say what was really done, and what can't be done is told before."""

import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_process import PATIENCE_S, TOKEN, agent, eventually, marked, measured, needs_root, run, running, whole

from rtproof import loads
from rtproof.agents.build import find_agent, source_dir
from rtproof.experiment.load_list import agent_loads, load_rows
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Counter, EndReason, Moment, Record
from rtproof.record.reading import open_record
from rtproof.summary.summary_model import Severity

pytestmark = pytest.mark.real

SECOND = 1_000_000_000
CALM = ("--policy", "other", "--period", "10ms", "--duration")


def counter(record: Record, name: str) -> Counter:
    return next(one for one in record.counters if one.name == f"load.{name}")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        ("comms:peer=127.0.0.1,listen=9", "load comms can't run here: listen and peer are two ends: give one of them"),
        ("comms:peer=here", "load comms can't run here: peer takes the IPv4 address of one host, such as 192.168.1.2"),
        ("comms:pairs=0", "option 'pairs' of load 'comms' takes a whole number from 1 to 256"),
        ("pingflood:to=0.0.0.0", "load pingflood can't run here: to takes the IPv4 address of one host, such as"),
        ("mem:way=back", "load mem can't run here: way is copy, scan or random"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, load: str, sentence: str) -> None:
    """By one sentence, before it measures or writes anything."""
    done = run("run", "-o", tmp_path / "r", "--warmup", "20ms", *CALM, "2s", "--load", load)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert done.stderr.startswith(f"rtproof-agent: {sentence}")
    assert done.stderr.count("\n") == 1


MS = 1_000_000
OTHER = ("--policy", "other")
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
    *("cpu:workers=1", "sched:groups=1,restart=500ms", "comms", "serve", "dd:mib=4", "stress-ng", "hackbench:loops=5"),
)
PROGRAM = ("--program", "runaway:count=2 sh -c 'for i in 1 2 3; do setsid sleep 98 & done; echo; exec sleep 97'")


@pytest.fixture
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


def refuted_by_death(record: Record) -> None:
    """It ended the run, and makes it no measurement of what was asked."""
    assert record.end is not None
    assert record.end.reason is EndReason.LOAD_DIED
    grave = {doubt.code for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID}
    assert "load-died" in grave


def idle(record: Record) -> list[str]:
    """Loads that have done nothing yet, as far as the record has got."""
    counters = [counter for counter in record.counters if counter.name.startswith("load.")]
    return [counter.name for counter in counters if counter.value[-1] <= 0] if counters else ["all"]


def all_together() -> tuple[str, ...]:
    able = {row.name for row in load_rows(list(agent_loads(find_agent()))) if not row.missing}
    return (*loads.resolve([text for text in TOGETHER if text.partition(":")[0] in able]), *PROGRAM)


@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_nothing_remains_of_many_loads_when_the_run_ends(tmp_path: Path) -> None:
    arguments = ("--policy", "other", "--threads", "1", "--duration", "1s", *all_together())
    with running("-o", tmp_path / "record", *arguments) as one:
        # A machine that is busy enough shows none of them before the run has ended. The record has a counter of each.
        assert eventually(lambda: len(one.processes()) > len(TOGETHER) or one.process.poll() is not None)
        assert one.end() == 0
        assert eventually(lambda: one.processes() == [])
    record = whole(tmp_path / "record")
    assert EndReason.AS_ASKED is getattr(record.end, "reason", None)
    counted = sum(counter.name.startswith("load.") for counter in record.counters)
    assert counted == arguments.count("--load") + arguments.count("--program")


@needs_root
@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_nothing_remains_when_the_host_program_is_killed(tmp_path: Path) -> None:
    token = uuid.uuid4().hex
    names = [word for load in TOGETHER for word in ("--load", load)]
    arguments = ("--policy", "other", "--threads", "1", "--duration", "600s", "--output", str(tmp_path / "run"))
    with subprocess.Popen(
        [sys.executable, "-m", "rtproof", "run", "--no-report", *arguments, *names],
        env={**os.environ, TOKEN: token},
        stderr=subprocess.DEVNULL,
    ) as host:
        assert eventually(lambda: len(marked(token)) > 2 * len(TOGETHER) or host.poll() is not None)
        assert host.poll() is None
        host.kill()
        assert eventually(lambda: not marked(token))


COUNTED_LATE_S = 0.5
"""How long after its time a busy machine may read a counter."""


@pytest.mark.usefixtures("_nothing_is_left_behind")
@pytest.mark.parametrize(
    ("load", "rate", "a_round"),
    [("mmap:workers=2,mib=1,rate=20", 40, 2), ("sched:groups=2,pairs=3,rate=90", 180, 18), ("lsr:rate=640", 640, 64)],
)
def test_a_load_with_a_rate_does_no_more_in_a_second(tmp_path: Path, load: str, rate: int, a_round: int) -> None:
    """On a busy machine it does less, and makes nothing up later. A round is done before the first wait."""
    record = measured(
        tmp_path / "record", *("--policy", "other", "--duration", "2s", "--warmup", "0s"), "--load", load
    )  # fmt: skip
    work = counter(record, load.partition(":")[0])
    seconds = (work.time_ns - work.time_ns[0]) / 1e9
    assert work.value[-1] > 0
    assert (work.value - work.value[0] <= rate * (seconds + COUNTED_LATE_S) + 2 * a_round).all()


@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_a_bound_load_and_all_that_it_starts_stays_on_its_cpus(tmp_path: Path) -> None:
    """Also where the agent itself is elsewhere; a program that leaves its CPUs is told."""
    own, other, *_ = (*sorted(os.sched_getaffinity(0)), None)
    if other is None:
        pytest.skip("there is only one CPU")
    left = tmp_path / "left"
    sets = f'import os\nos.sched_setaffinity(0, {{{own}}})\nopen("{left}", "w")\nwhile True: pass'
    asked = (
        *("--load", f"cpu@{other}", "--load", f"sched:groups=1@{own},{other}", "--load", f"cpu:restart=1h@{other}"),
        *("--program", f"calm@{other} sh -c 'while :; do :; done'"),
        *("--program", f"leaves@{other} {sys.executable} -c '{sets}'"),
    )
    path = tmp_path / "record"
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {own})  # the agent inherits it
    with running("-o", path, *OTHER, "--threads", "1", "--progress", "1s", "--duration", "600s", *asked) as one:
        os.sched_setaffinity(0, everywhere)
        one.await_ns(0)
        assert eventually(lambda: left.exists() and idle(open_record(path)) == [])
        one.process.send_signal(signal.SIGINT)
        assert (one.end(), one.messages) == (0, [])
    record = whole(path)
    names = [f"cpu@{other}", f"sched@{own}-{other}" if other == own + 1 else f"sched@{own},{other}"]
    names += [f"cpu@{other}", f"calm@{other}", f"leaves@{other}"]
    assert record.fact("loads") == " ".join(names)
    counted = {counter.name: int(counter.value[-1]) for counter in record.counters if counter.name.startswith("load.")}
    assert len(counted) == len(names)
    assert min(counted.values()) > 0
    strays = {name: record.fact(f"{name}.strays", Moment.END) for name in counted}
    assert {name for name, count in strays.items() if count != "0"} == {f"load.leaves@{other}"}
    assert record.fact(f"load.cpu@{other}.cpus", Moment.START) == str(other)
    assert record.fact(f"load.cpu@{other}.parts", Moment.END) == "1", "as many as it has CPUs"
    (doubt,) = (doubt for doubt in analyse(record).doubts if doubt.code == "load-strayed")
    assert doubt.what == f"1 process of load leaves@{other} could leave its CPUs"


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("n rtproof-no-such", "load n can't run here: there is no program 'rtproof-no-such'"),
        ("n sh -c 'echo no room >&2; exit 7'", "load n died: it ended with exit code 7: no room"),
    ],
)
@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_programs_of_no_use_are_refused_before_measuring(tmp_path: Path, program: str, sentence: str) -> None:
    """One that takes longer to say so than the agent waits for, as on a busy machine, ends the run instead."""
    path = tmp_path / "record"
    done = run("run", "-o", path, "--policy", "other", "--duration", "600s", "--program", program)
    if path.exists() and "died" in sentence:
        assert (done.returncode, getattr(whole(path).end, "text", "")) == (0, sentence)
        refuted_by_death(whole(path))
    else:
        assert (done.returncode, done.stderr) == (2, f"rtproof-agent: {sentence}\n")
        assert not path.exists()


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "end of input", "end of its reader"])
@pytest.mark.usefixtures("_nothing_is_left_behind")
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


@pytest.mark.usefixtures("_nothing_is_left_behind")
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
