# SPDX-License-Identifier: Apache-2.0
"""Measure how much work the agent's loads do."""

from pathlib import Path

from rtproof.record.contents import Moment
from rtproof.record.reading import open_record
from tools import run

SECONDS = 5
CABLE = "between two network namespaces"


def comms(agent: Path, scratch: Path) -> dict[str, float]:
    """Megabytes a second that load comms sends, and gets back, from one network namespace to another."""
    record = scratch / "comms.rtrec"
    record.unlink(missing_ok=True)
    run([str(agent), "run", "-o", str(record), "--duration", f"{SECONDS}s", "--policy", "other", "--load", "comms"])
    whole = open_record(record)
    note = whole.fact("load.comms.note", Moment.START) or ""
    if not note.startswith(CABLE):
        print(f"load comms is not measured: {note}")
        return {}
    counter = next(one for one in whole.counters if one.name == "load.comms")
    seconds = (counter.time_ns[-1] - counter.time_ns[0]) / 1e9
    return {"comms_mb_per_s": float(counter.value[-1] - counter.value[0]) / 1000 / seconds}
