# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab profile``: an article's experiment on real kernels in virtual time."""

from typing import Any

import click

from rtproof.cli import lab_options, parameter_types, shell_completion
from rtproof.cli.experiment_options import SET_OPTION
from rtproof.cli.grouped_help import GroupedCommand
from rtproof.cli.lab_options import JOBS_OPTION, LAB_OUTPUT_OPTIONS, PROCESSOR_OPTIONS
from rtproof.cli.measurement_options import SAMPLES_OPTION, TRACE_OPTION
from rtproof.cli.parameter_types import with_options

KERNELS = ("debian-6.1-rt", "debian-6.1")
DURATION = "5s"


@click.command("profile", cls=GroupedCommand)
@click.argument("name", metavar="NAME|FILE", shell_complete=shell_completion.complete_profiles)
@with_options(
    click.option(
        "--kernel",
        "kernels",
        multiple=True,
        metavar="NAME|IMAGE",
        default=KERNELS,
        help=f"{lab_options.KERNEL_HELP}; repeatable.",
    ),
    click.option(
        "--preempt",
        "preempts",
        multiple=True,
        type=click.Choice(["none", "voluntary", "full", "lazy"]),
        help=f"{lab_options.PREEMPT_HELP}; repeatable.",
    ),
    click.option(
        "--duration",
        type=parameter_types.LENGTH,
        help=f"How long to measure (default {DURATION}, virtual time).",
    ),
    SAMPLES_OPTION,
    SET_OPTION,
    click.option(
        "--load",
        multiple=True,
        metavar="LOAD",
        shell_complete=shell_completion.complete_loads,
        help="Disturb by this load, in every measurement; repeatable.",
    ),
    TRACE_OPTION,
    click.option(
        "--module",
        type=lab_options.PATH,
        multiple=True,
        metavar="FILE",
        help="rtproof.ko for an IMAGE; repeatable.",
    ),
    click.option(
        "--explain",
        is_flag=True,
        help="Say why each kernel's largest latency was late.",
    ),
    *PROCESSOR_OPTIONS,
    JOBS_OPTION,
    *LAB_OUTPUT_OPTIONS,
)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Repeat an article's experiment on kernels in guests.

    A profile is a list of measurements, as the article made them. The lab makes all of them on every kernel, and shows
    the article's figures beside its own. The lab's figures count instructions: compare the order of the kernels with
    the article, not the values. Finished measurements are kept and not run again. If a guest lacks hardware of the
    article, something else takes its place, and the page says so.

    With --processors the guests have several processors. --measured-cpus is for all measurements of the profile that
    name no CPUs themselves.

    Exit codes: 2 if a measurement failed. Otherwise, if the profile has a limit, the worst verdict decides: 3 INVALID,
    1 EXCEEDED or REFUTED, 4 UNDECIDED. In all other cases 0.

    \b
    rtproof lab profile akamina --duration 20s
    """
    from rtproof.experiment import guest_campaign

    typed = ctx.obj or ("rtproof", "lab", "profile", values["name"])
    ctx.exit(guest_campaign.run_on_kernels(values, DURATION, typed))
