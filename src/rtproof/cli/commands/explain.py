# SPDX-License-Identifier: Apache-2.0
"""``rtproof explain``: why a run was late."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rtproof.cli import parameter_types
from rtproof.cli.grouped_help import GroupedCommand
from rtproof.core.errors import UserError

MOST_PID = 1 << 22
MOST_KEEP_MIB = 512
"""As much as the agent keeps: a record with more could not be opened."""


@click.command("explain", cls=GroupedCommand)
@click.argument("words", metavar="[RUN | -- PROGRAM [ARGUMENT]...]", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--limit",
    "limit_ns",
    type=parameter_types.LENGTH_NS,
    help="Explain what is later (default: the run's limit).",
)
@click.option(
    "--top",
    type=parameter_types.count_up_to(10_000),
    metavar="N",
    default=32,
    show_default=True,
    help="Without a limit, explain the N largest.",
)
@click.option(
    "--thread",
    "names",
    metavar="NAME",
    multiple=True,
    help="The thread of this name or TID; repeatable.",
)
@click.option(
    "--pid",
    "pids",
    type=parameter_types.count_up_to(MOST_PID),
    metavar="PID",
    multiple=True,
    help="The real-time threads of this process.",
)
@click.option(
    "--duration",
    "duration_ns",
    type=parameter_types.DURATION_NS,
    help="How long to measure (default 10s).",
)
@click.option(
    "--begin",
    metavar="MARK",
    help="The MARK that begins an activation.",
)
@click.option("--end", metavar="MARK", help="The MARK that ends it, in the same thread.")
@click.option(
    "--keep-mib",
    type=parameter_types.count_up_to(MOST_KEEP_MIB),
    metavar="N",
    help="End after N MiB of events (default 256).",
)
@click.option("--stacks", is_flag=True, help="Also record functions, where the kernel can.")
@parameter_types.folder_option("the run")
@click.option(
    "--explain-at-most",
    "at_most",
    metavar="CAUSE:N",
    multiple=True,
    help="Exit code 1 above N of a cause; repeatable.",
)
@click.option("-v", "--verbose", is_flag=True, help="Also print the budgets of the largest latencies.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
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
    from rtproof.experiment import explained_runs
    from rtproof.explain.foreign_records import ALL_REAL_TIME, WantedThreads

    allowed = explained_runs.parse_at_most(at_most)
    live = _live_request(ctx.obj or ("rtproof", "explain"), words, values)
    wanted = ALL_REAL_TIME if live else WantedThreads(values["names"], values["pids"], _marks_of_trace(values))
    run, failure = _measured(live) if live else (Path(words[0]), None)
    try:
        result = explained_runs.explain_run(run, values["limit_ns"], values["top"], allowed, wanted)
    except UserError as problem:
        raise failure or problem from None  # what was cut short lacks more than it tells
    explained_runs.print_explanation(result, values["as_json"], verbose=values["verbose"])
    if failure:
        raise failure
    ctx.exit(result.exit_code)


def _refuse_words_of_live(words: tuple[str, ...], values: Mapping[str, Any]) -> None:
    """UsageError for what has no meaning beside a run that is there already."""
    if len(words) > 1:
        raise click.UsageError(f"{words[1]!r} is one argument too many: write -- in front of a program")
    if values["duration_ns"] or values["output"] or values["keep_mib"] or values["stacks"]:
        raise click.UsageError(
            "--duration, --output, --keep-mib and --stacks are for an application that is measured, not for a run"
        )


def _two_marks(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Both marks, or None. UsageError for one alone."""
    begin, end = values["begin"], values["end"]
    if (begin is None) != (end is None):
        raise click.UsageError("--begin and --end go together: give both")
    return None if begin is None else (begin, end)


def _marks_of_trace(values: Mapping[str, Any]) -> Any:
    from rtproof.experiment.mark_options import trace_marks

    marks = _two_marks(values)
    return trace_marks(*marks) if marks else None


def _live_request(typed: tuple[str, ...], words: tuple[str, ...], values: Mapping[str, Any]) -> Any:
    """The application that shall be measured; None if there is a run to be explained. UsageError for both or none."""
    program = words if "--" in typed else ()
    if words and not program:
        _refuse_words_of_live(words, values)
        return None
    marks = _two_marks(values)
    if not (program or values["pids"] or values["names"] or marks):
        raise click.UsageError("give a run, a trace.dat, --pid, --thread, --begin and --end, or -- and a program")
    if len(values["pids"]) > 1 or (program and values["pids"]):
        raise click.UsageError("give one --pid, or -- and a program")
    from rtproof.experiment.application_runs import DEFAULT_NS, ForeignRequest

    return ForeignRequest(
        typed, next(iter(values["pids"]), None), values["names"], program, values["duration_ns"] or DEFAULT_NS,
        values["limit_ns"], values["output"], marks, values["keep_mib"], values["stacks"],
    )  # fmt: skip


def _measured(live: Any) -> tuple[Path, Exception | None]:
    from rtproof.experiment import application_runs

    folder, failure = application_runs.measure(live)
    click.echo(f"rtproof: the run is {folder}", err=True)
    return folder, failure
