# SPDX-License-Identifier: Apache-2.0
"""Options of the measurement, of the limits that a run is judged by, and of a forecast.

Only what a command's help and a shell's completion need is here: ``option_values`` reads the values.
"""

import click

from rtproof.agents import DURATION_DEFAULT
from rtproof.cli import parameter_types, shell_completion

TRACE_OPTION = click.option(
    "--trace",
    is_flag=False,
    flag_value="on",
    metavar="[k=v,...]",
    help="Keep the kernel's events.",
)

METHOD_OPTION = click.option(
    "--method",
    metavar="METHOD",
    shell_complete=shell_completion.complete_methods,
    help="How a thread waits for its due time.",
)
SAMPLES_OPTION = click.option(
    "--samples",
    type=parameter_types.count_up_to(2**62),
    metavar="N",
    help="Measure N activations instead of --duration.",
)
POLICY_OPTIONS = (
    click.option(
        "--policy", type=click.Choice(["fifo", "rr", "other", "deadline"]), help="Scheduling policy (default fifo)."
    ),
    click.option(
        "--priority",
        type=parameter_types.count_up_to(99),
        metavar="N",
        help="Priority of fifo and rr (default 80).",
    ),
)

AGENT_OPTIONS = (
    click.option(
        "--probe",
        metavar="PROBE",
        shell_complete=shell_completion.complete_probes,
        help="What to measure (default timer).",
    ),
    METHOD_OPTION,
    click.option("--period", type=parameter_types.LENGTH, help="Time between activations (default 1ms)."),
    click.option(
        "--period-step",
        type=parameter_types.LENGTH,
        help="Add this to the period of each further thread.",
    ),
    click.option("--duration", type=parameter_types.LENGTH, help=f"How long to measure (default {DURATION_DEFAULT})."),
    SAMPLES_OPTION,
    click.option("--warmup", type=parameter_types.SPAN, help="Run this long before measuring (default 1s)."),
    click.option("--cpus", type=parameter_types.CPUS, help="Measure on these CPUs, such as 0,2-3."),
    click.option(
        "--threads",
        type=parameter_types.count_up_to(4096),
        metavar="N",
        help="Measuring threads (default: one per CPU).",
    ),
    *POLICY_OPTIONS,
    click.option(
        "--phase",
        type=parameter_types.PHASE,
        help="Offset from thread to thread (default even).",
    ),
    click.option(
        "--dma-latency",
        type=parameter_types.DMA_LATENCY,
        help="Value for /dev/cpu_dma_latency (default 0).",
    ),
    click.option("--no-lock-memory", is_flag=True, help="Do not lock the agent's memory."),
    click.option(
        "--record", type=click.Choice(["samples", "summary"]), help="Keep every sample (default) or the summary."
    ),
    click.option("--checkpoint", type=parameter_types.LENGTH, help="Write to the disk this often (default 10s)."),
    click.option(
        "--load",
        multiple=True,
        metavar="LOAD",
        shell_complete=shell_completion.complete_loads,
        help="Disturb by this load (see 'rtproof loads'); repeatable.",
    ),
    TRACE_OPTION,
    click.option(
        "--trace-blocks",
        type=parameter_types.LENGTH,
        help="Switch tracing on and off, each for this long.",
    ),
    click.option(
        "--allow-unprivileged",
        is_flag=True,
        help="Measure SCHED_OTHER if --policy is not allowed.",
    ),
)

UNTIL_OPTIONS = (
    click.option("--until-decided", is_flag=True, help="Stop when the verdict on --limit is certain."),
    click.option(
        "--max-duration",
        type=parameter_types.LENGTH,
        help="Stop --until-decided after this time.",
    ),
)

OBSERVER_OPTION = click.option(
    "--observer/--no-observer",
    default=None,
    help="Measure what tracing adds to the latency.",
)

EXPLAIN_OPTION = click.option(
    "--explain",
    is_flag=False,
    flag_value="on",
    metavar="[k=v,...]",
    help="Say why activations were late.",
)

LIMIT_OPTIONS = (
    click.option(
        "--limit",
        "limits",
        type=parameter_types.LIMIT_NS,
        multiple=True,
        help="Latency never to exceed, such as 500us; repeatable.",
    ),
    click.option(
        "--at-most",
        type=parameter_types.AT_MOST_NS,
        multiple=True,
        help="Allow episodes above --limit, such as 1/h.",
    ),
    click.option(
        "--shows",
        type=parameter_types.RATE_NS,
        help="The rate that --until-decided must show (default 1/h).",
    ),
    click.option(
        "--confidence",
        type=parameter_types.CONFIDENCE,
        help="Confidence of the verdict (default 0.95).",
    ),
    click.option(
        "--gap",
        type=parameter_types.GAP_NS,
        help="Late times no further apart are one episode.",
    ),
    click.option(
        "--longest",
        type=parameter_types.LONGEST_NS,
        help="Longest episode that --at-most allows.",
    ),
    click.option(
        "--bunches",
        type=parameter_types.BUNCHES,
        help="Let episodes come N at a time (default 1).",
    ),
)

PERCENTILE_OPTION = click.option(
    "--percentile",
    "percentiles",
    type=parameter_types.SHARE,
    multiple=True,
    help="A further percentile to show; repeatable.",
)
"""Option of every command that shows numbers."""

UNIT_OPTION = click.option(
    "--unit",
    type=click.Choice(["us", "ns"]),
    help="State the unit of cyclictest's text (-N: ns).",
)
SECTION_OPTION = click.option(
    "--section",
    "sections",
    cls=parameter_types.SectionOption,
    multiple=True,
    metavar="SECTION",
    shell_complete=shell_completion.complete_sections,
    help="Only this section; repeatable.",
)
"""Option of every command that prints sections of a report."""

HORIZON_OPTIONS = (
    click.option(
        "--horizon",
        type=parameter_types.LIMIT_NS,
        help="How far the forecast looks, such as 30d.",
    ),
    click.option("--far", is_flag=True, help="Forecast up to 100 times the run."),
)
