# SPDX-License-Identifier: Apache-2.0
"""What there is to see with several processors: questions, with their cells of the lab and the expected order.

Virtual time is the same anywhere, but other kernels, compilers and emulators give other figures. So an order is
expected, with a generous ratio, and no figure.
"""

import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from part import Bound, Details, Figure, Part, percent

from rtproof.core.errors import TargetError
from rtproof.judge.analyse import analyse
from rtproof.record import run_folder

RT, PLAIN, NEWER_RT = "debian-6.1-rt", "debian-6.1", "debian-6.12-rt"
ISOLATED = "isolcpus=domain,managed_irq,1 irqaffinity=0 rcu_nocbs=1"
FOURTH_ISOLATED = "isolcpus=domain,managed_irq,3 irqaffinity=0 rcu_nocbs=3"
AGENT = "/lab/rtproof-agent"
AUDITED = f"{AGENT} facts -o /out/facts.rtrec"
"""A line of the setup that leaves what an audit reads of the guest in the folder of the cell."""


@dataclass(frozen=True)
class Cell:
    """A cell of the lab. measured: the CPUs whose latency is measured. more: further options of the command."""

    kernel: str
    load: str = "idle"
    boot: str = ""
    preempt: str = ""
    measured: str = "1"
    cpus: int = 2
    setup: tuple[str, ...] = ()
    duration: str = "400ms"
    more: tuple[str, ...] = ()
    shifts: int = 1

    def command(self) -> tuple[str, ...]:
        """What a user types, without where the result goes."""
        boot = ("--boot", self.boot) if self.boot else ()
        preempt = ("--preempt", self.preempt) if self.preempt else ()
        setup = tuple(word for line in self.setup for word in ("--setup", line))
        return (
            *("rtproof", "lab", "compare", "--processors", str(self.cpus), "--measured-cpus", self.measured),
            *("--kernel", self.kernel, *preempt, *boot, "--load", self.load, "--duration", self.duration),
            *("--warmup", "300ms", "--shifts", str(self.shifts), *self.more, *setup),
        )


@dataclass(frozen=True)
class CpuFigures:
    """The latencies of one CPU of a cell; of several shifts, the least, the mean of the first, and the largest.

    max_of_each_ns: the largest latency of each shift.
    """

    min_ns: int
    mean_ns: float
    max_ns: int
    missed_count: int
    max_of_each_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Order:
    """Expected: the largest latency of ``above`` is at least ``ratio`` times that of ``below``, both (cell, CPU).

    With a ratio below 1, ``above`` need not be above: the two are alike, within this factor in both directions.
    """

    above: tuple[str, int]
    below: tuple[str, int]
    ratio: float

    def holds(self, cells: dict[str, dict[int, CpuFigures]]) -> bool:
        above, below = (cells[name][cpu].max_ns for name, cpu in (self.above, self.below))
        return above >= self.ratio * below and (self.ratio >= 1 or below >= self.ratio * above)

    def __str__(self) -> str:
        above, below = (f"{name}, CPU {cpu}" for name, cpu in (self.above, self.below))
        if self.ratio < 1:
            return f"{above} is as late as {below}, within a factor of {1 / self.ratio:g}"
        return f"{above} is at least {self.ratio:g} times as late as {below}"


@dataclass(frozen=True)
class Question:
    """Cells with names, and the orders expected of them. audited: names of cells whose facts are audited, for CPU 1."""

    cells: dict[str, Cell]
    orders: tuple[Order, ...] = ()
    audited: tuple[str, ...] = ()


def find(thread: str) -> str:
    """Commands that leave the number of the thread of this name in $it. They start no process, so they are quick."""
    return (
        f'for at in /proc/[0-9]*/task/*; do read name <$at/comm; [ "$name" = {thread} ] && break; done 2>/dev/null; '
        "it=${at##*/}"
    )


QUESTIONS: dict[str, Callable[[], Question]] = {}
BOTH = {"none": Cell(PLAIN, preempt="none"), "rt": Cell(RT)}


def question(function: Callable[[], Question]) -> Callable[[], Question]:
    """Add a question to the list, by the name of its function."""
    QUESTIONS[function.__name__.replace("_", "-")] = function
    return function


