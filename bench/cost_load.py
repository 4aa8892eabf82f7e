# SPDX-License-Identifier: Apache-2.0
"""How much the agent's load ``comms`` sends, and gets back, from one network namespace to another."""

import tempfile
from pathlib import Path
from typing import Any

from part import Bound, Figure, Part

from rtproof.agents.build import build_agent
from rtproof.core.errors import TargetError
from rtproof.record.contents import Moment
from rtproof.record.reading import open_record
from tools import run

SECONDS = 5
CABLE = "between two network namespaces"


def measure(_: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "comms.rtrec"
        words = ("--duration", f"{SECONDS}s", "--policy", "other", "--load", "comms")
        run([str(build_agent()), "run", "-o", str(path), *words])
        record = open_record(path)
    note = record.fact("load.comms.note", Moment.START) or ""
    if not note.startswith(CABLE):
        raise TargetError(f"load comms has no namespaces here: {note}")
    counter = next(one for one in record.counters if one.name == "load.comms")
    seconds = (counter.time_ns[-1] - counter.time_ns[0]) / 1e9
    return {"mb_per_s": float(counter.value[-1] - counter.value[0]) / 1000 / seconds}


PART = Part(
    goal="load comms sends 100 MB/s each way",
    measure=measure,
    figures=(Figure("mb_per_s", "load comms, each way", "MB/s", Bound(100)),),
)
