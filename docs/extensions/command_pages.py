# SPDX-License-Identifier: Apache-2.0
"""Pages of the commands of ``rtproof``, from what click knows of them: nothing of a command is typed twice."""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass

import click
from markdown_text import KEEP_LINES, Link, code, escape, inline, literal, no_link, option, page, prose, table, toctree

from rtproof.cli.main import ERROR_CODE, INTERRUPTED_CODE, cli
from rtproof.doctor.findings import NOT_READY_CODE
from rtproof.judge.analysis_model import State

FOLDER = "commands"
HELP = "--help"
MEANINGS = {
    State.HELD: "the limit was not exceeded",
    State.PROVEN: "episodes come no more often than ``--at-most`` allows, at the stated confidence",
    State.NOT_ASKED: "no limit was given",
    State.EXCEEDED: "the limit was exceeded",
    State.REFUTED: "episodes come more often than ``--at-most`` allows, or one lasted too long",
    State.INVALID: "the run did not measure what was asked for",
    State.UNDECIDED: "values were lost; or, with ``--at-most``, the run is too short",
}
OTHER_CODES = {
    ERROR_CODE: "a usage error or an error of a tool; one sentence on standard error says which",
    NOT_READY_CODE: "``rtproof doctor`` only: a feature is not ready",
    INTERRUPTED_CODE: "Ctrl-C ended the command before it had a result",
}
WITHOUT_CODES = f"The exit code is 0, or {ERROR_CODE} after an error."
_EXTRA = re.compile(r"^(?P<help>.*?)(?:  |^)\[(?P<extra>[^\[\]]*)\]$", re.DOTALL)
_RANGE = re.compile(r"^([-\d.]+)<=x<=([-\d.]+)$")


@dataclass(frozen=True)
class DocumentedCommand:
    """A command, and the words with which a user calls it, such as ``rtproof lab compare``."""

    words: str
    command: click.Command
    context: click.Context

    @property
    def name(self) -> str:
        """The name of its page, without a folder: ``lab-compare``; ``rtproof`` for the program itself."""
        return "-".join(self.words.split()[1:]) or "rtproof"

    @property
    def help(self) -> str:
        return inspect.cleandoc(self.command.help or "")

    @property
    def summary(self) -> str:
        """Its first paragraph."""
        return self.help.partition("\n\n")[0]

    @property
    def synopsis(self) -> str:
        return " ".join([self.words, *self.command.collect_usage_pieces(self.context)])

    @property
    def arguments(self) -> list[click.Argument]:
        return [each for each in self.command.params if isinstance(each, click.Argument)]

    @property
    def options(self) -> list[click.Option]:
        """Its options, with ``--help`` and without those that are hidden."""
        known = self.command.get_params(self.context)
        return [each for each in known if isinstance(each, click.Option) and not each.hidden]


def all_commands() -> list[DocumentedCommand]:
    """The program and every command of it, each group before its own."""
    return list(_walk(cli, click.Context(cli, info_name="rtproof", **cli.context_settings)))


