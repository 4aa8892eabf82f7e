# SPDX-License-Identifier: Apache-2.0
"""The options that the commands of ``rtproof lab`` share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rtproof.cli import parameter_types, shell_completion
from rtproof.cli.measurement_options import METHOD_OPTION, POLICY_OPTIONS

PATH = click.Path(path_type=Path)
KERNEL_HELP = "NAME of 'lab kernels', or IMAGE[:MODULES]"
LOAD_HELP = "Disturb by this load, such as mmap@0 or dd+net"
BOOT_HELP = "Arguments of the kernel, as one word"
PREEMPT_HELP = "Preemption model"

ONE_CELL_OPTIONS = (
    click.option("--kernel", required=True, metavar="NAME|IMAGE", help=f"{KERNEL_HELP}."),
    click.option("--preempt", type=click.Choice(["none", "voluntary", "full", "lazy"]), help=f"{PREEMPT_HELP}."),
    click.option(
        "--load",
        default="idle",
        metavar="LOAD",
        shell_complete=shell_completion.complete_loads,
        help=f"{LOAD_HELP}.",
    ),
)
"""Of commands that measure one kernel under one load."""


def of_one_cell(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of such a command as those of ``rtproof lab compare``, which takes several of each."""
    preempts = [values["preempt"]] if values["preempt"] else []
    return {
        **values,
        "kernels": [values["kernel"]],
        "preempts": preempts,
        "boots": [values["boot"]],
        "loads": [values["load"]],
    }


LAB_MEASUREMENT_OPTIONS = (
    click.option("--probe", default="timer", metavar="PROBE", help="What to measure (default timer)."),
    METHOD_OPTION,
    click.option(
        "--period", type=parameter_types.LENGTH, default="1ms", help="Time between activations (default 1ms)."
    ),
    click.option(
        "--duration",
        type=parameter_types.LENGTH,
        default="2s",
        help="How long to measure (default 2s, virtual time).",
    ),
    click.option(
        "--warmup", type=parameter_types.SPAN, default="1s", help="Run this long before measuring (default 1s)."
    ),
    *POLICY_OPTIONS,
    click.option(
        "--module", type=PATH, multiple=True, metavar="FILE", help="Load this kernel module first; repeatable."
    ),
)


def _named_qemu(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """The text. BadParameter for an empty one, as of a shell's variable that is not set."""
    if text is not None and not text.strip():
        raise click.BadParameter("it is empty: give system, fetched, or a path", ctx, param)
    return text


PROCESSOR_OPTIONS = (
    click.option(
        "--processors",
        "cpus",
        type=click.IntRange(1, 8),
        default=1,
        metavar="N",
        help="Processors of the guest (default 1).",
    ),
    click.option(
        "--measured-cpus",
        metavar="CPUS",
        help="Measure on these CPUs of the guest.",
    ),
    click.option(
        "--pace",
        "pace_us",
        type=click.IntRange(1, 1000),
        metavar="US",
        help="Longest turn of a processor (default 4).",
    ),
    click.option(
        "--soakers/--no-soakers",
        default=None,
        help="Keep all processors busy (default).",
    ),
    click.option(
        "--qemu",
        metavar="system|fetched|PATH",
        callback=_named_qemu,
        shell_complete=shell_completion.complete_emulators,
        help="The QEMU to use (default: one that fits).",
    ),
)
"""What the guest's processors are. With one processor, nothing of it changes a guest but another QEMU."""


def _shell_lines(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The lines that are not blank. BadParameter for one that cannot be written to the guest's script."""
    for text in texts:
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise click.BadParameter("it is not UTF-8", ctx, param)
    return tuple(text for text in texts if text.strip())


SETUP_OPTION = click.option(
    "--setup",
    multiple=True,
    callback=_shell_lines,
    metavar="'COMMANDS'",
    help="Run these in the guest's shell first; repeatable.",
)

JOBS_OPTION = click.option(
    "--jobs",
    type=parameter_types.count_up_to(1024),
    metavar="N",
    help="Guests at once (default: one per CPU).",
)

LAB_RUN_OPTIONS = (
    click.option(
        "--shifts",
        type=parameter_types.count_up_to(1000),
        default=4,
        metavar="N",
        help="Measure each cell N times (default 4).",
    ),
    JOBS_OPTION,
)

LAB_OUTPUT_OPTIONS = (
    parameter_types.folder_option("all results"),
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON."),
)
