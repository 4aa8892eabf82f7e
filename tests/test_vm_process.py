# SPDX-License-Identifier: Apache-2.0

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import vm_cases

from rtproof.core.errors import TargetError
from rtproof.vm.qemu_process import Monitor, running_guest, without_warnings

GREETING: dict[str, Any] = {"QMP": {"version": {}}}


class FakeQemu:
    """Answers each command with the next of its messages, and remembers what it was asked."""

    def __init__(self, connection: socket.socket) -> None:
        self.asked: list[Any] = []
        self._connection = connection

    def answer(self, *answers: list[dict[str, Any]]) -> threading.Thread:
        thread = threading.Thread(target=self._serve, args=(answers,), daemon=True)
        thread.start()
        return thread

    def _serve(self, answers: tuple[list[dict[str, Any]], ...]) -> None:
        self.send(GREETING)
        with self._connection.makefile("r") as requests:
            for messages in ([{"return": {}}], *answers):
                request = requests.readline()
                if not request:
                    return
                self.asked.append(json.loads(request))
                self.send(*messages)
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def send(self, *messages: dict[str, Any]) -> None:
        self._connection.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


@pytest.fixture
def pair() -> Iterator[tuple[Monitor, FakeQemu]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Monitor(ours), FakeQemu(theirs)


def test_a_command_gives_its_answer_and_events_wait(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([{"event": "STOP"}, {"return": {"status": "paused"}}])
    assert monitor.command("query-status", key=1) == {"status": "paused"}
    assert [request["execute"] for request in fake.asked] == ["qmp_capabilities", "query-status"]
    assert fake.asked[1]["arguments"] == {"key": 1}
    assert monitor.happened("STOP", 0)
    assert not monitor.happened("STOP", 0)


def test_a_refusal_is_a_sentence(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([{"error": {"class": "GenericError", "desc": "no such thing"}}])
    with pytest.raises(TargetError, match="QEMU refuses the command migrate: no such thing"):
        monitor.command("migrate")


def test_silence_is_a_sentence(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([], [])
    with pytest.raises(TargetError, match=r"does not answer the command cont within 0.01 s"):
        monitor.command("cont", timeout_s=0.01)


def test_an_end_is_known_and_is_no_event(pair: tuple[Monitor, FakeQemu]) -> None:
    monitor, fake = pair
    fake.answer([{"return": {}}])
    monitor.command("quit")
    assert not monitor.happened("STOP", 60)
    assert monitor.closed
    with pytest.raises(TargetError, match="QEMU ended"):
        monitor.command("cont")


# A host program that starts an emulator and then waits for ever.
HOST = """
import sys, time
from pathlib import Path
import vm_cases
from rtproof.vm.qemu_process import running_guest
folder = Path(sys.argv[1])
with running_guest(vm_cases.machine(folder), folder):
    time.sleep(600)
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_the_emulator_ends_with_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then="exec sleep 600")
    with running_guest(vm_cases.machine(tmp_path), tmp_path) as guest:
        assert guest.alive()
    assert not guest.alive()


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_a_guest_that_resumes_has_no_timers_of_the_hosts_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = tmp_path / "words"
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then=f'echo "$*" >{words}.part; mv {words}.part {words}')
    (tmp_path / "state").touch()
    with (
        (tmp_path / "state").open("rb") as state,
        running_guest(vm_cases.machine(tmp_path), tmp_path, incoming=state) as guest,
    ):
        assert guest.wait(60)
    # QEMU would announce the guest to its network at instants of the host's clock, and a turn ends at each of them.
    assert "-incoming fd:0 -global migration.announce-rounds=0" in words.read_text()


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_no_emulator_outlives_a_host_program_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lifeline = tmp_path / "lifeline"
    os.mkfifo(lifeline)
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then=f"exec 3>{lifeline}; echo started >&3; exec sleep 600")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with (
        subprocess.Popen([sys.executable, "-c", HOST, str(tmp_path)], env=environment) as host,
        lifeline.open() as said,
    ):
        assert said.readline() == "started\n"
        host.send_signal(signal.SIGKILL)
        host.wait()
        assert select.select([said], [], [], 60)[0], "the emulator still holds its end"
        assert said.read() == ""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_too_little_memory_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then=f"touch {started}")
    machine = replace(vm_cases.machine(tmp_path), memory_mib=1 << 30)
    needs = r"a guest of 1073741824 MiB needs \d+ MiB of memory; \d+ MiB are free"
    with pytest.raises(TargetError, match=needs), running_guest(machine, tmp_path):
        pass
    assert not started.exists()


WARNED = "qemu-system-x86_64: warning: hub port tick has no peer"
DEPRECATED = "qemu-system-x86_64: -incoming fd:0: warning: fd: migration to a file is deprecated. Use file: instead."
FATAL = "qemu-system-x86_64: cannot set up guest memory 'pc.ram': Cannot allocate memory"


@pytest.mark.parametrize(
    ("log", "left"),
    [
        ("", ""),
        (f"{WARNED}\n{DEPRECATED}\n", ""),
        (f"{WARNED}\n{FATAL}\n{DEPRECATED}\n", FATAL),
        (
            f"{WARNED}\nUse -netdev help to list them\nor nothing.\n{FATAL}\nTry less memory\n",
            f"{FATAL}\nTry less memory",
        ),
        (f"{FATAL}\n{WARNED}\n and its second line", FATAL),
        (
            f"{WARNED}\n**\nERROR:../accel/tcg.c:1:f: assertion failed\nBail out!",
            "**\nERROR:../accel/tcg.c:1:f: assertion failed\nBail out!",
        ),
        ("qemu-system-x86_64: info: all is well\n", ""),
        ("no kvm here\n", "no kvm here"),
    ],
)
def test_a_warning_is_no_reason_and_neither_are_its_further_lines(log: str, left: str) -> None:
    assert without_warnings(log) == left


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here")
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
@pytest.mark.parametrize(
    ("printed", "ending"),
    [
        (f'echo "{WARNED}"; echo "and more of it"', "QEMU ended with exit code 3"),
        (f'echo "{FATAL}"; echo "{WARNED}"; echo "and more of it"', f"QEMU ended with exit code 3: {FATAL}"),
    ],
)
def test_an_end_is_told_with_the_reason_and_not_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str, ending: str
) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then=f"{{ {printed}; }} >&2; exit 3")
    with running_guest(vm_cases.machine(tmp_path), tmp_path) as guest:
        assert guest.wait(60)
        assert guest.ending == ending
