# SPDX-License-Identifier: Apache-2.0
"""``rtproof cyclictest``: the options and the output of cyclictest, for scripts that exist, around our own probe."""

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rtproof.cli import shared_options
from rtproof.cli.shared_options import LIMIT_OPTIONS, PATH, Command, GroupedCommand, option, with_options
from rtproof.core import units
from rtproof.core.errors import UserError

ERROR_CODE = 1
"""That of cyclictest."""
ALL = "all"
"""The value of an option that may have one and has none."""
ENDLESS = "30d"
DISTANCE_US = 500
"""cyclictest's: so much longer is the interval of each thread than that of the one before."""
SHORTEST_US = 10
"""The agent's shortest period."""
REAL_TIME = ("fifo", "rr")
POLICIES = click.Choice(["other", "normal", "batch", "idle", *REAL_TIME], case_sensitive=False)
US, FROM_1 = click.IntRange(0, 10**9), click.IntRange(1, 10**9)


class ThreadCount(click.IntRange):
    """A number of threads, or ``ALL``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == ALL else super().convert(value, param, ctx)


ROWS: tuple[tuple[str, str, Any], ...] = (
    ("-a --affinity [CPUS]", "Measure on these CPUs; !CPUS: on all others.", None),
    ("-A --aligned [US]", "Wake each thread US after the one before.", None),
    ("-b --breaktrace US", "End with the first latency above US.", US),
    ("-c --clock CLOCK", "0, CLOCK_MONOTONIC, is the only one.", click.INT),
    ("--default-system", "Leave /dev/cpu_dma_latency alone.", None),
    ("-d --distance US", f"Distance of thread intervals (default {DISTANCE_US}).", US),
    ("-D --duration TIME", "How long to measure, such as 60, 5m, 2h or 1d.", None),
    ("-F --fifo FILE", "Refused: 'rtproof watch' shows a run.", None),
    ("-h --histogram US", "Print a histogram up to US.", click.IntRange(1, 10**6)),
    ("-H --histofall US", "The same with the sum of all threads.", click.IntRange(1, 10**6)),
    ("--histfile FILE", "New file for the histogram.", PATH),
    ("-i --interval US", "Interval of the first thread (default 1000).", click.IntRange(SHORTEST_US, 10**9)),
    ("--json FILE", "New file for the result; -: standard output.", PATH),
    ("--laptop", "Leave /dev/cpu_dma_latency alone.", None),
    ("--latency US", "Value for /dev/cpu_dma_latency (default 0).", click.IntRange(0, 2**31 - 1)),
    ("-l --loops N", "Number of cycles of the first thread.", click.IntRange(0, 2**62)),
    ("--mainaffinity CPUS", "Changes nothing here.", None),
    ("-m --mlockall", "Memory is always locked.", None),
    ("-M --refresh_on_max", "Changes nothing here.", None),
    ("-n --nanosleep", "Sleep with clock_nanosleep, the default.", None),
    ("-N --nsecs", "Nanoseconds in place of microseconds.", None),
    ("-o --oscope N", "Of each N values print the largest.", FROM_1),
    ("-p --priority --prio PRIO", "Without it: SCHED_OTHER.", click.IntRange(0, 99)),
    ("--policy NAME", "Scheduling policy (default: fifo with -p, else other).", POLICIES),
    ("--priospread", "Refused: all threads have one priority.", None),
    ("-q --quiet", "Nothing while it measures.", None),
    ("-r --relative", "Sleep for an interval, not until a time.", None),
    ("-R --resolution", "Changes nothing here.", None),
    ("--secaligned [US]", "Begin US after a full second, with all threads.", None),
    ("-s --system", "Sleep with nanosleep.", None),
    ("-S --smp", "The same as -a -t.", None),
    ("--spike US", "Print each latency above US with its time.", US),
    ("--spike-nodes N", "Print at most N of them (default 1024).", FROM_1),
    ("--smi", "Print how often the firmware took each CPU.", None),
    ("-t --threads [N]", "Threads: N, or one on each CPU.", ThreadCount(1)),
    ("--tracemark", "Refused: 'rtproof run --explain' keeps the trace.", None),
    ("-u --unbuffered", "Changes nothing here.", None),
    ("-v --verbose", "Print every value when the run has ended.", None),
    ("--dbg_cyclictest", "Changes nothing here.", None),
    ("-x --posix_timers", "Wait for the signal of a POSIX timer.", None),
)
"""The options of cyclictest 2.6, their help, and click's type of the value; a value in brackets may be left out."""
IDLE = {
    "mainaffinity": "--mainaffinity changes nothing: threads that do not measure leave the measured CPUs by themselves",
    "refresh_on_max": "-M changes nothing: the screen is drawn twice a second at most",
    "resolution": "-R changes nothing: each run measures the clock; 'rtproof show --all' tells it",
    "unbuffered": "-u changes nothing: the result is printed when the run has ended",
    "dbg_cyclictest": "--dbg_cyclictest changes nothing: it is about the inside of cyclictest",
}
REFUSED = {
    "clock": "-c is refused: a step of another clock would count as latency; leave -c out",
    "fifo": "-F is refused: 'rtproof watch' shows a run from another terminal",
    "priospread": "--priospread is refused: all threads have one priority, so that none of them waits for another",
    "tracemark": "--tracemark is refused: the measuring thread writes no mark; 'rtproof run --explain' keeps the trace "
    "of late activations",
}
"""What is said of these options. All others are done."""


