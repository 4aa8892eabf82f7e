# SPDX-License-Identifier: Apache-2.0
"""``rtproof explain``: why a run was late."""

from pathlib import Path
from typing import Any

import click

from rtproof.cli import parameter_types

MOST_TID = 1 << 22


@click.command("explain")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--limit",
    "limit_ns",
    type=parameter_types.LENGTH_NS,
    help="Explain activations above this latency (default: the run's smallest limit, or else the --top largest).",
)
@click.option(
    "--top",
    type=parameter_types.count_up_to(10_000),
    metavar="N",
    default=32,
    show_default=True,
    help="How many of the largest to explain where there is no limit.",
)
@click.option(
    "--thread", "names", metavar="NAME", multiple=True, help="In a trace.dat: the thread of this name; may be repeated."
)
@click.option(
    "--pid",
    "tids",
    type=parameter_types.count_up_to(MOST_TID),
    metavar="TID",
    multiple=True,
    help="In a trace.dat: the thread of this number; may be repeated.",
)
@click.option(
    "--explain-at-most",
    "at_most",
    metavar="CAUSE:N",
    multiple=True,
    help="Exit with 1 if more than N late activations have this cause first, such as irqoff:0; may be repeated.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also print the budgets of the latest activations.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def command(ctx: click.Context, /, run: Path, at_most: tuple[str, ...], **values: Any) -> None:
    """Say why activations of a traced run were late: every nanosecond from the due time to the end, by cause.

    RUN is a run folder or a record of a run with --trace, or a trace.dat of trace-cmd. The trace needs sched_switch and
    sched_waking; with the events of interrupts, softirqs and timers it can name more causes.

    The exit code is 1 if --explain-at-most is exceeded, 2 if RUN cannot be explained, and 0 otherwise.

    \b
    rtproof explain runs/20261123T193806Z-vm --limit 200us -v
    rtproof explain run.rtrec --explain-at-most irqoff:0
    rtproof explain trace.dat --thread motion --limit 200us
    """
    from rtproof.experiment import explained_runs
    from rtproof.explain.foreign_records import WantedThreads

    allowed = explained_runs.parse_at_most(at_most)
    wanted = WantedThreads(values["names"], values["tids"])
    result = explained_runs.explain_run(run, values["limit_ns"], values["top"], allowed, wanted)
    explained_runs.print_explanation(result, values["as_json"], verbose=values["verbose"])
    ctx.exit(result.exit_code)
