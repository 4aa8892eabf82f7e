# SPDX-License-Identifier: Apache-2.0
"""Requirements on the command line: latency exceeds LIMIT at most once per T, at a confidence."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof import units
from rtproof.cli import types

if TYPE_CHECKING:
    from rtproof.analysis.model import Requirement

Command = TypeVar("Command", bound=Callable[..., Any])

MOST = 8
"""So many limits the agent can watch; each one needs more evidence than one alone."""

OPTIONS = (
    click.option(
        "--limit",
        "limits",
        type=types.LIMIT_NS,
        multiple=True,
        help="Latency that must not be exceeded, such as 500us; may be repeated, each then needs more evidence.",
    ),
    click.option(
        "--at-most",
        type=types.AT_MOST_NS,
        multiple=True,
        help="... more often than once per this time (default 1/h): one for all limits, or one for each in order.",
    ),
    click.option("--confidence", type=types.CONFIDENCE, help="Confidence of all verdicts together (default 0.95)."),
    click.option(
        "--gap",
        type=types.GAP_NS,
        help="Exceedances no further apart are one episode (1s to 600s; default 60s, or the time of --at-most).",
    ),
)


PERCENTILES = click.option(
    "--percentile",
    "percentiles",
    type=types.SHARE,
    multiple=True,
    help="A percentile to show besides the usual; repeatable.",
)
"""Option of every command that shows numbers."""


def requirement_options(command: Command) -> Command:
    """Give a command the options of requirements."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def take_requirements(values: dict[str, Any]) -> "tuple[Requirement, ...]":
    """Take the options of requirements out of a command's values; none if no limit is asked."""
    limits, at_most = values.pop("limits"), values.pop("at_most")
    rest = {"confidence": values.pop("confidence"), "gap_ns": values.pop("gap")}
    given = {name: value for name, value in rest.items() if value is not None}
    if not limits and (given or at_most):
        raise click.UsageError("--at-most, --confidence and --gap need a --limit to speak of")
    return _paired(limits, at_most, given)


def _paired(limits: tuple[int, ...], at_most: tuple[int, ...], given: dict[str, Any]) -> "tuple[Requirement, ...]":
    from rtproof.analysis.model import Requirement

    if len(limits) > MOST:
        raise click.UsageError(f"{len(limits)} limits are given, and at most {MOST} can be judged in one run")
    if len(at_most) not in (0, 1, len(limits)):
        given_times = f"--at-most is given {len(at_most)} times for {len(limits)} limits"
        raise click.UsageError(f"{given_times}: give it once, or once for each limit")
    times = at_most * len(limits) if len(at_most) == 1 else at_most
    times = times or (Requirement.at_most_ns,) * len(limits)
    usual = (Requirement.usual(*each) for each in zip(limits, times, strict=True))
    found = tuple(replace(each, **given) for each in usual)
    for each in found:
        _refuse_what_nothing_breaks(each)
    if len(set(found)) < len(found):
        raise click.UsageError("a --limit is given twice: each needs evidence of its own")
    return found


def _refuse_what_nothing_breaks(asked: "Requirement") -> None:
    """Episodes are further apart than the gap, so a claim that allows more of them is true of every system."""
    if asked.gap_ns > asked.at_most_ns:
        gap, time = map(units.format_duration, (asked.gap_ns, asked.at_most_ns))
        raise click.UsageError(
            f"with --gap {gap} no two episodes begin within {gap}, so nothing could break --at-most 1/{time}: "
            f"give a gap of {time} or less, or leave it out"
        )
