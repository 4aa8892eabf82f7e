# SPDX-License-Identifier: Apache-2.0
"""``rtproof cyclictest``: the options and the output of cyclictest, for scripts that exist, around our own probe."""

import shlex
from pathlib import Path
from typing import Any

import click

from rtproof.cli import parameter_types
from rtproof.cli.grouped_help import GroupedCommand
from rtproof.cli.measurement_options import LIMIT_OPTIONS
from rtproof.cli.parameter_types import with_options

ALL = "all"
"""The value of an option that may have one and has none."""
ENDLESS = "30d"
DISTANCE_US = 500
"""cyclictest's: so much longer is the interval of each thread than that of the one before."""


@click.command("cyclictest", cls=GroupedCommand, context_settings={"help_option_names": ["--help"]})
@click.option("-a", "--affinity", is_flag=False, flag_value=ALL, metavar="[CPUS]", help="Measure on these CPUs.")
@click.option(
    "-d", "--distance", type=click.IntRange(0, 10**9), metavar="US", help="Distance of thread intervals (default 500)."
)
@click.option("-D", "--duration", metavar="TIME", help="How long to measure, such as 60, 5m, 2h or 1d.")
@click.option("-h", "--histogram", type=click.IntRange(1, 10**6), metavar="US", help="Print a histogram up to US.")
@click.option("-i", "--interval", type=click.IntRange(1, 10**9), default=1_000, metavar="US", help="Default 1000.")
@click.option("--json", "json_file", type=click.Path(path_type=Path), metavar="FILE", help="New file for the result.")
@click.option("--latency", type=click.IntRange(0, 2**31 - 1), metavar="US", help="Value for /dev/cpu_dma_latency.")
@click.option("--laptop", "--default-system", "untuned", is_flag=True, help="Leave /dev/cpu_dma_latency alone.")
@click.option("-l", "--loops", type=click.IntRange(1, 2**62), metavar="N", help="Number of cycles of the first thread.")
@click.option("-N", "--nsecs", is_flag=True, help="Print nanoseconds.")
@click.option("-p", "--priority", "--prio", type=click.IntRange(0, 99), metavar="PRIO", help="Without it: SCHED_OTHER.")
@click.option(
    "--policy",
    type=click.Choice(["fifo", "rr", "other", "normal"], case_sensitive=False),
    help="Scheduling policy (default: fifo with -p, else other).",
)
@click.option("-q", "--quiet", is_flag=True, help="Nothing while it measures.")
@click.option("-S", "--smp", is_flag=True, help="The same as -a -t.")
@click.option("-t", "--threads", is_flag=False, flag_value=ALL, metavar="[N]", help="Threads: N, or one on each CPU.")
@click.option("-m", "--mlockall", is_flag=True, help="Memory is always locked.")
@click.option("-M", "-n", "-u", "--nanosleep", "unused", is_flag=True, help="Accepted; nothing depends on them.")
@with_options(*LIMIT_OPTIONS)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    callback=parameter_types.new_folder,
    help="New folder for the run.",
)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Measure as cyclictest is asked to, and print what it prints.

    The options are cyclictest's. It prints the lines of each thread (T: ...), or with -h the histogram, and leaves a
    run folder with a page, as 'rtproof run' does. Other than cyclictest, it counts missed cycles and says how many
    there were, keeps each thread on its CPU, gives all threads one priority, and does not overwrite files.

    Without -D and -l it measures until Ctrl-C, 30 days at most. The exit code is that of the verdict on --limit.

    \b
    rtproof cyclictest -m -S -p 80 -i 1000 -D 10m -q --json result.json
    """
    from rtproof.cli import option_values
    from rtproof.experiment import run_request, target_runs

    requirements = option_values.take_requirements(values)
    if values["nsecs"] and values["histogram"]:
        raise click.UsageError("-N and -h exclude each other: the bins are microseconds")
    measured = option_values.agent_values(_words(values))
    option_values.refuse_short_gaps(requirements, measured)
    asked = run_request.ExperimentRequest(
        ctx.obj or ("rtproof", "cyclictest"), "local", requirements, output=values["output"]
    )
    wanted = run_request.CyclictestOutput(
        values["histogram"], values["json_file"], values["nsecs"], values["quiet"], _command_line(asked.command)
    )
    ctx.exit(target_runs.run_as_cyclictest(asked, run_request.measurement(measured), wanted))


def _words(values: dict[str, Any]) -> list[str]:
    """The options of our own agent that ask for the same."""
    words = ["--period", f"{values['interval']}us"]
    if values["loops"] and values["duration"]:
        raise click.UsageError("-D and -l exclude each other here")
    words += ["--samples", str(values["loops"])] if values["loops"] else ["--duration", _length(values["duration"])]
    words += _places(values)
    policy = {"normal": "other", None: "fifo" if values["priority"] else "other"}.get(
        values["policy"], values["policy"]
    )
    words += ["--policy", policy]
    words += ["--priority", str(values["priority"])] if values["priority"] and policy != "other" else []
    words += ["--dma-latency", "off" if values["untuned"] else str(values["latency"] or 0)]
    return words


def _places(values: dict[str, Any]) -> list[str]:
    """How many threads, on which CPUs, and how far apart their intervals are."""
    on_each = values["smp"] or values["threads"] == ALL
    words = [] if on_each else ["--threads", values["threads"] or "1"]
    if values["affinity"] not in (None, ALL):
        words += ["--cpus", values["affinity"]]
    usual = 0 if values["histogram"] else DISTANCE_US
    distance = usual if values["distance"] is None else values["distance"]
    return [*words, "--period-step", f"{distance}us"] if distance and words != ["--threads", "1"] else words


def _length(text: str | None) -> str:
    """The length in our own words: cyclictest takes a number without a unit for seconds."""
    if text is None:
        return ENDLESS
    length = text.lower()
    if length.endswith("m"):
        return f"{length}in"
    return f"{length}s" if length.isdecimal() else length


def _command_line(typed: tuple[str, ...]) -> str:
    """The command as the real program would name it."""
    return shlex.join(typed[1:] if typed[:2] == ("rtproof", "cyclictest") else ("cyclictest",))
