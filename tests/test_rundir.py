# SPDX-License-Identifier: Apache-2.0
"""Run folders: never over another, whole or not at all, and one sentence for what is wrong with them."""

import json
import os
from pathlib import Path

import msgspec
import pytest
import record_cases as cases

from rtproof.core.errors import RecordError, UserError
from rtproof.record import run_folder
from rtproof.record.run_folder import RequirementInfo, RunInfo

INFO = RunInfo(
    command=["rtproof", "run", "--limit", "500us"],
    started="2026-01-02T03:04:05+01:00",
    host="bench",
    user="me",
    rtproof_version="0.1.0",
    agent_sha256="ab" * 32,
    agent_arch="x86_64",
    target="local",
    requirements=[RequirementInfo(limit_ns=500_000, at_most_ns=3_600_000_000_000, confidence=0.95)],
    note="before the BIOS update",
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


def test_run_json_can_be_read_by_anybody(folder: Path) -> None:
    run_folder.write_run_info(folder, msgspec.structs.replace(INFO, requirements=[]))
    content = json.loads((folder / run_folder.INFO_NAME).read_text())
    assert content["schema_version"] == 3
    assert content["requirements"] == []
    assert content["command"] == INFO.command


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
    assert info.requirements == []


def test_a_record_alone(folder: Path) -> None:
    run_folder.write_run_info(folder, INFO)
    run = run_folder.open_run(folder / run_folder.RECORD_NAME)
    assert run.info is None
    assert run.record.begin == cases.BEGIN


def test_a_folder_without_run_json(folder: Path) -> None:
    assert run_folder.open_run(folder).info is None


def test_never_over_another(folder: Path) -> None:
    with pytest.raises(UserError, match="exists already"):
        run_folder.create_run_folder(folder)
    run_folder.write_run_info(folder, INFO)
    with pytest.raises(UserError, match="exists already"):
        run_folder.write_run_info(folder, msgspec.structs.replace(INFO, note="other"))
    assert run_folder.open_run(folder).info == INFO


def test_where_no_folder_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="Not a directory"):
        run_folder.create_run_folder(tmp_path / "file" / "run")


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


def test_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"has no run\.rtrec"):
        run_folder.open_run(tmp_path)
    with pytest.raises(RecordError, match="No such file"):
        run_folder.open_run(tmp_path / "missing")


@pytest.mark.parametrize("confidence", [0, 0.4999, 1, 1.5, -1])
def test_a_requirement_that_nothing_can_be_tested_with(confidence: float, folder: Path) -> None:
    with_requirement(folder, confidence=confidence)
    with pytest.raises(UserError, match=r"is not what a run leaves: .*confidence"):
        run_folder.open_run(folder)


@pytest.mark.parametrize("name", ["limit_ns", "at_most_ns", "gap_ns"])
@pytest.mark.parametrize("length", [0, -1, 2**63, 10**30])
def test_a_length_of_a_requirement_that_can_not_be(name: str, length: int, folder: Path) -> None:
    with_requirement(folder, **{name: length})
    with pytest.raises(UserError, match=rf"is not what a run leaves: .*{name}"):
        run_folder.open_run(folder)


def with_requirement(folder: Path, **changes: float) -> None:
    """A run.json that somebody has changed by hand."""
    run_folder.write_run_info(folder, INFO)
    place = folder / run_folder.INFO_NAME
    content = json.loads(place.read_text())
    content["requirements"][0].update(changes)
    place.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is not what a run leaves"),
        (b"[]", "is not what a run leaves"),
        (b'{"schema_version": 1}', "is not what a run leaves"),
        (b'{"schema_version": 1, "command": "\xff"}', "is not what a run leaves"),
        (b'{"schema_version": 4, "everything": "else"}', "has schema 4, newer than 3"),
    ],
    ids=["empty", "list", "too little", "bytes", "newer"],
)
def test_wrong_run_json(content: bytes, sentence: str, folder: Path) -> None:
    (folder / run_folder.INFO_NAME).write_bytes(content)
    with pytest.raises(UserError, match=sentence) as caught:
        run_folder.open_run(folder)
    assert "\n" not in str(caught.value)
