# SPDX-License-Identifier: Apache-2.0
"""Each load alone: nothing of it is left however the run ends, and one that stands still or loses a part is noticed.

Some at a time, each under an agent of its own, because there are many of them.
"""

import os
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from agent_process import Running, eventually, marked_by_token, running, whole
from test_loads_of_agent import EVERY, SMALLER, free_port, idle, refuted_by_death

from rtproof import loads
from rtproof.agents.build import find_agent
from rtproof.experiment.load_list import agent_loads, load_rows
from rtproof.judge.analyse import analyse
from rtproof.record.contents import Moment
from rtproof.record.reading import open_record
from rtproof.summary.summary_model import Severity

pytestmark = pytest.mark.all_loads
MS = 1_000_000
CALM = (
    *("--policy", "other", "--threads", "1", "--period", "10ms", "--record", "summary", "--checkpoint", "100ms"),
    # Nobody reads its lines for minutes, and where the pipe is full the agent waits.
    *("--progress", "1s", "--duration"),
)
AT_A_TIME = 14
NO_REST = {**SMALLER, "serve": "serve:pause=0"}
GROUP = re.compile(r"^0::/(.*rtproof-load-[\w-]+)$", re.MULTILINE)
TABLES = ("tcp", "tcp6", "udp", "udp6", "raw", "icmp", "unix")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where loads keep files; nothing may be left there, nor of what processes share."""
    place = tmp_path / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    yield place
    assert eventually(lambda: not list(place.iterdir())), sorted(place.rglob("*"))[:9]
    assert eventually(lambda: not list(Path("/sys/class/net").glob("rtproof*")))


def able(names: Mapping[str, str] = SMALLER) -> dict[str, tuple[str, ...]]:
    """The agent's words for each load that can run here."""
    here = {row.name for row in load_rows(list(agent_loads(find_agent()))) if not row.missing}
    own = {"iperf3": f"iperf3:port={free_port()}", **names}
    return {name: loads.resolve([own.get(name, name)]) for name in EVERY if name in here}


def some(words: Mapping[str, tuple[str, ...]]) -> Iterator[dict[str, tuple[str, ...]]]:
    """All of them, as many at a time as a small machine can start in a moment."""
    names = list(words)
    for at in range(0, len(names), AT_A_TIME):
        yield {name: words[name] for name in names[at : at + AT_A_TIME]}


def of_each(agents: Iterable[Running]) -> list[list[int]]:
    """The processes of the loads of each agent, from one look at all processes."""
    found = marked_by_token()
    return [[pid for pid in found.get(one.token, []) if pid != one.process.pid] for one in agents]


@contextmanager
def all_running(
    tmp_path: Path, duration: str, words: Mapping[str, tuple[str, ...]], at_ns: int
) -> Iterator[dict[str, Running]]:
    """An agent for each, which has got to this time of its record."""
    with ExitStack() as stack:
        agents = {
            name: stack.enter_context(running("-o", tmp_path / name, *CALM, duration, *each))
            for name, each in words.items()
        }
        for one in agents.values():
            one.await_ns(at_ns)
        yield agents


def groups(pids: list[int]) -> set[Path]:
    """The control groups that hold them."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            found |= set(GROUP.findall(Path(f"/proc/{pid}/cgroup").read_text()))
    return {Path("/sys/fs/cgroup") / path for path in found}


def sockets(pids: list[int]) -> set[str]:
    """The inodes of their sockets. Some loads hold very many files."""
    links = set()
    for pid in pids:
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208 - a Path for each takes several times as long
                with suppress(OSError):
                    links.add(os.readlink(f"/proc/{pid}/fd/{name}"))  # noqa: PTH115 - as above
    return {link[8:-1] for link in links if link.startswith("socket:[")}


def in_use() -> set[str]:
    """The inodes of all sockets of this network namespace."""
    lines = [line for table in TABLES for line in Path(f"/proc/net/{table}").read_text().splitlines()]
    return {word for line in lines for word in line.split()}


def spaces(pids: list[int]) -> set[str]:
    """The namespaces that they are in."""
    found = set()
    for pid in pids:
        for kind in ("net", "pid", "ipc", "mnt", "user"):
            with suppress(OSError):
                found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
    return found


def everybody() -> list[int]:
    """All but those that have ended: an init that does not wait for orphans, as in containers, keeps their names."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and not ended(entry)]


