# SPDX-License-Identifier: Apache-2.0
"""Boards on which something is in the way: one sentence, and nothing is left there; or it works all the same."""

import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtproof.cli.main import main

DOOR = "sh -c"
"""A program that runs a command there: here, for a start."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the board keeps its files."""
    monkeypatch.chdir(tmp_path)
    made = tmp_path / "board"
    made.mkdir()
    return made


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """The same, with room for 64 KiB only."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def door(place: Path, body: str) -> str:
    """A program that runs its last word as a command line, with something around it."""
    program = place / "door"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def measure(folder: Path, way: str = DOOR, *more: str) -> int:
    """A short run through the program ``way``; the exit code."""
    options = ("--target-option", f"exec={way}", "--target-option", f"dir={folder}")
    words = ("--duration", "200ms", "--warmup", "0s", "--no-report", "-q", "-o", "run", "--allow-unprivileged")
    return main(["run", "--target", "command", *options, *words, *more])


def assert_refused(capsys: pytest.CaptureFixture[str], *words: str) -> None:
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1, err
    for each in words:
        assert each in err
    assert not Path("run").exists()


def test_a_shell_that_greets_everybody_is_no_hindrance(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    way = door(folder, 'echo "Welcome to /board 1.0"; echo "0123456789abcdef: be careful" >&2; sh -c "$*"')
    assert measure(folder, way) in (0, 3), capsys.readouterr().err
    assert Path("run/run.rtrec").exists()


def test_no_space_is_one_sentence_and_no_half_agent_stays(small_disk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert measure(small_disk) == 2
    assert_refused(capsys, "No space left on device")
    assert not [file for file in small_disk.rglob("*") if file.is_file() and file.stat().st_size]


@pytest.mark.parametrize(("option", "why"), [("ro", "Read-only file system"), ("noexec", "ermission denied")])
def test_a_file_system_of_no_use_is_one_sentence(
    small_disk: Path, option: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    subprocess.run(["mount", "-o", f"remount,{option}", str(small_disk)], check=True)
    assert measure(small_disk) == 2
    assert_refused(capsys, "nothing can be kept or run in", why)


@pytest.mark.parametrize("missing", ["sha256sum", "md5sum"])
def test_the_barest_board_measures_too(folder: Path, capsys: pytest.CaptureFixture[str], missing: str) -> None:
    """BusyBox alone, without the checksum and those before it."""
    busybox = shutil.which("busybox")
    if not busybox:
        pytest.skip("there is no busybox")
    checks = ["sha256sum", "md5sum"]
    gone = checks[: checks.index(missing) + 1]
    programs = folder / "bin"
    programs.mkdir()
    for name in ("sh", "cat", "chmod", "mkdir", "mv", "rm", "id", "uname", "wc", "true", *checks):
        if name not in gone:
            (programs / name).symlink_to(busybox)
    way = door(folder, f'PATH={programs} exec {programs}/sh -c "$*"')
    assert measure(folder, way) in (0, 3), capsys.readouterr().err
    assert Path("run/run.rtrec").exists()
    assert [file.name for file in folder.rglob("*") if file.name.startswith("run-")] == []