@question
def isolation() -> Question:
    """The load on CPU 0, measured on CPU 1: does an isolated CPU see the load of another one?"""
    cells = {}
    for kernel, cell in BOTH.items():
        for where, boot in (("isolated", ISOLATED), ("not isolated", "")):
            cells[f"{kernel}, {where}, idle"] = replace(cell, boot=boot)
            cells[f"{kernel}, {where}, mmap"] = replace(cell, boot=boot, load="mmap@0" if boot else "mmap", shifts=4)
    return Question(
        cells,
        (
            Order(("none, not isolated, mmap", 1), ("none, isolated, mmap", 1), 10),
            Order(("none, isolated, mmap", 1), ("none, isolated, idle", 1), 0.5),
            Order(("rt, isolated, mmap", 1), ("rt, isolated, idle", 1), 0.5),
            Order(("none, not isolated, mmap", 1), ("rt, not isolated, mmap", 1), 10),
        ),
    )


@question
def kernel_thread() -> Question:
    """A thread of the kernel that may run on the isolated CPU, and works there. Its twin: the same, bound to CPU 0."""
    at = f"{find('rcuop/0')}; taskset -p %d $it"
    base = Cell(PLAIN, "files", ISOLATED, "none")
    return Question(
        {
            "planted": replace(base, setup=(at % 2, AUDITED)),
            "twin": replace(base, setup=(at % 1, AUDITED)),
            "planted, rt": replace(base, kernel=RT, preempt="", setup=(at % 2,)),
            "twin, rt": replace(base, kernel=RT, preempt="", setup=(at % 1,)),
        },
        (Order(("planted", 1), ("twin", 1), 1.3),),
        audited=("planted", "twin"),
    )


@question
def work_queue() -> Question:
    """The mask of the kernel's unbound work is the wrong way round. Its twin: the mask that isolcpus= set.

    A mount of an unknown kind of file system has the kernel start modprobe, which is unbound work. There is none in the
    guest, so that the start soon fails and is often tried.
    """
    mounts = "for i in 1 2; do while :; do mount -t unknown none /tmp; usleep 200; done >/dev/null 2>&1 & done"
    at = "echo %d > /sys/devices/virtual/workqueue/cpumask"
    cells = {}
    for kernel, cell in BOTH.items():
        for name, mask in (("planted", 2), ("twin", 1)):
            cells[f"{kernel}, {name}"] = replace(cell, boot=ISOLATED, setup=(at % mask, mounts, AUDITED))
    return Question(
        cells,
        (Order(("none, planted", 1), ("none, twin", 1), 2),),
        audited=("none, planted", "none, twin"),
    )


def writes(count: int, apart_ms: int) -> str:
    """A line that writes so many bytes at a time to the serial line, for as long as a cell lasts."""
    return (
        f"dd if=/dev/zero bs={count} count=1 2>/dev/null | tr '\\0' x >/tmp/page; "
        f"(while :; do cat /tmp/page; usleep {apart_ms}000; done) >/dev/ttyS0 &"
    )


@question
def interrupt() -> Question:
    """A program writes to the serial line. Planted: the line's interrupt is served by the isolated CPU.

    The emulator's serial line interrupts PREEMPT_RT at every byte, and the kernel turns an interrupt off after 100,000
    of them. So less is written there, and only once the agent is about to begin.
    """
    at = "echo %d > /proc/irq/4/smp_affinity"
    often, seldom = (writes(4096, 5), AUDITED), (AUDITED, writes(512, 3))
    systems = {
        "none": Cell(PLAIN, preempt="none", setup=often),
        "rt": Cell(RT, setup=seldom),
        "rt, priority 40": Cell(RT, setup=seldom, more=("--priority", "40")),
    }
    cells = {
        f"{system}, {name}": replace(cell, boot=ISOLATED, setup=(at % mask, *cell.setup))
        for system, cell in systems.items()
        for name, mask in (("planted", 2), ("twin", 1))
    }
    return Question(
        cells,
        (
            Order(("none, planted", 1), ("none, twin", 1), 3),
            Order(("rt, priority 40, planted", 1), ("rt, priority 40, twin", 1), 2),
            Order(("none, planted", 1), ("rt, planted", 1), 3),
        ),
        audited=("none, planted", "none, twin"),
    )


@question
def migration() -> Question:
    """The measured thread moves to the loaded CPU 0 in mid-run, and back. Its twin stays where it is."""
    moves = f"(sleep 0.55; {find('rtproof-0')}; taskset -p 1 $it; sleep 0.1; taskset -p 2 $it) >/out/moves 2>&1 &"
    stays = moves.replace("taskset -p 1", "taskset -p 2")
    cells = {
        f"{kernel}, {name}": replace(cell, load="mmap@0", boot=ISOLATED, setup=setup)
        for kernel, cell in BOTH.items()
        for name, setup in (("planted", (moves,)), ("twin", (stays,)))
    }
    return Question(
        cells,
        (Order(("none, planted", 1), ("none, twin", 1), 5),),
    )


