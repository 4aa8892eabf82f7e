# SPDX-License-Identifier: Apache-2.0
"""A power cut takes no file of rtproof's: each is flushed to the medium, and then the folder that has its name."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import test_session
from test_rundir import INFO

from rtproof.core import files
from rtproof.core.errors import UserError
from rtproof.experiment import stored_runs
from rtproof.record import run_folder

Told = list[tuple[str, Path]]
"""What was done, in order: ("flush" or "rename", the path that it was done to)."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    done: Told = []
    fsync, rename = os.fsync, Path.rename

    def flush(opened: int) -> None:
        done.append(("flush", Path(f"/proc/self/fd/{opened}").readlink()))
        fsync(opened)

    def to(self: Path, target: Path) -> Path:
        done.append(("rename", target))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(Path, "rename", to)
    return done


def test_a_new_run_folder(told: Told, tmp_path: Path) -> None:
    run_folder.create_run_folder(tmp_path / "runs" / "today" / "run")
    assert set(told) == {("flush", tmp_path), ("flush", tmp_path / "runs"), ("flush", tmp_path / "runs" / "today")}


def test_what_the_host_wrote_about_a_run(told: Told, tmp_path: Path) -> None:
    run_folder.write_run_info(tmp_path, INFO)
    assert [what for what, _ in told] == ["flush", "rename", "flush"]
    assert told[0][1].parent == tmp_path
    assert [place for _, place in told[1:]] == [tmp_path / run_folder.INFO_NAME, tmp_path]
    assert list(tmp_path.iterdir()) == [tmp_path / run_folder.INFO_NAME]


def test_a_record_that_a_target_hands_over(told: Told, tmp_path: Path) -> None:
    test_session.run(tmp_path, "good")
    record = tmp_path / "run" / run_folder.RECORD_NAME
    assert told[-2:] == [("flush", record), ("flush", record.parent)]


def test_a_report(told: Told, tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    stored_runs.write_new_file(place, b"page")
    assert told == [("flush", place), ("flush", tmp_path)]


def test_a_report_that_does_not_get_to_the_medium_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    with pytest.raises(OSError, match="Input/output error") as caught:
        stored_runs.write_new_file(tmp_path / "report.html", b"page")
    assert caught.value.filename == str(tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP])
def test_a_file_system_without_a_medium(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(number))
    stored_runs.write_new_file(tmp_path / "report.html", b"page")
    assert (tmp_path / "report.html").read_bytes() == b"page"


def test_a_folder_that_cannot_be_flushed_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", failing(errno.EIO))
    assert run_folder.create_run_folder(tmp_path / "run") == tmp_path / "run"
    with pytest.raises(UserError, match="Input/output error"):
        run_folder.write_run_info(tmp_path / "run", INFO)
    assert list((tmp_path / "run").iterdir()) == []


def test_a_file_that_replaces_another(told: Told, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    files.write_whole(tmp_path / "file", b"new")
    assert [what for what, _ in told] == ["flush", "rename", "flush"]
    assert (tmp_path / "file").read_bytes() == b"new"


def failing(number: int) -> Callable[[int], None]:
    def fail(_: int) -> None:
        raise OSError(number, os.strerror(number))

    return fail
