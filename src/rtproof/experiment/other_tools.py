# SPDX-License-Identifier: Apache-2.0
"""Other tools as probes: ``--probe exec:tool=NAME`` and ``--probe "exec:run=COMMAND"``.

Their command runs under our loads, stands in the record with everything that it printed, and an importer reads that.
"""

import math
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rtproof import importers
from rtproof.agents import DURATION_DEFAULT, PERIOD_DEFAULT
from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.core.phrases import duration, unknown_name
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.tool_run import analyse_tool_run
from rtproof.record.contents import Record
from rtproof.record.requirement import Requirement
from rtproof.summary.imported_histogram import ImportedHistogram
from rtproof.summary.recorded_facts import fact_number, requested_duration_ns
from rtproof.summary.tool_output import PROBE, ToolOutput

SECOND_NS, US_NS = 1_000_000_000, 1_000
SHORTEST_S = 2
"""The agent looks at the tool's threads once a second."""
PRIORITY = 80
TOOLS = {
    "cyclictest": (
        "cyclictest -q -m {where} -p {priority} --policy={policy} --laptop -i {period_us} -D {seconds} -h 10000",
        "-t {count} -a {cpus} -d 0",
        "-S",
    ),
    "rtla": (
        "rtla timerlat hist -P {policy[0]}:{priority} {where} -p {period_us} -d {seconds}s -E 10000 -b 1",
        "-c {cpus}",
        "",
    ),
    "latency": ("latency -P{priority} {where} -p{period_us} -T{seconds} -h -H10000 -B1000", "-c {cpus}", ""),
    "latmus": ("latmus -m -P{priority} {where} -p{period_us} -T{seconds} -H10000 -g", "-c {cpus}", ""),
}
"""The command of each tool, and its words for chosen CPUs and for all. The agent holds the DMA latency."""
OURS = ("samples", "method", "period_step", "phase", "warmup", "threads", "allow_unprivileged", "until_decided")
NOT_TAKEN = {"tool": OURS, "run": (*OURS, "policy", "priority")}
"""Options that nobody tells another tool, or whose end nobody sees before it has ended."""


def with_tool_command(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a command's options for the agent, which gets the tool's command line as an option of the probe.

    UserError for a tool that there is not, and for what a tool cannot be asked for.
    """
    kind, _, text = str(values["probe"]).partition(":")[2].partition("=")
    if kind not in ("tool", "run") or not text.strip():
        forms = "exec:tool=cyclictest or 'exec:run=oslat -D 60'"
        raise UserError(f"--probe exec needs a tool or a command: {forms}; the tools are: {', '.join(TOOLS)}")
    if kind == "tool" and text not in TOOLS:
        raise UserError(unknown_name("tool", text, TOOLS))
    if given := next((name.replace("_", "-") for name in NOT_TAKEN[kind] if values.get(name)), None):
        raise UserError(f"--{given} does not go with --probe exec:{kind}: rtproof cannot pass it to the tool")
    settings = _settings(values)
    if kind == "run":
        settings |= {"policy": "other", "priority": 0}
    if kind == "tool":
        command, chosen, anywhere = TOOLS[text]
        where = (chosen if settings["cpus"] else anywhere).format_map(settings)
        words = command.format(where=where, **settings).split()
    else:
        try:
            words = shlex.split(text)
        except ValueError:
            raise UserError("the command of --probe exec has a quote that is not closed") from None
    if bad := next((word for word in words if not word or set(word) & set("+; ")), None):
        raise UserError(f"the word {bad!r} of the tool's command is empty or has a space, '+' or ';'")
    named = f"tool={text}," if kind == "tool" else ""
    probe = f"{PROBE}:{named}run={'+'.join(words).replace(',', ';')}"
    own = {"probe": probe, "policy": settings["policy"], "priority": settings["priority"] or None}
    return {**values, **own, "warmup": "0s", "record": "summary", "threads": 1}


def _settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """The words that a command may hold. UserError for what no tool takes."""
    length_ns = units.parse_duration(values.get("duration") or DURATION_DEFAULT)
    if length_ns % SECOND_NS or length_ns < SHORTEST_S * SECOND_NS:
        raise UserError(
            f"another tool measures for whole seconds, at least {SHORTEST_S}, not {duration(length_ns)}: "
            f"give --duration {max(math.ceil(length_ns / SECOND_NS), SHORTEST_S)}s"
        )
    period_ns = units.parse_duration(values.get("period") or PERIOD_DEFAULT)
    if period_ns % US_NS:
        raise UserError(f"another tool takes a period of whole microseconds, not {duration(period_ns)}")
    policy, cpus = values.get("policy") or "fifo", values.get("cpus") or ""
    if policy == "deadline":
        raise UserError("--policy deadline does not go with --probe exec; give fifo, rr or other")
    return {
        "seconds": length_ns // SECOND_NS,
        "period_us": period_ns // US_NS,
        "policy": policy,
        "priority": 0 if policy == "other" else values.get("priority") or PRIORITY,
        "cpus": cpus,
        "count": len(units.parse_cpus(cpus)) if cpus else 0,
    }


def analyse_tool_record(
    record: Record, output: ToolOutput, requirements: tuple[Requirement, ...], limits: int = 0
) -> Analysis:
    """The analysis of a record in which another tool measured. Output that makes no sense makes the run INVALID."""
    name, first = output.command[0], output.text.strip().partition("\n")[0].strip()[:80]
    fault = f"what {name} printed is no measurement: {first!r}" if first else f"{name} printed nothing"
    try:
        found = importers.read_text(output.text)
    except UserError as problem:
        found, fault = None, f"what {name} printed cannot be read: {problem}"
    found = found or ImportedHistogram(name, "", faults=(fault,))
    # What the tool does not tell and the run does. No tool measured for longer than it ran. The period of a command of
    # the user is not known here.
    period_ns = fact_number(record, "period_ns") if output.tool else None
    asked_ns = requested_duration_ns(record) or 0
    ran_ns = output.ran_ns or 0
    lasted_ns = min(found.duration_ns, ran_ns) if found.duration_ns else min(asked_ns, ran_ns) // SECOND_NS * SECOND_NS
    told = replace(
        found,
        recorded=True,
        started_s=record.begin.origin_realtime_ns // SECOND_NS or None,
        asked_duration_ns=asked_ns or None,
        duration_ns=lasted_ns or None,
        shortest_period_ns=found.shortest_period_ns or period_ns,
        period_ns=found.period_ns or period_ns,
        facts=(("command", shlex.join(output.command)), *found.facts),
    )
    return analyse_tool_run(record, output, told, requirements, limits)
