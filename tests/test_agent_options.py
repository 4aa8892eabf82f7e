# SPDX-License-Identifier: Apache-2.0
"""The desk's options that go to the agent, held to the agent's own table of options, which its ``help`` prints."""

import re
import subprocess

import agent_process
import click
import pytest

from rtproof.cli import measurement_options
from rtproof.cli.parameter_types import with_options

OPTION = re.compile(r"^ +(?:-\w, )?--(?P<name>[a-z-]+)(?P<value> [A-Z]\S*(?: [A-Z]+)?)?  +(?P<help>.*)$")
SAID_ALIKE = {
    "probe": "timer",
    "period": "1ms",
    "warmup": "1s",
    "policy": "fifo",
    "priority": "80",
    "checkpoint": "10s",
}
"""Options whose default both helps tell in the same words."""


@pytest.fixture(scope="module")
def table() -> dict[str, re.Match[str]]:
    """Each option of the agent by its name."""
    said = subprocess.run([agent_process.agent(), "help"], capture_output=True, text=True, check=True).stdout
    found = [match for line in said.splitlines() if (match := OPTION.match(line))]
    assert len(found) == said.count("\n  -") + said.count("\n      --")
    return {match["name"]: match for match in found}


def desk_options() -> list[click.Option]:
    """The options that ``agent_options`` gives to a command."""

    @click.command()
    @with_options(*measurement_options.AGENT_OPTIONS)
    def command() -> None: ...

    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


@pytest.mark.parametrize("option", desk_options(), ids=lambda option: str(option.name))
def test_the_agent_has_every_option_of_the_desk_and_takes_a_value_where_the_desk_does(
    option: click.Option, table: dict[str, re.Match[str]]
) -> None:
    entry = table[option.opts[0].removeprefix("--")]
    assert bool(entry["value"]) is not option.is_flag


@pytest.mark.parametrize("name", SAID_ALIKE)
def test_both_tell_the_same_default(name: str, table: dict[str, re.Match[str]]) -> None:
    (option,) = (each for each in desk_options() if each.opts == [f"--{name}"])
    assert f"(default {SAID_ALIKE[name]})" in str(option.help)
    assert f"({SAID_ALIKE[name]})" in table[name]["help"]
