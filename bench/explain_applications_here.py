# SPDX-License-Identifier: Apache-2.0
"""How often the first cause is right in an application on this machine, under load: with the program of the guests.

Which events count was decided before the first run. Others may take this machine's CPUs at any time, so an event counts
only if the program's own clocks prove its cause: the program was late by more than 100 us, and the cause took 60 % of
that or more. A thread that ran is proven by its CPU time, a sleep by its length, a limit by what the kernel counts for
its group, a disk by the time in which the thread was neither running nor ready. All events that may count are counted.
The others are told with the reason.
"""

import os
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import copy
from typing import Any

import disturbed_guests
import own_doings
from explain_applications import described, sums
from own_doings import LEAST_NS, MAY_BE_OWN, OF_PROBE, Doing, Told
from part import Bound, Details, Figure, Part

from rtproof.agents.architectures import host_architecture
from rtproof.agents.build import find_agent
from rtproof.core.errors import UserError
from rtproof.explain.causes import Cause

LEAST_SHARE = 0.6
LOADS = ("sched", "mmap", "net")
ITEMS = tuple(f"{load}-{cpus}" for load in LOADS for cpus in (1, 2))
CPU = 1
"""Where the probe is, and the program too if it has one CPU."""
NEEDS_ONE = ("became-urgent", "fifo-hog", "deadline-hog", "yield", "inversion")
NEEDS_ALL = ("deadline", "deadline-hog")
"""The kernel gives a deadline only to a thread that may run on all CPUs."""
NOT_HERE = ("rt-runtime", "fair")
"""Nothing throttles real-time threads since Linux 6.12. A holder of nice 19 gets no CPU beside a load."""
NICE = "-15"
"""Of the kinds that may not be real-time, or the load would take nearly all of the time."""
PATIENCE_S, LONGEST = 60, "50s"
QUOTA_US, PERIOD_US = 5_000, 25_000
GROUP = "rtproof_applications"


def doings_on(cpus: int) -> list[Doing]:
    """The kinds that a program on one CPU, or on all, makes here."""
    others = (*(NEEDS_ALL if cpus == 1 else NEEDS_ONE), *NOT_HERE)
    return [doing for doing in (*own_doings.DOINGS, *own_doings.ONLY_HERE) if doing.kind not in others]


@contextmanager
def limited_group() -> Iterator[Path]:
    """A control group with a limit and much weight, of either version; it is removed again."""
    first = Path("/sys/fs/cgroup/cpu")
    folder = (first if first.is_dir() else first.parent) / f"{GROUP}.{os.getpid()}"
    folder.mkdir()
    try:
        if first.is_dir():
            (folder / "cpu.shares").write_text("65536")
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
        else:
            (folder.parent / "cgroup.subtree_control").write_text("+cpu")
            (folder / "cpu.weight").write_text("6400")
            (folder / "cpu.max").write_text(f"{QUOTA_US} {PERIOD_US}")
        yield folder
    finally:
        folder.rmdir()


@contextmanager
def traced(record: Path, load: str) -> Iterator[None]:
    """Trace the program, beside a load and a probe, while the statements run. UserError if that is not possible."""
    words = ["run", "--cpus", str(CPU), "--warmup", "100ms", "--duration", LONGEST, "--load", load, "-o", str(record)]
    command = [str(find_agent()), *words, "--trace", "explain,calls_of=victim,buffer_kib=65536"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as agent:
        try:
            while not (record.exists() and record.stat().st_size) and agent.poll() is None:
                time.sleep(0.02)
            time.sleep(0.3)
            yield
        finally:
            agent.send_signal(2)
            said = agent.communicate()[1]
    if not record.exists() or not record.stat().st_size:
        raise UserError(f"the agent ended: {said.strip()[-300:]}")


def run_doing(doing: Doing, load: str, cpus: int, folder: Path) -> None:
    """Leave the record of a kind and the program's list, as a guest does."""
    times = doing.times if doing.cause is not Cause.THROTTLED else own_doings.TIMES
    urgency = ["chrt", "-f", "40"] if doing.cause in MAY_BE_OWN else ["nice", "-n", NICE]
    command = [*urgency, "./victim", "own", doing.kind, str(times), "0"]
    if cpus == 1:
        command = ["taskset", "-c", str(CPU), *command]
    with limited_group() as group, traced(folder / doing.kind, load), (folder / f"{doing.kind}.truth").open("w") as to:
        if doing.kind == "cpu-max":
            command = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh", *command]
        environment = {**os.environ, "CPU_STAT": f"{group}/cpu.stat"}
        subprocess.run(command, cwd=folder, env=environment, stdout=to, timeout=PATIENCE_S, check=True)
        time.sleep(0.05)


def uncounted(each: Told, doing: Doing) -> str:
    """Why an event does not count; "" if it does."""
    late = each.budget.activation
    if late.latency_ns <= LEAST_NS:
        return "not late"
    by_program_ns = each.truth.end_ns - each.truth.begin_ns
    share = each.took_ns / (by_program_ns if doing.kind in OF_PROBE else late.latency_ns)
    return "" if share >= LEAST_SHARE else "cause not proven"


def measured_kind(doing: Doing, load: str, cpus: int, folder: Path) -> dict[str, Any]:
    """What the file says of a kind."""
    run_doing(doing, load, cpus, folder)
    told = own_doings.read_all(doing, folder)
    made = len((folder / f"{doing.kind}.truth").read_text().splitlines())
    left_out = Counter(uncounted(each, doing) for each in told)
    left_out["not in the trace"] = max(0, made - len(told))
    counted = [each for each in told if not uncounted(each, doing)]
    reasons = {why: number for why, number in sorted(left_out.items()) if why and number}
    return {"made": made, **described(counted, doing, no_faults=False), "not_counted": reasons}


def measure(item: str) -> dict[str, Any]:
    """All kinds beside one load. A kind that cannot be measured says why."""
    load, _, cpus = item.partition("-")
    kinds: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        copy(disturbed_guests.victim(host_architecture().name), folder / "victim")
        for doing in doings_on(int(cpus)):
            try:
                kinds[doing.kind] = measured_kind(doing, load, int(cpus), folder)
            except (UserError, OSError, subprocess.SubprocessError) as error:
                kinds[doing.kind] = {"not_measured": str(error)}
            (folder / doing.kind).unlink(missing_ok=True)
            print(f"    {doing.kind:14} {kinds[doing.kind]}", flush=True)
    return {**sums(kinds), "kinds": kinds}


def row(name: str, one: Details) -> list[str]:
    """The load's row of the table in docs/explain-measured.md."""
    measured = [kind for kind in one["kinds"].values() if "made" in kind]
    reasons: Counter[str] = Counter()
    for kind in measured:
        reasons.update(kind["not_counted"])
    why = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items())) or "0"
    made = sum(kind["made"] for kind in measured)
    counts = " | ".join(f"{one[key]:,}" for key in ("late", "right", "open", "wrong"))
    load, _, cpus = name.partition("-")
    return [f"| {load} | {cpus} | {one['kinds_of_applications']} | {made:,} | {why} | {counts} |"]


PART = Part(
    goal="of what 12 kinds of applications do to themselves here, under load, the first cause is right in 95 %",
    items=lambda: ITEMS,
    measure=measure,
    figures=(
        Figure("kinds_of_applications", "kinds of applications", bound=Bound(12), of="late"),
        Figure("right_percent", "first cause right", "%", Bound(95), "late"),
    ),
    head="| load | CPUs | kinds | events | not counted | counted | right | open | wrong |",
    rows=row,
    long="it needs this machine as root, and disturbs it for half an hour",
)
