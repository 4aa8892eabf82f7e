# SPDX-License-Identifier: Apache-2.0
"""The command ``rtproof``: finds the commands in its folder and turns every error into one line and an exit code."""

import contextlib
import errno
import os
import sys
from collections.abc import Sequence

import click

from rtproof import __version__
from rtproof.cli import commands, folder
from rtproof.errors import RtproofError

ERROR_CODE = 2
INTERRUPTED_CODE = 130
COMPLETION_VARIABLE = "_RTPROOF_COMPLETE"


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
        click.echo("rtproof: " + " ".join(sentence.split()), err=True)


def _usage_sentence(error: click.ClickException) -> str:
    message = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    return f"{message} (see '{context.command_path} --help')" if context else message


def _system_sentence(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return f"no space left on the disk while writing {error.filename or 'the output'}"
    reason = (error.strerror or str(error)).lower()
    return f"{error.filename}: {reason}" if error.filename else reason


def _abandon_output() -> int:
    """Standard output takes no more: give the interpreter a place to flush to, so that it does not complain at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ERROR_CODE


def _call(arguments: Sequence[str]) -> int:
    """Run click and write out what it printed.

    Click ends the process by itself when it answers a shell's completion, and when the reader of a pipe has gone, then
    with 1, our REFUTED.
    """
    try:
        result = cli.main(args=arguments, prog_name="rtproof", standalone_mode=False, obj=("rtproof", *arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    except SystemExit:
        if COMPLETION_VARIABLE in os.environ:
            raise
        return _abandon_output()
    return result if isinstance(result, int) else 0


def _failed_by_system(error: OSError) -> int:
    _say(_system_sentence(error))
    return ERROR_CODE if error.filename else _abandon_output()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code of the process."""
    try:
        return _call(sys.argv[1:] if arguments is None else arguments)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
    except click.ClickException as error:
        _say(_usage_sentence(error))
    except RtproofError as error:
        _say(str(error))
    except (click.Abort, KeyboardInterrupt):
        _say("interrupted")
        return INTERRUPTED_CODE
    except BrokenPipeError:
        return _abandon_output()
    except OSError as error:
        return _failed_by_system(error)
    return ERROR_CODE
