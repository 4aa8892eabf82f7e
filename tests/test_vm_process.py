# SPDX-License-Identifier: Apache-2.0

import os
import select
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import TargetError
from rtproof.vm.qemu_process import running_guest, without_warnings

needs_programs = pytest.mark.skipif(
    not shutil.which("cc") or not shutil.which("setpriv"),
    reason="there is no C compiler here, or no setpriv (util-linux)",
)
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


@needs_programs
def test_a_guest_that_resumes_has_no_timers_of_the_hosts_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = tmp_path / "words"
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then=f'echo "$*" >{words}.part; mv {words}.part {words}')
    (tmp_path / "state").touch()
    with (
        (tmp_path / "state").open("rb") as state,
        running_guest(vm_cases.machine(tmp_path), tmp_path, incoming=state) as guest,
    ):
        assert guest.wait(300)
    # QEMU would announce the guest to its network at instants of the host's clock, and a turn ends at each of them.
    assert "-incoming fd:0 -global migration.announce-rounds=0" in words.read_text()


@needs_programs
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
        assert select.select([said], [], [], 300)[0], "the emulator still holds its end"
        assert said.read() == ""


@needs_programs
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
