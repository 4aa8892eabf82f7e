# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab check``: one kernel, one load, one limit: an exit code for git bisect."""

from typing import TYPE_CHECKING, Any

import click

from rtproof import defects
from rtproof.cli import complete, laboratory, types
from rtproof.cli.laboratory import MEASURING, RUNNING
from rtproof.errors import TargetError

if TYPE_CHECKING:
    from rtproof.lab.comparison import Comparison, Spot

ABOVE = 1
INVALID = 3
CANNOT_TEST = 125
"""What git bisect run takes for a commit that cannot be tested."""


@click.command("check")
@laboratory.given(
    click.option("--kernel", required=True, metavar="NAME|IMAGE", help=laboratory.KERNEL_HELP),
    click.option("--preempt", type=click.Choice(["none", "voluntary", "full", "lazy"]), help="Preemption model."),
    click.option(
        "--load",
        default="idle",
        metavar="NAME",
        shell_complete=complete.loads,
        help=f"{laboratory.LOAD_HELP} (default idle)",
    ),
    click.option("--max", "limit", required=True, type=types.LIMIT_NS, help="The largest latency allowed, as 20us."),
    click.option("--boot", metavar="'ARG ...'", default="", help=laboratory.BOOT_HELP),
    *MEASURING,
    *RUNNING,
    click.option("--bisect", is_flag=True, help="Exit with 125 where no answer can be had, for git bisect run."),
)
@click.pass_context
def command(ctx: click.Context, /, limit: int, bisect: bool, **values: Any) -> None:
    """Check that one kernel under one load is never later than a limit, in virtual time.

    Exit codes: 0 the largest latency is at or under --max; 1 it is above; 2 usage or tool error; 3 the cell did not
    measure what was asked. git bisect takes 2 and 3 for a bad commit as well, so give it --bisect, which makes them
    125: skip this commit. A kernel that does not build is yours to skip:

    \b
    git bisect run sh -c 'make -j8 bzImage || exit 125;
        rtproof lab check --bisect --kernel arch/x86/boot/bzImage --load dd --max 20us'

    The figures are instructions, not a board's microseconds: the limit finds a regression, it does not sign off
    hardware.
    """
    try:
        code = _judge(_measured(ctx, values), limit)
    except (click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:  # also a defect of this program is nothing that speaks against the commit
        if not bisect:
            raise
        laboratory.say(f"rtproof: {defects.sentence(error)}")
        code = CANNOT_TEST
    ctx.exit(CANNOT_TEST if bisect and code == INVALID else code)


def _measured(ctx: click.Context, values: dict[str, Any]) -> "Comparison":
    from rtproof.lab import systems
    from rtproof.lab.cells import parse_load
    from rtproof.lab.matrix import Matrix, comparison

    load = parse_load(values["load"])
    laboratory.refuse_unknown_loads(load.loads)
    kernels = laboratory.named([values["kernel"]], values["module"], values["probe"])
    preempts = [values["preempt"]] if values["preempt"] else []
    found = systems.systems(kernels, preempts, [values["boot"]])
    typed = ctx.obj or ("rtproof", "lab", "check")
    matrix = Matrix(found, (load,), laboratory.setting(values), values["shifts"], laboratory.agents(found))
    return comparison(matrix, laboratory.run(matrix.cells(), values["jobs"], typed))


def _judge(found: "Comparison", limit_ns: int) -> int:
    """Say whether the limit holds; the exit code. TargetError if there is nothing to judge."""
    from rtproof.analysis.phrases import quantity, value
    from rtproof.lab.comparison import VIRTUAL_TIME, beside_a_core, marked

    (spot,) = marked(found).spots
    if spot.failures:
        raise TargetError(spot.failures[0])
    for what in _why_invalid(spot):
        click.echo(f"INVALID: {what}")
    for sentence in beside_a_core(found):
        click.echo(sentence)
    above = spot.max_ns > limit_ns
    click.echo(
        f"{spot.system.name}, {spot.load.name}: the largest latency of {quantity(spot.count, 'activation')} is "
        f"{value(spot.max_ns)}, {'above' if above else 'not above'} {value(limit_ns)}"
    )
    click.echo(VIRTUAL_TIME)
    return INVALID if found.invalid else ABOVE if above else 0


def _why_invalid(spot: "Spot") -> list[str]:
    return list(dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid))
