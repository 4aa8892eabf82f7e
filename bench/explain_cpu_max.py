# SPDX-License-Identifier: Apache-2.0
"""How often the rule for cpu.max beside other threads of ordinary priority is right: on this machine and in a guest.

A program computes for 30 ms, beside busy neighbours on the same CPU. Either its own control group has a limit, or only
the group of one neighbour has. The kernel counts how long the program's group was throttled. Decided before the first
run: an event counts if the program had no CPU for 10 ms or more, and the limit took 60 % of that, or 10 % at most.
"""

import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

import disturbed_guests
import own_doings
from disturbed_guests import System, machine_of
from explain_parts import Details, Figure, Items, Part, percent
from own_doings import MAY_BE_OWN, OWN, Doing, Told

from rtproof.agents.architectures import host_architecture
from rtproof.agents.build import build_agent, find_agent
from rtproof.core.errors import UserError
from rtproof.explain.causes import MAY_BE, Cause
from rtproof.vm.guest import Job, run_job

GUEST, HERE = System("debian-6.1", "full", chosen=True), "here"
LIMITS_US = ((5_000, 20_000), (10_000, 50_000), (20_000, 100_000), (50_000, 100_000))
TIMES, LEAST_WAIT_NS, MOST_OF_LIMIT, MOST_OF_TURNS = 8, 10_000_000, 0.6, 0.1
PATIENCE_S = 1800
GUEST_LOOPS = 60_000
"""With two CPUs an instruction takes about 3 ns of the guest's time."""


@dataclass(frozen=True)
class Trial:
    """own: whether the program's group has the limit, and not that of a neighbour. nice: of the program."""

    quota_us: int
    period_us: int
    neighbours: int
    nice: int
    own: bool

    @property
    def name(self) -> str:
        whose = "own" if self.own else "other"
        return f"{whose}-{self.quota_us // 1000}-{self.period_us // 1000}-{self.neighbours}-{self.nice}"


def trials(neighbours: Sequence[int], nices: Sequence[int]) -> list[Trial]:
    """A program that is alone in its group is nice to nobody."""
    return [
        Trial(quota_us, period_us, number, nice, own)
        for (quota_us, period_us), number, nice, own in product(LIMITS_US, neighbours, nices, (True, False))
        if not (own and nice)
    ]


@dataclass(frozen=True)
class Place:
    """Where the trials are made. group: a control group to be made. loops: as in the program's own.c. nap: waits."""

    agent: str
    victim: str
    folder: str
    group: str
    limit: str
    loops: int
    nap: str


FIRST_VERSION = (
    "echo {period} > $G/cpu.cfs_period_us && echo {quota} > $G/cpu.cfs_quota_us && "
    "echo $((1024 * {weight})) > $G/cpu.shares"
)
SECOND_VERSION = "echo {quota} {period} > $G/cpu.max && echo {weight}00 > $G/cpu.weight"
WEIGHT = {True: 8, False: 1}
"""Of the group, by whether the program is in it: it would hardly reach its limit among others of its weight."""
MOUNTED = "mkdir -p /cg && mount -t cgroup2 none /cg && echo +cpu > /cg/cgroup.subtree_control || exit\n"


def script(trial: Trial, place: Place) -> str:
    """Shell commands that leave the record NAME and the program's list NAME.truth."""
    on_cpu, inside = "taskset -c 1", "sh -c 'echo $$ > $G/cgroup.procs; exec \"$@\"' sh"
    busy = f"{on_cpu} {place.victim} own answer 100000 {place.loops}"
    late = f"{on_cpu} {place.victim} own cpu-max {TIMES} {place.loops}"
    busy_ones = [busy] * trial.neighbours
    if not trial.own:
        busy_ones[0] = f"{inside} {busy_ones[0]}"
    late = f"CPU_STAT=$G/cpu.stat {inside} {late}" if trial.own else f"CPU_STAT=/none NICE={trial.nice} {late}"
    limit = place.limit.format(quota=trial.quota_us, period=trial.period_us, weight=WEIGHT[trial.own])
    starts = "\n".join(f'{one} & busy="$busy $!"' for one in busy_ones)
    return f"""\
export G={place.group}
mkdir $G && {limit} || exit
{place.agent} run --cpus 1 --warmup 100ms --samples 1000000 --trace explain,calls_of=victim,buffer_kib=8192 \\
    -o {place.folder}/{trial.name} & measures=$!
while ! [ -s {place.folder}/{trial.name} ]; do {place.nap}; done
busy=
{starts}
{place.nap}
{late} > {place.folder}/{trial.name}.truth
kill $busy
wait $busy 2> /dev/null
kill -INT $measures
wait $measures || exit
rmdir $G
"""


