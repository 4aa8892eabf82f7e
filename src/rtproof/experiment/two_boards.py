# SPDX-License-Identifier: Apache-2.0
"""What two boards are asked for when one gives edges and the other answers them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from rtproof.agents import DURATION_DEFAULT, PERIOD_DEFAULT, WARMUP_DEFAULT
from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.experiment.run_request import Board, Measurement, agent_arguments, measurement, refuse_two_lengths

PROBE = "gpio"
PATTERN = "pattern=yes"
"""Of the generator: edges unevenly apart, so that they keep no step with a timer of the responder."""
LONGER_NS = 600 * units.UNITS_NS["s"]
"""The responder is asked for so much more than the generator, and is told to finish when that has ended.

If this host is gone by then, the responder ends by itself after this time.
"""
REFUSED = {
    "detach": "--detach leaves one run on one board, and these are two",
    "profile": "--profile measures one board",
    "repeat": "--repeat measures one board",
    "abba": "--abba measures one board",
    "until_decided": "--until-decided ends one agent, and these are two",
    "explain": "--explain needs the whole time of an activation in one trace, and here two kernels have it",
    "observer": "--observer compares activations of one board",
    "trace": "--trace follows activations of one board",
}
"""Options that do not go with ``--generator``, and why."""
OF_BOTH = ("period", "warmup", "checkpoint")
"""Options of the agent that the generator gets as well."""
OF_GENERATOR = ("duration", "samples")


def refuse_others(values: Mapping[str, Any]) -> None:
    """UsageError for what a run of two boards cannot be."""
    if values.get("method") not in (None, "respond"):
        raise click.UsageError("with --generator the method is respond: leave --method out")
    probe, _, options = (values.get("probe") or "").partition(":")
    if probe != PROBE or not options:
        raise click.UsageError(
            "--generator needs --probe gpio with the lines that answer, as in gpio:chip=0,in=3,out=2"
        )
    if "pattern=" in options:
        raise click.UsageError("--generator chooses the pattern of edges itself: leave pattern= out")
    if "chip=" not in options:
        raise click.UsageError("--generator needs the times of edges, which sysfs does not tell: say chip=")


def responder_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the board that answers: those of the user, for longer than the generator."""
    refuse_two_lengths(values)
    length_ns = _longest_ns(values) + units.parse_duration(values["warmup"] or WARMUP_DEFAULT) + LONGER_NS
    return {
        **values,
        "method": "respond",
        "samples": None,
        "duration": units.format_duration(min(length_ns, units.LONGEST_NS)),
    }


def _longest_ns(values: Mapping[str, Any]) -> int:
    """How long the generator takes at most, if each edge is answered: an edge may wait for half a period more."""
    if values["samples"]:
        return 2 * int(values["samples"]) * units.parse_duration(values["period"] or PERIOD_DEFAULT)
    return units.parse_duration(values["duration"] or DURATION_DEFAULT)


def pair_measurement(board: Board, lines: str | None, values: Mapping[str, Any]) -> Measurement:
    """What two boards measure together: the length is that of the generator. board: that one. values: of the agent.

    UserError without the generator's lines.
    """
    if not lines:
        raise UserError("--generator needs the lines of that board: --generator-lines chip=0,in=5,out=6")
    if "pattern=" in lines:
        raise UserError("--generator chooses the pattern of edges itself: leave pattern= out of --generator-lines")
    empty = {name: () if isinstance(value, tuple) else None for name, value in values.items()}
    own = {name: values[name] for name in (*OF_BOTH, *OF_GENERATOR) if name in values}
    edges = {"probe": f"{PROBE}:{lines},{PATTERN}", "method": "generate"}
    arguments = measurement(responder_values(values)).arguments
    given = board, agent_arguments({**empty, **own, **edges})
    return replace(measurement(values), arguments=arguments, generator=given)
