# SPDX-License-Identifier: Apache-2.0
"""The command ``rtproof``: finds the commands in their folder, and turns every error into one line and an exit code."""

import ast
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import IO, Any

import click
from click.shell_completion import CompletionItem

from rtproof import __version__
from rtproof.cli import commands
from rtproof.core import defects, plugins
from rtproof.core.errors import RtproofError
from rtproof.core.phrases import unknown_name
from rtproof.core.printable import one_line

RESOLVED = f"{__name__}.resolved"
"""The key in click's contexts for the name and the command that the user gave."""


class HelpForNoArguments(click.UsageError):
    """A group of commands got no arguments. click has such an error only from version 8.2 on."""

    def __init__(self, ctx: click.Context) -> None:
        super().__init__(ctx.get_help(), ctx)

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=True)


class GroupThatNamesItsCommand(click.Group):
    """Adds to an error of click's parser of which command it is: an option there may lack its argument."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            raise HelpForNoArguments(ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            name, command = ctx.meta.get(RESOLVED, (None, None))
            if error.ctx is None and command is not None:
                error.ctx = click.Context(command, parent=ctx, info_name=name)
            raise


def command_group(package: ModuleType) -> type[click.Group]:
    """The class of a click group whose commands are the plug-ins of a package, by the names of their files.

    Only the command that is run is imported, with all that it needs. A list of commands reads their docstrings.
    """

    class CommandFolder(GroupThatNamesItsCommand):
        def list_commands(self, ctx: click.Context) -> list[str]:
            return plugins.plugin_names(package)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
            if cmd_name not in plugins.plugin_names(package):
                return None
            command: click.Command = plugins.load_plugin(package, cmd_name).command
            return command

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            name = args[0]
            if not name.startswith("-") and self.get_command(ctx, name) is None:
                raise click.UsageError(unknown_name("command", name, self.list_commands(ctx)), ctx)
            resolved = super().resolve_command(ctx, args)
            ctx.meta[RESOLVED] = resolved[:2]
            return resolved

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
            click.Group(commands=_described_commands(package)).format_commands(ctx, formatter)

        def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
            commands = _described_commands(package).items()
            found = [CompletionItem(name, help=each.get_short_help_str()) for name, each in commands]
            begun = [item for item in found if item.value.startswith(incomplete)]
            return [*begun, *click.Command.shell_complete(self, ctx, incomplete)]

    return CommandFolder


def _described_commands(package: ModuleType) -> dict[str, click.Command]:
    """Every command of a folder with its help and nothing else, without an import of what commands need."""
    return {name: click.Command(name, help=_command_docstring(package, name)) for name in plugins.plugin_names(package)}


def _command_docstring(package: ModuleType, name: str) -> str:
    place = Path(package.__path__[0]) / name.replace("-", "_")
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    tree = ast.parse(source.read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    return next((ast.get_docstring(each) or "" for each in functions if each.name == "command"), "")


ERROR_CODE = defects.DEFECT_CODE
INTERRUPTED_CODE = 130
COMPLETION_VARIABLE = "_RTPROOF_COMPLETE"
MOST_ERROR_CHARACTERS = 1_000
"""The largest number of characters of a sentence that quotes a wrong argument."""


@click.group(
    cls=command_group(commands), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="rtproof")
def cli() -> None:
    """How late does a Linux system react, why, and is that good enough.

    \b
    Exit codes: 0 HELD, PROVEN or no limit asked; 1 EXCEEDED or REFUTED;
    2 usage or tool error; 3 INVALID; 4 UNDECIDED.
    HELD, EXCEEDED: of a --limit. PROVEN, REFUTED: with a rate (--at-most).
    """


def _print_error(sentence: str) -> None:
    """Print one line on standard error. If standard error is closed, nothing is printed."""
    with contextlib.suppress(OSError):
        click.echo(f"rtproof: {one_line(sentence)}", err=True)


def _usage_sentence(error: click.ClickException) -> str:
    message = one_line(error.format_message().rstrip("."), MOST_ERROR_CHARACTERS)
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    names = ", ".join(_names_to_give(error, context))
    return f"{message}{'; there are: ' * bool(names)}{names} (see '{context.command_path} --help')"


def _names_to_give(error: click.ClickException, context: click.Context) -> list[str]:
    """The names that an option takes, if the user gave it without one or left it out; a shell would offer them."""
    if isinstance(error, click.MissingParameter):
        lacking = [error.param] if error.param else []
    elif isinstance(error, click.BadOptionUsage):
        lacking = [item for item in context.command.params if error.option_name in item.opts]
    else:
        lacking = []
    offered = [item for each in lacking for item in each.shell_complete(context, "")]
    return list(dict.fromkeys(item.value for item in offered if item.type == "plain"))


def _abandon_output() -> None:
    """Replace a standard output that takes no more by /dev/null, so that Python does not complain at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _answer_error(error: Exception) -> None:
    """Print its sentence, or the help of a group that got no arguments."""
    if isinstance(error, HelpForNoArguments):
        error.show()
        return
    _print_error(_usage_sentence(error) if isinstance(error, click.ClickException) else defects.error_sentence(error))
    if isinstance(error, OSError) and not error.filename:
        _abandon_output()


def _error_code(arguments: Sequence[str]) -> int:
    """The code of the program that a command stands for, if its module names one, unless 1 would mean EXCEEDED."""
    name = next(iter(arguments), "")
    if name not in plugins.plugin_names(commands) or any(each.startswith("--limit") for each in arguments):
        return ERROR_CODE
    return int(getattr(plugins.load_plugin(commands, name), "ERROR_CODE", ERROR_CODE))


def main(arguments: Sequence[str] | None = None) -> int:
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        with defects.raising_thread_errors():
            result = cli.main(args=arguments, prog_name="rtproof", standalone_mode=False, obj=("rtproof", *arguments))
            if sys.stdout is not None:
                sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except (click.Abort, KeyboardInterrupt):
        _print_error("interrupted")
        return INTERRUPTED_CODE
    except BrokenPipeError:
        _abandon_output()
    except SystemExit as ending:
        # Click ends the process after it answers a shell's completion, and with 1 when the reader of a pipe has gone.
        # Any other end of the process by itself says why, in a string.
        if COMPLETION_VARIABLE in os.environ:
            raise
        if isinstance(ending.code, str):
            _print_error(ending.code)
        _abandon_output()
    except Exception as error:
        _answer_error(error)
        if not isinstance(error, click.ClickException | OSError | RtproofError):
            return ERROR_CODE
    return _error_code(arguments)
