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
from rtproof.vm.qemu_process import running_guest

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here"),
    pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)"),
]

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


def test_the_emulator_ends_with_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then="exec sleep 600")
    with running_guest(vm_cases.machine(tmp_path), tmp_path) as guest:
        assert guest.alive()
    assert not guest.alive()


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


def test_too_little_memory_is_said_before_anything_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = tmp_path / "started"
    vm_cases.fake_qemu(tmp_path / "bin", monkeypatch, then=f"touch {started}")
    machine = replace(vm_cases.machine(tmp_path), memory_mib=1 << 30)
    needs = r"a guest of 1073741824 MiB needs \d+ MiB of memory; \d+ MiB are free"
    with pytest.raises(TargetError, match=needs), running_guest(machine, tmp_path):
        pass
    assert not started.exists()
