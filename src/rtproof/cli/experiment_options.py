# SPDX-License-Identifier: Apache-2.0
"""Options that choose a profile, a series of runs, and where the page of several runs goes."""

from collections.abc import Callable
from pathlib import Path

import click

from rtproof.cli import parameter_types, shell_completion
from rtproof.cli.parameter_types import Command, with_options

MOST_REPEATS = 999
MOST_SEED = 2**32 - 1
USUAL_TIMES = 5
"""The fewest runs a side with which a difference can be shown."""

REPEAT_OPTIONS = (
    click.option(
        "--repeat",
        type=click.IntRange(1, MOST_REPEATS),
        metavar="N",
        help="Measure N times, or each side of --abba.",
    ),
    click.option(
        "--abba",
        type=(str, str),
        metavar="'A' 'B'",
        callback=parameter_types.two_sides,
        help="Compare two sets of options, taken in turn.",
    ),
    click.option(
        "--order-seed",
        type=click.IntRange(0, MOST_SEED),
        metavar="N",
        help="Draw the turns of --abba from N.",
    ),
)

PATH = click.Path(path_type=Path)

SET_OPTION = click.option(
    "--set",
    "settings",
    type=parameter_types.KEY_VALUE,
    multiple=True,
    help="Choose what the profile measures; repeatable.",
)

PROFILE_OPTIONS = (
    click.option(
        "--profile",
        metavar="NAME|FILE",
        shell_complete=shell_completion.complete_profiles,
        help="Repeat an experiment of 'rtproof profiles'.",
    ),
    SET_OPTION,
    click.option(
        "--given",
        type=PATH,
        multiple=True,
        metavar="FILE",
        help="Add another tool's result; repeatable.",
    ),
)


GENERATOR_OPTIONS = (
    click.option(
        "--generator",
        metavar="TARGET",
        shell_complete=shell_completion.complete_targets,
        help="The board that gives the edges for --probe gpio.",
    ),
    click.option(
        "--generator-option",
        type=parameter_types.KEY_VALUE,
        multiple=True,
        help="An option of --generator; repeatable.",
    ),
    click.option(
        "--generator-lines",
        metavar="LINES",
        help="Lines of --generator: chip=0,in=5,out=6.",
    ),
)


def target_options(to_do: str) -> Callable[[Command], Command]:
    """target, target_option and agent. to_do: what is done on the target."""
    return with_options(
        click.option(
            "--target",
            default="local",
            metavar="TARGET",
            shell_complete=shell_completion.complete_targets,
            help=f"Where to {to_do} (default local).",
        ),
        click.option(
            "--target-option", type=parameter_types.KEY_VALUE, multiple=True, help="An option of --target; repeatable."
        ),
        click.option("--agent", type=PATH, metavar="FILE", help="Use this agent."),
    )


FORMAT_HELP = "Format: html{}, markdown or text{}."


def format_option(usual: str) -> Callable[[Command], Command]:
    """The option ``--format`` of pages. usual: the format of a page for which none is named."""
    marked = (" (default)" if usual == name else "" for name in ("html", "text"))
    return click.option(
        "--format",
        "form",
        metavar="FORMAT",
        shell_complete=shell_completion.complete_report_formats,
        help=FORMAT_HELP.format(*marked),
    )


def page_options(beside: str) -> Callable[[Command], Command]:
    """output, form, report and as_json. beside: the name of the argument that the page goes beside."""
    return with_options(
        click.option(
            "-o",
            "--output",
            type=PATH,
            metavar="FILE",
            help=f"New file for the page (default: beside {beside}).",
        ),
        format_option("html"),
        click.option("--report/--no-report", default=True, help="Write an HTML report (default)."),
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    )
