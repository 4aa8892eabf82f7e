# SPDX-License-Identifier: Apache-2.0
"""What the README tells a reader to type exists."""

import re
import shlex
from pathlib import Path

import click
import pytest

from rtproof import plugins
from rtproof.analysis.model import State
from rtproof.cli import commands

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
TYPED = [line.strip() for line in README.splitlines() if line.startswith("    ")]


def resolve(command: click.Command, words: list[str]) -> tuple[click.Command, list[str]]:
    """The innermost subcommand that the words name, and the words that are left for it."""
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        assert found, f"there is no command {words[0]}"
        command, words = found, words[1:]
    return command, words


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    assert TYPED[:2] == ["make demo", "make test"]


@pytest.mark.parametrize("line", [line for line in TYPED if line.startswith("rtproof ")])
def test_the_commands_and_their_options_exist(line: str) -> None:
    _, name, *words = shlex.split(line, comments=True)
    command, words = resolve(plugins.load(commands, name).command, words)
    with click.Context(command) as context:
        command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`?make ([a-z][\w-]*)", README))))
def test_the_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_exit_codes_are_those_of_the_verdicts() -> None:
    told = dict(re.findall(r"^\| ([A-Z]+) \| (\d) \|", README, re.MULTILINE))
    assert told == {state.value: str(state.exit_code) for state in State if state is not State.NOT_ASKED}
