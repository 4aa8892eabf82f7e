# SPDX-License-Identifier: Apache-2.0
"""Run folders: never over another, whole or not at all, and one sentence for what is wrong with them."""

import gzip
import json
import os
from pathlib import Path

import msgspec
import pytest
import record_cases as cases
import run_folders

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.record import run_folder
from rtproof.record.requirement import Requirement

INFO = msgspec.structs.replace(
    run_folders.INFO, requirements=(Requirement(500_000, 3_600_000_000_000),), note="before the BIOS update"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = run_folder.create_run_folder(tmp_path / "runs" / "one")
    cases.write_small(made / run_folder.RECORD_NAME)
    return made


def test_round_trip(folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    run = run_folder.open_run(folder)
    assert run.info == INFO
    assert run.record.begin == cases.BEGIN
    assert sorted(place.name for place in folder.iterdir()) == ["run.json", "run.rtrec"]


def test_words_that_are_no_characters_are_kept_as_far_as_they_are(folder: Path) -> None:
    command = ["rtproof", "run", "--note", "gr\udcfcn"]
    run_folder.write_run_info(folder, msgspec.structs.replace(INFO, command=command, note=command[-1]))
    info = run_folder.read_run_info(folder)
    assert info is not None
    assert (info.command[-1], info.note) == ("gr?n", "gr?n")


def test_the_requirement_of_schema_1_is_read(folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    place = folder / run_folder.INFO_NAME
    content = json.loads(place.read_text())
    (first,) = content.pop("requirements")
    del first["gap_ns"]
    place.write_text(json.dumps({**content, "schema_version": 1, "requirement": first}))
    info = run_folder.open_run(folder).info
    assert info is not None
    assert info.requirements == INFO.requirements
    place.write_text(json.dumps({**content, "schema_version": 1, "requirement": None}))
    info = run_folder.open_run(folder).info
    assert info is not None
    assert info.requirements == ()


def test_never_over_another(folder: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        run_folder.create_run_folder(folder)
    run_folder.write_run_info(folder, INFO)
    with pytest.raises(UserError, match="exists already"):
        run_folder.write_run_info(folder, msgspec.structs.replace(INFO, note="other"))
    assert run_folder.open_run(folder).info == INFO


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No such file"):
        run_folder.write_run_info(tmp_path / "gone", INFO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", no_space)
        with pytest.raises(UserError, match="No space left"):
            run_folder.write_run_info(tmp_path, INFO)
    assert list(tmp_path.iterdir()) == []


def no_space(_: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.parametrize("name", ["limit_ns", "at_most_ns", "gap_ns", "confidence"])
def test_a_requirement_that_nothing_can_be_tested_with(name: str, folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    whole = json.loads((folder / run_folder.INFO_NAME).read_text())
    for number in (0, 0.4999, 1, 1.5, -1) if name == "confidence" else (0, -1, 2**63, 10**30):
        (first,) = whole["requirements"]
        changed = {**whole, "requirements": [{**first, name: number}]}
        (folder / run_folder.INFO_NAME).write_text(json.dumps(changed))
        with pytest.raises(UserError, match=rf"is not a file that a run writes: .*{name}"):
            run_folder.open_run(folder)


@pytest.mark.parametrize("name", ["confidence", "limit_ns"])
@pytest.mark.parametrize("rest", [{}, {"confidence": None, "limit_ns": None}], ids=["missing", "null"])
def test_no_number_stands_in_for_a_confidence_or_a_limit(name: str, rest: dict[str, None], folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    whole = json.loads((folder / run_folder.INFO_NAME).read_text())
    (first,) = whole["requirements"]
    kept = {key: each for key, each in first.items() if key != name}
    changed = {**whole, "requirements": [rest | kept]}
    (folder / run_folder.INFO_NAME).write_text(json.dumps(changed))
    with pytest.raises(UserError, match="is not a file that a run writes"):
        run_folder.open_run(folder)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not a file that a run writes"),
        (b"[]", "is not a file that a run writes"),
        (b'{"schema_version": 1}', "is not a file that a run writes"),
        (b'{"schema_version": 1, "command": "\xff"}', "is not a file that a run writes"),
        (b'{"schema_version": 5, "everything": "else"}', "has schema 5, and this version reads up to 4"),
    ],
    ids=["empty", "list", "too little", "bytes", "newer"],
)
def test_wrong_run_json(content: bytes, sentence: str, folder: Path) -> None:
    (folder / run_folder.INFO_NAME).write_bytes(content)
    with pytest.raises(UserError, match=sentence) as caught:
        run_folder.open_run(folder)
    assert "\n" not in str(caught.value)


OTHERS = {
    "ELF": b"\x7fELF" + bytes(1_000),
    "gunzip": gzip.compress(b"RTP"),
    "PDF": b"%PDF-1.7\n",
    "rteval": b'<results><rteval version="3.7">',
    "the task set of rt-app: it says what to run": b'{"tasks":{"t0":{"loop":10}}}',
    "trace of the kernel": b"# tracer: nop\n#\n",
    "JSON of an unknown form": b'{"a": 1}',
    "is a text of 1 line": b"some words\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_tool_is_named(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x"
    file.write_bytes(OTHERS[name])
    for command in (["show"], ["export", "--format", "csv"]):
        assert main([*command, str(file)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert err.startswith(f"rtproof: {file} is ")
        assert name in err
