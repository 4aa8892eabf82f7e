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

from rtproof import __version__, targets
from rtproof.agents import build
from rtproof.agents.architectures import host_architecture
from rtproof.agents.build import AGENT_NAME, cache_dir
from rtproof.cli import commands, parameter_types
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


def test_no_command_is_usage() -> None:
    result = process()
    assert result.returncode == 2
    assert "Usage: rtproof" in result.stderr


def test_an_older_click_than_ours_will_do(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Debian 13 has click 8.1, which lacks this class."""
    monkeypatch.delattr(click.exceptions, "NoArgsIsHelpError", raising=False)
    assert [main([]), main(["show"])] == [2, 2]
    assert "Usage: rtproof" in (printed := capsys.readouterr().err)
    assert printed.endswith("rtproof: Missing argument 'RUN' (see 'rtproof show --help')\n")


def test_the_version() -> None:
    assert process("--version").stdout == f"rtproof, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--nope"], "rtproof: No such option '--nope' (see 'rtproof --help')\n"),
        (
            ["nope"],
            "rtproof: there is no command 'nope'; there are: agent, attach, audit, compare, completion, cyclictest, "
            "doctor, explain, export, history, judge, lab, loads, matrix, plan, profiles, report, run, show, stop, "
            "watch (see 'rtproof --help')\n",
        ),
        (
            ["lab", "nope"],
            "rtproof: there is no command 'nope'; there are: cache, check, compare, explain, kernels, "
            "module, profile, qemu, ten-ms, verify (see 'rtproof lab --help')\n",
        ),
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
    # Python would store modules that are cut at the limit, and fail to load them from then on.
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "rtproof: file too large\n")


LISTING = """probe\ttimer\twakes up
method\ttimer\tclock_nanosleep\tabsolute time
method\ttimer\ttimerfd\tread()
load\tcpu\tbusy loops
load\tsched\tmessages
load_option\tsched\tgroups\thow many
"""


@pytest.fixture
def built_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent in the cache that lists what it has; the packaged one does not count."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("rtproof.agents.build.packaged_agent", lambda _: tmp_path / "nowhere")
    program = cache_dir() / f"{host_architecture().name}-0" / AGENT_NAME
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n[ \"$1\" = list ] && cat <<'END'\n{LISTING}END\n")
    program.chmod(0o755)
    return program


def completed(arguments: list[str], incomplete: str) -> list[str]:
    return [
        item.value
        for item in BashComplete(cli, {}, "rtproof", COMPLETION_VARIABLE).get_completions(arguments, incomplete)
    ]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_for_this_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert COMPLETION_VARIABLE in script
    assert "rtproof" in script


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "incomplete", "words"),
    [
        ([], "s", ["show", "stop"]),
        ([], "re", ["report"]),
        (["run"], "--dura", ["--duration"]),
        (["run", "--policy"], "f", ["fifo"]),
        (["run", "--target"], "", plugins.plugin_names(targets)),
        (["report", "--format"], "h", ["html"]),
        (["export", "--format"], "c", ["csv", "cyclictest", "cyclictest-json", "cyclictest-lines"]),
    ],
)
def test_words_of_the_program(arguments: list[str], incomplete: str, words: list[str]) -> None:
    assert completed(arguments, incomplete) == words


@pytest.mark.usefixtures("built_agent")
def test_words_of_the_agent() -> None:
    assert completed(["run", "--method"], "") == ["clock_nanosleep", "timerfd"]
    assert completed(["run", "--method"], "t") == ["timerfd"]
    offered = completed(["run", "--load"], "")
    assert {"cpu", "sched", "doload", "stress-ng"} <= set(offered)
    assert completed(["run", "--load"], "sch") == ["sched"]
    assert completed(["run", "--load"], "mmap@0")[0] == completed(["run", "--load"], "mmap@")[0] == "mmap@0"


def test_a_broken_agent_completes_nothing(built_agent: Path) -> None:
    built_agent.write_text("#!/bin/sh\nexit 3\n")
    assert completed(["run", "--method"], "") == []


def test_nothing_is_built_to_complete(built_agent: Path) -> None:
    built_agent.unlink()
    assert completed(["run", "--method"], "") == []
    assert build.built_agent() is None


def test_the_shell_gets_its_answer_from_the_process() -> None:
    environment = {"COMP_WORDS": "rtproof sh", "COMP_CWORD": "1", COMPLETION_VARIABLE: "bash_complete"}
    path = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-m", "rtproof"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env={**environment, **path})
    assert (found.returncode, found.stdout) == (0, "plain,show\n")


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (parameter_types.LENGTH, "1500us", "1500us"),
        (parameter_types.LENGTH, "0.5s", "500ms"),
        (parameter_types.SPAN, "0s", "0ns"),
        (parameter_types.CPUS, "3,1-2", "1-3"),
        (parameter_types.PHASE, "even", "even"),
        (parameter_types.PHASE, "0.01ms", "10us"),
        (parameter_types.DMA_LATENCY, "off", "off"),
        (parameter_types.DMA_LATENCY, "0", "0"),
        (parameter_types.DMA_LATENCY, "1ms", "1000"),
        (parameter_types.LIMIT_NS, "500us", 500_000),
        (parameter_types.AT_MOST_NS, "1/min", 60_000_000_000),
        (parameter_types.CONFIDENCE, "0.99", 0.99),
        (parameter_types.KEY_VALUE, "a=b=c", ("a", "b=c")),
        (parameter_types.LIMIT_NS, 5, 5),
        (parameter_types.SHARE, "99.999%", 0.99999),
    ],
)
def test_what_is_meant(kind: parameter_types.ParsedValue, text: object, value: object) -> None:
    assert kind.convert(text, None, None) == value


@pytest.mark.parametrize(
    ("kind", "text", "sentence"),
    [
        (parameter_types.LENGTH, "0s", "must be longer than 0"),
        (parameter_types.SPAN, "5", "has no unit"),
        (parameter_types.DMA_LATENCY, "", "is not a duration"),
        (parameter_types.DMA_LATENCY, "1500ns", "whole microseconds up to 1000000"),
        (parameter_types.DMA_LATENCY, "2s", "whole microseconds up to 1000000"),
        (parameter_types.CONFIDENCE, "1", "is not a confidence from 0.5 to 0.999999"),
        (parameter_types.CONFIDENCE, "sure", "is not a confidence"),
        (parameter_types.KEY_VALUE, "=b", "is not of the form key=value"),
    ],
)
def test_what_makes_no_sense(kind: parameter_types.ParsedValue, text: str, sentence: str) -> None:
    with pytest.raises(click.BadParameter, match=sentence):
        kind.convert(text, None, None)


LISTED = "load\tsched\tgroups of processes\nload_option\tsched\tgroups\thow many\n"


def test_what_the_agent_has_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = tmp_path / "agent"
    agent.write_text(f"#!/bin/sh\nprintf '{LISTED}'\n")
    agent.chmod(0o755)
    monkeypatch.setattr(build, "find_agent", lambda: agent)
    assert main(["agent", "list"]) == 0
    rows = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert rows[0][0] == "load"
    assert rows[0][1].endswith("groups of processes")
    assert rows[1][1].split() == ["option", "sched", "groups", "how", "many"]


def test_an_agent_that_lists_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = tmp_path / "agent"
    agent.write_text("#!/bin/sh\nexit 1\n")
    agent.chmod(0o755)
    monkeypatch.setattr(build, "find_agent", lambda: agent)
    assert main(["agent", "list"]) == 2
    assert capsys.readouterr().err == f"rtproof: {agent} does not say its list: exit code 1\n"
