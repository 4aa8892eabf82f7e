# SPDX-License-Identifier: Apache-2.0
"""The command as a process: what it imports, how it ends, what it says."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.shell_completion import BashComplete
from run_folders import latencies, write_run

from rtproof import targets
from rtproof.agents import build
from rtproof.cli import commands, shared_options
from rtproof.cli.main import COMPLETION_VARIABLE, cli, main
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


def loaded_once_begun(then: str) -> list[str]:
    """The modules that a process has which is about to start a run's agent, and then does this."""
    code = f"import sys, rtproof.cli.option_values; from rtproof.experiment import target_runs; {then}"
    printed = [sys.executable, "-c", f"{code}; print(*sys.modules)"]
    return subprocess.run(printed, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize("then", ["pass", "target_runs._prepare_to_judge(0)"])
def test_one_run_is_begun_without_imports_of_what_judges_it(then: str) -> None:
    loaded = loaded_once_begun(then)
    assert "rtproof.run.session" in loaded
    assert [name for name in loaded if name.startswith(("numpy", "rtproof.judge.analy", "rtproof.report"))] == []


def test_what_judges_one_run_is_imported_in_a_warm_up_that_is_long_enough() -> None:
    loaded = loaded_once_begun("target_runs._prepare_to_judge(10**12)")
    assert {"numpy", "rtproof.judge.analyse", "rtproof.experiment.printed_runs"} <= set(loaded)
    others = ("rtproof.lab", "rtproof.vm", "rtproof.compare", "rtproof.schema", "rtproof.articles")
    assert [name for name in loaded if name.startswith(others)] == []


def test_an_older_click_than_ours_will_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Debian 13 has click 8.1, which lacks this class."""
    monkeypatch.delattr(click.exceptions, "NoArgsIsHelpError", raising=False)
    assert [main([]), main(["show"])] == [2, 2]
    assert "Usage: rtproof" in (printed := capsys.readouterr().err)
    assert printed.endswith("rtproof: Missing argument 'RUN' (see 'rtproof show --help')\n")


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


@pytest.mark.parametrize("unbuffered", ["1", ""])
def test_half_an_output_is_an_error_also_where_python_does_not_buffer(tmp_path: Path, unbuffered: str) -> None:
    run = write_run(tmp_path / "r", latencies(1, 3_000))
    command = f"ulimit -f 16; exec '{sys.executable}' -m rtproof show '{run}' --json > '{tmp_path}/out'"
    # Python would store modules that are cut at the limit, and fail to load them from then on.
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "rtproof: file too large\n")


def completed(arguments: list[str], incomplete: str) -> list[str]:
    return [
        item.value
        for item in BashComplete(cli, {}, "rtproof", COMPLETION_VARIABLE).get_completions(arguments, incomplete)
    ]


@pytest.mark.parametrize(
    ("arguments", "incomplete", "words"),
    [
        ([], "s", ["show", "stop"]),
        (["run"], "--dura", ["--duration"]),
        (["run", "--policy"], "f", ["fifo"]),
        (["run", "--target"], "", plugins.plugin_names(targets)),
    ],
)
def test_words_of_the_program(arguments: list[str], incomplete: str, words: list[str]) -> None:
    assert completed(arguments, incomplete) == words


def test_nothing_is_built_to_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("rtproof.agents.build.packaged_agent", lambda _: tmp_path / "nowhere")
    assert completed(["run", "--method"], "") == []
    assert build.built_agent() is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (shared_options.LENGTH, "1500us", "1500us"),
        (shared_options.SPAN, "0s", "0ns"),
        (shared_options.CPUS, "3,1-2", "1-3"),
        (shared_options.PHASE, "0.01ms", "10us"),
        (shared_options.DMA_LATENCY, "off", "off"),
        (shared_options.DMA_LATENCY, "0", "0"),
        (shared_options.DMA_LATENCY, "1ms", "1000"),
        (shared_options.LENGTH_NS, "500us", 500_000),
        (shared_options.AT_MOST_NS, "1/min", 60_000_000_000),
        (shared_options.CONFIDENCE, "0.99", 0.99),
        (shared_options.KEY_VALUE, "a=b=c", ("a", "b=c")),
        (shared_options.LENGTH_NS, 5, 5),
        (shared_options.SHARE, "99.999%", 0.99999),
    ],
)
def test_what_is_meant(kind: shared_options.ParsedValue, text: object, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (shared_options.LENGTH, "0s", "must be longer than 0"),
        (shared_options.SPAN, "5", "has no unit"),
        (shared_options.DMA_LATENCY, "1500ns", "whole microseconds up to 1000000"),
        (shared_options.CONFIDENCE, "1", "is not a confidence from 0.5 to 0.999999"),
        (shared_options.KEY_VALUE, "=b", "is not of the form key=value"),
    ],
)
def test_what_makes_no_sense(kind: shared_options.ParsedValue, text: str, sentence: str) -> None:
    with pytest.raises(click.BadParameter, match=sentence):
        kind.convert(text, None, None)
