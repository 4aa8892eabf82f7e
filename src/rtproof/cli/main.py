# SPDX-License-Identifier: Apache-2.0
"""The command ``rtproof``: finds the commands in its folder and turns every error into one line and an exit code."""

import contextlib
import os
import sys
from collections.abc import Sequence

import click

from rtproof import __version__, defects
from rtproof.cli import commands, folder
from rtproof.printable import one_line

ERROR_CODE = defects.CODE
INTERRUPTED_CODE = 130
COMPLETION_VARIABLE = "_RTPROOF_COMPLETE"
MOST_CHARACTERS = 1_000
"""Of what is wrong with an argument, which quotes it."""


@click.group(
    cls=folder.group_of(commands), context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, prog_name="rtproof")
def cli() -> None:
    """How late does a Linux system react, why, and is that good enough.

    Exit codes: 0 PROVEN, or no limit asked; 1 REFUTED; 2 usage or tool error; 3 INVALID; 4 UNDECIDED.
    """


def _say(sentence: str) -> None:
    """One line on standard error, whatever the sentence holds; nothing is left to do if nobody can read it."""
    with contextlib.suppress(OSError):
        click.echo(f"rtproof: {one_line(sentence)}", err=True)


def _usage_sentence(error: click.ClickException) -> str:
    message = one_line(error.format_message().rstrip("."), MOST_CHARACTERS)
    context = getattr(error, "ctx", None)
    return f"{message} (see '{context.command_path} --help')" if context else message


def _abandon_output() -> int:
    """Standard output takes no more: give the interpreter a place to flush to, so that it does not complain at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ERROR_CODE


def _call(arguments: Sequence[str]) -> int:
    """Run click and write out what it printed."""
    with defects.of_threads():
        result = cli.main(args=arguments, prog_name="rtproof", standalone_mode=False, obj=("rtproof", *arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    return result if isinstance(result, int) else 0


def _ended(ending: SystemExit) -> int:
    """Click ends the process by itself when it answers a shell's completion, and when the reader of a pipe has gone.

    Then with 1, our REFUTED. Whatever else asks for the end of the process says why.
    """
    if COMPLETION_VARIABLE in os.environ:
        raise ending
    if isinstance(ending.code, str):
        _say(ending.code)
    return _abandon_output()


def _failed_by_system(error: OSError) -> int:
    _say(defects.sentence(error))
    return ERROR_CODE if error.filename else _abandon_output()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code of the process."""
    try:
        return _call(sys.argv[1:] if arguments is None else arguments)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
    except click.ClickException as error:
        _say(_usage_sentence(error))
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return INTERRUPTED_CODE
    except BrokenPipeError:
        return _abandon_output()
    except OSError as error:
        return _failed_by_system(error)
    except SystemExit as error:
        return _ended(error)
    except Exception as error:
        _say(defects.sentence(error))
    return ERROR_CODE
