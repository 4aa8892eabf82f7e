# SPDX-License-Identifier: Apache-2.0
"""What the values of options mean: limits, how long to measure, a series of runs, a profile.

A function ``take_...`` takes its options out of a command's values; what is left at the end goes to the agent.
UsageError for options that do not go together. A command imports this module in its body, because it takes longer to
import than a shell's completion may last. Functions import what judges: one run begins without it.
"""

import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from rtproof import targets
from rtproof.agents import PERIOD_DEFAULT, WARMUP_DEFAULT
from rtproof.cli.shared_options import AGENT_OPTIONS, MOST_SEED, with_options
from rtproof.core import plugins, units
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, limit_value
from rtproof.experiment import run_request
from rtproof.experiment.run_request import Board, RunRequest, has_outside_events, why_gap_too_short, with_measurement
from rtproof.record.requirement import Requirement, rated
from rtproof.targets import STREAM, USUAL_BUFFER

USUAL_TIMES = 5
"""The fewest runs a side with which a difference can be shown."""
PATTERN = "pattern=yes"
"""Of the generator: edges unevenly apart, so that they keep no step with a timer of the responder."""
LONGER_NS = 600 * units.UNITS_NS["s"]
"""The responder is asked for so much more than the generator, and is told to finish when that has ended.

If this host is gone by then, the responder ends by itself after this time.
"""
OF_BOTH = ("period", "warmup", "checkpoint", "duration", "samples")
"""Options of the agent that the generator gets as well."""
NOT_TOGETHER = {
    "until_decided": ("profile", "observer", "repeat", "abba"),
    "generator": ("detach", "profile", "repeat", "abba", "until_decided", "explain", "observer", "trace"),
    "repeat": ("profile", "observer", "explain"),
    "abba": ("profile", "observer", "explain"),
    "explain": ("profile",),
    "stream": ("profile", "repeat", "abba", "detach", "generator", "explain", "observer", "trace"),
}
"""Options that do not go with others."""

TURNS = 40
"""Blocks by turns at the beginning of each explained run: ten sets of four, where the interval needs eight.

More would switch the tracepoints more often, and each switch disturbs.
"""
TURNS_PART = 5
"""The turns take no more than one part of so many of the run; half of them are without a trace."""
LONGEST_TURN_NS = 500_000_000
SHORTEST_PART = 2
"""A short run may give up to one part of so many, so that its turns are long enough for an interval."""
VIRTUAL_TARGET = "qemu"
"""There the same command must give the same record, so chance draws no order."""
EXPLAIN_WORDS = ("strict", "stacks")
EXPLAIN_KEYS = ("threshold=", "top=", "ordinary=", "record_kib=")

SIDE_OPTIONS_HINT = "what may stand there are options of the measurement, such as --policy; all others hold for both"


def take_requirements(values: dict[str, Any]) -> tuple[Requirement, ...]:
    """Take the options of requirements out of a command's values; none if no limit is asked."""
    limits, at_most = values.pop("limits"), values.pop("at_most")
    rest = {
        "confidence": values.pop("confidence"),
        "gap_ns": values.pop("gap"),
        "longest_ns": values.pop("longest"),
        "bunches": values.pop("bunches"),
        "shows_ns": values.pop("shows"),
    }
    given = {name: value for name, value in rest.items() if value is not None}
    if not limits and (given or at_most):
        raise click.UsageError("--at-most, --shows, --confidence, --gap, --longest and --bunches need a --limit")
    try:
        return run_request.requirements_of_limits(limits, at_most, given)
    except UserError as problem:
        raise click.UsageError(str(problem)) from None


def refuse_short_gaps(asked: tuple[Requirement, ...], options: Mapping[str, Any]) -> None:
    """UsageError where the gap is shorter than two periods, so that each late activation were an episode of its own.

    options: of one measurement. Without --period, the period of events from outside is unknown, so nothing is refused.
    """
    period = options.get("period")
    if period is None and has_outside_events(options):
        return
    if reason := why_gap_too_short(asked, units.parse_duration(period or PERIOD_DEFAULT)):
        raise click.UsageError(reason)


