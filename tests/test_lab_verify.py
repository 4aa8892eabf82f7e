# SPDX-License-Identifier: Apache-2.0
"""What ``rtproof lab verify`` says of a result: nothing of one made here, and each input that changed by its name."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import lab_cases
import pytest
import vm_cases
from lab_desk import assert_refused, desk

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.lab import kernel_catalogue, verify_inputs
from rtproof.vm.machine import Machine, MachineInputs, emulator_version

__all__ = ["desk"]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the result of the first test stays for the others: it is the same each time, and making it takes long."""
    return tmp_path_factory.mktemp("verify") / "result"


@pytest.fixture
def made(desk: Path, kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A result of two fake kernels, and a machine that has what it was made from."""
    monkeypatch.setattr(verify_inputs, "Machine", lab_cases.FakeMachine)
    monkeypatch.setattr(verify_inputs, "emulator_version", lambda machine: "QEMU emulator version 7.2")
    monkeypatch.setattr(verify_inputs, "build_guest_agent", lambda arch: desk / "agent")
    monkeypatch.setattr(kernel_catalogue, "exact_name", lambda name, kernel: f"{name.partition('@')[0]}@6.1.192-2")
    monkeypatch.setattr(kernel_catalogue, "opened_kernel", lambda entry: lab_cases.kernel("6.1.0-amd64"))
    if not kept.exists():
        words = ["--kernel", "debian-6.1", "--preempt", "none", "--load", "mmap", "--shifts", "2"]
        assert main(["lab", "compare", *words, "--output", "result"]) == 0
        capsys.readouterr()
        shutil.move(desk / "result", kept)
    shutil.copytree(kept, desk / "result")
    return desk / "result" / "result.json"


def verify(capsys: pytest.CaptureFixture[str], file: Path) -> tuple[int, str]:
    code = main(["lab", "verify", str(file)])
    return code, capsys.readouterr().out


def test_a_result_made_here_is_the_same(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = verify(capsys, made)
    assert (code, said.startswith("All ")) == (0, True), said
    assert verify(capsys, made.parent) == (code, said)


def test_another_agent_is_named(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (made.parents[1] / "agent").write_text("another agent")
    code, said = verify(capsys, made)
    assert code == 1
    assert [line.partition(":")[0] for line in said.splitlines()[:-1]] == ["agent for x86_64"]


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
    made: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    changed: dict[str, Any],
    named: str,
) -> None:
    real = lab_cases.FakeMachine.inputs

    def inputs(self: lab_cases.FakeMachine) -> MachineInputs:
        return replace(real(self), **changed)

    monkeypatch.setattr(lab_cases.FakeMachine, "inputs", inputs)
    code, said = verify(capsys, made)
    lines = said.splitlines()
    assert (code, len(lines)) == (1, 2), said
    assert lines[0].startswith(named)


def changed_system(file: Path, **changes: object) -> None:
    """Write other values into the only system of a result; ... takes a key away."""
    told = json.loads(file.read_text())
    (system,) = told["systems"]
    system |= changes
    told["systems"] = [{key: value for key, value in system.items() if value is not ...}]
    file.write_text(json.dumps(told))


def test_a_result_of_before_there_were_turns_is_still_the_same(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = verify(capsys, made)
    changed_system(made, qemu=..., qemu_asked=..., pace_us=..., soakers=..., soaker_sha256=...)
    assert verify(capsys, made) == whole


@pytest.mark.parametrize(
    ("stored", "rebuilt"),
    [
        ({"cpus_count": 1}, (1, 4, True, "")),
        ({"cpus_count": 2, "pace_us": 7, "soakers": True, "qemu_asked": "fetched"}, (2, 7, True, "fetched")),
        ({"cpus_count": 4, "pace_us": 4, "soakers": False, "qemu_asked": None}, (4, 4, False, "")),
        ({"cpus_count": 2, "pace_us": ..., "soakers": ..., "qemu_asked": ...}, (2, 4, True, "")),
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


@pytest.mark.parametrize(
    ("stored", "here", "named"),
    [
        ("d" * 64, "e" * 64, "soaker for x86_64: dddddddddddddddd in the result, eeeeeeeeeeeeeeee here"),
        (None, "e" * 64, "soaker for x86_64: none in the result, eeeeeeeeeeeeeeee here"),
        ("d" * 64, "", "soaker for x86_64: dddddddddddddddd in the result, none here"),
    ],
)
def test_another_soaker_is_named(
    made: Path, monkeypatch: pytest.MonkeyPatch, stored: str | None, here: str, named: str
) -> None:
    changed_system(made, cpus_count=2, pace_us=4, soakers=True, soaker_sha256=stored)
    real = lab_cases.FakeMachine.inputs
    monkeypatch.setattr(lab_cases.FakeMachine, "inputs", lambda self: replace(real(self), soaker_sha256=here))
    pairs = verify_inputs.compare_inputs(verify_inputs.read_comparison(made))
    assert named in verify_inputs.verification_sentences(pairs)


def test_a_qemu_that_is_not_here_differs_and_the_way_to_it_is_said(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(machine: object) -> str:
        raise UserError("the lab has fetched no QEMU: fetch it with rtproof lab qemu --fetch")

    changed_system(made, qemu="QEMU emulator version 10.0.2", qemu_asked="fetched")
    monkeypatch.setattr(verify_inputs, "emulator_version", missing)
    code, said = verify(capsys, made)
    assert code == 1
    assert said.splitlines()[0] == (
        "QEMU of debian-6.1 preempt=none: QEMU emulator version 10.0.2 in the result, "
        "not here: the lab has fetched no QEMU: fetch it with rtproof lab qemu --fetch here"
    )


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
    assert main(["lab", "verify", str(made), "--qemu", str(tmp_path / "gone")]) == 1
    assert f"not here: there is no QEMU at {tmp_path / 'gone'}: give system" in capsys.readouterr().out


def test_the_qemu_of_each_system_is_compared(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed_system(made, qemu="QEMU emulator version 10.0.2")
    code, said = verify(capsys, made)
    assert code == 1
    assert said.startswith("QEMU: QEMU emulator version 10.0.2 in the result, QEMU emulator version 7.2 here\n")


@pytest.mark.parametrize(
    "changes", [{"pace_us": "4"}, {"soakers": 1}, {"qemu": 7}, {"qemu_asked": ["fetched"]}, {"soaker_sha256": 5}]
)
def test_keys_about_processors_of_another_type_are_damage(
    made: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, object]
) -> None:
    changed_system(made, **changes)
    assert main(["lab", "verify", str(made)]) == 2
    assert_refused(capsys, f"{made} is damaged: ")


def test_another_version_of_a_kernel_is_named(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_catalogue, "exact_name", lambda name, kernel: "debian-6.1@6.1.176-1")
    code, said = verify(capsys, made)
    assert code == 1
    assert "kernel of debian-6.1 preempt=none: debian-6.1@6.1.192-2 in the result, debian-6.1@6.1.176-1 here" in said


def test_a_kernel_that_is_not_in_the_cache_differs_and_the_way_to_it_is_said(
    made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_catalogue, "opened_kernel", lambda entry: None)
    code, said = verify(capsys, made)
    assert code == 1
    assert "not here: rtproof lab kernels fetch debian-6.1@6.1.192-2 here" in said


def test_another_job_and_a_result_of_an_earlier_version_are_named(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = json.loads(made.read_text())
    told["setting"]["period_ns"] += 1
    del told["toolchain"]
    made.write_text(json.dumps(told))
    code, said = verify(capsys, made)
    assert code == 1
    assert "compiler of what runs in the guest: not in the result in the result, zig" in said
    assert "job under mmap: " in said


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{", "broken.json is no JSON"),
        ("[]", "broken.json is no result of rtproof lab compare"),
        ('{"schema": "rtproof.lab.comparison", "version": 1}', "broken.json is damaged"),
        ('{"schema": "rtproof.lab.comparison"}', "broken.json has version None of its schema; this rtproof reads 1"),
        ('{"schema": "rtproof.lab.comparison", "version": 2, "cells": {}}', "broken.json has version 2 of its schema"),
    ],
)
def test_other_files_are_refused(desk: Path, capsys: pytest.CaptureFixture[str], content: str, sentence: str) -> None:
    Path("broken.json").write_text(content)
    assert main(["lab", "verify", "broken.json"]) == 2
    assert_refused(capsys, sentence)


@pytest.mark.parametrize(
    ("emptied", "value", "sentence"),
    [
        (("systems",), [], "it has no systems or no cells"),
        (("cells",), [], "it has no systems or no cells"),
        (("cells", 0, "jobs_sha256"), [], "CELL has 0 jobs, and each cell 2 shifts"),
        (("cells", 0, "jobs_sha256"), ["0" * 64] * 3, "CELL has 3 jobs, and each cell 2 shifts"),
        (("setting", "shifts_count"), 4, "CELL has 2 jobs, and each cell 4 shifts"),
    ],
)
def test_a_result_that_lacks_what_to_compare_is_damaged_and_not_the_same(
    made: Path, capsys: pytest.CaptureFixture[str], emptied: tuple[Any, ...], value: object, sentence: str
) -> None:
    told = place = json.loads(made.read_text())
    for key in emptied[:-1]:
        place = place[key]
    assert place[emptied[-1]]
    place[emptied[-1]] = value
    made.write_text(json.dumps(told))
    assert main(["lab", "verify", str(made)]) == 2
    first = "{system}, {load}".format(**json.loads(made.read_text())["cells"][0]) if "CELL" in sentence else ""
    assert_refused(capsys, f"{made} is damaged: {sentence.replace('CELL', first)}")


def test_a_module_that_is_no_file_is_refused_and_not_waited_for(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe.ko")
    told = json.loads(made.read_text())
    for name in ("./pipe.ko", "/dev/zero", "./gone.ko"):
        told["systems"][0]["modules_asked"] = [name]
        made.write_text(json.dumps(told))
        assert main(["lab", "verify", str(made)]) == 2
        assert_refused(capsys, f"{name}, a module of the result, is no file here")


def test_what_is_no_file_is_refused_before_it_is_read(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe")
    with Path("huge.json").open("wb") as file:
        file.truncate(verify_inputs.MOST_BYTES + 1)
    Path("folder/result.json").mkdir(parents=True)
    for name in ("pipe", "huge.json", "/dev/zero", "folder"):
        assert main(["lab", "verify", name]) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"rtproof: {name}")
        assert said.endswith(" is no result of rtproof lab compare: it is no file of at most 256 MiB\n")
