# SPDX-License-Identifier: Apache-2.0
"""The requirement on the command line: latency exceeds LIMIT at most once per T, at a confidence."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof.cli import types

if TYPE_CHECKING:
    from rtproof.analysis.model import Requirement

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option("--limit", type=types.LIMIT_NS, help="Latency that must not be exceeded, such as 500us."),
    click.option("--at-most", type=types.AT_MOST_NS, help="... more often than once per this time (default 1/h)."),
    click.option("--confidence", type=types.CONFIDENCE, help="Confidence of the verdict (default 0.95)."),
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
    """Give a command the options of a requirement."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def take_requirement(values: dict[str, Any]) -> "Requirement | None":
    """Take the options of a requirement out of a command's values; None if no limit is asked."""
    from rtproof.analysis.model import Requirement

    limit_ns = values.pop("limit")
    rest = {"at_most_ns": values.pop("at_most"), "confidence": values.pop("confidence")}
    given = {name: value for name, value in rest.items() if value is not None}
    if limit_ns is None and given:
        raise click.UsageError("--at-most and --confidence need a --limit to speak of")
    return Requirement(limit_ns, **given) if limit_ns is not None else None
