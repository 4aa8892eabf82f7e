# SPDX-License-Identifier: Apache-2.0
"""What the user asks for: one run, a series of runs, or a profile; and the agent's arguments that follow from it."""

import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from rtproof.agents import DURATION_DEFAULT, PERIOD_DEFAULT, WARMUP_DEFAULT
from rtproof.agents.build import probe_due_from_outside
from rtproof.core import files, units
from rtproof.core.errors import UserError
from rtproof.core.plugins import option_words
from rtproof.core.units import NEVER
from rtproof.record.requirement import Requirement, rated
from rtproof.run.live_view import clock_text

QEMU_TARGET = "qemu"
SUMMARY, TABLES, VERDICT_ONLY = "summary", "tables", "verdict"
"""What a single run prints when it has ended."""


Board = tuple[str, tuple[tuple[str, str], ...]]
"""The name of a target, and its options."""


@dataclass(frozen=True)
class RunRequest:
    """What the user asks of a run, of a series of runs, or of a profile.

    command: as typed; target: name of its plug-in, and target_options for it; percentiles: to show besides the usual
    ones; output: the new folder, where the user names one; report: whether to write reports; agent: a program file to
    use in place of the agent that fits the target. shown: SUMMARY, TABLES or VERDICT_ONLY. detach: leave the run on its
    board.

    arguments: the agent's, without those of the limits. length: for people, "20 s" or "5,000 activations". generator:
    the board that gives the edges, and what its agent is asked for. when_traced: called once the trace is on, of a run
    that keeps the whole trace.

    sides: of a series, each measured so many times; order_seed draws the order of two. side, words: of a side of two,
    A or B, and its own options as typed. profile: its name; settings, given, observer as the user gave them, and the
    options of the agent that stand on the command line.
    """

    command: tuple[str, ...]
    target: str
    requirements: tuple[Requirement, ...] = ()
    note: str = ""
    until_decided: bool = False
    target_options: tuple[tuple[str, str], ...] = ()
    percentiles: tuple[float, ...] = ()
    output: Path | None = None
    as_json: bool = False
    report: bool = True
    agent: Path | None = None
    shown: str = SUMMARY
    detach: bool = False
    arguments: tuple[str, ...] = ()
    probe: str = ""
    length: str = ""
    length_ns: int = 0
    warmup_ns: int = 0
    when_traced: Callable[[], None] = lambda: None
    generator: tuple[Board, tuple[str, ...]] | None = None
    sides: "tuple[RunRequest, ...]" = ()
    times: int = 1
    order_seed: int = 0
    side: str = ""
    words: str = ""
    profile: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    given: tuple[Path, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    observer: bool = False


TOOL_PROBE = "exec"
TOLD_AT_THE_END = {
    TOOL_PROBE: "another tool measures; its figures come at the end",
    "foreign": "the kernel is traced; latencies come at the end",
}
"""What is shown while a probe measures whose agent has no latencies of its own."""


def probe_name(probe: object) -> str:
    """The name in a value of --probe; "" if none is given."""
    return str(probe or "").partition(":")[0]


def with_measurement(asked: RunRequest, values: Mapping[str, Any], more: tuple[str, ...] = ()) -> RunRequest:
    """The request with what the options of a command ask the agent for. UserError or UsageError for what goes wrong.

    more: further words for the agent.
    """
    length_ns = measured_length_ns(values)
    warmup = "0s" if probe_name(values["probe"]) == TOOL_PROBE else values["warmup"] or WARMUP_DEFAULT
    return replace(
        asked,
        arguments=(*agent_arguments(values), *more),
        probe=values["probe"] or "",
        length=f"{values['samples']:,} activations" if values["samples"] else clock_text(length_ns),
        length_ns=length_ns,
        warmup_ns=units.parse_duration(warmup),
    )


OF_RATE = {"gap_ns": "--gap", "longest_ns": "--longest", "bunches": "--bunches"}
"""What means nothing for a limit that is never to be exceeded."""
MOST_LIMITS = 8
"""The agent can watch this many limits. Each of several limits needs more evidence than a single one."""


def requirements_of_limits(
    limits_ns: Sequence[int], at_most_ns: Sequence[int], more: Mapping[str, Any]
) -> tuple[Requirement, ...]:
    """The requirements of some limits. at_most_ns: none, one for all limits, or one for each; NEVER: never exceeded.

    more: further fields of Requirement, for all of them.

    UserError for limits that cannot be judged together, or one of which cannot be judged at all.
    """
    if len(limits_ns) > MOST_LIMITS:
        raise UserError(f"{len(limits_ns)} limits are given, and at most {MOST_LIMITS} can be judged in one run")
    if len(at_most_ns) not in (0, 1, len(limits_ns)):
        given_times = f"--at-most is given {len(at_most_ns)} times for {len(limits_ns)} limits"
        raise UserError(f"{given_times}: give it once, or once for each limit")
    times = tuple(at_most_ns) * len(limits_ns) if len(at_most_ns) == 1 else at_most_ns
    times = times or (NEVER,) * len(limits_ns)
    if NEVER in times and (of_rate := [name for name in OF_RATE if name in more]):
        raise UserError(f"{OF_RATE[of_rate[0]]} needs --at-most: a --limit alone is never to be exceeded")
    if any(time != NEVER for time in times) and "shows_ns" in more:
        raise UserError("--shows is for a limit without --at-most")
    found = tuple(Requirement(*each, **more) for each in zip(limits_ns, times, strict=True))
    for each in found:
        if reason := why_not_judgeable(each):
            raise UserError(reason)
    if len(set(found)) < len(found):
        raise UserError("a --limit is given twice: give each limit once")
    return found


def program_name() -> str:
    """The command for the user's next line: rtproof, or where it lies if a shell would not find it."""
    called = Path(sys.argv[0])
    return "rtproof" if called.name != "rtproof" or shutil.which("rtproof") else shlex.quote(str(called))


INTERRUPTED_CODE = 130


def refuse_two_lengths(values: Mapping[str, Any]) -> None:
    """UsageError where a command's values say in two ways how long it shall measure."""
    if values["duration"] and values["samples"]:
        raise click.UsageError("--duration and --samples exclude each other")


def agent_arguments(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The agent's arguments for what the user gave, and always a length."""
    refuse_two_lengths(values)
    if not values["samples"]:
        values = {**values, "duration": values["duration"] or DURATION_DEFAULT}
    if probe_name(values["probe"]) == TOOL_PROBE:
        from rtproof.experiment import other_tools

        values = other_tools.with_tool_command(values)
    own = {name: value for name, value in values.items() if name != "load"}
    words = [word for name, value in own.items() for word in option_words("--" + name.replace("_", "-"), value)]
    if not values.get("load"):
        return tuple(words)
    from rtproof import loads

    return (*words, *loads.resolve(values["load"]))


def measured_length_ns(values: Mapping[str, Any]) -> int:
    if values["samples"]:
        return int(values["samples"]) * units.parse_duration(values["period"] or PERIOD_DEFAULT)
    return units.parse_duration(values["duration"] or DURATION_DEFAULT)


OBSERVER_BLOCKS = 80
"""Blocks that ``--observer`` aims at: enough for an interval, each long enough to hold many activations."""
SHORTEST_BLOCK_NS = 100_000_000
LONGEST_BLOCK_NS = 2_000_000_000
SEED_OPTION = "seed="
"""The option of ``--trace`` with the number from which the agent makes the order of the turns."""


def drawn_seed() -> str:
    return f"{SEED_OPTION}{secrets.randbelow(1 << 32)}"


def observer_options(trace: str | None, blocks: str | None, length_ns: int) -> dict[str, str]:
    """The options ``trace`` and ``trace_blocks`` of a run of this length with tracing on and off by turns.

    trace, blocks: what the user gave. Chance draws the order here. A load that has turns of its own, and begins with
    the run, would meet a fixed order in the same way each time.
    """
    given = [option for option in (trace or "on").split(",") if option != "on"]
    seed = [] if any(option.startswith(SEED_OPTION) for option in given) else [drawn_seed()]
    block_ns = max(SHORTEST_BLOCK_NS, min(LONGEST_BLOCK_NS, length_ns // OBSERVER_BLOCKS))
    whole_ms = units.format_duration(block_ns // 1_000_000 * 1_000_000)
    return {"trace": ",".join((*given, *seed)), "trace_blocks": blocks or whole_ms}


def why_not_judgeable(asked: Requirement) -> str | None:
    """Why such a claim can't be judged in a useful time, or never be broken; None if it can."""
    if asked.plain:
        return None
    gap_ns, longest_ns, time_ns = asked.gap_ns, asked.longest_ns, asked.at_most_ns
    gap, longest, time = (units.format_duration(ns) for ns in (gap_ns, longest_ns, time_ns))
    most_gap, most_longest = (units.format_duration(ns) for ns in (time_ns // 10, time_ns // 2 - gap_ns))
    if gap_ns > time_ns // 10:
        return (
            f"with --gap {gap} twice as many episodes as --at-most 1/{time} take too long to show: "
            f"give a gap of {most_gap} or less, or leave it out"
        )
    if longest_ns < gap_ns:
        return f"--longest {longest} is shorter than the gap of {gap}: give a longer one"
    if gap_ns + longest_ns > time_ns // 2:
        return (
            f"with a gap of {gap} and --longest {longest}, episodes may go on nearly all the time and still come only "
            f"once per {time}: give --longest {most_longest} or less, or a shorter --gap"
        )
    return None


def has_outside_events(options: Mapping[str, Any]) -> bool:
    """Whether what gives the probe its due times is not rtproof: it may pause, and nothing is late then."""
    return probe_due_from_outside(probe_name(options.get("probe")))


def why_gap_too_short(asked: tuple[Requirement, ...], period_ns: int) -> str | None:
    """Why a gap is too short for this period; None if none is."""
    for each in rated(asked):
        if each.gap_ns < 2 * period_ns:
            gap, two = (units.format_duration(ns) for ns in (each.gap_ns, 2 * period_ns))
            why = "so each late activation would be an episode"
            return f"the gap of {gap} is shorter than two periods ({two}), {why}: give --gap {two} or more"
    return None


def new_folder(wanted: Path | None, kind: str) -> Path:
    """Where a result goes; UserError if there is anything already."""
    folder = wanted or Path("runs") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{kind}"
    files.refuse_existing(folder)
    return folder
