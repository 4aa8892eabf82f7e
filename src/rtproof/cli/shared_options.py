# SPDX-License-Identifier: Apache-2.0
"""Options that several commands have: of the measurement, the limits, a profile, a series, pages, and the lab.

Only what a command's help and a shell's completion need is here: ``option_values`` reads the values.
"""

from collections.abc import Callable, Mapping
from typing import Any

import click

from rtproof.agents import DURATION_DEFAULT
from rtproof.cli import parameter_types as kinds
from rtproof.cli.parameter_types import PATH, Command, count_up_to, option, with_options

JSON_OPTION = option("--json as_json", "Print the result as JSON.")
REPORT_OPTION = option("--report/--no-report", "Write an HTML report (default).", default=True)
TRACE_OPTION = option("--trace [k=v,...]", "Keep the kernel's events.", is_flag=False, flag_value="on")
METHOD_OPTION = option("--method METHOD", "How a thread waits for its due time.", complete="methods")
SAMPLES_OPTION = option("--samples N", "Measure N activations instead of --duration.", count_up_to(2**62))
POLICY_OPTIONS = (
    option("--policy", "Scheduling policy (default fifo).", click.Choice(["fifo", "rr", "other", "deadline"])),
    option("--priority N", "Priority of fifo and rr (default 80).", count_up_to(99)),
)
AGENT_OPTIONS = (
    option("--probe PROBE", "What to measure (default timer).", complete="probes"),
    METHOD_OPTION,
    option("--period", "Time between activations (default 1ms).", kinds.LENGTH),
    option("--period-step", "Add this to the period of each further thread.", kinds.LENGTH),
    option("--duration", f"How long to measure (default {DURATION_DEFAULT}).", kinds.LENGTH),
    SAMPLES_OPTION,
    option("--warmup", "Run this long before measuring (default 1s).", kinds.SPAN),
    option("--cpus", "Measure on these CPUs, such as 0,2-3.", kinds.CPUS),
    option("--threads N", "Measuring threads (default: one per CPU).", count_up_to(4096)),
    *POLICY_OPTIONS,
    option("--phase", "Offset from thread to thread (default even).", kinds.PHASE),
    option("--dma-latency", "Value for /dev/cpu_dma_latency (default 0).", kinds.DMA_LATENCY),
    option("--no-lock-memory", "Do not lock the agent's memory."),
    option("--record", "Keep every sample (default) or the summary.", click.Choice(["samples", "summary"])),
    option("--checkpoint", "Write to the disk this often (default 10s).", kinds.LENGTH),
    option("--load LOAD ...", "Disturb by this load (see 'rtproof loads'); repeatable.", complete="loads"),
    TRACE_OPTION,
    option("--trace-blocks", "Switch tracing on and off, each for this long.", kinds.LENGTH),
    option("--allow-unprivileged", "Measure SCHED_OTHER if --policy is not allowed."),
)
UNTIL_OPTIONS = (
    option("--until-decided", "Stop when the verdict on --limit is certain."),
    option("--max-duration", "Stop --until-decided after this time.", kinds.LENGTH),
)
OBSERVER_OPTION = option("--observer/--no-observer", "Measure what tracing adds to the latency.", default=None)
EXPLAIN_OPTION = option("--explain [k=v,...]", "Say why activations were late.", is_flag=False, flag_value="on")
LIMIT_OPTIONS = (
    option("--limit limits ...", "Latency never to exceed, such as 500us; repeatable.", kinds.LENGTH_NS),
    option("--at-most ...", "Allow episodes above --limit, such as 1/h.", kinds.AT_MOST_NS),
    option("--shows", "The rate that --until-decided must show (default 1/h).", kinds.RATE_NS),
    option("--confidence", "Confidence of the verdict (default 0.95).", kinds.CONFIDENCE),
    option("--gap", "Late times no further apart are one episode.", kinds.GAP_NS),
    option("--longest", "Longest episode that --at-most allows.", kinds.LONGEST_NS),
    option("--bunches", "Let episodes come N at a time (default 1).", kinds.BUNCHES),
)
PERCENTILE_OPTION = option("--percentile percentiles ...", "A further percentile to show; repeatable.", kinds.SHARE)
"""Option of every command that shows numbers."""
UNIT_OPTION = option("--unit", "State the unit of cyclictest's text (-N: ns).", click.Choice(["us", "ns"]))
SECTION_OPTION = option(
    "--section sections SECTION ...", "Only this section; repeatable.", complete="sections", cls=kinds.SectionOption
)
"""Option of every command that prints sections of a report."""
HORIZON_OPTION = option("--horizon", "How far the forecast looks, such as 30d.", kinds.LENGTH_NS)

MOST_SEED = 2**32 - 1
REPEAT_OPTIONS = (
    option("--repeat N", "Measure N times, or each side of --abba.", click.IntRange(1, 999)),
    option("--abba 'A' 'B'", "Compare two sets of options, taken in turn.", (str, str), callback=kinds.two_sides),
    option("--order-seed N", "Draw the turns of --abba from N.", click.IntRange(0, MOST_SEED)),
)
SET_OPTION = option("--set settings ...", "Choose what the profile measures; repeatable.", kinds.KEY_VALUE)
PROFILE_OPTIONS = (
    option("--profile NAME|FILE", "Repeat an experiment of 'rtproof profiles'.", complete="profiles"),
    SET_OPTION,
    option("--given FILE ...", "Add another tool's result; repeatable.", PATH),
)
GENERATOR_OPTIONS = (
    option("--generator TARGET", "The board that gives the edges for --probe gpio.", complete="targets"),
    option("--generator-option ...", "An option of --generator; repeatable.", kinds.KEY_VALUE),
    option("--generator-lines LINES", "Lines of --generator: chip=0,in=5,out=6."),
)


