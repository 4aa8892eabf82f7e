# SPDX-License-Identifier: Apache-2.0
"""What the values of options mean: limits, how long to measure, a series of runs, a profile.

A function ``take_...`` takes its options out of a command's values; what is left at the end goes to the agent.
UsageError for options that do not go together. A command imports this module in its body, because it takes longer to
import than a shell's completion may last. Functions import what judges: one run begins without it.
"""

import secrets
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from rtproof.agents import PERIOD_DEFAULT
from rtproof.cli.experiment_options import MOST_SEED, USUAL_TIMES
from rtproof.cli.measurement_options import AGENT_OPTIONS
from rtproof.cli.parameter_types import with_options
from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, limit_value
from rtproof.experiment import run_request, two_boards
from rtproof.experiment.run_request import (
    Board,
    ExperimentRequest,
    Measurement,
    ProfileRequest,
    SeriesRequest,
    SeriesSide,
    has_outside_events,
    why_gap_too_short,
)
from rtproof.record.requirement import Requirement, rated

if TYPE_CHECKING:
    from rtproof.tail.forecast_model import ForecastHorizon

PLAIN_RUNS = "--repeat and --abba are for plain runs: leave {option} out"
STREAM_FETCHES = "--stream fetches one plain run while it is measured: leave {option} out"
UNTIL = "{option} {why}, so that --until-decided does not go with it"
PAIR = "{why}: leave {option} out, or --generator"
CONFLICTS = (
    ("until_decided", "profile", "measures one cell after the other for lengths of its own", UNTIL),
    ("until_decided", "observer", "needs a length that is fixed beforehand", UNTIL),
    ("until_decided", "repeat", "needs runs of equal length", UNTIL),
    ("until_decided", "abba", "needs runs of equal length", UNTIL),
    *(("generator", name, why, PAIR) for name, why in two_boards.REFUSED.items()),
    *((series, name, "", PLAIN_RUNS) for series in ("repeat", "abba") for name in ("profile", "observer", "explain")),
    ("explain", "profile", "", "--explain is for one run and not for a --profile: say --probe and its options"),
    *(
        ("stream", name, "", STREAM_FETCHES)
        for name in ("profile", "repeat", "abba", "detach", "generator", "explain", "observer", "trace")
    ),
)
"""Options of which the first does not go with the second, why, and the sentence that says so."""

TURNS = 40
"""Blocks by turns at the beginning of each explained run: ten sets of four, where the interval needs eight.

More would switch the tracepoints more often, and each switch disturbs.
"""
TURNS_PART = 5
"""The turns take no more than one part of so many of the run; half of them are without a trace."""
LONGEST_TURN_NS = 500_000_000
SHORTEST_PART = 2
"""A short run may give up to one part of so many, so that its turns are long enough for an interval."""
TURNS_OPTION = "turns="
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


def take_horizon(values: dict[str, Any]) -> "ForecastHorizon | None":
    """Take the options of a forecast out of a command's values; None if the usual is wanted."""
    horizon_ns, far = values.pop("horizon"), values.pop("far")
    if far and horizon_ns is None:
        raise click.UsageError("--far needs a --horizon")
    from rtproof.tail.forecast_model import ForecastHorizon

    return None if horizon_ns is None else ForecastHorizon(horizon_ns, far)


