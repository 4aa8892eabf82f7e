# SPDX-License-Identifier: Apache-2.0
"""How much later the measured thread is because its causes are traced: guests in virtual time, so the same each time.

Of one thread in one guest: the median latency without a trace, and with the events that ``--explain`` takes.
"""

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from disturbed_guests import SYSTEMS, System, chosen_systems, machine_of
from explain_parts import Bound, Details, Figure, Items, Part

from rtproof.agents.build import build_agent
from rtproof.core.errors import UserError
from rtproof.explain.explanation import explain
from rtproof.record.reading import open_record
from rtproof.vm.guest import Job, run_job

MEASURED = ("6.1-none", "6.1-rt", "6.12-none", "6.1-voluntary-arm64")
SAMPLES = 500
STATES = {"idle": "an idle CPU", "busy": "a CPU on which another program computes"}
MOST_US = Bound(most=3)
ABOVE_3_US = ("6.1-voluntary-arm64",)
"""Where an event costs more, and the timer's interrupt has one more: told without a bound."""


def script(system: System) -> str:
    """The guest's job: leaves records with and without a trace, of an idle CPU and of a busy one."""
    choice = f"echo {system.model} > /sys/kernel/debug/sched/preempt || exit\n" if system.chosen else ""
    return f"""\
mount -t debugfs none /sys/kernel/debug 2> /dev/null
{choice}run() {{
    name=$1; shift
    /agent run --warmup 100ms --samples {SAMPLES} -o /out/$name "$@" || exit
}}
both() {{ run $1-without; run $1-traced --trace explain; run $1-stacks --trace explain,stacks; }}
both idle
(while :; do :; done) & computes=$!
both busy
kill $computes
"""


def latencies_ns(path: Path) -> Sequence[int]:
    record = open_record(path)
    (series,) = record.series
    return [int(value) for value in np.concatenate([block.values for block in record.blocks(series.id)])]


def events_on_the_way(path: Path) -> int:
    """How many events an activation has between its due time and its end: the median."""
    found = explain(open_record(path), 1)
    on_the_way = [
        sum(timeline.count(activation.due_ns, activation.end_ns) for timeline in found.timelines)
        for activation in (each.activation for each in found.budgets)
    ]
    return int(statistics.median(on_the_way))


def measure(name: str) -> dict[str, Any]:
    """Measure one system in a guest. UserError or TargetError if the guest or its job fails."""
    (system,) = chosen_systems([name])
    with tempfile.TemporaryDirectory() as place:
        job = Job(script(system), (("/agent", build_agent(system.architecture)),))
        outcome = run_job(machine_of(system), job, Path(place))
        if outcome.exit_code:
            raise UserError(f"the guest of {name} failed: {outcome.said.strip()[-300:]}")
        return {state: _state(Path(place), state) for state in STATES}


def _state(folder: Path, state: str) -> dict[str, Any]:
    values = {way: latencies_ns(folder / f"{state}-{way}") for way in ("without", "traced", "stacks")}
    medians = {f"{way}_us": statistics.median(found) / 1000 for way, found in values.items()}
    return {**medians, "n": len(values["traced"]), "events": events_on_the_way(folder / f"{state}-traced")}


def figures(items: Items) -> list[Figure]:
    """What tracing adds to the median, of each system and state of its CPU."""
    return [
        Figure(name, f"added on {words}", _added_us(one[state]), "us", one[state]["n"], bound)
        for name, one in items.items()
        for bound in [None if name in ABOVE_3_US else MOST_US]
        for state, words in STATES.items()
    ]


def _added_us(one: Details) -> float:
    return round(float(one["traced_us"] - one["without_us"]), 3)


def lines(items: Items) -> list[str]:
    """The table of docs/cost.md."""
    return [_row(name, one["idle"], one["busy"]) for name, one in items.items()]


def _row(name: str, idle: Details, busy: Details) -> str:
    figures_us = (idle["without_us"], idle["traced_us"], _added_us(idle))
    stacks_us = idle["stacks_us"] - idle["without_us"]
    cells = [
        *(f"{each:.2f}" for each in figures_us),
        idle["events"],
        f"{_added_us(busy):.2f}",
        busy["events"],
        f"{stacks_us:.2f}",
    ]
    return f"| {name} | {' | '.join(map(str, cells))} |"


PART = Part(
    asked="8: what tracing adds to the median of a measured thread, in virtual time",
    items=lambda: [system.name for system in SYSTEMS if system.name in MEASURED],
    measure=measure,
    figures=figures,
    lines=lines,
)
