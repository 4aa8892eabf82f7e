# SPDX-License-Identifier: Apache-2.0
"""The help of every command: short, and under headings."""

import re
from collections.abc import Iterator

import click
import pytest

from rtproof.cli.main import cli, main
from rtproof.cli.shared_options import HEADING_OF, HEADINGS, MOST_USED, GroupedCommand

MANY = 12
"""A command with more options than this lists them under headings."""
MOST_HELP = 64
"""The longest text of an option of a grouped command, without what click adds to it."""
OF_CYCLICTEST = "cyclictest"
"""Its options are those of another program, so it has words of its own."""


def walk(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command, click.Context]]:
    context = click.Context(command, info_name=" ".join(words), **cli.context_settings)
    yield " ".join(words), command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from walk(below, (*words, name))


COMMANDS = {words: (command, context) for words, command, context in walk(cli)}
GROUPS = [words for words, (command, _) in COMMANDS.items() if isinstance(command, click.Group)]


def options(words: str) -> list[click.Option]:
    command, context = COMMANDS[words]
    return [each for each in command.get_params(context) if isinstance(each, click.Option)]


def long_name(option: click.Option) -> str:
    return next((name for name in option.opts if name.startswith("--")), option.opts[0])


def headings(printed: str) -> dict[str, list[str]]:
    """The names of the options under each heading of a printed help."""
    parts = re.split(r"^(\w.*):\n", printed, flags=re.MULTILINE)[1:]
    return {
        heading: re.findall(r"^  (?:-\w, )?(--[a-z-]+)", listed, flags=re.MULTILINE)
        for heading, listed in zip(parts[::2], parts[1::2], strict=True)
    }


def test_every_option_of_run_is_under_one_heading(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["run", "--help"]) == 0
    found = headings(capsys.readouterr().out)
    run = COMMANDS["run"][0]
    assert isinstance(run, GroupedCommand)
    names = [name for listed in found.values() for name in listed]
    assert sorted(names) == sorted(long_name(each) for each in options("run"))
    assert found[MOST_USED] == list(run.most_used)
    assert len(run.most_used) == 10
    assert list(found) == [MOST_USED, *(each for each in HEADINGS if each in found)]


def test_an_option_has_one_heading_and_each_name_is_one_of_a_command() -> None:
    names = [name for listed in HEADINGS.values() for name in listed.split()]
    assert len(names) == len(set(names)) == len(HEADING_OF)
    assert set(names) <= {name for words in COMMANDS for each in options(words) for name in each.opts}


@pytest.mark.parametrize("words", [words for words in COMMANDS if len(options(words)) > MANY])
def test_a_command_with_many_options_has_headings_and_short_texts(words: str) -> None:
    command = COMMANDS[words][0]
    assert isinstance(command, GroupedCommand)
    for each in options(words):
        assert command.heading(each) in (MOST_USED, *HEADINGS)
        assert len(each.help or "") <= MOST_HELP, each.help


@pytest.mark.parametrize("words", GROUPS)
def test_no_summary_of_a_command_is_cut_at_80_columns(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*words.split(), "--help"]) == 0
    listed = capsys.readouterr().out.partition("\nCommands:\n")[2].splitlines()
    assert len(listed) == len([each for each in COMMANDS if each.rpartition(" ")[0] == words and each])
    assert [line for line in listed if not line.endswith(".") or line.endswith("..")] == []


def test_the_letter_o_means_output() -> None:
    of_ours = [words for words in COMMANDS if words != OF_CYCLICTEST]
    short = {words: long_name(each) for words in of_ours for each in options(words) if "-o" in each.opts}
    assert set(short.values()) == {"--output"}
    with_output = {words for words in COMMANDS for each in options(words) if "--output" in each.opts}
    assert with_output - set(short) <= {OF_CYCLICTEST}