def _row(declared: str, text: str, kind: Any) -> Callable[[Command], Command]:
    more: dict[str, Any] = {"is_flag": False, "flag_value": ALL} if "[" in declared else {}
    return option(declared, text, kind, **more)


@click.command("cyclictest", cls=GroupedCommand, context_settings={"help_option_names": ["--help"]})
@with_options(*(_row(*row) for row in ROWS), *LIMIT_OPTIONS)
@option("--output DIR", "New folder for the run.", PATH, callback=shared_options.new_folder)
@click.pass_context
def command(ctx: click.Context, /, **values: Any) -> None:
    """Measure as cyclictest is asked to, and print what it prints.

    The options are cyclictest's. It prints the lines of each thread (T: ...), or with -h the histogram, and leaves a
    run folder with a page, as 'rtproof run' does. Other than cyclictest, it counts missed cycles and says how many
    there were, prints its result when the run has ended, and does not overwrite files.

    Without -D and -l it measures until Ctrl-C, 30 days at most. Exit codes: 0, and 1 for an error, as of cyclictest;
    with --limit those of a verdict, and 2 for an error.

    \b
    rtproof cyclictest -m -S -p 80 -i 1000 -D 10m -q --json result.json
    """
    from rtproof.cli import option_values
    from rtproof.experiment import run_request, target_runs
    from rtproof.experiment.cyclictest_output import CyclictestOutput

    requirements = option_values.take_requirements(values)
    _refuse(values)
    measured = option_values.agent_values(_words(values))
    option_values.refuse_short_gaps(requirements, measured)
    asked = run_request.RunRequest(ctx.obj or ("rtproof", "cyclictest"), "local", requirements, output=values["output"])
    typed = asked.command
    output = CyclictestOutput(
        command=shlex.join(typed[1:] if typed[:2] == ("rtproof", "cyclictest") else ("cyclictest",)),
        bins=_bins(values),
        total=values["histofall"] is not None,
        histfile=values["histfile"],
        json_file=values["json"],
        unit=_unit(values),
        quiet=values["quiet"],
        values=(values["oscope"] or 1) if values["verbose"] else 0,
        broken=bool(values["breaktrace"]),
        spike=values["spike"] or 0,
        most_spikes=values["spike_nodes"] or 1_024,
        smi=values["smi"],
    )
    asked = run_request.with_measurement(asked, measured, _more_words(values))
    output.refuse_existing_files()
    for sentence in (sentence for name, sentence in IDLE.items() if values[name]):
        click.echo(f"rtproof: {sentence}", err=True)
    folder, outcome = target_runs.measure_once(asked, quiet=output.quiet)
    ctx.exit(output.print_run(asked, folder, outcome))


def _refuse(values: dict[str, Any]) -> None:
    """UsageError for what is not done here, and for what cyclictest refuses."""
    for name, sentence in REFUSED.items():
        if values[name]:
            raise click.UsageError(sentence)
    if (values["oscope"] or 1) > 1 and not values["verbose"]:
        raise click.UsageError("-o reduces what -v prints: give -v, too")
    if values["aligned"] is not None and values["secaligned"] is not None:
        raise click.UsageError("-A and --secaligned exclude each other")
    if values["histfile"] and not _bins(values):
        raise click.UsageError("--histfile needs -h or -H")
    if values["smi"] and not _has_smi_counter():
        raise click.UsageError("--smi is refused: this CPU has no counter of SMIs that can be read")