def ended(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def nothing_left(pids_of: Callable[[], list[int]], before: set[str], inodes: set[str]) -> bool:
    """No process, no namespace of theirs that others are not in too, and none of their sockets."""
    return (
        eventually(lambda: not pids_of())
        and eventually(lambda: not before & spaces(everybody()))
        and eventually(lambda: not inodes & in_use())
    )


@pytest.mark.parametrize("end", [None, signal.SIGINT, signal.SIGKILL], ids=str)
def test_nothing_is_left_of_any(tmp_path: Path, end: signal.Signals | None) -> None:
    for words in some(able()):
        with all_running(tmp_path, "1h" if end else "2s", words, 100 * MS) as agents:
            theirs = of_each(agents.values())
            assert all(theirs) or not end  # on a slow machine some have ended by now
            pids = [pid for each in theirs for pid in each]
            own, inodes, held_in = spaces(pids) - spaces([os.getpid()]), sockets(pids), groups(pids)
            for one in agents.values():
                if end:
                    one.process.send_signal(end)
            assert {one.end() for one in agents.values()} == {-signal.SIGKILL if end == signal.SIGKILL else 0}
            assert nothing_left(lambda agents=agents: living(agents), own, inodes)  # type: ignore[misc]
            assert eventually(lambda held_in=held_in: not any(map(Path.exists, held_in)))  # type: ignore[misc]


def living(agents: Mapping[str, Running]) -> list[int]:
    found = marked_by_token()
    return [pid for one in agents.values() for pid in found.get(one.token, [])]


def test_one_that_is_stopped_makes_the_run_invalid(tmp_path: Path) -> None:
    for words in some(able(NO_REST)):
        with all_running(tmp_path, "1h", words, 1100 * MS) as agents:
            stopped: set[int] = set()
            while begun := {pid for pids in of_each(agents.values()) for pid in pids} - stopped:
                for pid in begun:  # others may have begun since the look
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGSTOP)
                stopped |= begun
            for name, one in agents.items():
                assert eventually(lambda name=name: is_seen(tmp_path / name, name))  # type: ignore[misc]
                one.process.send_signal(signal.SIGINT)
            assert {one.end() for one in agents.values()} == {0}
            assert eventually(lambda agents=agents: not living(agents))  # type: ignore[misc]
    assert [name for name in able() if whole(tmp_path / name) and not is_seen(tmp_path / name, name)] == []


def is_seen(path: Path, load: str) -> bool:
    """Whether the record so far says that the load stands still; one that may rest for long need not be waited for."""
    record = open_record(path)
    grave = {doubt.code for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID}
    return "load-idle" in grave or int(record.fact(f"load.{load}.rest_ns", Moment.START) or 0) > 2000 * MS


def kill_main_process(one: Running) -> bool:
    """A child of the agent that has children: what keeps files has none. False if none has: a program comes and goes.

    It reads nothing but the parents of all processes, because a child may live for a moment only.
    """
    parents = {int(entry.name): parent(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    for above in {above for above in parents.values() if parents.get(above) == one.process.pid}:
        with suppress(ProcessLookupError):
            os.kill(above, signal.SIGKILL)
            return True
    return False


def parent(process: Path) -> int:
    with suppress(OSError):
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return 0


def test_the_death_of_a_process_ends_the_run(tmp_path: Path) -> None:
    for words in some(able()):
        with all_running(tmp_path, "1h", words, 0) as agents:
            for name, one in agents.items():
                assert eventually(lambda name=name: idle(open_record(tmp_path / name)) == [])  # type: ignore[misc]
                assert eventually(lambda one=one: kill_main_process(one))  # type: ignore[misc]
            assert {one.end() for one in agents.values()} == {0}
            assert eventually(lambda agents=agents: not living(agents))  # type: ignore[misc]
        for name in words:
            record = whole(tmp_path / name)
            refuted_by_death(record)
            assert idle(record) == []
