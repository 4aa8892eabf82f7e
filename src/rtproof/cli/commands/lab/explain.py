# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab explain``: why the largest latency of one kernel under one load was so large, by kernel function."""

from typing import Any

import click

from rtproof.cli.shared_options import JSON_OPTION, ONE_CELL_OPTIONS, GroupedCommand, of_one_cell, with_options


@click.command("explain", cls=GroupedCommand)
@with_options(*ONE_CELL_OPTIONS, JSON_OPTION)
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **values: Any) -> None:
    """Explain one kernel's largest latency, in virtual time.

    The lab measures the kernel under one load, unless it is in the cache, and runs the shift with the largest latency
    once more. A plugin of QEMU then records which code the guest executes between the due time and the reading of the
    clock. It changes no byte of the guest: the two records are compared. The answer names the functions of the kernel
    in which the time was spent, and closes to the instruction. It needs a C compiler.

    Exit codes: 0; 2 if the cell could not be measured or explained.

    \b
    rtproof lab explain --kernel debian-6.1 --preempt none --load mmap
    """
    from rtproof.experiment import guest_runner

    typed = ctx.obj or ("rtproof", "lab", "explain")
    guest_runner.explain_kernel(of_one_cell(values), typed, as_json=as_json)
