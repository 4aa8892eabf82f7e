# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab ten-ms``: article 2's four scenarios, each on its kernel, as cells of the profile ten-ms."""

from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import option, with_options

PLAIN = "debian-6.1"
RT = "debian-6.1-rt"
CYCLES = 11_000


@click.command("ten-ms")
@with_options(
    option("--plain NAME|IMAGE", f"The kernel without PREEMPT_RT (default {PLAIN}).", default=PLAIN),
    option("--rt NAME|IMAGE", f"The kernel with PREEMPT_RT (default {RT}).", default=RT),
    option(
        "--preempt",
        "Preemption model, of the plain kernel (default none).",
        click.Choice(["none", "voluntary", "full"]),
        default="none",
    ),
    option(
        "--cycles counted N",
        f"Cycles of each scenario (default {CYCLES}).",
        shared_options.count_up_to(10**7),
        default=CYCLES,
    ),
    shared_options.OWN_MODULE_OPTION,
    shared_options.JOBS_OPTION,
    *shared_options.LAB_OUTPUT_OPTIONS,
)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Repeat article 2's table of a loop of 10 ms.

    Four scenarios of a loop in a kernel task run, each on its kernel.

    Two scenarios run on the plain kernel without a real-time policy: idle, and under stress. Two run on PREEMPT_RT with
    one: under stress, and under stress with a flood of pings. Each has as many cycles as in the article, and runs in
    virtual time. 'rtproof lab profile ten-ms' is shorter, and has every policy and load on every kernel. A scenario
    under stress takes some minutes of a core; --cycles 1000 gives a first impression.

    Exit codes: 0; 2 if a scenario failed; 3 if one did not measure what was asked.
    """
    from rtproof.experiment import guest_campaign

    ctx.exit(guest_campaign.run_scenarios(values, ctx.obj or ("rtproof", "lab", "ten-ms")))
