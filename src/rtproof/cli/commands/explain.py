# SPDX-License-Identifier: Apache-2.0
"""``rtproof explain``: why a run was late."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import JSON_OPTION, GroupedCommand, option
from rtproof.core.errors import UserError

MOST_PID = 1 << 22
MOST_KEEP_MIB = 512
"""As much as the agent keeps: a record with more could not be opened."""


@click.command("explain", cls=GroupedCommand)
@click.argument("words", metavar="[RUN | -- PROGRAM [ARGUMENT]...]", nargs=-1, type=click.UNPROCESSED)
@option("--limit limit_ns", "Explain what is later (default: the run's limit).", shared_options.LENGTH_NS)
@option(
    "--top N",
    "Without a limit, explain the N largest.",
    shared_options.count_up_to(10_000),
    default=32,
    show_default=True,
)
@option("--thread names NAME ...", "The thread of this name or TID; repeatable.")
@option("--pid pids PID ...", "The real-time threads of this process.", shared_options.count_up_to(MOST_PID))
@option("--duration duration_ns", "How long to measure (default 10s).", shared_options.DURATION_NS)
@option("--begin MARK", "The MARK that begins an activation.")
@option("--end MARK", "The MARK that ends it, in the same thread.")
@option("--keep-mib N", "End after N MiB of events (default 256).", shared_options.count_up_to(MOST_KEEP_MIB))
@option("--stacks", "Also record functions, where the kernel can.")
@shared_options.folder_option("the run")
@option("--explain-at-most at_most CAUSE:N ...", "Exit code 1 above N of a cause; repeatable.")
@option("-v --verbose", "Also print the budgets of the largest latencies.")
@JSON_OPTION
@click.pass_context
def command(ctx: click.Context, /, words: tuple[str, ...], at_most: tuple[str, ...], **values: Any) -> None:
    """Say why activations were late, by cause.

    The causes account for every nanosecond from the due time to the end.

    RUN is a run folder or a record of a run with --trace, or a trace.dat of trace-cmd. The trace needs sched_switch and
    sched_waking; with the events of interrupts, softirqs and timers it can name more causes. Of a run without a trace
    it says what the kernel counted more of in the seconds of late activations: that coincides, and is no cause.

    Without RUN, threads of your own application are measured on this machine: those of --pid, --thread or PROGRAM. What
    was measured is a run as any other. This needs root. In a trace.dat, --pid is the number of a thread.

    With --begin and --end, an activation is the time between two marks in one thread, in place of the time from when it
    should wake up until it runs. A MARK is marker:TEXT (TEXT* for all that begins so), uprobe:FILE:FUNCTION[+OFFSET],
    uretprobe:FILE:FUNCTION, or event:SYSTEM/NAME[:FILTER].

    With --stacks the functions of the kernel and of your program are named, too, as far as it keeps frame pointers.

    With --explain-at-most irqoff:3 the exit code is 1 if irqoff was, or may have been, the largest cause of more than 3
    late activations. The exit code is 2 if nothing can be explained, and 0 otherwise.

    \b
    rtproof explain runs/20261123T193806Z-vm --limit 200us -v
    rtproof explain run.rtrec --explain-at-most irqoff:0
    rtproof explain trace.dat --thread motion --limit 200us
    rtproof explain --pid 4711 --limit 200us --duration 10min
    rtproof explain --thread motion -- ./myapp
    rtproof explain --begin marker:begin --end marker:end --limit 2ms -- ./myapp
    rtproof explain --begin uprobe:./myapp:cycle --end uretprobe:./myapp:cycle -- ./myapp
    """
    from rtproof.experiment import application_runs, explained_runs
    from rtproof.explain.foreign_records import ALL_REAL_TIME, WantedThreads

    typed, begin, end = ctx.obj or ("rtproof", "explain"), values["begin"], values["end"]
    allowed = explained_runs.parse_at_most(at_most)
    program = words if "--" in typed else ()
    if (begin is None) != (end is None):
        raise click.UsageError("--begin and --end go together: give both")
    _refuse(words, program, values)
    run, wanted, failure = Path(words[0] if words else ""), ALL_REAL_TIME, None
    if program or not words:
        run, failure = application_runs.measure(typed, program, values)
        click.echo(f"rtproof: the run is {run}", err=True)
    else:
        marks = None if begin is None else application_runs.trace_marks(begin, end)
        wanted = WantedThreads(values["names"], values["pids"], marks)
    try:
        record, found, exceeded = explained_runs.explain_run(run, values["limit_ns"], values["top"], allowed, wanted)
    except UserError as problem:
        raise failure or problem from None  # what was cut short lacks more than it tells
    explained_runs.print_explanation(record, found, exceeded, values["as_json"], verbose=values["verbose"])
    if failure:
        raise failure
    ctx.exit(1 if exceeded else 0)


def _refuse(words: tuple[str, ...], program: tuple[str, ...], values: Mapping[str, Any]) -> None:
    """UsageError for a run and an application together, for none, and for options of the other one."""
    if words and not program:
        if len(words) > 1:
            raise click.UsageError(f"{words[1]!r} is one argument too many: write -- in front of a program")
        if values["duration_ns"] or values["output"] or values["keep_mib"] or values["stacks"]:
            raise click.UsageError(
                "--duration, --output, --keep-mib and --stacks are for an application that is measured, not for a run"
            )
    elif not (program or values["pids"] or values["names"] or values["begin"]):
        raise click.UsageError("give a run, a trace.dat, --pid, --thread, --begin and --end, or -- and a program")
    elif len(values["pids"]) > 1 or (program and values["pids"]):
        raise click.UsageError("give one --pid, or -- and a program")
