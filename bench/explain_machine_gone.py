# SPDX-License-Identifier: Apache-2.0
"""What an explanation says of a machine that was gone: QEMU in wall-clock time, stopped while the guest measures."""

import os
import random
import signal
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explain_parts import Bound, Details, Figure, Items, Part, first_causes, percent

from rtproof.agents.build import build_agent
from rtproof.explain.budget import TimeBudget
from rtproof.explain.causes import Cause
from rtproof.explain.explanation import explain
from rtproof.lab import kernel_catalogue
from rtproof.record.contents import Record
from rtproof.record.reading import open_record
from rtproof.vm.guest import CONSOLE_LOG, Job, started_guest, unpack_results, wait_until_over
from rtproof.vm.machine import Machine, Mode

KERNEL = "debian-6.1"
LENGTHS_MS = (1, 5, 20)
PAUSE_MS = (60, 140)
"""From one stop to the next, by chance between these."""
LIMIT_NS = 700_000
LENGTH_S = 15
CPUS = {"1-cpu": 1, "2-cpus": 2}
LOADS = {"idle": "", "user": "--load cpu", "kernel": "--load zero"}
SCRIPT = """\
mount -t tracefs none /sys/kernel/tracing
measure() {{
    name=$1; shift
    /agent run --warmup 200ms --duration {seconds}s --limit 700us --trace recorder,stacks,top=0,ordinary=8 \\
        -o /out/$name "$@" 2> /out/$name.said || echo "exit $?" >> /out/$name.said
}}
"""
SAME_NS, SPARE_NS = 2_000_000, 10_000_000
"""How close to the end of a stop the activation ends that it made late, and how much longer it is at most."""
LIES = (Cause.IRQ_OFF,)
"""It says "interrupts off" and nothing else, although the machine was gone."""
TOLD, OPEN = (Cause.MACHINE, Cause.LATE_TIMER), (Cause.IRQ_OFF_OR_GONE, Cause.IRQ_OFF_LIKELY, Cause.IDLE_EXIT)
"""Causes that name the machine or its timer, and those that leave it open."""


@dataclass(frozen=True)
class Stop:
    """One stop of QEMU, in ns of the host's clock. asked_ms: its length as it was to be."""

    asked_ms: int
    begin_ns: int
    end_ns: int

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.begin_ns


@dataclass
class Stopper:
    """Stops a process from time to time until it is told to end. stops: those that are over."""

    pid: int
    stops: list[Stop] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def working(self) -> Iterator[None]:
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _work(self) -> None:
        chance = random.Random(1)  # noqa: S311 - nothing is secret
        while not self._over.wait(chance.uniform(*PAUSE_MS) / 1000):
            self._stop(chance.choice(LENGTHS_MS))

    def _stop(self, length_ms: int) -> None:
        try:
            os.kill(self.pid, signal.SIGSTOP)
        except ProcessLookupError:
            self._over.set()
            return
        begin_ns = time.monotonic_ns()
        try:
            time.sleep(length_ms / 1000)
        finally:
            os.kill(self.pid, signal.SIGCONT)
        self.stops.append(Stop(length_ms, begin_ns, time.monotonic_ns()))


