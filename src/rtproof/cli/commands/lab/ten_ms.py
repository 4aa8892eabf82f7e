# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab ten-ms``: article 2's four scenarios, each on its kernel, as cells of the profile ten-ms."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import lab_options, parameter_types
from rtproof.cli.lab_options import JOBS_OPTION, LAB_OUTPUT_OPTIONS
from rtproof.core.errors import UserError

if TYPE_CHECKING:
    from rtproof.lab.systems import NamedKernel
    from rtproof.profiles import Profile


PLAIN = "debian-6.1"
RT = "debian-6.1-rt"
CYCLES = 11_000
SCENARIOS = {"plain": ("other--idle", "other--stress"), "rt": ("fifo--stress", "fifo--stress-flood")}
"""Cells of the profile that the article measured, by the kernel that it had: without PREEMPT_RT, and with."""


@click.command("ten-ms")
@lab_options.with_options(
    click.option(
        "--plain", default=PLAIN, metavar="NAME|IMAGE", help=f"The kernel without PREEMPT_RT (default {PLAIN})."
    ),
    click.option("--rt", default=RT, metavar="NAME|IMAGE", help=f"The kernel with PREEMPT_RT (default {RT})."),
    click.option(
        "--preempt",
        default="none",
        type=click.Choice(["none", "voluntary", "full"]),
        help="Preemption model of the plain kernel (default none).",
    ),
    click.option(
        "--cycles",
        "counted",
        type=parameter_types.count_up_to(10_000_000),
        default=CYCLES,
        metavar="N",
        help=f"Cycles to count in each scenario (default {CYCLES}, as in the article).",
    ),
    click.option("--module", type=lab_options.PATH, multiple=True, metavar="FILE", help="rtproof.ko for own images."),
    JOBS_OPTION,
    *LAB_OUTPUT_OPTIONS,
)
@click.pass_context
def command(ctx: click.Context, /, output: Path | None, as_json: bool, jobs: int | None, **values: Any) -> None:
    """Repeat article 2's table: four scenarios of a loop of 10 ms in a kernel task, each on its kernel.

    In virtual time: the plain kernel idle and under stress without a real-time policy, PREEMPT_RT under stress, and
    under stress and a flood of pings with one; as many cycles as in the article, beside its figures. 'rtproof lab
    profile ten-ms' has every policy and load on every kernel instead, and is shorter. A scenario under stress takes
    some minutes of a core; --cycles 1000 gives a first impression.

    Exit codes: 0; 2 if a scenario failed; 3 if one did not measure what was asked.
    """
    from rtproof import profiles
    from rtproof.experiment import guest_campaign, guest_runner
    from rtproof.lab import systems

    whole = profiles.load("ten-ms").shortened(samples=in_all(values["counted"]))
    plain, rt = (guest_runner.profile_kernels([values[name]], values["module"], whole)[0] for name in ("plain", "rt"))
    _refuse_other_kernels(plain, rt)
    asked = guest_campaign.GuestCampaignRequest(
        ctx.obj or ("rtproof", "lab", "ten-ms"), "ten-ms", output, as_json, jobs
    )
    parts = [
        guest_campaign.CampaignPart(
            _with_cells(whole, *SCENARIOS["plain"]), systems.systems([plain], [values["preempt"]])
        ),
        guest_campaign.CampaignPart(_with_cells(whole, *SCENARIOS["rt"]), systems.systems([rt], [])),
    ]
    ctx.exit(guest_campaign.run_guest_campaign(_with_cells(whole, *SCENARIOS["plain"], *SCENARIOS["rt"]), parts, asked))


def in_all(counted: int) -> int:
    """How many cycles a run has to have so that so many are counted: the first ones are not, of a short run a tenth."""
    from rtproof.summary import loops

    return counted + min(loops.IGNORE, -(-counted // (loops.SHORT_RUN - 1)))


def _with_cells(profile: "Profile", *keys: str) -> "Profile":
    return replace(profile, cells=tuple(map(profile.cell, keys)))


def _refuse_other_kernels(plain: "NamedKernel", rt: "NamedKernel") -> None:
    from rtproof.lab import systems

    if systems.is_rt(plain.kernel) or not systems.is_rt(rt.kernel):
        wrong = plain if systems.is_rt(plain.kernel) else rt
        raise UserError(f"{wrong.name} is {'' if wrong is plain else 'not '}built with PREEMPT_RT: give another kernel")
