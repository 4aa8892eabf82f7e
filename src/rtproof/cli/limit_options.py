# SPDX-License-Identifier: Apache-2.0
"""The options that ask for an answer: limits, percentiles, and how far a forecast looks."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof.cli import parameter_types
from rtproof.core import units
from rtproof.experiment.run_request import PERIOD_DEFAULT, has_outside_events, why_gap_too_short, why_not_judgeable

if TYPE_CHECKING:
    from rtproof.judge.analysis_model import Requirement
    from rtproof.tail.forecast_model import ForecastHorizon


Command = TypeVar("Command", bound=Callable[..., Any])

MOST_LIMITS = 8
"""So many limits the agent can watch; each one needs more evidence than one alone."""

LIMIT_OPTIONS = (
    click.option(
        "--limit",
        "limits",
        type=parameter_types.LIMIT_NS,
        multiple=True,
        help="Latency above which an activation is late, such as 500us; repeatable, each then needs more evidence.",
    ),
    click.option(
        "--at-most",
        type=parameter_types.AT_MOST_NS,
        multiple=True,
        help="How often an episode above --limit may come (default 1/h): one for all limits, or one for each in order.",
    ),
    click.option(
        "--confidence", type=parameter_types.CONFIDENCE, help="Confidence of all verdicts together (default 0.95)."
    ),
    click.option(
        "--gap",
        type=parameter_types.GAP_NS,
        help="Exceedances no further apart are one episode (default: a twentieth of the time of --at-most, and 60s at "
        "most; no more than a tenth of that time).",
    ),
    click.option(
        "--longest",
        type=parameter_types.LONGEST_NS,
        help="How long an episode may last (default: ten gaps, and at most a quarter of the time of --at-most).",
    ),
    click.option(
        "--bunches",
        type=parameter_types.BUNCHES,
        help="Size of bunches, on average, that PROVEN allows for (default 1); it then takes so many times as long.",
    ),
)


PERCENTILE_OPTION = click.option(
    "--percentile",
    "percentiles",
    type=parameter_types.SHARE,
    multiple=True,
    help="A percentile to show besides the usual; repeatable.",
)
"""Option of every command that shows numbers."""


def requirement_options(command: Command) -> Command:
    """Give a command the options of requirements."""
    for option in reversed(LIMIT_OPTIONS):
        command = option(command)
    return command


def take_requirements(values: dict[str, Any]) -> "tuple[Requirement, ...]":
    """Take the options of requirements out of a command's values; none if no limit is asked."""
    limits, at_most = values.pop("limits"), values.pop("at_most")
    rest = {
        "confidence": values.pop("confidence"),
        "gap_ns": values.pop("gap"),
        "longest_ns": values.pop("longest"),
        "bunches": values.pop("bunches"),
    }
    given = {name: value for name, value in rest.items() if value is not None}
    if not limits and (given or at_most):
        raise click.UsageError("--at-most, --confidence, --gap, --longest and --bunches need a --limit to speak of")
    return _paired_with_times(limits, at_most, given)


def _paired_with_times(
    limits: tuple[int, ...], at_most: tuple[int, ...], given: dict[str, Any]
) -> "tuple[Requirement, ...]":
    from rtproof.judge.analysis_model import Requirement

    if len(limits) > MOST_LIMITS:
        raise click.UsageError(f"{len(limits)} limits are given, and at most {MOST_LIMITS} can be judged in one run")
    if len(at_most) not in (0, 1, len(limits)):
        given_times = f"--at-most is given {len(at_most)} times for {len(limits)} limits"
        raise click.UsageError(f"{given_times}: give it once, or once for each limit")
    times = at_most * len(limits) if len(at_most) == 1 else at_most
    times = times or (Requirement.at_most_ns,) * len(limits)
    found = tuple(Requirement(*each, **given) for each in zip(limits, times, strict=True))
    for each in found:
        if reason := why_not_judgeable(each):
            raise click.UsageError(reason)
    if len(set(found)) < len(found):
        raise click.UsageError("a --limit is given twice: each needs evidence of its own")
    return found


def refuse_short_gaps(asked: "tuple[Requirement, ...]", options: Mapping[str, Any]) -> None:
    """UsageError where the gap is shorter than two periods, so that each late activation were an episode of its own.

    options: of one measurement. What gives a probe its events may have any period: without --period nobody knows it.
    """
    period = options.get("period")
    if period is None and has_outside_events(options):
        return
    if reason := why_gap_too_short(asked, units.parse_duration(period or PERIOD_DEFAULT)):
        raise click.UsageError(reason)


HORIZON_OPTIONS = (
    click.option(
        "--horizon",
        type=parameter_types.LIMIT_NS,
        help="How far a forecast looks, such as 30d (default: 10 times the run).",
    ),
    click.option("--far", is_flag=True, help="Let it look up to 100 times as far as the run, with a warning."),
)


def horizon_options(command: Command) -> Command:
    """Give a command the options of a forecast."""
    for option in reversed(HORIZON_OPTIONS):
        command = option(command)
    return command


def take_horizon(values: dict[str, Any]) -> "ForecastHorizon | None":
    """Take the options of a forecast out of a command's values; None if the usual is wanted."""
    from rtproof.tail.forecast_model import ForecastHorizon

    horizon_ns, far = values.pop("horizon"), values.pop("far")
    if far and horizon_ns is None:
        raise click.UsageError("--far needs a --horizon to look at")
    return None if horizon_ns is None else ForecastHorizon(horizon_ns, far)
