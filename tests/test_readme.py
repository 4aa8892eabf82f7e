# SPDX-License-Identifier: Apache-2.0
"""What the README tells a reader to type exists."""

import re
import shlex
from pathlib import Path

import click
import pytest

from rtproof.cli import commands
from rtproof.core import plugins
from rtproof.judge.analysis_model import State

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
    command, words = resolve(plugins.load_plugin(commands, name).command, words)
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


def largest(load: str) -> dict[str, float]:
    """The row of a load in the lab's table: microseconds by system."""
    header, _, *rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in TABLE]
    row = next(row for row in rows if row[0] == load)
    return {system: float(cell.split()[0].replace(",", "")) for system, cell in zip(header[1:], row[1:], strict=True)}


TABLE = [
    line
    for line in README.partition("writes from here")[2].partition("to here")[0].splitlines()
    if line.startswith("|")
]
LOADS = [line.split("|")[1].strip() for line in TABLE[2:]]


@pytest.mark.parametrize("load", [load for load in LOADS if load != "idle"])
@pytest.mark.parametrize("series", ["debian-6.1", "debian-6.12"])
def test_what_is_said_of_the_labs_table_holds_in_it(series: str, load: str) -> None:
    found = {system.split()[0]: us for system, us in largest(load).items() if "-rt" in system}
    plain = {system: us for system, us in largest(load).items() if system.split()[0] == series}
    assert len(plain) == 3
    assert found[f"{series}-rt"] < min(plain.values())
