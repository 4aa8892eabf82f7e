# SPDX-License-Identifier: Apache-2.0
"""cgroup.kill of an agent with all it has started, at random moments: the next agent of any kind removes what is left.

``RTPROOF_KILLS`` sets how many. This is what systemd does to a service that it stops, and the kernel to a group that
is out of memory.
"""

import os
import random
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import agent_process
import pytest
from agent_process import PATIENCE_S, TOKEN, agent, eventually, lives, marked, needs_root
from test_agent_trace import SHORT, in_tracefs, skip_without_trace

pytestmark = [pytest.mark.serial, needs_root]
KILLS = int(os.environ.get("RTPROOF_KILLS") or (100 if os.environ.get("RTPROOF_TEST_SET") == "all" else 4))
WITHIN_S = 0.1
"""So long at most after a milestone, which is drawn too: before, while and after the agent changes what it needs to."""
TRACED = ("--trace", "recorder,explain,stacks", "--load", "cpu:workers=1", "--load", "files:workers=1")
VICTIMS = (
    (*TRACED, "--probe", "ipc", "--method", "sysv"),
    (*TRACED, "--probe", "ipc", "--method", "mq"),
    ("--trace", "on", "--program", "sleeper sleep 600"),
)
NEXT = (
    ("load", "cpu:workers=1", "--duration", "10ms"),
    ("facts", "--between", "0ms", "-o"),
    ("run", "--samples", "1", "--warmup", "0ms", *SHORT, "-o"),
)
STATE = """\
ls -d instances/rtproof-*; cat synthetic_events kprobe_events uprobe_events | grep rtproof; cat options/record-cmd
awk '$1 >= 1375731712 && $1 <= 1392508927' /proc/sysvipc/sem | cut -c 1-22
mkdir /dev/mqueue; mount -t mqueue none /dev/mqueue && ls /dev/mqueue | grep rtproof
ls -d /dev/shm/*rtproof* /run/rtproof-undo-* /tmp/rtproof-load-* "$TMPDIR"/*
find /sys/fs/cgroup -name 'rtproof-load-*'"""


MILESTONES: tuple[Callable[[str, Path], bool], ...] = (
    lambda _token, _record: True,
    lambda token, _record: len(marked(token)) > 1,
    lambda _token, record: record.exists(),
)
"""The agent starts; it has a keeper and changes settings; it measures."""
OWNER = re.compile(r"rtproof[-_](?:undo-|load-)?(\d+)")


@dataclass(frozen=True)
class Group:
    """A control group (v2) of its own."""

    path: Path

    def may_be_left(self) -> bool:
        """Whether a process of it may go to the root of all groups."""
        with self.start("sh", "-c", f"echo $$ > {self.path.parent}/cgroup.procs") as leaving:
            return leaving.wait(timeout=PATIENCE_S) == 0

    def start(self, *words: str | Path, **environment: str) -> subprocess.Popen[bytes]:
        """A process that is in it from its first instant."""
        join = f'echo $$ > {self.path}/cgroup.procs && exec "$@"'
        command = ["sh", "-c", join, "sh", *words]
        started = subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL)
        assert eventually(lambda: str(started.pid) in self.processes() or started.poll() is not None)
        return started

    def processes(self) -> list[str]:
        """Their numbers, those of zombies too."""
        return (self.path / "cgroup.procs").read_text().split()

    def kill(self) -> None:
        """All that is in it, and wait until it is gone."""
        (self.path / "cgroup.kill").write_text("1")
        assert eventually(lambda: "populated 0" in (self.path / "cgroup.events").read_text())


@pytest.fixture
def group() -> Iterator[Group]:
    mounted = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if " cgroup2 " in line]
    made = Path(mounted[0] if mounted else "/nowhere", f"rtproof-test-{os.getpid()}")
    try:
        made.mkdir()
    except OSError:
        pytest.skip("no control group (v2) can be made here: needs root, and a cgroup2 that can be written")
    try:
        if not (made / "cgroup.kill").exists():
            pytest.skip("this kernel has no cgroup.kill (Linux 5.14)")
        yield Group(made)
        Group(made).kill()
    finally:
        assert eventually(lambda: _removed(made))


def _removed(folder: Path) -> bool:
    with suppress(OSError):
        folder.rmdir()
    return not folder.exists()


def state() -> list[str]:
    """What agents have left; others may run here."""
    lines = in_tracefs(f"{{ {STATE}; }} 2> /dev/null || true").splitlines()
    return [line for line in lines if not any(map(lives, OWNER.findall(line)))]


@pytest.mark.parametrize("spared", [True, False])
def test_the_next_agent_removes_what_a_kill_of_everything_left(
    spared: bool, group: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keepers that may leave the group are spared, and restore everything at once."""
    skip_without_trace(tmp_path / "try")
    chance = random.Random(36)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    before = state()
    left_for_next: list[set[str]] = []
    for kill in range(KILLS):
        token, record, beyond = uuid.uuid4().hex, tmp_path / f"record-{kill}", tmp_path / f"next-{kill}"
        words = (agent(), "run", "-o", record, "--warmup", "20ms", "--duration", "600s", *chance.choice(VICTIMS))
        victim = group.start(*words, **{TOKEN: token})
        milestone = chance.choice(MILESTONES)
        assert eventually(lambda: milestone(token, record) or victim.poll() is not None)  # noqa: B023 - called here
        time.sleep(chance.uniform(0, WITHIN_S))
        assert victim.poll() is None
        for pid in () if spared else marked(token):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        group.kill()
        for pid in () if spared else marked(token):
            os.kill(pid, signal.SIGKILL)
        victim.wait(timeout=PATIENCE_S)
        assert eventually(lambda: not marked(token)), "a keeper ends when it is done"  # noqa: B023
        left = state()
        left_for_next += [set(left) - set(before)] if left != before else []
        words = chance.choice(NEXT)
        done = agent_process.run(*words, *([beyond] if words[-1] == "-o" else []))
        assert (done.returncode, state()) == (0, before), (kill, left, done)
    print(f"{KILLS} kills of everything; the next agent had to remove: {left_for_next}")
    if spared and group.may_be_left():
        left = [each for some in left_for_next for each in some if not re.search("rtproof-(undo|load)-", each)]
        assert left == [], "the kernel's settings change only when the keeper is out of the group"
