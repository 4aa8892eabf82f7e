# SPDX-License-Identifier: Apache-2.0
"""What the README tells a reader to type exists, and what it says of the lab stands in docs/lab.md too."""

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
BLOCKS = re.findall(r"^```\n(.*?)^```|^    (.+?)$", README, re.MULTILINE | re.DOTALL)
TYPED = [line for fenced, indented in BLOCKS for line in (fenced or indented).splitlines()]


def resolve(command: click.Command, words: list[str]) -> tuple[click.Command, list[str]]:
    """The innermost subcommand that the words name, and the words that are left for it."""
    while isinstance(command, click.Group) and words:
        found = command.get_command(click.Context(command), words[0])
        assert found, f"there is no command {words[0]}"
        command, words = found, words[1:]
    return command, words


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150


@pytest.mark.parametrize("line", [line for line in TYPED if line.startswith("rtproof ")])
def test_the_commands_and_their_options_exist(line: str) -> None:
    _, name, *words = shlex.split(line, comments=True)
    command, words = resolve(plugins.load_plugin(commands, name).command, words)
    with click.Context(command) as context:
        command.make_parser(context).parse_args(words)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"(?:`|^    )make ([a-z][\w-]*)", README, re.MULTILINE))))
def test_the_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_the_exit_codes_are_those_of_the_verdicts() -> None:
    told = dict(re.findall(r"^\| ([A-Z]+) \| (\d) \|", README, re.MULTILINE))
    assert told == {state.value: str(state.exit_code) for state in State if state is not State.NOT_ASKED}


def table(page: str, heading: str) -> dict[str, dict[str, str]]:
    """Cells of the table whose first heading is given, by row and column."""
    lines = page.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()
    columns, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: dict(zip(columns, cells, strict=True)) for name, *cells in rows}


LAB = table((ROOT / "docs" / "lab.md").read_text(), "load, us")


def largest_us(cell: str) -> float:
    return float(cell.split(maxsplit=1)[0].replace(",", ""))


@pytest.mark.parametrize("load", [load for load in LAB if load != "idle"])
@pytest.mark.parametrize("series", ["debian-6.1", "debian-6.12"])
def test_in_the_labs_table_preempt_rt_is_below_every_plain_model(series: str, load: str) -> None:
    cells = {system: largest_us(cell) for system, cell in LAB[load].items()}
    (realtime,) = (us for system, us in cells.items() if system.split()[0] == f"{series}-rt")
    plain = [us for system, us in cells.items() if system.split()[0] == series]
    assert len(plain) == 3
    assert realtime < min(plain)


def test_the_readmes_rows_of_the_lab_are_those_of_its_page() -> None:
    rows = table(README, "largest latency, us")
    assert len(rows) >= 4
    for load, cells in rows.items():
        assert cells.items() <= LAB[load].items()


def test_the_picture_is_small() -> None:
    assert (ROOT / "docs" / "report.png").stat().st_size <= 150_000
