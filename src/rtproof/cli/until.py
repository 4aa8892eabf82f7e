# SPDX-License-Identifier: Apache-2.0
"""``rtproof run --until-decided``: a run that ends when its limits are decided, and not before."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof import units
from rtproof.cli import types
from rtproof.cli.requirement import from_outside

if TYPE_CHECKING:
    from rtproof.analysis.model import Requirement
    from rtproof.analysis.watch import Watch

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option(
        "--until-decided", is_flag=True, help="Measure until every --limit is PROVEN, or one of them REFUTED."
    ),
    click.option(
        "--max-duration",
        type=types.LENGTH,
        help="... but no longer than this (default: what it takes to be PROVEN with 8 episodes).",
    ),
)
ELSEWHERE = {
    "profile": "--profile measures one cell after the other for lengths of its own",
    "observer": "--observer needs a length that is fixed beforehand",
    "repeat": "--repeat needs runs of equal length",
    "abba": "--abba needs runs of equal length",
}
"""Options that a run cannot have which ends when it is decided, and why."""


def until_options(command: Command) -> Command:
    """Give a command the options of a run that ends when it is decided."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def take(values: dict[str, Any], requirements: "Sequence[Requirement]") -> "Watch | None":
    """Look at the options in a command's values, and give the run its longest length; None if it isn't asked for.

    What is left of them is the agent's own option.
    """
    from rtproof.analysis.watch import Watch

    wanted, longest = values["until_decided"], values.pop("max_duration")
    if longest and not wanted:
        raise click.UsageError("--max-duration needs --until-decided to speak of")
    if not wanted:
        return None
    if values["duration"] or values["samples"]:
        raise click.UsageError(
            "--until-decided ends by itself: leave --duration and --samples out, or give --max-duration"
        )
    for name, reason in ELSEWHERE.items():
        if values.get(name):
            raise click.UsageError(f"{reason}, so that --until-decided does not go with it")
    if not requirements:
        raise click.UsageError("--until-decided needs a --limit to decide on")
    values["duration"] = longest or usual_length(requirements)
    click.echo(plan(requirements, values["duration"]), err=True)
    return Watch(requirements, from_outside=from_outside(values))


def refuse_virtual_time(values: Mapping[str, Any]) -> None:
    """UsageError where a guest in virtual time is to run until it is decided: no length of it decides a limit."""
    mode = dict(values["target_option"]).get("mode", "virtual-time")
    if values["until_decided"] and values["target"] == "qemu" and mode == "virtual-time":
        raise click.UsageError(
            "--until-decided does not go with virtual time: such a run is deterministic, so that no length of it "
            "proves a limit; give --duration, or --target-option mode=wall-clock"
        )


def usual_length(requirements: "Sequence[Requirement]") -> str:
    """What it takes with as many episodes as a run is given, in whole seconds."""
    from rtproof.analysis.watch import MOST_EPISODES, needed_ns

    second_ns = units.UNITS_NS["s"]
    length_ns = -(-needed_ns(requirements, MOST_EPISODES) // second_ns) * second_ns
    return units.format_duration(min(length_ns, units.LONGEST_NS // second_ns * second_ns))


def plan(requirements: "Sequence[Requirement]", longest: str) -> str:
    """What to expect, before the first second is measured."""
    from rtproof.analysis.phrases import duration
    from rtproof.analysis.watch import needed_ns

    none, one, two = (duration(needed_ns(requirements, episodes), up=True) for episodes in range(3))
    longest_ns = units.parse_duration(longest)
    short = ", which is too short for PROVEN" if longest_ns < needed_ns(requirements, 0) else ""
    what = "every limit is" if len(requirements) > 1 else "the limit is"
    return (
        f"measures until {what} decided: PROVEN after {none} without an episode, {one} with 1, {two} with 2; "
        f"for {duration(longest_ns)} at most{short}"
    )
