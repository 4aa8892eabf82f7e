# SPDX-License-Identifier: Apache-2.0
"""How long it takes to collect the facts of an audit, here and on a guest with one slow core, and how many bytes.

Everything that ``rtproof-agent facts --list`` names must be in the file, or be named there as missing.
"""

import statistics
import subprocess
import tempfile
import time
from fnmatch import fnmatchcase
from pathlib import Path

from rtproof.agents.build import find_agent
from rtproof.core.errors import RtproofError
from rtproof.experiment.audited_system import CollectRequest, collect, read_facts
from rtproof.record.contents import Moment, Record

ROUNDS = 5
BETWEEN_NS = 1_000_000_000
"""The agent waits so long between its two looks at what is counted."""
SLOW_GUESTS = {
    "guest, 10^9 instructions a second": (("kernel", "debian-6.1-rt"), ("mode", "virtual-time")),
    "guest, emulated": (("kernel", "debian-6.1-rt"), ("mode", "wall-clock")),
}


def _listed(agent: Path) -> list[str]:
    """The pattern or name of everything that is collected of a system."""
    said = subprocess.run([agent, "facts", "--list"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[1] for line in said.splitlines() if not line.startswith("probe\tprocess/")]


def _unnamed(names: list[str], record: Record) -> list[str]:
    """What the list names and the record does not."""
    there = [file.path for file in record.files if file.moment is Moment.START]
    return [name for name in names if name not in there and not any(fnmatchcase(path, name) for path in there)]


def _size(record: Record, path: Path) -> dict[str, float]:
    read = [file for file in record.files if file.moment is Moment.START]
    return {
        "entries": len(read),
        "files read": sum(not file.errno for file in read),
        "bytes": path.stat().st_size,
    }


def time_here(agent: Path, folder: Path) -> dict[str, float]:
    """Seconds on this machine, the middle of some rounds, without the wait between the two looks."""
    seconds = []
    for n in range(ROUNDS):
        path = folder / f"{n}.rtrec"
        begun = time.monotonic()
        subprocess.run([agent, "facts", "-o", path, "--between", "1ns"], check=True)
        seconds.append(time.monotonic() - begun)
    record = read_facts(path)
    unnamed = _unnamed(_listed(agent), record)
    print(f"not named in the file: {', '.join(unnamed) or 'nothing'}")
    return {"seconds": statistics.median(seconds), "not named": len(unnamed), **_size(record, path)}


def time_guest(options: tuple[tuple[str, str], ...], folder: Path) -> dict[str, float]:
    """Seconds by the clock of a guest with one CPU, until all was read, without the wait.

    What follows is left out: the agent wants a random number for the record, and a guest that has just booted makes
    one in a second.
    """
    path = folder / "guest.rtrec"
    record = collect(CollectRequest("qemu", options, keep=path))
    last_ns = max(file.time_ns for file in record.files if file.moment is Moment.END)
    return {"seconds": (last_ns - BETWEEN_NS) / 1e9, **_size(record, path)}


def time_run(agent: Path, folder: Path) -> dict[str, float]:
    """How much of the record of a short run is there for an audit, in bytes."""
    path = folder / "run.rtrec"
    words = ("--threads", "2", "--samples", "100", "--period", "1ms", "--warmup", "20ms", "--policy", "other")
    subprocess.run([agent, "run", "-o", path, *words], check=True)
    record = read_facts(path)
    listed = set(_listed(agent))
    mine = [
        file for file in record.files if file.path in listed or any(fnmatchcase(file.path, name) for name in listed)
    ]
    return {"bytes": path.stat().st_size, "of the audit": sum(len(file.content) + len(file.path) + 48 for file in mine)}


def main() -> dict[str, dict[str, float]]:
    """The figures by place; a guest that cannot be had is left out, with the reason."""
    agent = find_agent()
    figures: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures["here"] = time_here(agent, folder)
        figures["a run of 100 activations"] = time_run(agent, folder)
        for place, options in SLOW_GUESTS.items():
            try:
                figures[place] = time_guest(options, folder)
            except RtproofError as problem:
                print(f"{place}: {problem}")
            (folder / "guest.rtrec").unlink(missing_ok=True)
    for place, values in figures.items():
        print(f"{place}: {', '.join(f'{key} {value:,.4g}' for key, value in values.items())}")
    return figures


if __name__ == "__main__":
    main()
