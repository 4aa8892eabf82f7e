# SPDX-License-Identifier: Apache-2.0
"""The command as a process: what it imports, how it ends, what it says."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from run_folders import latencies, write_run

from rtproof import __version__
from rtproof.cli import commands
from rtproof.cli.main import main
from rtproof.core import plugins
from rtproof.core.errors import TargetError, UserError

RTPROOF = [sys.executable, "-m", "rtproof"]


def process(*arguments: str, **options: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*RTPROOF, *arguments], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload, no-any-return]


def test_help_lists_the_commands_without_heavy_imports() -> None:
    code = (
        "import sys; from rtproof.cli.main import main; code = main(['--help']);"
        "print(code, *{'numpy', 'duckdb', 'msgspec'} & set(sys.modules))"
    )
    lines = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[-1] == "0"
    listed = {line.split()[0] for line in lines if line.startswith("  ") and line.strip()}
    assert set(plugins.plugin_names(commands)) <= listed


def test_no_command_is_usage() -> None:
    result = process()
    assert result.returncode == 2
    assert "Usage: rtproof" in result.stderr


def test_the_version() -> None:
    assert process("--version").stdout == f"rtproof, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--nope"], "rtproof: No such option '--nope' (see 'rtproof --help')\n"),
        (["nope"], "rtproof: No such command 'nope' (see 'rtproof --help')\n"),
        (["show"], "rtproof: Missing argument 'RUN' (see 'rtproof show --help')\n"),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr() == ("", sentence)


def with_command(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Put a command ``fail`` in place that raises the error."""

    @click.command("fail")
    def fail() -> None:
        raise error

    monkeypatch.setattr(plugins, "plugin_names", lambda _: ["fail"])
    monkeypatch.setattr(plugins, "load_plugin", lambda *_: SimpleNamespace(command=fail))


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UserError("this\ncannot  be"), 2, "rtproof: this cannot be\n"),
        (TargetError("the board has gone"), 2, "rtproof: the board has gone\n"),
        (PermissionError(13, "Permission denied", "/root/x"), 2, "rtproof: /root/x: permission denied\n"),
        (
            OSError(28, "No space left on device", "a.csv"),
            2,
            "rtproof: no space left on the disk while writing a.csv\n",
        ),
        (KeyboardInterrupt(), 130, "\nrtproof: interrupted\n"),
        (click.Abort(), 130, "rtproof: interrupted\n"),
    ],
)
def test_every_error_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, said: str
) -> None:
    with_command(monkeypatch, error)
    assert main(["fail"]) == code
    assert capsys.readouterr().err == said


def test_a_reader_that_has_gone_is_not_refuted() -> None:
    """Click would exit with 1, which means REFUTED."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        result = subprocess.run([*RTPROOF, "--help"], stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (2, b"")


def test_a_full_output_is_one_sentence() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*RTPROOF, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 2
    assert result.stderr == b"rtproof: no space left on the disk while writing the output\n"


def test_a_closed_output_is_no_trouble() -> None:
    result = subprocess.run(
        ["sh", "-c", '"$0" -m rtproof --help >&-', sys.executable], capture_output=True, check=False
    )
    assert (result.returncode, result.stderr) == (0, b"")


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_half_an_output_is_an_error_also_where_python_does_not_buffer(tmp_path: Path, unbuffered: str) -> None:
    run = write_run(tmp_path / "r", latencies(1, 3_000))
    command = f"ulimit -f 16; exec '{sys.executable}' -m rtproof show '{run}' --json > '{tmp_path}/out'"
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "rtproof: file too large\n")