def hog(cpu: int) -> str:
    """A line that starts three threads of FIFO priority 50, which together ask for more than all of a CPU.

    Each asks for less than half, because the agent takes the policy away from a thread that uses more.
    """
    one = (
        f"{AGENT} run --probe app:work=busy,busy_us=4500 --method shift --period 10ms --duration 3s --warmup 0ms "
        f"--priority 50 --cpus {cpu}"
    )
    return f"for i in 1 2 3; do {one} -o /tmp/hog$i.rtrec >/out/hog$i 2>&1 & done"


@question
def throttling() -> Question:
    """A thread of lower priority takes all of one CPU, and the kernel throttles that CPU alone."""
    short = ("echo 95000 > /proc/sys/kernel/sched_rt_runtime_us", "echo 100000 > /proc/sys/kernel/sched_rt_period_us")
    both = Cell(RT, boot=ISOLATED, measured="0-1")
    return Question(
        {
            "planted": replace(both, setup=(*short, hog(1))),
            "twin, hog on CPU 0": replace(both, setup=(*short, hog(0))),
            "twin, no throttling": replace(both, setup=("echo -1 > /proc/sys/kernel/sched_rt_runtime_us", hog(1))),
            "planted, as it comes": replace(both, setup=(hog(1),), duration="2s"),
        },
        (
            Order(("planted", 1), ("planted", 0), 50),
            Order(("planted", 1), ("twin, no throttling", 1), 50),
            Order(("planted", 1), ("twin, hog on CPU 0", 1), 50),
            Order(("twin, hog on CPU 0", 0), ("twin, hog on CPU 0", 1), 50),
            Order(("planted, as it comes", 1), ("planted", 1), 3),
        ),
    )


@question
def fair_server() -> Question:
    """6.12 has a server for ordinary threads in place of throttling, with a share for each CPU of its own."""
    mount = "mount -t debugfs none /sys/kernel/debug 2>/dev/null || true"
    none = "echo 0 > /sys/kernel/debug/sched/fair_server/cpu%d/runtime"
    both = Cell(NEWER_RT, boot=ISOLATED, measured="0-1", duration="1500ms")
    return Question(
        {
            "planted": replace(both, setup=(mount, hog(1))),
            "twin, no server on CPU 1": replace(both, setup=(mount, none % 1, hog(1))),
            "no server on CPU 0": replace(both, setup=(mount, none % 0, hog(1))),
        },
        (
            Order(("planted", 1), ("planted", 0), 50),
            Order(("planted", 1), ("twin, no server on CPU 1", 1), 50),
            Order(("no server on CPU 0", 1), ("twin, no server on CPU 1", 1), 50),
        ),
    )


@question
def wake_up() -> Question:
    """A thread of CPU 0 wakes the measured one of CPU 1, which takes an interrupt from one to the other."""
    cells = {
        f"{kernel}, {load}, {sender}": replace(cell, load=load, more=("--probe", f"ipc:sender={sender}"))
        for kernel, cell in BOTH.items()
        for load in ("idle", "mmap")
        for sender in ("same", "other")
    }
    return Question(
        cells,
        (
            Order(("none, mmap, other", 1), ("rt, mmap, other", 1), 5),
            Order(("none, mmap, other", 1), ("none, idle, other", 1), 5),
        ),
    )


@question
def boot_arguments() -> Question:
    """What each argument of the boot gives, with mmap wherever it may run."""
    boots = {
        "none": "",
        "rcu_nocbs": "rcu_nocbs=1",
        "isolcpus": "isolcpus=domain,managed_irq,1",
        "all three": ISOLATED,
        "all, nohz_full": f"{ISOLATED} nohz_full=1",
    }
    cells = {name: Cell(PLAIN, "mmap", boot, "none") for name, boot in boots.items()}
    return Question(cells, (Order(("none", 1), ("all three", 1), 10),))


@question
def four() -> Question:
    """Four CPUs, the last isolated, with the load on the others."""
    base = Cell(RT, "mmap", FOURTH_ISOLATED, measured="3", cpus=4)
    return Question(
        {
            "rt, idle": replace(base, load="idle"),
            "rt, mmap": base,
            "none, idle": replace(base, kernel=PLAIN, preempt="none", load="idle"),
            "none, mmap": replace(base, kernel=PLAIN, preempt="none"),
            "none, not isolated, mmap": replace(base, kernel=PLAIN, preempt="none", boot=""),
        },
        (
            Order(("none, not isolated, mmap", 3), ("none, mmap", 3), 5),
            Order(("none, mmap", 3), ("none, idle", 3), 0.5),
            Order(("rt, mmap", 3), ("rt, idle", 3), 0.5),
        ),
    )


