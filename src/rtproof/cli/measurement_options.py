# SPDX-License-Identifier: Apache-2.0
"""Options of ``rtproof run`` that go to the agent, and the limits that a run is judged by."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof.cli import parameter_types, shell_completion
from rtproof.core import units
from rtproof.experiment import run_request
from rtproof.experiment.run_request import (
    DURATION_DEFAULT,
    PERIOD_DEFAULT,
    has_outside_events,
    why_gap_too_short,
    why_not_judgeable,
)

if TYPE_CHECKING:
    from rtproof.judge.analysis_model import Requirement
    from rtproof.judge.watch import Watch
    from rtproof.tail.forecast_model import ForecastHorizon


Command = TypeVar("Command", bound=Callable[..., Any])

AGENT_OPTIONS = (
    click.option("--probe", metavar="NAME", help="What is measured (default timer)."),
    click.option(
        "--method",
        metavar="NAME",
        shell_complete=shell_completion.complete_methods,
        help="How the thread waits for its due time.",
    ),
    click.option("--period", type=parameter_types.LENGTH, help="Time between activations (default 1ms)."),
    click.option(
        "--period-step",
        type=parameter_types.LENGTH,
        help="How much longer each thread's period is than the last one's (default 0).",
    ),
    click.option("--duration", type=parameter_types.LENGTH, help=f"How long to measure (default {DURATION_DEFAULT})."),
    click.option(
        "--samples",
        type=parameter_types.count_up_to(2**62),
        metavar="N",
        help="Measure so many activations of the first thread instead.",
    ),
    click.option("--warmup", type=parameter_types.SPAN, help="Run so long before measuring begins (default 1s)."),
    click.option(
        "--cpus", type=parameter_types.CPUS, help="Measure on these CPUs, such as 0,2-3 (default: all allowed)."
    ),
    click.option(
        "--threads",
        type=parameter_types.count_up_to(4096),
        metavar="N",
        help="Number of measuring threads (default: one per CPU).",
    ),
    click.option(
        "--policy", type=click.Choice(["fifo", "rr", "other", "deadline"]), help="Scheduling policy (default fifo)."
    ),
    click.option(
        "--priority",
        type=parameter_types.count_up_to(99),
        metavar="N",
        help="Real-time priority of fifo and rr (default 80).",
    ),
    click.option(
        "--phase",
        type=parameter_types.PHASE,
        help="Between the due times of neighbouring threads; of longer than a period, the rest (default even).",
    ),
    click.option(
        "--dma-latency",
        type=parameter_types.DMA_LATENCY,
        help="Microseconds for /dev/cpu_dma_latency (default 0), or off.",
    ),
    click.option("--no-lock-memory", is_flag=True, help="Do not lock the agent's memory."),
    click.option(
        "--record", type=click.Choice(["samples", "summary"]), help="Keep every sample (default) or the summary."
    ),
    click.option("--checkpoint", type=parameter_types.LENGTH, help="Time between flushes to the medium (default 10s)."),
    click.option(
        "--load",
        multiple=True,
        metavar="NAME[:k=v,...]",
        shell_complete=shell_completion.complete_loads,
        help="What disturbs on purpose (see rtproof loads); may be repeated.",
    ),
    click.option(
        "--trace",
        is_flag=False,
        flag_value="on",
        metavar="[k=v,...]",
        help="Keep the kernel's events too; events=NAME+NAME.. says which, buffer_kib=N how many.",
    ),
    click.option("--trace-blocks", type=parameter_types.LENGTH, help="Trace by turns, on and off, this long each."),
    click.option(
        "--allow-unprivileged", is_flag=True, help="Without the privilege for --policy, go on as SCHED_OTHER."
    ),
)


def agent_options(command: Command) -> Command:
    """Give a command the options of the agent."""
    for option in reversed(AGENT_OPTIONS):
        command = option(command)
    return command


UNTIL_OPTIONS = (
    click.option(
        "--until-decided", is_flag=True, help="Measure until every --limit is PROVEN, or one of them REFUTED."
    ),
    click.option(
        "--max-duration",
        type=parameter_types.LENGTH,
        help="... but no longer than this (default: what it takes to be PROVEN with 8 episodes).",
    ),
)
UNTIL_DECIDED_EXCLUDES = {
    "profile": "--profile measures one cell after the other for lengths of its own",
    "observer": "--observer needs a length that is fixed beforehand",
    "repeat": "--repeat needs runs of equal length",
    "abba": "--abba needs runs of equal length",
}
"""Options that a run cannot have which ends when it is decided, and why."""


def until_options(command: Command) -> Command:
    """Give a command the options of a run that ends when it is decided."""
    for option in reversed(UNTIL_OPTIONS):
        command = option(command)
    return command


def take_until_options(values: dict[str, Any], requirements: "Sequence[Requirement]") -> "Watch | None":
    """Look at the options in a command's values, and give the run its longest length; None if it isn't asked for.

    What is left of them is the agent's own option.
    """
    from rtproof.judge.watch import Watch

    wanted, longest = values["until_decided"], values.pop("max_duration")
    if longest and not wanted:
        raise click.UsageError("--max-duration needs --until-decided to speak of")
    if not wanted:
        return None
    if values["duration"] or values["samples"]:
        raise click.UsageError(
            "--until-decided ends by itself: leave --duration and --samples out, or give --max-duration"
        )
    for name, reason in UNTIL_DECIDED_EXCLUDES.items():
        if values.get(name):
            raise click.UsageError(f"{reason}, so that --until-decided does not go with it")
    if not requirements:
        raise click.UsageError("--until-decided needs a --limit to decide on")
    values["duration"] = longest or usual_longest_run(requirements)
    click.echo(until_announcement(requirements, values["duration"]), err=True)
    return Watch(requirements, from_outside=has_outside_events(values))


def refuse_virtual_time(values: Mapping[str, Any]) -> None:
    """UsageError where a guest in virtual time is to run until it is decided: no length of it decides a limit."""
    mode = dict(values["target_option"]).get("mode", "virtual-time")
    if values["until_decided"] and values["target"] == "qemu" and mode == "virtual-time":
        raise click.UsageError(
            "--until-decided does not go with virtual time: such a run is deterministic, so that no length of it "
            "proves a limit; give --duration, or --target-option mode=wall-clock"
        )


def usual_longest_run(requirements: "Sequence[Requirement]") -> str:
    """What it takes with as many episodes as a run is given, in whole seconds."""
    from rtproof.judge.watch import MOST_EPISODES, still_needed_ns

    second_ns = units.UNITS_NS["s"]
    length_ns = -(-still_needed_ns(requirements, MOST_EPISODES) // second_ns) * second_ns
    return units.format_duration(min(length_ns, units.LONGEST_NS // second_ns * second_ns))


def until_announcement(requirements: "Sequence[Requirement]", longest: str) -> str:
    """What to expect, before the first second is measured."""
    from rtproof.core.phrases import duration
    from rtproof.judge.watch import still_needed_ns

    none, one, two = (duration(still_needed_ns(requirements, episodes), up=True) for episodes in range(3))
    longest_ns = units.parse_duration(longest)
    short = ", which is too short for PROVEN" if longest_ns < still_needed_ns(requirements, 0) else ""
    what = "every limit is" if len(requirements) > 1 else "the limit is"
    return (
        f"measures until {what} decided: PROVEN after {none} without an episode, {one} with 1, {two} with 2; "
        f"for {duration(longest_ns)} at most{short}"
    )


OBSERVER_BLOCKS = 80
"""Blocks that ``--observer`` aims at: enough for an interval, each long enough to hold many activations."""
SHORTEST_BLOCK_NS = 100_000_000
LONGEST_BLOCK_NS = 2_000_000_000

SEED_OPTION = "seed="
"""What ``--trace`` calls the number from which the agent makes the order of the turns."""

observer_option = click.option(
    "--observer", is_flag=True, help="Trace by turns, and tell by how much that alone changes the latency."
)


def with_observer(values: dict[str, Any], of_profile: bool) -> dict[str, Any]:
    """The options of a run in which tracing is on and off by turns, in an order that chance draws here.

    A load that has turns of its own, and begins with the run, would meet the same order in the same way each time.
    """
    if of_profile:
        raise click.UsageError("--observer is for one run and not for a --profile: say --probe and its options")
    block_ns = max(SHORTEST_BLOCK_NS, min(LONGEST_BLOCK_NS, run_request.measured_length_ns(values) // OBSERVER_BLOCKS))
    given = [option for option in (values["trace"] or "on").split(",") if option != "on"]
    if not any(option.startswith(SEED_OPTION) for option in given):
        given.append(f"{SEED_OPTION}{secrets.randbelow(1 << 32)}")
    whole_ms = units.format_duration(block_ns // 1_000_000 * 1_000_000)
    return {**values, "trace": ",".join(given), "trace_blocks": values["trace_blocks"] or whole_ms}


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