def take_until_options(values: dict[str, Any], requirements: Sequence[Requirement]) -> None:
    """Take ``--max-duration`` out of a command's values and set the longest length of a run --until-decided.

    That is the time that PROVEN takes with ``MOST_EPISODES`` episodes, in whole seconds, if the user names none.
    ``--until-decided`` stays in the values: the agent has that option too.
    """
    wanted, longest = values["until_decided"], values.pop("max_duration")
    if longest and not wanted:
        raise click.UsageError("--max-duration needs --until-decided")
    if not wanted:
        return
    if values["duration"] or values["samples"]:
        raise click.UsageError(
            "--until-decided ends by itself: leave --duration and --samples out, or give --max-duration"
        )
    if not requirements:
        raise click.UsageError("--until-decided needs a --limit to decide on")
    if not longest:
        from rtproof.judge.watch import MOST_EPISODES, still_needed_ns

        second_ns = units.UNITS_NS["s"]
        length_ns = -(-still_needed_ns(requirements, MOST_EPISODES) // second_ns) * second_ns
        longest = units.format_duration(min(length_ns, units.LONGEST_NS // second_ns * second_ns))
    values["duration"] = longest
    click.echo(until_announcement(requirements, longest), err=True)


def until_announcement(requirements: Sequence[Requirement], longest: str) -> str:
    """The sentence that says how long the run may take, before it begins."""
    from rtproof.judge.watch import still_needed_ns

    plain, sharing = [each for each in requirements if each.plain], rated(requirements)
    longest_ns = units.parse_duration(longest)
    parts, short = [], []
    if plain:
        needed_ns, shows = still_needed_ns(plain, 0), duration(max(each.shows_ns for each in plain))
        rules_out = f"which rules out exceedances more often than once per {shows}"
        parts.append(f"{_limits(plain)} EXCEEDED, or HELD after {duration(needed_ns, up=True)}, {rules_out}")
        short += ["HELD"] if longest_ns < needed_ns else []
    if sharing:
        none, one, two = (duration(still_needed_ns(sharing, episodes), up=True) for episodes in range(3))
        proven = f"PROVEN after {none} without an episode, {one} with 1, {two} with 2"
        parts.append(f"{_limits(sharing)} REFUTED, or {proven}")
        short += ["PROVEN"] if longest_ns < still_needed_ns(sharing, 0) else []
    too_short = f", which is too short for {' and '.join(short)}" if short else ""
    return f"measures until it is decided: {'; '.join(parts)}; for {duration(longest_ns, up=True)} at most{too_short}"


def _limits(some: Sequence[Requirement]) -> str:
    return " and ".join(limit_value(each.limit_ns) for each in some)


def refuse_virtual_time(values: Mapping[str, Any]) -> None:
    """UsageError where a guest in virtual time is to run until it is decided: no length of it decides a limit."""
    mode = dict(values["target_option"]).get("mode", "virtual-time")
    if values["until_decided"] and values["target"] == "qemu" and mode == "virtual-time":
        raise click.UsageError(
            "--until-decided does not go with virtual time: such a run is deterministic, so that no length of it "
            "proves a limit; give --duration, or --target-option mode=wall-clock"
        )


def with_trace_options(
    values: dict[str, Any], explain: str | None, observer: bool | None, *, virtual: bool
) -> dict[str, Any]:
    """The options of a run with what --explain and --observer mean. None: the user said nothing of it.

    An explained run begins with turns with and without tracing, which measure what it adds. The run gets no longer. One
    that is too short for the turns has none, and neither has one that has turns already. virtual: the target has
    virtual time.
    """
    if explain is not None:
        values = with_explain(values, explain)
    length_ns = run_request.measured_length_ns(values)
    if observer:
        return {**values, **run_request.observer_options(values["trace"], values["trace_blocks"], length_ns)}
    turn_ns = max(run_request.SHORTEST_BLOCK_NS, min(LONGEST_TURN_NS, length_ns // TURNS_PART // TURNS))
    too_short = turn_ns * TURNS > length_ns // SHORTEST_PART
    if explain is None or observer is not None or values["trace_blocks"] or too_short:
        return values
    seed = () if virtual or run_request.SEED_OPTION in values["trace"] else (run_request.drawn_seed(),)
    words = ",".join((values["trace"], f"turns={TURNS}", *seed))
    return {**values, "trace": words, "trace_blocks": units.format_duration(turn_ns // 1_000_000 * 1_000_000)}


def with_explain(values: dict[str, Any], explain: str) -> dict[str, Any]:
    """The options of a run with the flight recorder. explain: what the user gave, "on" for nothing.

    The run goes on where there can be no trace, unless the user says ``strict`` or asks for ``--trace`` too.
    """
    given = [option for option in explain.split(",") if option != "on"]
    for option in given:
        if option not in EXPLAIN_WORDS and not option.startswith(EXPLAIN_KEYS):
            raise click.UsageError(
                f"--explain takes threshold=TIME, top=N, ordinary=N, record_kib=N, stacks and strict, not '{option}'"
            )
    asked = [option for option in (values["trace"] or "on").split(",") if option != "on"]
    strict = values["trace"] is not None or "strict" in given
    words = [option for option in given if option != "strict"]
    return {**values, "trace": ",".join((*asked, "recorder", *(() if strict else ("optional",)), *words))}


def take_generator(values: dict[str, Any]) -> tuple[Board, str | None] | None:
    """Take the board that gives edges, and its lines, out of a command's values; None without one.

    UsageError for options that do not go with it.
    """
    name, options, lines = (values.pop(key) for key in ("generator", "generator_option", "generator_lines"))
    if name is None:
        if options or lines:
            raise click.UsageError("--generator-option and --generator-lines need a --generator")
        return None
    if values.get("method") not in (None, "respond"):
        raise click.UsageError("with --generator the method is respond: leave --method out")
    probe, _, given = (values.get("probe") or "").partition(":")
    if probe != "gpio" or not given:
        raise click.UsageError(
            "--generator needs --probe gpio with the lines that answer, as in gpio:chip=0,in=3,out=2"
        )
    if "pattern=" in given:
        raise click.UsageError("--generator chooses the pattern of edges itself: leave pattern= out")
    if "chip=" not in given:
        raise click.UsageError("--generator needs the times of edges, which sysfs does not tell: say chip=")
    return (name, options), lines


def pair_measurement(asked: RunRequest, board: Board, lines: str | None, values: Mapping[str, Any]) -> RunRequest:
    """The request with what two boards measure together: the length is that of the generator, ``board``.

    values: of the agent's options. UserError without the generator's lines.
    """
    if not lines:
        raise UserError("--generator needs the lines of that board: --generator-lines chip=0,in=5,out=6")
    if "pattern=" in lines:
        raise UserError("--generator chooses the pattern of edges itself: leave pattern= out of --generator-lines")
    run_request.refuse_two_lengths(values)
    empty = {name: () if isinstance(value, tuple) else None for name, value in values.items()}
    own = {name: values[name] for name in OF_BOTH if name in values}
    edges = {"probe": f"gpio:{lines},{PATTERN}", "method": "generate"}
    given = board, run_request.agent_arguments({**empty, **own, **edges})
    # An edge may wait for half a period more than the others, so N samples may take twice as long.
    length_ns = run_request.measured_length_ns(values) * (2 if values["samples"] else 1)
    length_ns += units.parse_duration(values["warmup"] or WARMUP_DEFAULT) + LONGER_NS
    duration_text = units.format_duration(min(length_ns, units.LONGEST_NS))
    answers = {**values, "method": "respond", "samples": None, "duration": duration_text}
    return replace(with_measurement(asked, values), arguments=run_request.agent_arguments(answers), generator=given)


HOST_OPTIONS = (
    *("target", "note", "until_decided", "percentiles", "output", "as_json"),
    *("report", "agent", "shown", "detach"),
)
"""What the host keeps to itself of a request, and the agent does not get; --until-decided is for both."""


def _streamed(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The options of the target with the buffer of --stream. UserError for a target that keeps the record here."""
    given: tuple[tuple[str, str], ...] = values["target_option"]
    if STREAM not in plugins.load_plugin(targets, values["target"]).OPTIONS:
        target = values["target"]
        raise UserError(f"--stream is for boards: the target {target} has no flash that a run would write to")
    return given if STREAM in dict(given) else (*given, (STREAM, USUAL_BUFFER))


def take_run_request(values: dict[str, Any], typed: tuple[str, ...]) -> RunRequest:
    """What the values of the options of ``rtproof run`` ask for. typed: the command, kept with the run."""
    for one, other in ((one, other) for one, others in NOT_TOGETHER.items() for other in others):
        if values[one] and values[other]:
            both = (name.replace("_", "-") for name in (one, other))
            raise click.UsageError("--{} does not go with --{}: leave one of them out".format(*both))
    generator = take_generator(values)
    requirements = take_requirements(values)
    refuse_virtual_time(values)
    if values["profile"] is None and values["abba"] is None:
        refuse_short_gaps(requirements, values)
    take_until_options(values, requirements)
    virtual = values["target"] == VIRTUAL_TARGET
    of_host = {name: values[name] for name in HOST_OPTIONS}
    target_options = _streamed(values) if values["stream"] else values["target_option"]
    asked = RunRequest(typed, requirements=requirements, target_options=target_options, **of_host)
    observer, explain = values.pop("observer"), values.pop("explain")
    for name in {*HOST_OPTIONS, "target_option", "stream"} - {"until_decided"}:
        del values[name]
    asked = take_profile_options(asked, values, observer=bool(observer))
    asked = take_repeat_options(asked, values)
    values = with_trace_options(values, explain, observer, virtual=virtual)
    if asked.sides and asked.shown == run_request.TABLES:
        raise click.UsageError("-v is for a single run: 'rtproof compare FOLDER' prints the tables of several")
    if asked.profile and asked.shown != run_request.SUMMARY:
        raise click.UsageError("-v and -q are for a single run")
    if generator:
        return pair_measurement(asked, *generator, values)
    return asked if asked.profile or asked.sides else with_measurement(asked, values)


def take_repeat_options(asked: RunRequest, values: dict[str, Any]) -> RunRequest:
    """Take the options of several runs out of a command's values; the request with its sides, if there are any."""
    times, pair, seed = values.pop("repeat"), values.pop("abba"), values.pop("order_seed")
    if seed is not None and pair is None:
        raise click.UsageError("--order-seed is for --abba, whose order it draws")
    if times is None and pair is None:
        return asked
    sides = [(name, words, _side_values(name, words, values)) for name, words in zip("AB", pair or (), strict=False)]
    for _, _, of_side in sides or [("", "", values)]:
        refuse_short_gaps(asked.requirements, of_side)
    measured = tuple(replace(with_measurement(asked, each), side=name, words=words) for name, words, each in sides)
    seed = secrets.randbelow(MOST_SEED) if seed is None else seed
    sides_asked = measured or (with_measurement(asked, values),)
    return replace(asked, sides=sides_asked, times=times or USUAL_TIMES, order_seed=seed)


@click.command(add_help_option=False)
@with_options(*AGENT_OPTIONS)
def _side_options(**_values: Any) -> None:
    """The options that one side may have."""


def _side_values(name: str, words: str, common: Mapping[str, Any]) -> dict[str, Any]:
    """The options of one side together with the common ones. Its loads are added to the common loads."""
    try:
        own = _side_options.make_context(name, shlex.split(words)).params
        given = {key: value for key, value in own.items() if value not in (None, False, ())}
        values = {**common, **given, "load": (*common["load"], *given.get("load", ()))}
        run_request.agent_arguments(values)
    except (click.UsageError, UserError, ValueError) as problem:
        said = problem.format_message() if isinstance(problem, click.UsageError) else str(problem)
        hint = f"; {SIDE_OPTIONS_HINT}" if isinstance(problem, click.NoSuchOption) else ""
        raise click.UsageError(f"{name} of --abba, {words!r}: {said.rstrip('.?')}{hint}") from None
    return values


def agent_values(words: Sequence[str]) -> dict[str, Any]:
    """The values of the agent's options that these words give, as those of a command; UsageError as for a command."""
    values: dict[str, Any] = _side_options.make_context("rtproof", list(words)).params
    return values


def take_profile_options(asked: RunRequest, values: dict[str, Any], *, observer: bool) -> RunRequest:
    """Take the options of profiles out of a command's values; the request with its profile, if there is one."""
    name, settings, given = (values.pop(key) for key in ("profile", "settings", "given"))
    if name is None:
        if settings or given:
            raise click.UsageError(f"--{'set' if settings else 'given'} needs a --profile")
        return asked
    run_request.refuse_two_lengths(values)
    options = {key: value for key, value in values.items() if value not in (None, False, ())}
    return replace(asked, profile=name, settings=settings, given=given, options=options, observer=observer)