def target_options(to_do: str) -> Callable[[Command], Command]:
    """target, target_option and agent. to_do: what is done on the target."""
    where = f"Where to {to_do} (default local)."
    return with_options(
        option("--target TARGET", where, complete="targets", default="local"),
        option("--target-option ...", "An option of --target; repeatable.", kinds.KEY_VALUE),
        option("--agent FILE", "Use this agent.", PATH),
    )


def format_option(usual: str) -> Callable[[Command], Command]:
    """The option ``--format`` of pages. usual: the format of a page for which none is named."""
    marked = (" (default)" if usual == name else "" for name in ("html", "text"))
    text = "Format: html{}, markdown or text{}.".format(*marked)
    return option("--format form FORMAT", text, complete="report formats")


def page_options(beside: str) -> Callable[[Command], Command]:
    """output, form, report and as_json. beside: the name of the argument that the page goes beside."""
    output = option("-o --output FILE", f"New file for the page (default: beside {beside}).", PATH)
    return with_options(output, format_option("html"), REPORT_OPTION, JSON_OPTION)


# Of the commands of ``rtproof lab``.

DEBIAN_KERNELS = ("debian-6.1-rt", "debian-6.1")
PREEMPTION = click.Choice(["none", "voluntary", "full", "lazy"])
KERNEL_HELP = "NAME of 'lab kernels', or IMAGE[:MODULES]"
LOAD_HELP = "Disturb by this load, such as mmap@0 or dd+net"
KERNELS_OPTION = option("--kernel kernels NAME|IMAGE ...", f"{KERNEL_HELP}; repeatable.", default=DEBIAN_KERNELS)


PREEMPTS = ("--preempt preempts ...", "Preemption model; repeatable.", PREEMPTION)
"""Of an option whose values each make a system of each kernel."""
OWN_MODULE_OPTION = option("--module FILE ...", "rtproof.ko for an IMAGE; repeatable.", PATH)
LAB_MEASUREMENT_OPTIONS = (
    option("--probe PROBE", "What to measure (default timer).", default="timer"),
    METHOD_OPTION,
    option("--period", "Time between activations (default 1ms).", kinds.LENGTH, default="1ms"),
    option("--duration", "How long to measure (default 2s, virtual time).", kinds.LENGTH, default="2s"),
    option("--warmup", "Run this long before measuring (default 1s).", kinds.SPAN, default="1s"),
    *POLICY_OPTIONS,
    option("--module FILE ...", "Load this kernel module first; repeatable.", PATH),
)


def _named_qemu(ctx: click.Context, param: click.Parameter, text: str | None) -> str | None:
    """The text. BadParameter for an empty one, as of a shell's variable that is not set."""
    if text is not None and not text.strip():
        raise click.BadParameter("it is empty: give system, fetched, or a path", ctx, param)
    return text


PROCESSOR_OPTIONS = (
    option("--processors cpus N", "Processors of the guest (default 1).", click.IntRange(1, 8), default=1),
    option("--measured-cpus CPUS", "Measure on these CPUs of the guest."),
    option("--pace pace_us US", "Longest turn of a processor (default 4).", click.IntRange(1, 1000)),
    option("--soakers/--no-soakers", "Keep all processors busy (default).", default=None),
    option("--qemu system|fetched|PATH", "The QEMU to use (default: one that fits).", callback=_named_qemu),
)
"""What the guest's processors are. With one processor, nothing of it changes a guest but another QEMU."""


def _shell_lines(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The lines that are not blank. BadParameter for one that cannot be written to the guest's script."""
    for text in texts:
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise click.BadParameter("it is not UTF-8", ctx, param)
    return tuple(text for text in texts if text.strip())


JOBS_OPTION = option("--jobs N", "Guests at once (default: one per CPU).", count_up_to(1024))
LAB_OUTPUT_OPTIONS = (kinds.folder_option("all results"), JSON_OPTION)
LAB_CELL_OPTIONS = (
    *PROCESSOR_OPTIONS,
    *LAB_MEASUREMENT_OPTIONS,
    option("--setup 'COMMANDS' ...", "Run these in the guest's shell first; repeatable.", callback=_shell_lines),
    option("--shifts N", "Measure each cell N times (default 4).", count_up_to(1000), default=4),
    JOBS_OPTION,
)
"""How cells are measured, where the user names kernels and loads."""
ONE_CELL_OPTIONS = (
    option("--kernel NAME|IMAGE", f"{KERNEL_HELP}.", required=True),
    option("--preempt", "Preemption model.", PREEMPTION),
    option("--load LOAD", f"{LOAD_HELP}.", complete="loads", default="idle"),
    option("--boot 'ARG ...'", "Arguments of the kernel, as one word.", default=""),
    *LAB_CELL_OPTIONS,
)
"""Of commands that measure one kernel under one load."""


def of_one_cell(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of such a command as those of ``rtproof lab compare``, which takes several of each."""
    several = {f"{name}s": [values[name]] for name in ("kernel", "boot", "load")}
    return {**values, **several, "preempts": [values["preempt"]] if values["preempt"] else []}
