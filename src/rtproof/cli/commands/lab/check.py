# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab check``: one kernel, one load, one limit: an exit code for git bisect."""

from typing import Any

import click

from rtproof.cli.shared_options import LENGTH_NS, ONE_CELL_OPTIONS, GroupedCommand, of_one_cell, option, with_options
from rtproof.core import defects

CANNOT_TEST = 125
"""What git bisect run takes for a commit that cannot be tested."""


@click.command("check", cls=GroupedCommand)
@with_options(
    option("--max limit", "Latency never to exceed, such as 20us.", LENGTH_NS, required=True),
    *ONE_CELL_OPTIONS,
    option("--bisect", "Exit code 125 if there is no answer."),
)
@click.pass_context
def command(ctx: click.Context, /, bisect: bool, **values: Any) -> None:
    """Check one kernel against a limit, in virtual time.

    Exit codes: 0 the largest latency of the kernel under --load is at or under --max; 1 it is above; 2 usage or tool
    error; 3 the cell did not measure what was asked. For git bisect 2 and 3 would also mean a bad commit. Use --bisect,
    which turns them into 125: skip this commit. If a kernel does not build, skip it yourself:

    \b
    git bisect run sh -c 'make -j8 bzImage || exit 125;
        rtproof lab check --bisect --kernel arch/x86/boot/bzImage --load dd --max 20us'

    The figures are instructions, not a board's microseconds: the limit finds a regression, it does not sign off
    hardware.
    """
    from rtproof.experiment import guest_runner

    try:
        code = guest_runner.check_kernel(of_one_cell(values), ctx.obj or ("rtproof", "lab", "check"))
    except (click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:  # also a defect of this program is nothing that speaks against the commit
        if not bisect:
            raise
        guest_runner.print_progress(f"rtproof: {defects.error_sentence(error)}")
        code = CANNOT_TEST
    ctx.exit(CANNOT_TEST if bisect and code == guest_runner.INVALID else code)
