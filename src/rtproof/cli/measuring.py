# SPDX-License-Identifier: Apache-2.0
"""The options of ``rtproof run`` that go to the agent: same words, same defaults."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rtproof import units
from rtproof.cli import complete, types
from rtproof.profiles.plan import option_words
from rtproof.run.live import clock

if TYPE_CHECKING:
    from rtproof.analysis.model import Requirement

Command = TypeVar("Command", bound=Callable[..., Any])
DURATION_DEFAULT = "20s"
PERIOD_DEFAULT = "1ms"

OPTIONS = (
    click.option("--probe", metavar="NAME", help="What is measured (default timer)."),
    click.option(
        "--method", metavar="NAME", shell_complete=complete.methods, help="How the thread waits for its due time."
    ),
    click.option("--period", type=types.LENGTH, help="Time between activations (default 1ms)."),
    click.option(
        "--period-step",
        type=types.LENGTH,
        help="How much longer each thread's period is than the last one's (default 0).",
    ),
    click.option("--duration", type=types.LENGTH, help=f"How long to measure (default {DURATION_DEFAULT})."),
    click.option(
        "--samples",
        type=types.count(2**62),
        metavar="N",
        help="Measure so many activations of the first thread instead.",
    ),
    click.option("--warmup", type=types.SPAN, help="Run so long before measuring begins (default 1s)."),
    click.option("--cpus", type=types.CPUS, help="Measure on these CPUs, such as 0,2-3 (default: all allowed)."),
    click.option(
        "--threads", type=types.count(4096), metavar="N", help="Number of measuring threads (default: one per CPU)."
    ),
    click.option(
        "--policy", type=click.Choice(["fifo", "rr", "other", "deadline"]), help="Scheduling policy (default fifo)."
    ),
    click.option(
        "--priority", type=types.count(99), metavar="N", help="Real-time priority of fifo and rr (default 80)."
    ),
    click.option(
        "--phase",
        type=types.PHASE,
        help="Between the due times of neighbouring threads; of longer than a period, the rest (default even).",
    ),
    click.option(
        "--dma-latency", type=types.DMA_LATENCY, help="Microseconds for /dev/cpu_dma_latency (default 0), or off."
    ),
    click.option("--no-lock-memory", is_flag=True, help="Do not lock the agent's memory."),
    click.option(
        "--record", type=click.Choice(["samples", "summary"]), help="Keep every sample (default) or the summary."
    ),
    click.option("--checkpoint", type=types.LENGTH, help="Time between flushes to the medium (default 10s)."),
    click.option(
        "--load",
        multiple=True,
        metavar="NAME[:k=v,...]",
        shell_complete=complete.loads,
        help="What disturbs on purpose (see rtproof loads); may be repeated.",
    ),
    click.option(
        "--trace",
        is_flag=False,
        flag_value="on",
        metavar="[k=v,...]",
        help="Keep the kernel's events too; events=NAME+NAME.. says which, buffer_kib=N how many.",
    ),
    click.option("--trace-blocks", type=types.LENGTH, help="Trace by turns, on and off, this long each."),
    click.option(
        "--allow-unprivileged", is_flag=True, help="Without the privilege for --policy, go on as SCHED_OTHER."
    ),
)


def agent_options(command: Command) -> Command:
    """Give a command the options of the agent."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def refuse_two_lengths(values: dict[str, Any]) -> None:
    """UsageError where a command's values say in two ways how long it shall measure."""
    if values["duration"] and values["samples"]:
        raise click.UsageError("--duration and --samples exclude each other")


def agent_arguments(values: dict[str, Any]) -> tuple[str, ...]:
    """The agent's arguments for what the user gave, and always a length."""
    from rtproof import loads

    refuse_two_lengths(values)
    if not values["samples"]:
        values = {**values, "duration": values["duration"] or DURATION_DEFAULT}
    own = {name: value for name, value in values.items() if name != "load"}
    words = [word for name, value in own.items() for word in option_words("--" + name.replace("_", "-"), value)]
    return (*words, *loads.resolve(values.get("load") or ()))


def limit_arguments(asked: "Iterable[Requirement]") -> tuple[str, ...]:
    """The agent's words for the limits, each once: it keeps every exceedance, and tells of them while it measures."""
    limits = dict.fromkeys(requirement.limit_ns for requirement in asked)
    return tuple(word for limit in limits for word in ("--limit", units.format_duration(limit)))


def length_ns(values: dict[str, Any]) -> int:
    """How long the run shall measure."""
    if values["samples"]:
        return int(values["samples"]) * units.parse_duration(values["period"] or PERIOD_DEFAULT)
    return units.parse_duration(values["duration"] or DURATION_DEFAULT)


def goal(values: dict[str, Any]) -> str:
    """What the live view counts towards."""
    if values["samples"]:
        return f"{values['samples']} activations"
    return clock(length_ns(values))
