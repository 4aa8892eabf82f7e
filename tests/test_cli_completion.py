# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import BashComplete

from rtproof.agents.architectures import host_architecture
from rtproof.agents.build import AGENT_NAME, cache_dir
from rtproof.cli import shell_completion
from rtproof.cli.main import COMPLETION_VARIABLE, cli, main

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
        ([], "s", ["show"]),
        ([], "re", ["report"]),
        (["run"], "--dura", ["--duration"]),
        (["run", "--policy"], "f", ["fifo"]),
        (["run", "--target"], "", ["local", "qemu", "simulated"]),
        (["report", "--format"], "h", ["html"]),
        (["export", "--format"], "c", ["csv", "cyclictest"]),
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


def test_a_broken_agent_completes_nothing(built_agent: Path) -> None:
    built_agent.write_text("#!/bin/sh\nexit 3\n")
    assert completed(["run", "--method"], "") == []


def test_nothing_is_built_to_complete(built_agent: Path) -> None:
    built_agent.unlink()
    assert completed(["run", "--method"], "") == []
    assert shell_completion._built_agent() is None


def test_the_shell_gets_its_answer_from_the_process() -> None:
    environment = {"COMP_WORDS": "rtproof sh", "COMP_CWORD": "1", COMPLETION_VARIABLE: "bash_complete"}
    path = {"PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-m", "rtproof"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, env={**environment, **path})
    assert (found.returncode, found.stdout) == (0, "plain,show\n")