def outcome(each: Told, trial: Trial) -> str:
    """What an event says of the rule."""
    if each.waited_ns < LEAST_WAIT_NS:
        return "no wait of 10 ms"
    share = each.took_ns / each.waited_ns if trial.own else 0.0
    if MOST_OF_TURNS < share < MOST_OF_LIMIT:
        return "both"
    first = next((one for one in each.budget.by_cause if one.cause not in OWN), None)
    limit = first is not None and may_be_limit(first.cause)
    truth = "limit" if share >= MOST_OF_LIMIT else "turn" if trial.own else "turn beside a limit of others"
    return f"{truth}: {'may be cpu.max' if limit else 'a thread'}"


def may_be_limit(cause: Cause) -> bool:
    return Cause.THROTTLED in (cause, *MAY_BE.get(cause, ()))


def long_waits(each: Told) -> Iterator[bool]:
    """Of each time without the CPU of 10 ms or more, whether a part of it may be cpu.max."""
    parts = each.budget.parts
    for own, group in groupby(parts, key=lambda part: part.cause.cause in (*OWN, *MAY_BE_OWN, Cause.RETURN)):
        wait = list(group)
        if not own and wait[-1].to_ns - wait[0].from_ns >= LEAST_WAIT_NS:
            yield any(may_be_limit(part.cause.cause) for part in wait)


def read_trial(trial: Trial, folder: Path) -> Counter[str]:
    (folder / "cpu-max").unlink(missing_ok=True)
    for suffix in ("", ".truth"):
        (folder / f"cpu-max{suffix}").unlink(missing_ok=True)
        (folder / f"cpu-max{suffix}").symlink_to(f"{trial.name}{suffix}")
    told = own_doings.read_all(Doing("cpu-max", Cause.THROTTLED), folder)
    blamed = [blames for each in told for blames in long_waits(each)]
    waits = Counter({"waits of 10 ms": len(blamed), "waits that may be cpu.max": sum(blamed)})
    return waits + Counter(outcome(each, trial) for each in told)


def measure(item: str) -> dict[str, Any]:
    """All trials of a place; how often each outcome came, and of each limit."""
    here = item == HERE
    made = trials((1, 2, 3, 4) if here else (1, 2, 4), (0, 10))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (run_here if here else run_in_guest)(made, folder)
        counts = {trial.name: dict(read_trial(trial, folder if here else folder / "out")) for trial in made}
    for name, count in counts.items():
        print(f"    {name:20} {count}", flush=True)
    total: Counter[str] = Counter()
    for count in counts.values():
        total.update(count)
    return {"trials": counts, "outcomes": dict(sorted(total.items()))}


def run_here(made: Sequence[Trial], folder: Path) -> None:
    """UserError if a trial fails. Whatever a trial has started ends with it."""
    first = Path("/sys/fs/cgroup/cpu")
    root, limit = (first, FIRST_VERSION) if first.is_dir() else (first.parent, SECOND_VERSION)
    group = f"{root}/rtproof_cpu_max.{os.getpid()}"
    victim = str(disturbed_guests.victim(host_architecture().name))
    place = Place(str(find_agent()), victim, str(folder), group, limit, 0, "sleep 0.2")
    begin = "trap 'kill $busy $measures 2> /dev/null; wait; rmdir $G 2> /dev/null' EXIT\n"
    for trial in made:
        command = ["timeout", "120", "bash", "-c", begin + script(trial, place)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not (folder / f"{trial.name}.truth").read_text():
            raise UserError(f"{trial.name} failed: {done.stderr[-300:]}")


def run_in_guest(made: Sequence[Trial], folder: Path) -> None:
    """UserError if the guest fails."""
    place = Place("/agent", "/victim", "/out", "/cg/g", SECOND_VERSION, GUEST_LOOPS, "usleep 100000")
    text = "mount -t tracefs none /sys/kernel/tracing 2> /dev/null\n" + MOUNTED
    text += "".join(script(trial, place) for trial in made)
    files = (
        ("/agent", build_agent(GUEST.architecture)),
        ("/victim", disturbed_guests.victim(GUEST.architecture)),
    )
    job = Job(disturbed_guests.choice_of_model(GUEST) + text, files)
    ended = run_job(replace(machine_of(GUEST), cpus=2), job, folder / "out", PATIENCE_S)
    if ended.exit_code:
        raise UserError(f"the guest failed: {ended.said.strip()[-300:]}")


def _share(outcomes: Details, truth: str) -> tuple[float | None, int]:
    told, missed = (outcomes.get(f"{truth}: {words}", 0) for words in ("may be cpu.max", "a thread"))
    return percent(told, told + missed), told + missed


def part_figures(items: Items) -> list[Figure]:
    """How often the rule names cpu.max, where that is right and where it is wrong."""
    truths = ("limit", "turn", "turn beside a limit of others")
    rows = [(name, truth, _share(one["outcomes"], truth)) for name, one in items.items() for truth in truths]
    return [Figure(name, f"may be cpu.max; it was a {truth}", share, "%", n) for name, truth, (share, n) in rows]


PART = Part(
    asked="1: cpu.max beside other threads, and none where others have a limit",
    items=lambda: (HERE, GUEST.name),
    measure=measure,
    figures=part_figures,
    long="it needs this machine as root, and disturbs it for ten minutes",
)
