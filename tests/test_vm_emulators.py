# SPDX-License-Identifier: Apache-2.0
"""Which QEMU runs a guest, with scripts that stand for QEMU: the system's, a fetched one, one of the user's own."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import vm_cases
from agent_process import eventually, lives

from rtproof.core.errors import RtproofError
from rtproof.vm import emulators
from rtproof.vm.cache_folders import obtain_folder
from rtproof.vm.emulators import choose_emulator, fetched_qemu_folder

PROGRAM = "qemu-system-x86_64"
OLD, NEW = vm_cases.says("7.2.22", "echo nothing"), vm_cases.says("10.0.2")


class Here:
    """A machine with nothing but what a test puts on it."""

    def __init__(self, folder: Path) -> None:
        self.system = folder / "bin"
        self.own = folder / "own"

    def install(self, text: str) -> Path:
        return vm_cases.program(self.system, text)

    def fetch(self, text: str) -> Path:
        def fill(part: Path) -> dict[str, str]:
            vm_cases.program(part / "usr" / "bin", text)
            return {}

        return obtain_folder(fetched_qemu_folder(), fill).folder / "usr" / "bin" / PROGRAM


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    found = Here(tmp_path)
    found.system.mkdir()
    for tool in ("sh", "sleep"):
        (found.system / tool).symlink_to(shutil.which(tool) or tool)
    monkeypatch.setenv("PATH", str(found.system))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return found


def choose(several: bool, asked: str = "") -> str:
    return choose_emulator(PROGRAM, "qemu-system-x86", several, asked).path


def refusal(several: bool, asked: str = "") -> str:
    """The one sentence."""
    with pytest.raises(RtproofError) as caught:
        choose(several, asked)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_one_processor_has_the_systems_and_several_have_the_first_that_can(here: Here) -> None:
    old, new = here.install(OLD), here.fetch(NEW)
    assert choose(several=False) == str(old)
    assert choose(several=True) == str(new)
    here.install(vm_cases.says("10.0.13"))
    assert choose(several=True) == str(old)


def test_one_can_be_asked_for_with_any_number_of_processors(here: Here) -> None:
    old, new = here.install(OLD), here.fetch(NEW)
    own = vm_cases.program(here.own, vm_cases.says("9.2.0"))
    for several in (False, True):
        assert choose(several, "fetched") == str(new)
        assert choose(several, str(own)) == choose(several, str(here.own)) == str(own)
    assert choose(False, "system") == str(old)
    assert refusal(True, "system").startswith(f"several processors in virtual time need QEMU 8.1 or newer, and {old} ")
    own.write_text(f"#!/bin/sh\n{vm_cases.says('6.1.9')}\n")
    assert refusal(False, str(own)).startswith(f"{own} is version 6.1; the lab needs QEMU 6.2 or newer")
    own.write_text(f"#!/bin/sh\n{vm_cases.says('6.2.0')}\n")
    assert choose(False, str(own)) == str(own)


def damage(folder: Path) -> None:
    (folder / "usr" / "bin" / PROGRAM).write_text("#!/bin/sh\necho QEMU emulator version 10.0.2\n")


@pytest.mark.parametrize(
    "damaged", [damage, lambda folder: (folder / "files.json").unlink(), lambda folder: shutil.rmtree(folder / "usr")]
)
def test_a_damaged_fetched_one_is_not_used(here: Here, damaged: object) -> None:
    old = here.install(OLD)
    here.fetch(NEW)
    assert callable(damaged)
    damaged(fetched_qemu_folder())
    sentence = f"the fetched QEMU in {fetched_qemu_folder()} is damaged: fetch it again with rtproof lab qemu --fetch"
    assert refusal(several=True) == refusal(False, "fetched") == sentence
    assert choose(several=False) == str(old)
    assert [each.fault for each in emulators.emulators(PROGRAM)] == ["", sentence]


def test_a_broken_system_qemu_hides_no_fetched_one(here: Here) -> None:
    here.install("exit 1")
    new = here.fetch(NEW)
    assert choose(several=True) == choose(False, "fetched") == str(new)
    assert "cannot be run (exit code 1)" in refusal(several=False)


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "echo qemu-x86_64 version 10.0.2",
        "echo QEMU emulator version unknown",
        r"printf '\377\376\033[31m version 9.9\n'",
        "while [ ${n:=0} -lt 999 ]; do printf 'version 9.9 '; n=$((n+1)); done",
    ],
)
def test_what_tells_no_version_is_refused_with_what_it_said(here: Here, text: str) -> None:
    own = vm_cases.program(here.own, text)
    said = refusal(True, str(own))
    assert said.startswith(f"{own} is no QEMU that tells its version (it says '")
    assert "the lab needs QEMU 6.2 or newer: fetch one with" in said
    assert said.isprintable()
    assert len(said) < len(str(own)) + 500


@pytest.mark.parametrize("text", ["exec sleep 600", "sleep 600"])
def test_one_that_hangs_is_told_and_ended_with_what_it_started(
    here: Here, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(emulators, "PATIENCE_S", 0.2)
    own = vm_cases.program(here.own, text)
    begun = time.monotonic()
    assert refusal(False, str(own)).startswith(f"{own} cannot be run: it did not end within 0.2 s: ")
    assert time.monotonic() - begun < 300


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed (Debian: util-linux)")
def test_one_that_hangs_does_not_outlive_a_host_that_is_killed(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    own = vm_cases.program(tmp_path, f"echo $$ > {told}.part; mv {told}.part {told}; exec sleep 600")
    asks = f"from rtproof.vm.emulators import run_to_end; run_to_end(({str(own)!r},), 600)"
    with subprocess.Popen([sys.executable, "-c", asks]) as host:
        assert eventually(told.exists)
        host.kill()
    assert eventually(lambda: not lives(told.read_text().strip()))
