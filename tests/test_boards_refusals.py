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
from rtproof.core.errors import LinkError, UserError
from rtproof.targets.command import MANNERS, open_program_shell

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


# The target command, with stand-ins for programs that differ in quoting, exit statuses and bytes.


DOCKER = ("exec -i name", 'shift 3; exec "$@"')
KUBECTL = (
    "exec -i pod -c rt --",
    'while [ "$1" != -- ]; do shift; done; shift; "$@"; s=$?; '
    '[ $s = 0 ] || echo "command terminated with exit code $s" >&2; exit $s',
)
ADB = ("shell", 'shift; sh -c "$*"')
OLD_ADB = ("shell", "shift; sh -c \"$*\" 2>&1 | sed 's/$/\\r/'; exit 0")


def stand_in(folder: Path, words: str, body: str) -> list[str]:
    """A program that passes a command on as another one does, and its words."""
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return [str(program), *words.split()]


@pytest.mark.parametrize(
    ("program", "found"),
    [
        (DOCKER, (0, True, True)),
        (KUBECTL, (0, True, True)),
        (ADB, (1, True, True)),
        (OLD_ADB, (1, False, False)),
    ],
    ids=["docker", "kubectl", "adb", "adb of old"],
)
def test_how_a_program_passes_things_on_is_found(
    tmp_path: Path, program: tuple[str, str], found: tuple[int, bool, bool]
) -> None:
    shell = open_program_shell(stand_in(tmp_path, *program))
    assert (MANNERS.index(shell._manner), shell._told, shell.binary) == found
    answer = shell.ask("printf '%s\\n' 'a  b' \"$(( 1 + 1 ))\"; exit 3")
    assert answer.status == 3
    assert answer.output.replace(b"\r", b"") == b"a  b\n2\n"
    assert shell.ask("tr a-z A-Z", b"given\n").output.replace(b"\r", b"") == b"GIVEN\n"


def test_programs_that_run_nothing_are_refused_in_a_sentence(tmp_path: Path) -> None:
    for body, words in (
        ("echo 'no such container' >&2; exit 1", "no such container"),
        ("exit 0", "it said nothing"),
        ('shift 3; exec "$@" < /dev/null', "passes no standard input on"),
    ):
        with pytest.raises(UserError, match=words) as refused:
            open_program_shell(stand_in(tmp_path, DOCKER[0], body))
        assert "\n" not in str(refused.value)
    with pytest.raises(UserError, match="cannot be started"):
        open_program_shell([str(tmp_path / "nothing")])


def test_a_command_that_never_ends_is_given_up(tmp_path: Path) -> None:
    shell = open_program_shell(stand_in(tmp_path, *DOCKER))
    with pytest.raises(LinkError, match=r"no answer within 0\.2 s"):
        shell.ask("sleep 60", timeout_s=0.2)