def _walk(command: click.Command, context: click.Context) -> Iterator[DocumentedCommand]:
    yield DocumentedCommand(context.command_path, command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _walk(inner, click.Context(inner, info_name=name, parent=context, **inner.context_settings))


def signature(each: click.Option) -> str:
    """The names of an option and what it takes, as its help shows them, separated by commas."""
    return _record(each)[0].replace(" / ", ", ")


def option_text(each: click.Option, link: Link = no_link) -> str:
    """What an option does, and what click knows of its value: whether it is required, its default and its range."""
    text, extras = option_help(each)
    return " ".join([inline(text, link), *map(_extra, extras)])


def option_help(each: click.Option) -> tuple[str, list[str]]:
    """An option's help, and what click adds to it."""
    found = _EXTRA.match(_record(each)[1])
    return (found["help"], found["extra"].split("; ")) if found else (_record(each)[1], [])


def _record(each: click.Option) -> tuple[str, str]:
    record = each.get_help_record(click.Context(cli, **cli.context_settings))
    assert record is not None
    return record


def _extra(extra: str) -> str:
    if extra == "required":
        return "It must be given."
    if extra.startswith("default: "):
        return f"Default: {code(extra.removeprefix('default: '))}."
    found = _RANGE.match(extra)
    return f"A number from {found[1]} to {found[2]}." if found else f"{inline(extra)}."


def argument_sentence(each: click.Argument) -> str:
    """How often an argument is given, and which words it can be."""
    many = each.nargs == -1
    often = {(True, False): "once", (True, True): "once or more", (False, False): "once or not at all"}
    choices = each.type.choices if isinstance(each.type, click.Choice) else ()
    chosen = f" It is one of {', '.join(code(str(choice)) for choice in choices)}." if choices else ""
    return f"Given {often.get((each.required, many), 'any number of times')}.{chosen}"


def argument_name(each: click.Argument) -> str:
    """The name of an argument, without the brackets and dots that say how often it is given."""
    return each.human_readable_name.removesuffix("...").removeprefix("[").removesuffix("]")


def exit_sentence(each: DocumentedCommand) -> str:
    """What a command's help says of its exit code; that of a command without a verdict where it says nothing."""
    words = " ".join(part for part in each.help.split("\n\n") if not part.startswith(KEEP_LINES))
    sentences = re.split(r"(?<=[.])\s+", " ".join(words.split()))
    return " ".join(sentence for sentence in sentences if "xit code" in sentence) or WITHOUT_CODES


def links_from(folder: str) -> Link:
    """Addresses of the commands' pages, seen from a folder below the generated pages."""
    names = {each.words: each.name for each in all_commands()}
    up = "" if folder == FOLDER else f"{'../' if folder else ''}{FOLDER}/"

    def address(words: str) -> str | None:
        known = [name for name in names if words == name or words.startswith(f"{name} ")]
        return f"{up}{names[max(known, key=len)]}.md" if known else None

    return address


def command_page(each: DocumentedCommand, link: Link) -> str:
    """The page of one command."""
    described = [(argument_name(one), argument_sentence(one)) for one in each.arguments]
    options = [option(signature(one), option_text(one, link)) for one in each.options]
    codes = (
        "" if isinstance(each.command, click.Group) and each.words != "rtproof" else inline(exit_sentence(each), link)
    )
    return page(
        each.words if each.context.parent else "All commands",
        literal([each.synopsis]),
        prose(each.help, link),
        commands_below(each, link),
        f"```{{program}} {each.words}\n```",
        "## Arguments" if described else "",
        *(option(name, text) for name, text in described),
        "## Options",
        *options,
        f"## Exit code\n\n{codes} [All exit codes](../exit-codes.md)" if codes else "",
    )


def commands_below(each: DocumentedCommand, link: Link) -> str:
    """The commands of a group with their summaries; "" of a command that is no group."""
    if not isinstance(each.command, click.Group):
        return ""
    below = [one for one in all_commands() if one.context.parent and one.context.parent.command is each.command]
    rows = [(f"[{code(one.words)}]({one.name}.md)", inline(one.summary, link)) for one in below]
    return f"{table(('command', 'what it does'), rows)}\n\n{toctree(one.name for one in below)}"


def exit_code_page(link: Link) -> str:
    """Every exit code, and what each command says of its own."""
    rows = [(code(one.words), inline(exit_sentence(one), link)) for one in all_commands() if is_leaf(one)]
    return page(
        "Exit codes",
        "A script can act on the exit code of a command. Every command that judges has the same codes for a verdict.",
        codes_table(),
        "## By command",
        table(("command", "its help says"), rows),
    )


def is_leaf(each: DocumentedCommand) -> bool:
    """Whether it does something itself: it is no group, or one that works without a command below it."""
    return not isinstance(each.command, click.Group) or each.command.invoke_without_command


def codes_table() -> str:
    """The exit codes that have the same meaning in every command."""
    rows = [(each.exit_code, each.value, meaning) for each, meaning in MEANINGS.items()]
    rows += [(number, "", meaning) for number, meaning in OTHER_CODES.items()]
    return table(("exit code", "verdict", "meaning"), [(str(n), word, inline(text)) for n, word, text in sorted(rows)])


def pages() -> dict[str, str]:
    """The page of each command and that of the exit codes, by their places below the generated pages."""
    link = links_from(FOLDER)
    found = {f"{FOLDER}/{each.name}.md": command_page(each, link) for each in all_commands()}
    return found | {"exit-codes.md": exit_code_page(links_from(""))}


def man_commands() -> str:
    """All commands with their options, as a part of a man page."""
    return "\n\n".join(_man_command(each) for each in all_commands() if each.words != "rtproof") + "\n"


def _man_command(each: DocumentedCommand) -> str:
    shown = [one for one in each.options if HELP not in one.opts]
    options = [option(signature(one), option_text(one), indexed=False) for one in shown]
    return "\n\n".join([f"### {each.words}", f"**{escape(each.synopsis)}**", prose(each.help), *options])


def man_options() -> str:
    """The options of the program itself, as a part of a man page."""
    program = all_commands()[0]
    return "\n\n".join(option(signature(one), option_text(one), indexed=False) for one in program.options) + "\n"


def man_exit_status() -> str:
    """The exit codes, as a part of a man page."""
    rows = [(each.exit_code, f"{each.value}: {meaning}.") for each, meaning in MEANINGS.items()]
    rows += [(number, f"{meaning[0].upper()}{meaning[1:]}.") for number, meaning in OTHER_CODES.items()]
    return "\n\n".join(f"{number}\n: {inline(text)}" for number, text in sorted(rows)) + "\n"