def take_until_options(values: dict[str, Any], requirements: Sequence[Requirement]) -> None:
    """Take ``--max-duration`` out of a command's values and set the longest length of a run --until-decided.

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
    values["duration"] = longest or usual_longest_run(requirements)
    click.echo(until_announcement(requirements, values["duration"]), err=True)


def refuse_virtual_time(values: Mapping[str, Any]) -> None:
    """UsageError where a guest in virtual time is to run until it is decided: no length of it decides a limit."""
    mode = dict(values["target_option"]).get("mode", "virtual-time")
    if values["until_decided"] and values["target"] == "qemu" and mode == "virtual-time":
        raise click.UsageError(
            "--until-decided does not go with virtual time: such a run is deterministic, so that no length of it "
            "proves a limit; give --duration, or --target-option mode=wall-clock"
        )


def usual_longest_run(requirements: Sequence[Requirement]) -> str:
    """The time that PROVEN takes with ``MOST_EPISODES`` episodes, rounded up to whole seconds."""
    from rtproof.judge.watch import MOST_EPISODES, still_needed_ns

    second_ns = units.UNITS_NS["s"]
    length_ns = -(-still_needed_ns(requirements, MOST_EPISODES) // second_ns) * second_ns
    return units.format_duration(min(length_ns, units.LONGEST_NS // second_ns * second_ns))


def until_announcement(requirements: Sequence[Requirement], longest: str) -> str:
    """The sentence that says how long the run may take, before it begins."""
    from rtproof.judge.analysis_model import State
    from rtproof.judge.watch import still_needed_ns

    longest_ns = units.parse_duration(longest)
    enough = longest_ns >= still_needed_ns(requirements, 0)
    plain, sharing = [each for each in requirements if each.plain], rated(requirements)
    exceeded, refuted = (" or ".join(limit_value(each.limit_ns) for each in some) for some in (plain, sharing))
    slowest_ns = max((each.shows_ns for each in plain), default=0)
    if not sharing:
        shows = f", which rules out exceedances more often than once per {duration(slowest_ns)}" if enough else ""
        return f"measures until {exceeded} is exceeded, or for {duration(longest_ns, up=True)}{shows}"
    states = (State.HELD, plain), (State.PROVEN, sharing)
    short = [state.value for state, some in states if longest_ns < still_needed_ns(some, 0)]
    none, one, two = (duration(still_needed_ns(sharing, episodes), up=True) for episodes in range(3))
    proven = f"PROVEN after {none} without an episode, {one} with 1, {two} with 2"
    too_short = f", which is too short for {' and '.join(short)}" if short else ""
    at_most = f"for {duration(longest_ns)} at most{too_short}"
    if not plain:
        return f"measures until {refuted} is REFUTED or PROVEN: {proven}; {at_most}"
    held_after = duration(still_needed_ns(plain, 0), up=True)
    held = f"HELD after {held_after}, which rules out exceedances more often than once per {duration(slowest_ns)}"
    return (
        f"measures until {exceeded} is exceeded or {refuted} is REFUTED, else until {exceeded} is HELD and {refuted} "
        f"is PROVEN: {held}; {proven}; {at_most}"
    )


def with_trace_options(
    values: dict[str, Any], explain: str | None, observer: bool | None, *, virtual: bool
) -> dict[str, Any]:
    """The options of a run with what --explain and --observer mean. None: the user said nothing of it."""
    if explain is not None:
        values = with_explain(values, explain)
    if observer:
        length_ns = run_request.measured_length_ns(values)
        return {**values, **run_request.observer_options(values["trace"], values["trace_blocks"], length_ns)}
    return with_turns(values, virtual) if explain is not None and observer is None else values


def with_turns(values: dict[str, Any], virtual: bool) -> dict[str, Any]:
    """The options of an explained run whose beginning has turns with and without tracing, to measure what it adds.

    The run gets no longer. One that is too short for the turns has none, and neither has one that has turns already.
    virtual: the target has virtual time.
    """
    length_ns = run_request.measured_length_ns(values)
    turn_ns = max(run_request.SHORTEST_BLOCK_NS, min(LONGEST_TURN_NS, length_ns // TURNS_PART // TURNS))
    if values["trace_blocks"] or turn_ns * TURNS > length_ns // SHORTEST_PART:
        return values
    seed = () if virtual or run_request.SEED_OPTION in values["trace"] else (run_request.drawn_seed(),)
    words = ",".join((values["trace"], f"{TURNS_OPTION}{TURNS}", *seed))
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


def refuse_conflicts(values: Mapping[str, Any]) -> None:
    """UsageError for two options that do not go together."""
    for one, other, why, sentence in CONFLICTS:
        if values[one] and values[other]:
            raise click.UsageError(sentence.format(option=f"--{other.replace('_', '-')}", why=why))


def take_generator(values: dict[str, Any]) -> tuple[Board, str | None] | None:
    """Take the board that gives edges, and its lines, out of a command's values; None without one.

    UsageError for options that do not go with it.
    """
    name, options, lines = (values.pop(key) for key in ("generator", "generator_option", "generator_lines"))
    if name is None:
        if options or lines:
            raise click.UsageError("--generator-option and --generator-lines need a --generator")
        return None
    two_boards.refuse_others(values)
    return (name, options), lines


HOST_OPTIONS = (
    *("target", "note", "until_decided", "percentiles", "output", "as_json"),
    *("report", "agent", "shown", "detach"),
)
"""What the host keeps to itself of a request, and the agent does not get; --until-decided is for both."""


def take_run_request(
    values: dict[str, Any], typed: tuple[str, ...]
) -> tuple[ExperimentRequest, Measurement | SeriesRequest | ProfileRequest]:
    """What the values of the options of ``rtproof run`` ask for. typed: the command, kept with the run."""
    refuse_conflicts(values)
    generator = take_generator(values)
    requirements = take_requirements(values)
    refuse_virtual_time(values)
    if values["profile"] is None and values["abba"] is None:
        refuse_short_gaps(requirements, values)
    take_until_options(values, requirements)
    virtual = values["target"] == VIRTUAL_TARGET
    of_host = {name: values[name] for name in HOST_OPTIONS}
    asked = ExperimentRequest(typed, requirements=requirements, target_options=values["target_option"], **of_host)
    if values["stream"]:
        asked = run_request.streamed(asked)
    observer, explain = values.pop("observer"), values.pop("explain")
    for name in {*HOST_OPTIONS, "target_option", "stream"} - {"until_decided"}:
        del values[name]
    profile = take_profile_options(values, observer=bool(observer))
    series = take_repeat_options(values, requirements)
    values = with_trace_options(values, explain, observer, virtual=virtual)
    refuse_for_several(asked, profile=bool(profile), series=bool(series))
    if generator:
        return asked, two_boards.pair_measurement(*generator, values)
    return asked, profile or series or run_request.measurement(values)


def refuse_for_several(asked: ExperimentRequest, *, profile: bool, series: bool) -> None:
    """UsageError for options that choose what one run prints, where several are measured."""
    if series and asked.shown == run_request.TABLES:
        raise click.UsageError("-v is for a single run: 'rtproof compare FOLDER' prints the tables of several")
    if profile and asked.shown != run_request.SUMMARY:
        raise click.UsageError("-v and -q are for a single run")


def take_repeat_options(values: dict[str, Any], requirements: tuple[Requirement, ...]) -> SeriesRequest | None:
    """Take the options of several runs out of a command's values; None if one run is asked."""
    times, pair, seed = values.pop("repeat"), values.pop("abba"), values.pop("order_seed")
    if seed is not None and pair is None:
        raise click.UsageError("--order-seed is for --abba, whose order it draws")
    if times is None and pair is None:
        return None
    sides = [(name, words, _side_values(name, words, values)) for name, words in zip("AB", pair or (), strict=False)]
    for _, _, of_side in sides or [("", "", values)]:
        refuse_short_gaps(requirements, of_side)
    measured = tuple(SeriesSide(name, words, run_request.measurement(each)) for name, words, each in sides)
    sides_measured = measured or (SeriesSide("", "", run_request.measurement(values)),)
    return SeriesRequest(times or USUAL_TIMES, sides_measured, secrets.randbelow(MOST_SEED) if seed is None else seed)


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
        run_request.measurement(values)
    except (click.UsageError, UserError, ValueError) as problem:
        said = problem.format_message() if isinstance(problem, click.UsageError) else str(problem)
        hint = f"; {SIDE_OPTIONS_HINT}" if isinstance(problem, click.NoSuchOption) else ""
        raise click.UsageError(f"{name} of --abba, {words!r}: {said.rstrip('.?')}{hint}") from None
    return values


def agent_values(words: Sequence[str]) -> dict[str, Any]:
    """The values of the agent's options that these words give, as those of a command; UsageError as for a command."""
    values: dict[str, Any] = _side_options.make_context("rtproof", list(words)).params
    return values


def take_profile_options(values: dict[str, Any], *, observer: bool) -> ProfileRequest | None:
    """Take the options of profiles out of a command's values; None if there is no profile."""
    name, settings, given = (values.pop(key) for key in ("profile", "settings", "given"))
    if name is None and (settings or given):
        raise click.UsageError(f"--{'set' if settings else 'given'} needs a --profile")
    if name is None:
        return None
    run_request.refuse_two_lengths(values)
    options = {key: value for key, value in values.items() if value not in (None, False, ())}
    return ProfileRequest(name, settings, given, options, observer)
