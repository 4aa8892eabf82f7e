# SPDX-License-Identifier: Apache-2.0
"""Old ARM processors as boards: programs with instructions that they lack really die there.

The board is a namespace of this machine in which QEMU's user-mode emulator runs ARM programs as one old processor
would. What ``uname -m`` says there is a stand-in's, because the kernel is that of this machine.
"""

import hashlib
import json
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from rtproof.agents.build import find_agent
from rtproof.cli.main import main
from rtproof.judge.analysis_model import State
from rtproof.record.reading import open_record

pytestmark = pytest.mark.slow

ARM_PROGRAMS = (
    r":arm:M::\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x28\x00"
    r":\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:{emulator}:F"
)
"""For binfmt_misc: ELF, 32 bits, little-endian, executable, for ARM (QEMU's scripts/qemu-binfmt-conf.sh)."""
ENTER = """#!/bin/sh
exec unshare --user --map-root-user --mount sh -c '
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || exit 125
printf %s "$1" > /proc/sys/fs/binfmt_misc/register || exit 125
shift
exec "$@"' sh 'PROGRAMS' env QEMU_CPU=MODEL PATH="FOLDER:$PATH" "$@"
"""
UNAME = '#!/bin/sh\nif [ "$1" = -m ]; then echo MACHINE; else exec /bin/uname "$@"; fi\n'


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def board(folder: Path, machine: str, cpu: str) -> str:
    """A program that runs a command on a board with this processor, whose ``uname -m`` says ``machine``."""
    emulator = shutil.which("qemu-arm-static") or shutil.which("qemu-arm")
    if not emulator:
        pytest.skip("there is no qemu-arm")
    text = ENTER.replace("MODEL", cpu).replace("FOLDER", str(folder / "bin"))
    (folder / "bin").mkdir()
    write_program(folder / "door", text.replace("PROGRAMS", ARM_PROGRAMS.format(emulator=emulator)))
    write_program(folder / "bin" / "uname", UNAME.replace("MACHINE", machine))
    if subprocess.run([folder / "door", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this kernel has no binfmt_misc of a namespace's own, which came with Linux 6.7")
    return str(folder / "door")


@pytest.mark.parametrize(
    ("machine", "cpu", "chosen"),
    [
        ("armv7l", "cortex-a8", "armv7"),
        ("armv7l", "arm926", "arm926"),
        ("armv4tl", "ti925t", "arm920t"),
    ],
)
def test_an_agent_that_runs_there_is_chosen_whatever_the_name_promises(
    machine: str, cpu: str, chosen: str, tmp_path: Path
) -> None:
    way = board(tmp_path, machine, cpu)
    options = ("--target", "command", "--target-option", f"exec={way}", "--target-option", f"dir={tmp_path}/kept")
    words = ("--duration", "500ms", "--period", "10ms", "--no-report", "-q", "--allow-unprivileged")
    # The emulator's page faults may make the run INVALID.
    assert main(["run", *options, *words, "-o", str(tmp_path / "run")]) in (0, State.INVALID.exit_code)
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["agent_arch"] == chosen
    assert told["agent_sha256"] == hashlib.sha256(find_agent(chosen).read_bytes()).hexdigest()
    record = open_record(tmp_path / "run" / "run.rtrec")
    assert record.end is not None
    assert record.end.reason.name == "AS_ASKED"
    assert not list((tmp_path / "kept").glob("*/run-*"))
