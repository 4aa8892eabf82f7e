# SPDX-License-Identifier: Apache-2.0
"""The page on continuous integration: its commands are run, as far as no board is needed; its exit codes are true."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
from test_cli_judge import proven, refuted, undecided
from test_readme import resolve

from rtproof.cli import commands
from rtproof.core import plugins
from rtproof.judge.analysis_model import State

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "ci.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
COMMAND = re.compile(r"(?:^|[\s`-])(?:sudo )?(rtproof (?:run|judge|plan) [^|\n`]*?)(?= \|\||$|`)", re.MULTILINE)


TYPED = sorted({match.strip() for match in COMMAND.findall(PAGE)})


@pytest.mark.parametrize("line", TYPED)
def test_the_commands_and_their_options_exist(line: str) -> None:
    _, name, *words = shlex.split(line)
    command, words = resolve(plugins.load_plugin(commands, name).command, words)
    with click.Context(command) as context:
        command.make_parser(context).parse_args(words)


def test_commands_of_each_kind_are_found_on_the_page() -> None:
    assert {line.split()[1] for line in TYPED} == {"run", "judge", "plan"}


def test_the_exit_codes_are_those_of_the_verdicts() -> None:
    told = {word: int(code) for code, word in re.findall(r"^\| (\d) \| (?:all|one) ([A-Z]+)", PAGE, re.MULTILINE)}
    assert told == {state.value: state.exit_code for state in State if state is not State.NOT_ASKED}


@pytest.fixture
def shell(tmp_path: Path) -> Path:
    """A folder with a program ``rtproof`` first in the path, and a folder of runs."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "rtproof").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m rtproof "$@"\n')
    (tools / "rtproof").chmod(0o755)
    (tmp_path / "runs").mkdir()
    return tmp_path


def script(folder: Path, text: str) -> int:
    path = f"PATH={shlex.quote(str(folder / 'bin'))}:$PATH"
    done = subprocess.run(["sh", "-ec", f"{path}\n{text}"], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode


def test_a_job_that_may_be_too_short_lets_4_pass_and_nothing_else(shell: Path) -> None:
    (line,) = [block.strip() for kind, block in BLOCKS if kind == "sh" and "-eq 4" in block]
    undecided(shell / "runs" / "a")
    assert script(shell, line) == 0
    refuted(shell / "runs" / "b")
    assert script(shell, line) == 1


def test_the_step_of_github_writes_the_summary_and_keeps_the_exit_code(shell: Path) -> None:
    (job,) = [block for kind, block in BLOCKS if kind == "yaml" and "GITHUB_STEP_SUMMARY" in block]
    step = job.partition("- run: |\n")[2].partition("      - uses")[0]
    proven(shell / "runs" / "a")
    undecided(shell / "runs" / "b")
    (shell / "summary").write_text("before\n")
    assert script(shell, f"export GITHUB_STEP_SUMMARY=summary\n{step}") == 4
    shown = (shell / "summary").read_text()
    assert shown.startswith("before\n## rtproof: UNDECIDED - 2 runs")
    assert (shell / "rtproof.xml").read_bytes().startswith(b"<?xml")


def test_gitlab_lets_pass_what_is_undecided() -> None:
    (job,) = [block for kind, block in BLOCKS if kind == "yaml" and "allow_failure" in block]
    assert f"exit_codes: {State.UNDECIDED.exit_code}\n" in job
