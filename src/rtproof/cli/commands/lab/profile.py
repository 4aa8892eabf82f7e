# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab profile``: an article's experiment on real kernels in virtual time."""

from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import GroupedCommand, option, with_options

DURATION = "5s"


@click.command("profile", cls=GroupedCommand)
@click.argument("name", metavar="NAME|FILE", shell_complete=shared_options.offer("profiles"))
@with_options(
    shared_options.KERNELS_OPTION,
    option(*shared_options.PREEMPTS),
    option("--duration", f"How long to measure (default {DURATION}, virtual time).", shared_options.LENGTH),
    shared_options.SAMPLES_OPTION,
    shared_options.SET_OPTION,
    option("--load LOAD ...", "Disturb by this load, in every measurement; repeatable.", complete="loads"),
    shared_options.TRACE_OPTION,
    shared_options.OWN_MODULE_OPTION,
    option("--explain", "Say why each kernel's largest latency was late."),
    *shared_options.PROCESSOR_OPTIONS,
    shared_options.JOBS_OPTION,
    *shared_options.LAB_OUTPUT_OPTIONS,
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
