# SPDX-License-Identifier: Apache-2.0
"""Options of the measurement, of the limits that a run is judged by, and of a forecast.

Only what a command's help and a shell's completion need is here: ``option_values`` reads the values.
"""

import click

from rtproof.agents import DURATION_DEFAULT
from rtproof.cli import parameter_types, shell_completion

AGENT_OPTIONS = (
    click.option(
        "--probe",
        metavar="NAME",
        shell_complete=shell_completion.complete_probes,
        help="What is measured (default timer). exec:tool=NAME lets another tool measure.",
    ),
    click.option(
        "--method",
        metavar="NAME",
        shell_complete=shell_completion.complete_methods,
        help="How the thread waits for its due time.",
    ),
    click.option("--period", type=parameter_types.LENGTH, help="Time between activations (default 1ms)."),
    click.option(
        "--period-step",
        type=parameter_types.LENGTH,
        help="How much longer each thread's period is than that of the thread before (default 0).",
    ),
    click.option("--duration", type=parameter_types.LENGTH, help=f"How long to measure (default {DURATION_DEFAULT})."),
    click.option(
        "--samples",
        type=parameter_types.count_up_to(2**62),
        metavar="N",
        help="Measure this many activations of the first thread, in place of --duration.",
    ),
    click.option("--warmup", type=parameter_types.SPAN, help="Run this long before measuring begins (default 1s)."),
    click.option(
        "--cpus", type=parameter_types.CPUS, help="Measure on these CPUs, such as 0,2-3 (default: all allowed)."
    ),
    click.option(
        "--threads",
        type=parameter_types.count_up_to(4096),
        metavar="N",
        help="Number of measuring threads (default: one per CPU).",
    ),
    click.option(
        "--policy", type=click.Choice(["fifo", "rr", "other", "deadline"]), help="Scheduling policy (default fifo)."
    ),
    click.option(
        "--priority",
        type=parameter_types.count_up_to(99),
        metavar="N",
        help="Real-time priority of fifo and rr (default 80).",
    ),
    click.option(
        "--phase",
        type=parameter_types.PHASE,
        help="Time between the due times of neighbouring threads, modulo the period (default even: evenly spread).",
    ),
    click.option(
        "--dma-latency",
        type=parameter_types.DMA_LATENCY,
        help="Value held in /dev/cpu_dma_latency, in microseconds (default 0); off leaves it unchanged.",
    ),
    click.option("--no-lock-memory", is_flag=True, help="Do not lock the agent's memory."),
    click.option(
        "--record", type=click.Choice(["samples", "summary"]), help="Keep every sample (default) or the summary."
    ),
    click.option("--checkpoint", type=parameter_types.LENGTH, help="Time between flushes to the medium (default 10s)."),
    click.option(
        "--load",
        multiple=True,
        metavar="NAME[:k=v,...][@CPUS]",
        shell_complete=shell_completion.complete_loads,
        help="Work that disturbs on purpose (see rtproof loads), if wanted bound to CPUs (mmap@0); may be repeated.",
    ),
    click.option(
        "--trace",
        is_flag=False,
        flag_value="on",
        metavar="[k=v,...]",
        help="Keep the kernel's events too; events=NAME+NAME.. says which, buffer_kib=N the buffer of each CPU.",
    ),
    click.option(
        "--trace-blocks",
        type=parameter_types.LENGTH,
        help="Trace in blocks of this length, some with the trace on and some with it off.",
    ),
    click.option(
        "--allow-unprivileged",
        is_flag=True,
        help="If the privilege for --policy is missing, measure with SCHED_OTHER; a --limit is then INVALID.",
    ),
)

UNTIL_OPTIONS = (
    click.option(
        "--until-decided", is_flag=True, help="End at the first exceedance of --limit, or when --shows is reached."
    ),
    click.option(
        "--max-duration",
        type=parameter_types.LENGTH,
        help="With --until-decided: measure no longer than this.",
    ),
)

OBSERVER_OPTION = click.option(
    "--observer/--no-observer",
    default=None,
    help="Measure how much tracing alone changes the latency: trace in blocks, on and off, through the whole run. With "
    "--explain the beginning of the run does so, unless --no-observer refuses it.",
)

EXPLAIN_OPTION = click.option(
    "--explain",
    is_flag=False,
    flag_value="on",
    metavar="[k=v,...]",
    help="Keep the kernel's events around late activations: above the smallest --limit or threshold=TIME, the top=N "
    "largest, and ordinary=N others; stacks: of who delays. Without tracefs the run goes on and says so; with strict "
    "it does not begin.",
)

LIMIT_OPTIONS = (
    click.option(
        "--limit",
        "limits",
        type=parameter_types.LIMIT_NS,
        multiple=True,
        help="Latency that is never to be exceeded, such as 500us; may be repeated.",
    ),
    click.option(
        "--at-most",
        type=parameter_types.AT_MOST_NS,
        multiple=True,
        help="Allow episodes above --limit, such as 1/h (default never): one for all limits, or one for each in order.",
    ),
    click.option(
        "--shows",
        type=parameter_types.RATE_NS,
        help="A run is long enough if HELD shows at most one exceedance per this time (default 1/h).",
    ),
    click.option(
        "--confidence",
        type=parameter_types.CONFIDENCE,
        help="Confidence (default 0.95); of limits with --at-most for all verdicts together.",
    ),
    click.option(
        "--gap",
        type=parameter_types.GAP_NS,
        help="Late times that are no further apart than this are one episode (default: a twentieth of the time of "
        "--at-most, and at most 60s; you may set up to a tenth of that time).",
    ),
    click.option(
        "--longest",
        type=parameter_types.LONGEST_NS,
        help="How long an episode may last (default: ten times --gap, and at most a quarter of the time of --at-most).",
    ),
    click.option(
        "--bunches",
        type=parameter_types.BUNCHES,
        help="Average episodes per bunch that PROVEN allows for (default 1); with N a proof takes N times as long.",
    ),
)

PERCENTILE_OPTION = click.option(
    "--percentile",
    "percentiles",
    type=parameter_types.SHARE,
    multiple=True,
    help="A further percentile to show; may be repeated.",
)
"""Option of every command that shows numbers."""

HORIZON_OPTIONS = (
    click.option(
        "--horizon",
        type=parameter_types.LIMIT_NS,
        help="How far the forecast looks ahead, such as 30d (default: 10 times the run).",
    ),
    click.option("--far", is_flag=True, help="Allow a forecast of up to 100 times the run, with a warning."),
)
