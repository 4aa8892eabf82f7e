# SPDX-License-Identifier: Apache-2.0
"""What ``rtproof lab verify`` says of a result: nothing of one made here, and each input that changed by its name."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import lab_cases
import pytest
import vm_cases
from lab_desk import assert_refused, desk, verifying

from rtproof.cli.main import main
from rtproof.core.bounded import DOCUMENT_BYTES
from rtproof.lab import verify_inputs
from rtproof.vm.machine import Machine, emulator_version

__all__ = ["desk", "verifying"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the result of the first test stays for the others: it is the same each time, and making it takes long."""
    return tmp_path_factory.mktemp("verify") / "result"


@pytest.fixture
def made(verifying: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A result of two fake kernels, on a machine that has what it was made from."""
    if not kept.exists():
        words = ["--kernel", "debian-6.1", "--preempt", "none", "--load", "mmap", "--shifts", "2"]
        assert main(["lab", "compare", *words, "--output", "result"]) == 0
        capsys.readouterr()
        shutil.move(verifying / "result", kept)
    shutil.copytree(kept, verifying / "result")
    return verifying / "result" / "result.json"


def verify(capsys: pytest.CaptureFixture[str], file: Path) -> tuple[int, str]:
    code = main(["lab", "verify", str(file)])
    return code, capsys.readouterr().out


def test_a_result_made_here_is_the_same(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = verify(capsys, made)
    assert (code, said.startswith("All ")) == (0, True), said
    assert verify(capsys, made.parent) == (code, said)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"qemu": "QEMU emulator version 9.0"}, "QEMU: QEMU emulator version 7.2 in the result, QEMU emulator"),
        ({"kernel_sha256": "0" * 64}, "kernel image of debian-6.1 preempt=none: "),
        ({"helper_sha256": "0" * 64}, "helper of the guest for x86_64: bbbbbbbbbbbbbbbb in the result, 0000"),
        ({"busybox_sha256": "0" * 64}, "BusyBox for x86_64: "),
        ({"modules": (("extra", "0" * 64),)}, "module extra of debian-6.1 preempt=none: not in the result in "),
        ({"qemu_arguments": ("preempt=none", "-m", "2")}, "options of QEMU of debian-6.1 preempt=none: "),
    ],
)
def test_each_changed_input_of_a_machine_is_named(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], named: str
) -> None:
    real = lab_cases.FakeMachine.inputs

    def inputs(self: lab_cases.FakeMachine) -> dict[str, Any]:
        return real(self) | changed

    monkeypatch.setattr(lab_cases.FakeMachine, "inputs", inputs)
    code, said = verify(capsys, made)
    lines = said.splitlines()
    assert (code, len(lines)) == (1, 2), said
    assert lines[0].startswith(named)


def changed_system(file: Path, **changes: object) -> None:
    """Write other values into the only system of a result."""
    told = json.loads(file.read_text())
    told["systems"][0] |= changes
    file.write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("stored", "rebuilt"),
    [
        ({"cpus_count": 2, "pace_us": 7, "soakers": True, "qemu_asked": "fetched"}, (2, 7, True, "fetched")),
        ({"cpus_count": 4, "pace_us": 4, "soakers": False, "qemu_asked": None}, (4, 4, False, "")),
        ({"cpus_count": 1, "pace_us": None, "soakers": True}, (1, 4, True, "")),
    ],
)
def test_the_machine_is_made_again_from_what_the_result_says_of_its_processors(
    made: Path, monkeypatch: pytest.MonkeyPatch, stored: dict[str, object], rebuilt: tuple[int, int, bool, str]
) -> None:
    changed_system(made, **stored)
    asked: list[Machine] = []
    monkeypatch.setattr(verify_inputs, "emulator_version", asked.append)
    verify_inputs.compare_inputs(verify_inputs.read_comparison(made))
    assert [(each.cpus, each.pace_us, each.soakers, each.qemu) for each in asked] == [rebuilt]


def test_no_program_is_run_because_a_result_names_its_path(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = vm_cases.program(tmp_path / "own", f"touch {tmp_path}/was-run; {vm_cases.says('10.0.2')}")
    changed_system(made, qemu_asked=str(own))
    monkeypatch.setattr(verify_inputs, "emulator_version", emulator_version)
    code, said = verify(capsys, made)
    assert code == 1
    assert f"not here: it was made with a QEMU at {own}, so give yours with --qemu here\n" in said
    assert not (tmp_path / "was-run").exists()
    pairs = verify_inputs.compare_inputs(verify_inputs.read_comparison(made), str(own))
    assert [pair.differs for pair in pairs if pair.what == "QEMU"] == [False]
    assert (tmp_path / "was-run").exists()


def test_another_job_and_another_compiler_are_named(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(made.read_text())
    told["setting"]["period_ns"] += 1
    told["toolchain"] = "gcc"
    made.write_text(json.dumps(told))
    code, said = verify(capsys, made)
    assert code == 1
    assert "compiler of what runs in the guest: gcc in the result, zig" in said
    assert "job under mmap: " in said


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "broken.json is no JSON"),
        ("[]", "broken.json is no result of rtproof lab compare"),
        ('{"schema": "rtproof.lab.comparison", "version": 1}', "broken.json is damaged"),
        ('{"schema": "rtproof.lab.comparison", "version": 2, "cells": {}}', "broken.json has version 2 of its schema"),
    ],
)
def test_other_files_are_refused(desk: Path, capsys: pytest.CaptureFixture[str], content: str, sentence: str) -> None:
    Path("broken.json").write_text(content)
    assert main(["lab", "verify", "broken.json"]) == 2
    assert_refused(capsys, sentence)


@pytest.mark.parametrize(("place", "value"), [("systems", []), ("cells", []), ("pace_us", "4")])
def test_a_result_that_lacks_what_to_compare_is_damaged_and_not_the_same(
    made: Path, capsys: pytest.CaptureFixture[str], place: str, value: object
) -> None:
    told = json.loads(made.read_text())
    for each in (told, told["cells"][0], told["systems"][0]):
        if place in each:
            each[place] = value
    made.write_text(json.dumps(told))
    assert main(["lab", "verify", str(made)]) == 2
    assert_refused(capsys, f"{made} is damaged")


@pytest.mark.parametrize("jobs", [[], ["0" * 64] * 3])
def test_other_numbers_of_jobs_than_of_shifts_differ(
    made: Path, capsys: pytest.CaptureFixture[str], jobs: list[str]
) -> None:
    told = json.loads(made.read_text())
    told["cells"][0]["jobs_sha256"] = jobs
    made.write_text(json.dumps(told))
    code, said = verify(capsys, made)
    assert (code, said.startswith("job under mmap: ")) == (1, True), said


def test_what_is_no_file_is_refused_before_it_is_read(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    with Path("huge.json").open("wb") as file:
        file.truncate(DOCUMENT_BYTES + 1)
    Path("folder/result.json").mkdir(parents=True)
    for name, sentence in (
        ("pipe", "cannot read pipe: it is a pipe or a device and not a file"),
        ("huge.json", "huge.json is larger than 16 MiB, more than any file of this kind"),
        ("/dev/zero", "cannot read /dev/zero: it is a pipe or a device and not a file"),
        ("folder", "folder/result.json cannot be read: Is a directory"),
    ):
        assert main(["lab", "verify", name]) == 2
        assert capsys.readouterr().err == f"rtproof: {sentence}\n"
