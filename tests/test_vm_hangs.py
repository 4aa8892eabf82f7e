# SPDX-License-Identifier: Apache-2.0
"""Guests that hang or die as they boot, with an emulator that does only that."""

import os
import shutil
import sys
from pathlib import Path

import pytest
import vm_cases

from rtproof.core.errors import TargetError
from rtproof.vm import guest, qemu_process
from rtproof.vm.guest import Job, run_job, snapshot_folder

pytestmark = [
    pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler here"),
    pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)"),
]

# An emulator that answers each command, and does what the case says once the guest is to go on.
EMULATOR = """
import json, os, socket, sys, time
def busy():
    while True:
        pass
words = " ".join(sys.argv)
def say(text):
    with open("console.out", "a") as console:
        console.write(text)
def boots():
    BODY
number = int(words.partition("id=qmp,fd=")[2].split()[0])
monitor = socket.socket(fileno=number)
monitor.sendall(b'{"QMP": {}}\\n')
for line in monitor.makefile():
    monitor.sendall(b'{"return": {}}\\n')
    if "cont" in line:
        boots()
"""


@pytest.fixture(autouse=True)
def hasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of the test's own, and little patience."""
    agents = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rtproof" / "agents"
    (tmp_path / "cache" / "rtproof").mkdir(parents=True)
    agents.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache" / "rtproof" / "agents").symlink_to(agents)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(guest, "SILENT_CPU_S", 0.3)
    monkeypatch.setattr(qemu_process, "WATCH_S", 0.05)


def sentence_of(body: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What is said of a guest whose emulator does ``body`` as it boots. Nothing may be left of the guest."""
    # Only one that sleeps stands still; on a busy machine another may look so for a while.
    monkeypatch.setattr(qemu_process, "STANDSTILL_S", 5 if "sleep" in body else 300)
    program = folder / "emulator.py"
    program.write_text(EMULATOR.replace("BODY", body))
    vm_cases.fake_qemu(folder / "bin", monkeypatch, then=f'exec {sys.executable} {program} "$@"')
    with pytest.raises(TargetError) as raised:
        run_job(vm_cases.machine(folder), Job("true"), folder / "out", 300)
    scratch = snapshot_folder().parent / "scratch"
    assert [path for path in scratch.iterdir() if path.is_dir()] == []
    assert not list(snapshot_folder().glob("*.state"))
    return str(raised.value)


@pytest.mark.parametrize(
    ("body", "sentences"),
    [
        ("busy()", ["the guest hangs: it printed nothing during ", " s of this host's CPU time (loglevel=7 among"]),
        ("time.sleep(600)", ["the guest hangs: its virtual time has stood still for 5 s (loglevel=7 among"]),
        ("sys.exit(0)", ["the guest died at once and printed nothing (the machine was reset or switched off)"]),
        (
            "print('qemu: no such board', file=sys.stderr, flush=True); sys.exit(1)",
            ["(QEMU ended with exit code 1: qemu: no such board)"],
        ),
        ("os.kill(os.getpid(), 11)", ["the guest died at once", "QEMU was killed by signal 11"]),
        ("say('Booting\\nBUG: bad page\\n'); sys.exit(0)", ["the guest died as it booted", "'BUG: bad page'"]),
        (
            "say('Kernel panic - not syncing: no init found\\n'); sys.exit(0)",
            ["the guest's kernel panicked (no init found)"],
        ),
    ],
    ids=["busy", "still", "reset", "board", "signal", "printed", "panic"],
)
def test_a_guest_that_does_not_boot_says_why(
    body: str, sentences: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = sentence_of(body, tmp_path, monkeypatch)
    for sentence in sentences:
        assert sentence in said
    assert said.endswith(f"; the console's log is {tmp_path / 'out' / 'console.log'}")
