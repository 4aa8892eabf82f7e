# SPDX-License-Identifier: Apache-2.0
"""The agent's built-in loads: their counters say what was really done, and what can't be done is told before."""

import os
import shutil
import signal
import socket
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
from rtproof.agents.build import find_agent, source_dir
from rtproof.experiment.load_list import agent_loads, load_rows
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Counter, EndReason, Moment, Record
from rtproof.summary.summary_model import Severity

pytestmark = pytest.mark.real

SECOND = 1_000_000_000
KB = 1_000
BLOCK = 60 * KB
CALM = ("--policy", "other", "--period", "10ms", "--duration")
BY_CABLE = "between two network namespaces of its own"
RTC = any(Path(name).exists() for name in ("/dev/rtc", "/dev/rtc0"))


def counter(record: Record, name: str) -> Counter:
    return next(one for one in record.counters if one.name == f"load.{name}")


def note(record: Record, name: str) -> str:
    return record.fact(f"load.{name}.note", Moment.START) or ""


def record_of(path: Path, *loads: str, duration: str = "2s", prefix: tuple[str, ...] = ()) -> Record:
    words = [word for load in loads for word in ("--load", load)]
    done = run("run", "-o", path, "--warmup", "20ms", *CALM, duration, *words, prefix=prefix)
    assert (done.returncode, done.stderr) == (0, "")
    return whole(path)


def refusal(path: Path, load: str, prefix: tuple[str, ...] = ()) -> str:
    """The one sentence by which the agent says no, before it measures or writes anything."""
    done = run("run", "-o", path, "--warmup", "20ms", *CALM, "2s", "--load", load, prefix=prefix)
    assert (done.returncode, done.stdout, path.exists()) == (2, "", False)
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("rtproof-agent: ").strip()


def network_of(pid: int | str) -> str:
    """The network namespace of a process, empty if it has ended."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    return ""


def networks() -> set[str]:
    """All that any process is in."""
    return {network_of(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()} - {""}


def in_own_network(one: Running) -> int:
    """A process of the load that has left the network of this machine."""
    return next(pid for pid in one.processes() if network_of(pid) not in ("", network_of("self")))


def sent_bytes(pid: int) -> int:
    """By the cable's near end, as the kernel counts them."""
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()
    return int(next(line for line in lines if "rtproof:" in line).split(":")[1].split()[8])


def echo_replies(pid: int) -> int:
    """That came to the network of this process, as the kernel counts them."""
    keys, values = (line.split() for line in Path(f"/proc/{pid}/net/snmp").read_text().splitlines() if "Icmp:" in line)
    return int(values[keys.index("InEchoReps")])


def without_networks() -> tuple[str, ...]:
    """A prefix: root in a user namespace where nobody may make a network or a user namespace, nor open a raw socket."""
    limit = "for what in net user; do echo 0 > /proc/sys/user/max_${what}_namespaces || exit 77; done"
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", f'{limit}; exec "$@"', "sh")
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("user namespaces can't be had, or can't be limited here")
    return prefix


def needs_cable(record: Record, name: str) -> None:
    if note(record, name) != BY_CABLE:
        pytest.skip("no network namespace can be had here")


