# SPDX-License-Identifier: Apache-2.0
"""Options that choose a profile, a series of runs, and where the page of several runs goes."""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from rtproof.cli import measurement_options, parameter_types, shell_completion
from rtproof.cli.lab_options import with_options
from rtproof.core import files
from rtproof.core.errors import UserError
from rtproof.experiment import run_request
from rtproof.experiment.run_request import ProfileRequest, SeriesRequest, SeriesSide

Command = TypeVar("Command", bound=Callable[..., Any])
MOST_REPEATS = 999
USUAL_TIMES = 5
"""The fewest runs a side with which a difference can be shown."""
SIDE_OPTIONS_HINT = "what may stand there are options of the measurement, such as --policy; all others hold for both"

REPEAT_OPTIONS = (
    click.option(
        "--repeat", type=click.IntRange(1, MOST_REPEATS), metavar="N", help="Measure N times (with --abba: each)."
    ),
    click.option(
        "--abba",
        type=(str, str),
        metavar="'A' 'B'",
        help=f"Compare two sets of options, measured by turns, {USUAL_TIMES} times each unless --repeat says.",
    ),
)


def repeat_options(command: Command) -> Command:
    """Give a command the options of several runs."""
    for option in reversed(REPEAT_OPTIONS):
        command = option(command)
    return command


def refuse_with_repeat(options: Mapping[str, bool]) -> None:
    """UsageError where another option is given that makes several runs of its own, or one unlike others."""
    for name, is_given in options.items():
        if is_given:
            raise click.UsageError(f"--repeat and --abba are for plain runs: leave {name} out")


def take_repeat_options(values: dict[str, Any]) -> SeriesRequest | None:
    """Take the options of several runs out of a command's values; None if one run is asked."""
    times, pair = values.pop("repeat"), values.pop("abba")
    if times is None and pair is None:
        return None
    sides = [_parse_side(name, words, values) for name, words in zip("AB", pair, strict=True)] if pair else []
    return SeriesRequest(times or USUAL_TIMES, tuple(sides) or (SeriesSide("", "", values),))


@click.command(add_help_option=False)
@measurement_options.agent_options
def _side_options(**_values: Any) -> None:
    """What may stand in the options of one side."""


def _parse_side(name: str, words: str, common: Mapping[str, Any]) -> SeriesSide:
    """The options of one side, on top of those that both have; its loads come beside the common ones."""
    try:
        own = _side_options.make_context(name, shlex.split(words)).params
        given = {key: value for key, value in own.items() if value not in (None, False, ())}
        values = {**common, **given, "load": (*common["load"], *given.get("load", ()))}
        run_request.agent_arguments(values)
    except (click.UsageError, UserError, ValueError) as problem:
        said = problem.format_message() if isinstance(problem, click.UsageError) else str(problem)
        hint = f"; {SIDE_OPTIONS_HINT}" if isinstance(problem, click.NoSuchOption) else ""
        raise click.UsageError(f"{name} of --abba, {words!r}: {said.rstrip('.?')}{hint}") from None
    return SeriesSide(name, words, values)


PATH = click.Path(path_type=Path)

PROFILE_OPTIONS = (
    click.option(
        "--profile",
        metavar="NAME|FILE",
        shell_complete=shell_completion.complete_profiles,
        help="Repeat an article's experiment; see 'rtproof profiles'.",
    ),
    click.option(
        "--set",
        "settings",
        type=parameter_types.KEY_VALUE,
        multiple=True,
        help="What a profile is to measure; may be repeated.",
    ),
    click.option(
        "--given", type=PATH, multiple=True, metavar="FILE", help="Another tool's result to lay beside; repeatable."
    ),
)


def profile_options(command: Command) -> Command:
    """Give a command the options of profiles."""
    for option in reversed(PROFILE_OPTIONS):
        command = option(command)
    return command


def take_profile_options(values: dict[str, Any]) -> ProfileRequest | None:
    """Take the options of profiles out of a command's values; None if there is no profile."""
    name, settings, given = (values.pop(key) for key in ("profile", "settings", "given"))
    if name is None and (settings or given):
        raise click.UsageError(f"--{'set' if settings else 'given'} needs a --profile to speak of")
    if name is None:
        return None
    run_request.refuse_two_lengths(values)
    return ProfileRequest(
        name, settings, given, {key: value for key, value in values.items() if value not in (None, False, ())}
    )


STANDARD_OUTPUT = Path("-")
PageOptionsCommand = Callable[..., Any]


def page_options(beside: str) -> Callable[[PageOptionsCommand], PageOptionsCommand]:
    """output, form, report and as_json. beside: the name of the argument that the page goes beside."""
    return with_options(
        click.option(
            "--output",
            type=PATH,
            metavar="FILE",
            help=f"New file for the page (default: beside {beside}); - for standard output.",
        ),
        click.option(
            "--format",
            "form",
            default="html",
            metavar="NAME",
            shell_complete=shell_completion.complete_report_formats,
            help="Of the page: html (default), markdown, text or json.",
        ),
        click.option("--report/--no-report", default=True, help="Write the page (default)."),
        click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
    )


def page_path(first: Path, word: str, values: dict[str, Any]) -> Path | None:
    """Where the page goes, known to be free before anything is read; None if none is wanted.

    word: what tells it from the report of the run that it lies beside.
    """
    from rtproof.experiment import stored_runs

    output: Path | None = values["output"]
    if not values["report"] and output is None:
        return None
    if output == STANDARD_OUTPUT:
        return output
    beside = stored_runs.report_path(first, values["form"])
    page = output or beside.with_name(f"{beside.stem}-{word}{beside.suffix}")
    files.refuse_existing(page)
    return page
