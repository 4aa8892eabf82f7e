# SPDX-License-Identifier: Apache-2.0
"""Requirements on the command line: episodes above LIMIT come at most once per T, and none is longer than D."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof import units
from rtproof.cli import types
from rtproof.cli.measuring import PERIOD_DEFAULT

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
        help="Latency above which an activation is late, such as 500us; repeatable, each then needs more evidence.",
    ),
    click.option(
        "--at-most",
        type=types.AT_MOST_NS,
        multiple=True,
        help="How often an episode above --limit may come (default 1/h): one for all limits, or one for each in order.",
    ),
    click.option("--confidence", type=types.CONFIDENCE, help="Confidence of all verdicts together (default 0.95)."),
    click.option(
        "--gap",
        type=types.GAP_NS,
        help="Exceedances no further apart are one episode (default: a twentieth of the time of --at-most, and 60s at "
        "most; no more than a tenth of that time).",
    ),
    click.option(
        "--longest",
        type=types.LONGEST_NS,
        help="How long an episode may last (default: ten gaps, and at most a quarter of the time of --at-most).",
    ),
    click.option(
        "--bunches",
        type=types.BUNCHES,
        help="Size of bunches, on average, that PROVEN allows for (default 1); it then takes so many times as long.",
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
    rest = {
        "confidence": values.pop("confidence"),
        "gap_ns": values.pop("gap"),
        "longest_ns": values.pop("longest"),
        "bunches": values.pop("bunches"),
    }
    given = {name: value for name, value in rest.items() if value is not None}
    if not limits and (given or at_most):
        raise click.UsageError("--at-most, --confidence, --gap, --longest and --bunches need a --limit to speak of")
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
    found = tuple(Requirement(*each, **given) for each in zip(limits, times, strict=True))
    for each in found:
        if reason := refusal(each):
            raise click.UsageError(reason)
    if len(set(found)) < len(found):
        raise click.UsageError("a --limit is given twice: each needs evidence of its own")
    return found


def refusal(asked: "Requirement") -> str | None:
    """Why such a claim can't be judged in a useful time, or never be broken; None if it can."""
    from rtproof.analysis.model import usual_longest_ns

    gap, longest, time = asked.gap_ns, asked.longest_ns, asked.at_most_ns
    told = {name: units.format_duration(ns) for name, ns in (("gap", gap), ("longest", longest), ("time", time))}
    if gap > time // 10:
        beside = time // 2 - time // 10
        given = longest != usual_longest_ns(time, gap)
        shorter = f", and --longest {units.format_duration(beside)} or less" if given and longest > beside else ""
        return (
            f"with --gap {told['gap']} twice as many episodes as --at-most 1/{told['time']} take too long to show: "
            f"give a gap of {units.format_duration(time // 10)} or less{shorter}, or leave it out"
        )
    if longest < gap:
        return f"--longest {told['longest']} is shorter than the gap of {told['gap']}: give a longer one"
    if gap + longest > time // 2:
        return (
            f"with a gap of {told['gap']} and --longest {told['longest']}, episodes may go on nearly all the time and "
            f"still come only once per {told['time']}: give --longest {units.format_duration(time // 2 - gap)} or "
            "less, or a shorter --gap"
        )
    return None


def from_outside(options: Mapping[str, Any]) -> bool:
    """Whether what gives the probe its due times is not rtproof: it may pause, and nothing is late then."""
    from rtproof.agents import build

    return build.from_outside(str(options.get("probe") or "").partition(":")[0])


def refuse_short_gaps(asked: "tuple[Requirement, ...]", options: Mapping[str, Any]) -> None:
    """UsageError where the gap is shorter than two periods, so that each late activation were an episode of its own.

    options: of one measurement. What gives a probe its events may have any period: without --period nobody knows it.
    """
    period = options.get("period")
    if period is None and from_outside(options):
        return
    if reason := short_gap(asked, units.parse_duration(period or PERIOD_DEFAULT)):
        raise click.UsageError(reason)


def short_gap(asked: "tuple[Requirement, ...]", period_ns: int) -> str | None:
    """Why a gap is too short for this period; None if none is."""
    for each in asked:
        if each.gap_ns < 2 * period_ns:
            gap, two = (units.format_duration(ns) for ns in (each.gap_ns, 2 * period_ns))
            longer = units.format_duration(max(40 * period_ns, types.LEAST_AT_MOST_NS))
            wider = 2 * period_ns <= each.at_most_ns // 10
            ask = f"give --gap {two} or more" if wider else f"ask for --at-most 1/{longer} or seldomer"
            why = "so each late activation would be an episode"
            return f"the gap of {gap} is shorter than two periods ({two}), {why}: {ask}"
    return None