def test_comms_moves_what_its_counter_says(tmp_path: Path) -> None:
    needs_cable(record_of(tmp_path / "trial.rtrec", "comms", duration="1s"), "comms")
    path = tmp_path / "r.rtrec"
    with running("-o", path, *CALM, "4s", "--load", "comms") as one:
        one.await_ns(SECOND)
        pid, before_ns = in_own_network(one), one.await_ns(5 * SECOND // 2)
        moved = sent_bytes(pid)
        assert one.end() == 0
    done = counter(whole(path), "comms")
    earlier = [
        int(value)
        for time_ns, value in zip(done.time_ns, done.value, strict=True)
        if time_ns <= before_ns - SECOND // 10
    ]
    assert done.unit == "kB"
    assert 0 < earlier[-1] * KB <= moved <= int(done.value[-1]) * KB * 1.1 + 2 * BLOCK
    assert all(int(value) * KB % BLOCK == 0 for value in done.value)


def test_pingflood_counts_the_replies_that_the_kernel_counts(tmp_path: Path) -> None:
    path = tmp_path / "r.rtrec"
    with running("-o", path, *CALM, "3s", "--load", "pingflood") as one:
        before_ns = one.await_ns(3 * SECOND // 2)
        if all(network_of(pid) == network_of("self") for pid in one.processes()):
            pytest.skip("no network namespace can be had here")
        replies = echo_replies(in_own_network(one))
        assert one.end() == 0
    record = whole(path)
    done = counter(record, "pingflood")
    earlier = [
        int(value)
        for time_ns, value in zip(done.time_ns, done.value, strict=True)
        if time_ns <= before_ns - SECOND // 10
    ]
    assert (note(record, "pingflood"), done.unit) == (BY_CABLE, "replies")
    assert 0 < earlier[-1] <= replies <= int(done.value[-1]) + 8


@pytest.mark.parametrize("load", ["comms", "pingflood"])
def test_no_namespace_outlives_a_killed_agent(tmp_path: Path, load: str) -> None:
    with running("-o", tmp_path / "r.rtrec", *CALM, "60s", "--load", load) as one:
        one.await_ns(0)
        if all(network_of(pid) == network_of("self") for pid in one.processes()):
            pytest.skip("no network namespace can be had here")
        network = network_of(in_own_network(one))
        one.process.send_signal(signal.SIGKILL)
        one.process.wait(PATIENCE_S)
        assert eventually(lambda: not one.processes())
        assert eventually(lambda: network not in networks())


def test_without_namespaces_comms_goes_over_loopback_and_says_so(tmp_path: Path) -> None:
    record = record_of(tmp_path / "r.rtrec", "comms", prefix=without_networks())
    said = "over 127.0.0.1 instead of two network namespaces: network namespaces are not allowed here"
    assert record.fact("load.comms.lack", Moment.START) == said
    (doubt,) = (doubt for doubt in analyse(record).doubts if doubt.code == "load-lessened")
    assert doubt.what == f"the load comms did less than it is meant to: {said}"
    assert counter(record, "comms").value[-1] > 0


def test_without_namespaces_and_raw_sockets_pingflood_refuses(tmp_path: Path) -> None:
    said = "load pingflood can't run here: raw sockets are not allowed here: run it as root or with CAP_NET_RAW"
    assert refusal(tmp_path / "r.rtrec", "pingflood", prefix=without_networks()) == said


@needs_root
def test_pingflood_floods_the_host_that_it_is_told(tmp_path: Path) -> None:
    record = record_of(tmp_path / "r.rtrec", "pingflood:to=127.0.0.1,bytes=0")
    assert counter(record, "pingflood").value[-1] > 0
    assert note(record, "pingflood") == ""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def test_comms_meets_its_peer(tmp_path: Path) -> None:
    port = free_port()
    here, there = tmp_path / "here.rtrec", tmp_path / "there.rtrec"
    with running("-o", there, *CALM, "60s", "--load", f"comms:listen={port}") as peer:
        peer.await_ns(0)
        done = counter(record_of(here, f"comms:peer=127.0.0.1,port={port}"), "comms")
        peer.await_ns(3 * SECOND)
        peer.process.send_signal(signal.SIGTERM)
        assert peer.end() == 0
    echoed = counter(whole(there), "comms")
    assert 0 < done.value[-1] <= echoed.value[-1] + BLOCK // KB


@pytest.mark.parametrize(
    ("load", "sentence"),
    [
        ("comms:peer=127.0.0.1,listen=9", "load comms can't run here: listen and peer are two ends: give one of them"),
        ("comms:peer=here", "load comms can't run here: peer takes the IPv4 address of one host, such as 192.168.1.2"),
        ("comms:peer=255.255.255.255", "load comms can't run here: peer takes the IPv4 address of one host, such as"),
        ("comms:pairs=0", "option 'pairs' of load 'comms' takes a whole number from 1 to 256"),
        ("pingflood:to=0.0.0.0", "load pingflood can't run here: to takes the IPv4 address of one host, such as"),
        ("pingflood:to=224.0.0.1", "load pingflood can't run here: to takes the IPv4 address of one host, such as"),
        (
            "lsr:path=/no/such/folder",
            "load lsr can't run here: path must begin with / and be a folder that can be read",
        ),
        ("lsr:path=proc", "load lsr can't run here: path must begin with / and be a folder that can be read"),
        ("mem:way=back", "load mem can't run here: way is copy, scan or random"),
        ("mem:workers=64,mib=65536", "load mem could not be started: Cannot allocate memory"),
        ("serve:streams=64,mib=5000", "option 'mib' of load 'serve' takes a whole number from 1 to 4096"),
        ("irqmix:seed=-1", "option 'seed' of load 'irqmix' takes a whole number from 0 to 2147483647"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, load: str, sentence: str) -> None:
    assert refusal(tmp_path / "r.rtrec", load).startswith(sentence)


def test_no_second_host(tmp_path: Path) -> None:
    port = free_port()
    said = refusal(tmp_path / "r.rtrec", f"comms:peer=127.0.0.1,port={port}")
    assert said == (
        f"load comms can't run here: nothing answers at 127.0.0.1, port {port}: Connection refused; "
        f"start rtproof-agent load comms:listen={port} there"
    )


@pytest.mark.skipif(RTC, reason="there is a real-time clock here")
def test_no_real_time_clock(tmp_path: Path) -> None:
    said = refusal(tmp_path / "r.rtrec", "rtc")
    assert said == "load rtc can't run here: there is no /dev/rtc0 and no /dev/rtc"


@needs_root
@pytest.mark.skipif(not RTC, reason="there is no real-time clock here")
def test_the_real_time_clock_interrupts_as_often_as_asked(tmp_path: Path) -> None:
    done = counter(record_of(tmp_path / "r.rtrec", "rtc:hz=64", duration="3s"), "rtc")
    rate = (done.value[-1] - done.value[0]) / ((done.time_ns[-1] - done.time_ns[0]) / SECOND)
    assert rate == pytest.approx(64, rel=0.2)


def test_a_pause_of_serve_is_no_standstill(tmp_path: Path) -> None:
    record = record_of(tmp_path / "r.rtrec", "serve:mib=2,pause=60", duration="5s")
    assert record.fact("load.serve.rest_ns", Moment.START) == str(60 * SECOND)
    assert counter(record, "serve").value[-1] == 2
    codes = {doubt.code for doubt in analyse(record).doubts}
    assert not codes & {"load-idle", "load-unproven"}


def test_a_listing_without_an_entry_is_no_load(tmp_path: Path) -> None:
    empty, path = tmp_path / "empty", tmp_path / "r.rtrec"
    empty.mkdir()
    with running("-o", path, *CALM, "60s", "--load", f"lsr:path={empty}") as one:
        one.end()
    record = whole(path)
    assert record.end
    assert (record.end.reason, record.end.text) == (EndReason.LOAD_DIED, "load lsr died: No such file or directory")


@pytest.mark.serial  # beside others that write, one may wait for the disk for seconds
@pytest.mark.parametrize(
    "load", ["mem:workers=1,way=scan", "irqmix:workers=1,seed=7", "churn:jobs=2,mib=1", "zero", "lsr"]
)
def test_counters_grow_each_second(tmp_path: Path, load: str) -> None:
    done = counter(record_of(tmp_path / "r.rtrec", load, duration="3s"), load.partition(":")[0])
    times = [int(time_ns) for time_ns in done.time_ns]
    grown = [int(b) - int(a) for a, b in zip(done.value[:-1], done.value[1:], strict=True)]
    whole_seconds = [by for by, a, b in zip(grown, times[:-1], times[1:], strict=True) if b - a > SECOND // 2]
    assert whole_seconds
    assert min(whole_seconds) > 0


# Every load there is: its counter moves, its death is noticed, and nothing of it remains, whoever is killed.


MS = 1_000_000
OTHER = ("--policy", "other")
SECOND_AGENT_LOADS = 1_000 * MS
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
    """It was noticed long before the end, ended the run, and makes it no measurement of what was asked.

    The agent looks every half second, and a busy machine lets it wait.
    """
    assert record.end is not None
    assert record.end.reason is EndReason.LOAD_DIED
    noticed_ns = next(event.time_ns for event in record.events if event.kind == "load_died")
    assert noticed_ns < killed_ns - record.begin.origin_monotonic_ns + 15 * SECOND_AGENT_LOADS
    grave = {doubt.code for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID}
    assert "load-died" in grave


def idle(record: Record) -> list[str]:
    """Loads that have done nothing yet, as far as the record has got."""
    counters = [counter for counter in record.counters if counter.name.startswith("load.")]
    return [counter.name for counter in counters if counter.value[-1] <= 0] if counters else ["all"]


@pytest.mark.parametrize("load", [("--load", "sched:groups=1"), ("--load", "cpu:restart=30s"), PROGRAM], ids=str)
@pytest.mark.usefixtures("_nothing_is_left_behind")
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
    able = {row.name for row in load_rows(list(agent_loads(find_agent()))) if not row.missing}
    return (*loads.resolve([text for text in TOGETHER if text.partition(":")[0] in able]), *PROGRAM)


@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_nothing_remains_of_many_loads_when_the_run_ends(tmp_path: Path) -> None:
    arguments = ("--policy", "other", "--threads", "1", "--duration", "1s", *all_together())
    with running("-o", tmp_path / "record", *arguments) as one:
        one.await_ns(500 * MS)
        assert len(one.processes()) > len(TOGETHER)
        assert one.end() == 0
        assert one.processes() == []
    assert EndReason.AS_ASKED is getattr(whole(tmp_path / "record").end, "reason", None)


@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_nothing_remains_when_the_agent_is_killed(tmp_path: Path) -> None:
    arguments = ("--policy", "other", "--threads", "1", "--duration", "60s", *all_together())
    with running("-o", tmp_path / "record", *arguments) as one:
        one.await_ns(500 * MS)
        os.kill(one.process.pid, signal.SIGKILL)
        assert eventually(lambda: not one.processes())


@needs_root
@pytest.mark.usefixtures("_nothing_is_left_behind")
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


@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_a_bound_load_and_all_that_it_starts_stays_on_its_cpus(tmp_path: Path) -> None:
    """Also where the agent itself is elsewhere; a program that leaves its CPUs is told."""
    own, other, *_ = (*sorted(os.sched_getaffinity(0)), None)
    if other is None:
        pytest.skip("there is only one CPU")
    sets = f"import os\nos.sched_setaffinity(0, {{{own}}})\nwhile True: pass"
    asked = (
        *("--load", f"cpu@{other}", "--load", f"sched:groups=1@{own},{other}", "--load", f"cpu:restart=10s@{other}"),
        *("--program", f"calm@{other} sh -c 'while :; do :; done'"),
        *("--program", f"leaves@{other} {sys.executable} -c '{sets}'"),
    )
    path = tmp_path / "record"
    alone = ("taskset", "-c", str(own))
    timing = ("--threads", "1", "--duration", "1500ms", *asked)
    done = run("run", "-o", path, "--policy", "other", "--warmup", "20ms", *timing, prefix=alone)
    assert (done.returncode, done.stderr) == (0, "")
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
    assert doubt.what.startswith(f"1 process of the load leaves@{other} could run on other CPUs")


@pytest.mark.usefixtures("_nothing_is_left_behind")
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
@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_programs_of_no_use_are_refused_before_anything_is_measured(
    tmp_path: Path, program: str, sentence: str
) -> None:
    path = tmp_path / "record"
    done = run("run", "-o", path, "--policy", "other", "--duration", "10s", "--program", program)
    assert (done.returncode, done.stderr) == (2, f"rtproof-agent: {sentence}\n")
    assert not path.exists()


@pytest.mark.usefixtures("_nothing_is_left_behind")
def test_loads_run_without_measuring() -> None:
    done = run("load", "cpu:workers=1", "sched:groups=1", "--duration", "1100ms")
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    assert line.startswith("1 s: cpu ")
    assert ", sched " in line


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