def _has_smi_counter(folder: Path = Path("/dev/cpu"), cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the agent can read the counter: of Intel's CPUs, through the kernel's module msr."""
    try:
        return "GenuineIntel" in cpuinfo.read_text()[:1024] and os.access(next(folder.glob("*/msr"), "-"), os.R_OK)
    except OSError:
        return False


def _words(values: dict[str, Any]) -> list[str]:
    """The options of our own agent that ask for the same."""
    words = ["--period", f"{values['interval'] or 1_000}us", *_length(values), *_places(values)]
    policy = values["policy"] if values["policy"] in REAL_TIME else "fifo" if values["priority"] else "other"
    words += ["--policy", policy]
    words += ["--priority", str(_priority(values))] if policy in REAL_TIME else []
    if method := next((name for key, name in METHODS.items() if values[key]), ""):
        words += ["--method", method]
    if values["aligned"] is not None:
        words += ["--phase", _behind(values["aligned"])]
    elif values["secaligned"] is not None:
        words += ["--phase", "0s"]
    untuned = values["laptop"] or values["default_system"]
    return [*words, "--dma-latency", "off" if untuned else str(values["latency"] or 0)]


METHODS = {"system": "nanosleep", "posix_timers": "posix_timer", "relative": "clock_nanosleep_relative"}
"""The agent's methods by cyclictest's options; the first that is given counts."""


def _more_words(values: dict[str, Any]) -> tuple[str, ...]:
    """Words for the agent that no command of ours but this one has."""
    words = ("--align", _behind(values["secaligned"])) if values["secaligned"] is not None else ()
    return (*words, "--break", f"{values['breaktrace']}{_unit(values)}") if values["breaktrace"] else words


def _unit(values: dict[str, Any]) -> str:
    return "ns" if values["nsecs"] else "us"


def _behind(text: str) -> str:
    """A number of microseconds as a duration; 0 for an option without its value. UsageError for another text."""
    if text == ALL:
        return "0s"
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise click.UsageError(f"-A and --secaligned take a number of microseconds, not {text!r}")
    return f"{int(text)}us"


def _priority(values: dict[str, Any]) -> int:
    """That which is given, or the one that cyclictest chooses: one more than it has threads."""
    threads = values["threads"] or 1
    count = len(os.sched_getaffinity(0)) if values["smp"] or threads == ALL else threads
    return values["priority"] or min(count + 1, 99)


def _places(values: dict[str, Any]) -> list[str]:
    """How many threads, on which CPUs, and how far apart their intervals are."""
    on_each = values["smp"] or values["threads"] == ALL
    words = [] if on_each else ["--threads", str(values["threads"] or 1)]
    if values["affinity"] not in (None, ALL) and not values["smp"]:
        words += ["--cpus", _cpus(values["affinity"])]
    distance = DISTANCE_US if values["distance"] is None else values["distance"]
    several = distance and not _bins(values) and words[:2] != ["--threads", "1"]
    return [*words, "--period-step", f"{distance}us"] if several else words


def _cpus(text: str) -> str:
    """CPUs as given, or after a ``!`` all others that may be used."""
    if not text.startswith("!"):
        return text
    try:
        others = os.sched_getaffinity(0) - set(units.parse_cpus(text[1:]))
    except UserError as problem:
        raise click.UsageError(str(problem)) from None
    if not others:
        raise click.UsageError(f"-a {text} leaves no CPU")
    return units.format_cpus(others)


def _length(values: dict[str, Any]) -> list[str]:
    """How long it measures: cycles of the first thread or a time; of both, what ends first."""
    duration, loops = _duration(values["duration"]), values["loops"]
    interval_ns = (values["interval"] or 1_000) * 1_000
    try:
        shorter = loops and loops * interval_ns <= units.parse_length(duration)
    except UserError as problem:
        raise click.UsageError(str(problem)) from None
    return ["--samples", str(loops)] if shorter else ["--duration", duration]


def _duration(text: str | None) -> str:
    """The length in our own words: cyclictest takes a number without a unit for seconds."""
    if text is None or text == "0":
        return ENDLESS
    length = text.lower()
    if length.endswith("m"):
        return f"{length}in"
    return f"{length}s" if length.isdecimal() else length


def _bins(values: dict[str, Any]) -> int:
    return values["histofall"] or values["histogram"] or 0
