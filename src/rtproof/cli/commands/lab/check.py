# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab check``: one kernel, one load, one limit: an exit code for git bisect."""

from typing import TYPE_CHECKING, Any

import click

from rtproof.cli import lab_options, parameter_types, shell_completion
from rtproof.cli.lab_options import LAB_MEASUREMENT_OPTIONS, LAB_RUN_OPTIONS
from rtproof.core import defects
from rtproof.core.errors import TargetError

if TYPE_CHECKING:
    from rtproof.lab.kernel_comparison import KernelComparison, SystemUnderLoad


ABOVE = 1
INVALID = 3
CANNOT_TEST = 125
"""What git bisect run takes for a commit that cannot be tested."""


@click.command("check")
@lab_options.with_options(
    click.option("--kernel", required=True, metavar="NAME|IMAGE", help=lab_options.KERNEL_HELP),
    click.option("--preempt", type=click.Choice(["none", "voluntary", "full", "lazy"]), help="Preemption model."),
    click.option(
        "--load",
        default="idle",
        metavar="NAME",
        shell_complete=shell_completion.complete_loads,
        help=f"{lab_options.LOAD_HELP} (default idle)",
    ),
    click.option(
        "--max", "limit", required=True, type=parameter_types.LIMIT_NS, help="The largest latency allowed, as 20us."
    ),
    click.option("--boot", metavar="'ARG ...'", default="", help=lab_options.BOOT_HELP),
    *LAB_MEASUREMENT_OPTIONS,
    *LAB_RUN_OPTIONS,
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
    from rtproof.experiment import guest_runner

    try:
        code = _judge(_measured(ctx, values), limit)
    except (click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:  # also a defect of this program is nothing that speaks against the commit
        if not bisect:
            raise
        guest_runner.print_progress(f"rtproof: {defects.error_sentence(error)}")
        code = CANNOT_TEST
    ctx.exit(CANNOT_TEST if bisect and code == INVALID else code)


def _measured(ctx: click.Context, values: dict[str, Any]) -> "KernelComparison":
    from rtproof.experiment import guest_runner
    from rtproof.lab import systems
    from rtproof.lab.cell_runner import KernelMatrix, compare_kernels
    from rtproof.lab.guest_cell import parse_guest_load

    load = parse_guest_load(values["load"])
    guest_runner.refuse_unknown_loads(load.loads)
    kernels = guest_runner.named_kernels([values["kernel"]], values["module"], values["probe"])
    preempts = [values["preempt"]] if values["preempt"] else []
    found = systems.systems(kernels, preempts, [values["boot"]])
    typed = ctx.obj or ("rtproof", "lab", "check")
    matrix = KernelMatrix(
        found,
        (load,),
        lab_options.take_cell_setting(values),
        values["shifts"],
        guest_runner.agents_by_architecture(found),
    )
    return compare_kernels(matrix, guest_runner.run_guest_cells(matrix.cells(), values["jobs"], typed))


def _judge(found: "KernelComparison", limit_ns: int) -> int:
    """Say whether the limit holds; the exit code. TargetError if there is nothing to judge."""
    from rtproof.core.phrases import quantity, value
    from rtproof.lab.kernel_comparison import VIRTUAL_TIME, cokernel_sentences, with_in_band_marks

    (spot,) = with_in_band_marks(found).spots
    if spot.failures:
        raise TargetError(spot.failures[0])
    for what in _why_invalid(spot):
        click.echo(f"INVALID: {what}")
    for sentence in cokernel_sentences(found):
        click.echo(sentence)
    above = spot.max_ns > limit_ns
    click.echo(
        f"{spot.system.name}, {spot.load.name}: the largest latency of {quantity(spot.count, 'activation')} is "
        f"{value(spot.max_ns)}, {'above' if above else 'not above'} {value(limit_ns)}"
    )
    click.echo(VIRTUAL_TIME)
    return INVALID if found.invalid else ABOVE if above else 0


def _why_invalid(spot: "SystemUnderLoad") -> list[str]:
    return list(dict.fromkeys(doubt.what for reading in spot.readings for doubt in reading.invalid))
