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
from disturbed_guests import SYSTEMS, System, choice_of_model, run_in_guest
from part import Bound, Details, Figure, Part

from rtproof.explain.explanation import explain
from rtproof.record.reading import open_record

MEASURED = ("6.1-none", "6.1-rt", "6.12-none", "6.1-voluntary-arm64")
SAMPLES = 500
STATES = {"idle": "an idle CPU", "busy": "a CPU on which another program computes"}
ABOVE_3_US = ("6.1-voluntary-arm64",)
"""Where an event costs more, and the timer's interrupt has one more: told without a bound."""


def script(system: System) -> str:
    """The guest's job: leaves records with and without a trace, of an idle CPU and of a busy one."""
    return f"""\
{choice_of_model(system)}run() {{
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
    with tempfile.TemporaryDirectory() as place:
        run_in_guest(SYSTEMS[name], script(SYSTEMS[name]), {}, Path(place))
        states = {state: _state(Path(place), state) for state in STATES}
    told = "told" if name in ABOVE_3_US else "added"
    added = {f"{told}_{state}_us": _added_us(one) for state, one in states.items()}
    return {"n": SAMPLES, **added, "states": states}


def _state(folder: Path, state: str) -> dict[str, Any]:
    values = {way: latencies_ns(folder / f"{state}-{way}") for way in ("without", "traced", "stacks")}
    medians = {f"{way}_us": statistics.median(found) / 1000 for way, found in values.items()}
    return {**medians, "events": events_on_the_way(folder / f"{state}-traced")}


def _added_us(one: Details) -> float:
    return round(float(one["traced_us"] - one["without_us"]), 3)


def row(name: str, one: Details) -> list[str]:
    """The system's row of the table of docs/cost.md."""
    idle, busy = (one["states"][state] for state in STATES)
    medians = f"{idle['without_us']:.2f} | {idle['traced_us']:.2f} | {_added_us(idle):.2f} | {idle['events']}"
    stacks_us = idle["stacks_us"] - idle["without_us"]
    return [f"| {name} | {medians} | {_added_us(busy):.2f} | {busy['events']} | {stacks_us:.2f} |"]


PART = Part(
    goal="tracing adds at most 3 us to the median of a measured thread, in virtual time",
    items=lambda: MEASURED,
    measure=measure,
    figures=[
        Figure(f"{told}_{state}_us", f"added on {words}", "us", bound, "n")
        for told, bound in (("added", Bound(most=3)), ("told", None))
        for state, words in STATES.items()
    ],
    head="| kernel | idle, without | idle, with | adds | events | adds, busy | events, busy | adds with stacks, idle |",
    rows=row,
)
