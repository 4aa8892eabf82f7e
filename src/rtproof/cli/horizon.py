# SPDX-License-Identifier: Apache-2.0
"""How far a forecast looks, on the command line."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof.cli import types

if TYPE_CHECKING:
    from rtproof.analysis.forecast.model import Horizon

Command = TypeVar("Command", bound=Callable[..., Any])

OPTIONS = (
    click.option(
        "--horizon", type=types.LIMIT_NS, help="How far a forecast looks, such as 30d (default: 10 times the run)."
    ),
    click.option("--far", is_flag=True, help="Let it look up to 100 times as far as the run, with a warning."),
)


def horizon_options(command: Command) -> Command:
    """Give a command the options of a forecast."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def take_horizon(values: dict[str, Any]) -> "Horizon | None":
    """Take the options of a forecast out of a command's values; None if the usual is wanted."""
    from rtproof.analysis.forecast.model import Horizon

    horizon_ns, far = values.pop("horizon"), values.pop("far")
    if far and horizon_ns is None:
        raise click.UsageError("--far needs a --horizon to look at")
    return None if horizon_ns is None else Horizon(horizon_ns, far)
