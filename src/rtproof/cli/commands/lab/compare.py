# SPDX-License-Identifier: Apache-2.0
"""``rtproof lab compare``: kernels, preemption models and loads, each with each."""

from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import GroupedCommand, option, with_options

LOADS = ("idle", "mmap", "net")


@click.command("compare", cls=GroupedCommand)
@with_options(
    shared_options.KERNELS_OPTION,
    option(*shared_options.PREEMPTS, default=("none", "full")),
    option("--load loads LOAD ...", f"{shared_options.LOAD_HELP}; repeatable.", complete="loads", default=LOADS),
    option("--boot boots 'ARG ...' ...", "Arguments of the kernel, as one word; repeatable."),
    option("--explain", "Say why each largest latency was late."),
    *shared_options.LAB_CELL_OPTIONS,
    *shared_options.LAB_OUTPUT_OPTIONS,
)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Compare kernels under loads, in virtual time.

    The lab boots every kernel once with every preemption model, and measures it under every load, with one guest per
    CPU at a time. The figures count instructions and are the same on every machine. They rank kernels and find
    regressions; they do not sign off hardware. Finished cells are kept and not run again, also after Ctrl-C.

    The kernels are debian-6.1-rt and debian-6.1 if no --kernel is given, the models none and full, the loads idle, mmap
    and net. Each --boot makes further systems. MODULES is a folder lib/modules/RELEASE. A load here has no programs.
    If a command of --setup fails, the cell fails.

    A PREEMPT_RT kernel before 6.12 has one model and is one column; 6.12 knows full and lazy, other kernels none,
    voluntary and full. A kernel that has none of the models asked for is booted as it comes.

    --explain runs the cell with each largest latency once more and names what the kernel did; see rtproof lab explain.

    Exit codes: 0; 2 if a cell failed; 3 if one did not measure what was asked.

    \b
    rtproof lab compare --kernel debian-6.12-rt --kernel debian-6.12 --preempt none --load mmap --load dd+net
    """
    from rtproof.experiment import guest_runner

    ctx.exit(guest_runner.compare_in_guests(values, ctx.obj or ("rtproof", "lab", "compare")))