def measure(name: str) -> dict[str, Any]:
    """The figures of the guest with this many CPUs, by load."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        stops = _run(CPUS[name], folder)
        loads = {load: figures(open_record(folder / load), stops) for load in LOADS}
    return {"kernel": KERNEL, "lengths_ms": LENGTHS_MS, "seconds": LENGTH_S, "loads": loads}


def part_figures(items: Items) -> list[Figure]:
    """The numbers of each guest and load, with what is asked of them."""
    loads = ((name, load, told) for name, one in items.items() for load, told in one["loads"].items())
    return [figure for each in loads for figure in _of_load(*each)]


def _of_load(name: str, load: str, told: Details) -> list[Figure]:
    stopped, named = told["made_late_by_a_stop"], Bound(100) if load == "user" else None
    matched_percent, told_percent = percent(stopped, told["stops"]), told["named_machine_percent"]
    return [
        Figure(name, f"{load}: irqoff first, without an or", told["lies_of_all"], "", told["explained"], Bound(0, 0)),
        Figure(name, f"{load}: stops that could be matched", matched_percent, "%", told["stops"]),
        Figure(name, f"{load}: of these the machine or its timer named", told_percent, "%", stopped, named),
        Figure(name, f"{load}: of these left open", told["left_open_percent"], "%", stopped),
    ]


def _run(cpus: int, folder: Path) -> list[Stop]:
    machine = Machine(kernel_catalogue.fetch_kernel(KERNEL), mode=Mode.WALL_CLOCK, cpus=cpus)
    agent = build_agent("x86_64")
    lines = [f"measure {load} --threads {cpus} {options}\n" for load, options in LOADS.items()]
    job = Job(SCRIPT.format(seconds=LENGTH_S) + "".join(lines), (("/agent", agent),))
    with started_guest(machine, job, folder / CONSOLE_LOG, 600) as guest:
        stopper = Stopper(guest.pid)
        with stopper.working():
            wait_until_over(guest, 600)
        unpack_results(guest.mailbox.letters.results.getvalue(), folder)
    return stopper.stops


def figures(record: Record, stops: Sequence[Stop]) -> dict[str, Any]:
    """What the first causes are of the activations that a stop made late, and of all late ones."""
    found = explain(record, LIMIT_NS)
    pairs = matched(found.budgets, stops)
    return {
        "stops": len(stops),
        "late": found.late,
        "explained": len(found.budgets),
        "made_late_by_a_stop": len(pairs),
        "named_machine_percent": _of([each for _, each in pairs], TOLD),
        "left_open_percent": _of([each for _, each in pairs], OPEN),
        "lies": sum(each.first.cause in LIES for _, each in pairs),
        "by_length": {f"{length} ms": first_causes([each for stop, each in pairs if stop.asked_ms == length])
                      for length in LENGTHS_MS},
        "lies_of_all": sum(each.first.cause in LIES for each in found.budgets),
        "others": first_causes([each for each in found.budgets if each not in [one for _, one in pairs]]),
    }  # fmt: skip


def _of(budgets: Sequence[TimeBudget], causes: Sequence[Cause]) -> float | None:
    return percent(sum(each.first.cause in causes for each in budgets), len(budgets))


def matched(budgets: Sequence[TimeBudget], stops: Sequence[Stop]) -> list[tuple[Stop, TimeBudget]]:
    """Each stop with the activation that it made late: the one that has most of the stop in it, and half at least.

    The clocks of guest and host differ by a constant. It is the one that brings most stops to such an end, because the
    pauses between stops are random. Longer stops tell it, because hardly anything else is as long.
    """
    told = sorted(
        stop.end_ns - each.activation.end_ns
        for stop in stops
        for each in budgets
        if stop.asked_ms > 1 and stop.length_ns / 2 < each.activation.latency_ns < stop.length_ns + SPARE_NS
    )
    if not told:
        return []
    near = [bisect_left(told, each + SAME_NS) - at for at, each in enumerate(told)]
    offset_ns = told[near.index(max(near))] + SAME_NS // 2
    pairs = ((stop, _latest(budgets, stop, offset_ns)) for stop in stops)
    return [(stop, found) for stop, found in pairs if found]


def _latest(budgets: Sequence[TimeBudget], stop: Stop, offset_ns: int) -> TimeBudget | None:
    """The activation that has most of a stop in it; None if none has half of it."""
    overlaps = [
        min(each.activation.end_ns + offset_ns, stop.end_ns) - max(each.activation.due_ns + offset_ns, stop.begin_ns)
        for each in budgets
    ]
    most = max(overlaps, default=0)
    return budgets[overlaps.index(most)] if most >= stop.length_ns / 2 else None


PART = Part(
    asked='3: QEMU stopped for 1, 5 and 20 ms: the machine where it can be told, never irqoff without "or"',
    items=lambda: list(CPUS),
    measure=measure,
    figures=part_figures,
)
