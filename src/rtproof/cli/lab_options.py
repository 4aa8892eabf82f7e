# SPDX-License-Identifier: Apache-2.0
"""The options that the commands of ``rtproof lab`` share."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof.cli import parameter_types, shell_completion
from rtproof.core import units

if TYPE_CHECKING:
    from rtproof.lab.guest_cell import CellSetting


Command = TypeVar("Command", bound=Callable[..., Any])
PATH = click.Path(path_type=Path)
KERNEL_HELP = "A name of 'rtproof lab kernels', or an image of your own: IMAGE or IMAGE:MODULES (lib/modules/RELEASE)."
LOAD_HELP = "idle, or a load without programs, with options (dd:mib=8); + joins several."
BOOT_HELP = "Further arguments of the kernel, in one word."

LAB_MEASUREMENT_OPTIONS = (
    click.option("--probe", default="timer", metavar="NAME", help="What is measured (default timer)."),
    click.option(
        "--method", metavar="NAME", shell_complete=shell_completion.complete_methods, help="How the probe waits."
    ),
    click.option(
        "--period", type=parameter_types.LENGTH, default="1ms", help="Time between activations (default 1ms)."
    ),
    click.option(
        "--duration", type=parameter_types.LENGTH, default="2s", help="How long to measure, virtual (default 2s)."
    ),
    click.option(
        "--warmup", type=parameter_types.SPAN, default="1s", help="Run so long before measuring begins (default 1s)."
    ),
    click.option(
        "--policy", type=click.Choice(["fifo", "rr", "other", "deadline"]), help="Scheduling policy (default fifo)."
    ),
    click.option(
        "--priority", type=parameter_types.count_up_to(99), metavar="N", help="Priority of fifo and rr (default 80)."
    ),
    click.option("--module", type=PATH, multiple=True, metavar="FILE", help="A module to load first; repeatable."),
)
JOBS_OPTION = click.option(
    "--jobs", type=parameter_types.count_up_to(1024), metavar="N", help="Guests at once (default: one per CPU)."
)
LAB_RUN_OPTIONS = (
    click.option(
        "--shifts",
        type=parameter_types.count_up_to(1000),
        default=1,
        metavar="N",
        help="Measure each cell N times, begun at different moments (default 1).",
    ),
    JOBS_OPTION,
)
LAB_OUTPUT_OPTIONS = (
    click.option("--output", type=PATH, metavar="FOLDER", help="New folder for all of it (default one in runs)."),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)


def with_options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Give a command several options, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def take_cell_setting(values: dict[str, Any]) -> "CellSetting":
    """Take the options of MEASURING, but the modules, out of a command's values."""
    from rtproof.lab.guest_cell import CellSetting

    further = {name: values.pop(name) for name in ("method", "policy", "priority")}
    more = tuple(word for name, value in further.items() if value for word in (f"--{name}", str(value)))
    period_ns, duration_ns, warmup_ns = (
        units.parse_duration(values.pop(name)) for name in ("period", "duration", "warmup")
    )
    return CellSetting(values.pop("probe"), period_ns, duration_ns, warmup_ns, more)