def figures_of(folders: list[Path]) -> tuple[dict[int, CpuFigures], list[str]]:
    """The latencies of each CPU over the shifts of a cell, and the codes of its doubts."""
    found = [analyse(run_folder.open_run(folder).record, None, 1) for folder in folders]
    cpus = {}
    for at, first in enumerate(found[0].summaries):
        each = [one.summaries[at] for one in found]
        maxima = tuple(max(one.observed.max, one.stalled_ns) for one in each)
        least, missed = min(one.observed.min for one in each), sum(one.never_ran for one in each)
        cpus[first.series.cpu] = CpuFigures(least, first.observed.mean or 0.0, max(maxima), missed, maxima)
    return cpus, list(dict.fromkeys(doubt.code for one in found for doubt in one.doubts))


def run_cell(cell: Cell, output: Path) -> list[Path]:
    """Run the cell, or take it from the cache. TargetError with the command's last words if it fails."""
    command = [sys.executable, "-m", *cell.command(), "--jobs", "1", "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    folders = sorted(output.glob("cells/*"))
    if not folders or done.returncode not in (0, 3):
        raise TargetError(f"{shlex.join(cell.command())}: {(done.stdout + done.stderr).strip()[-600:]}")
    return folders


def audit(folder: Path) -> list[str]:
    """The findings about isolation that the audit of a cell's facts has, a sentence each."""
    words = [sys.executable, "-m", "rtproof", "audit", str(folder / "facts.rtrec"), "--cpus", "1", "--json"]
    checks = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)["checks"]
    return [
        f"{check['id']}: {check['sentence']}"
        for check in checks
        if check["id"].startswith("iso.") and check["outcome"] == "finding"
    ]


def measure(name: str) -> dict[str, Any]:
    """Run all cells of a question, printing the lines of each, and judge its orders."""
    asked = QUESTIONS[name]()
    found: dict[str, dict[int, CpuFigures]] = {}
    cells: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for number, (cell_name, cell) in enumerate(asked.cells.items()):
            folders = run_cell(cell, Path(scratch) / str(number))
            found[cell_name], doubts = figures_of(folders)
            audits = audit(folders[0]) if cell_name in asked.audited else []
            cpus = {str(cpu): asdict(one) for cpu, one in found[cell_name].items()}
            cells[cell_name] = {"command": shlex.join(cell.command()), "cpus": cpus, "doubts": doubts, "audit": audits}
            print(*cell_lines(cell_name, found[cell_name], doubts), *audits, sep="\n    ", flush=True)
    orders = [(str(order), order.holds(found)) for order in asked.orders]
    print(*(f"    {'holds' if holds else 'FAILS'}: {words}" for words, holds in orders), sep="\n", flush=True)
    holding = percent(sum(holds for _, holds in orders), len(orders))
    return {"orders": len(orders), "hold_percent": holding, "judged": orders, "cells": cells}


def cell_lines(name: str, cpus: dict[int, CpuFigures], doubts: list[str]) -> list[str]:
    """A line for each CPU: min / mean / max in microseconds, with several shifts each maximum, what was missed."""
    lines = []
    for cpu, one in cpus.items():
        words = " / ".join(f"{ns / 1e3:,.1f}" for ns in (one.min_ns, one.mean_ns, one.max_ns))
        each = ", ".join(f"{ns / 1e3:,.1f}" for ns in one.max_of_each_ns)
        shifts = f" (of each shift {each})" if len(one.max_of_each_ns) > 1 else ""
        missed = f", {one.missed_count} missed" if one.missed_count else ""
        lines.append(f"    {name:32} CPU {cpu}  {words}{shifts}{missed}  {' '.join(doubts)}")
    return lines


def rows(name: str, one: Details) -> list[str]:
    return [f"| {name} | {words} | {'holds' if holds else 'FAILS'} |" for words, holds in one["judged"]]


PART = Part(
    goal="each expected order of the cells holds",
    items=lambda: list(QUESTIONS),
    measure=measure,
    figures=(Figure("hold_percent", "expected orders that hold", "%", Bound(100), "orders"),),
    head="| question | order | |",
    rows=rows,
    long="it takes more than an hour",
)
