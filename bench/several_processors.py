# SPDX-License-Identifier: Apache-2.0
"""What there is to see with several processors: questions, with their cells of the lab and the expected order.

``python bench/several_processors.py [QUESTION...]`` runs the questions one after the other, with one guest at a time,
and writes build/bench-several-processors.json. A question that ran before keeps its figures in that file. Virtual time
is the same anywhere, but other kernels, compilers and emulators give other figures. So an order is expected, with a
generous ratio, and no figure.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rtproof.judge.analyse import analyse
from rtproof.record import run_folder

OUTPUT = Path(__file__).parent.parent / "build" / "bench-several-processors.json"
RT, PLAIN, NEWER_RT, NEWER = "debian-6.1-rt", "debian-6.1", "debian-6.12-rt", "debian-6.12"
ISOLATED = "isolcpus=domain,managed_irq,1 irqaffinity=0 rcu_nocbs=1"
WHOLE_TICK = f"{ISOLATED} nohz_full=1"
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
class CellFigures:
    """What a cell showed. cpus: by number. doubts: their codes. folder: with its files while the question runs."""

    cpus: dict[int, CpuFigures]
    doubts: tuple[str, ...]
    folder: Path


@dataclass(frozen=True)
class Order:
    """Expected: the largest latency of ``above`` is at least ``ratio`` times that of ``below``, both (cell, CPU).

    With a ratio below 1, ``above`` need not be above: the two are alike, within this factor in both directions.
    """

    above: tuple[str, int]
    below: tuple[str, int]
    ratio: float

    def holds(self, cells: dict[str, CellFigures]) -> bool:
        above, below = (cells[name].cpus[cpu].max_ns for name, cpu in (self.above, self.below))
        return above >= self.ratio * below and (self.ratio >= 1 or below >= self.ratio * above)

    def __str__(self) -> str:
        above, below = (f"{name}, CPU {cpu}" for name, cpu in (self.above, self.below))
        if self.ratio < 1:
            return f"{above} is as late as {below}, within a factor of {1 / self.ratio:g}"
        return f"{above} is at least {self.ratio:g} times as late as {below}"


@dataclass(frozen=True)
class Question:
    """Cells with names, and the orders expected of them. audited: names of cells whose facts are audited, for CPU 1."""

    asks: str
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


def question(function: Callable[[], Question]) -> Callable[[], Question]:
    """Add a question to the list, by the name of its function."""
    QUESTIONS[function.__name__.replace("_", "-")] = function
    return function


@question
def isolation() -> Question:
    """The load on CPU 0, measured on CPU 1: does an isolated CPU see the load of another one?"""
    cells = {}
    for kernel, cell in (("none", Cell(PLAIN, preempt="none")), ("rt", Cell(RT))):
        for where, boot in (("isolated", ISOLATED), ("not isolated", "")):
            cells[f"{kernel}, {where}, idle"] = replace(cell, boot=boot)
            cells[f"{kernel}, {where}, mmap"] = replace(cell, boot=boot, load="mmap@0" if boot else "mmap", shifts=4)
    return Question(
        "Does an isolated CPU see the load of another one?",
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
        "A kernel thread that calls back for RCU runs on the isolated CPU",
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
    for kernel, cell in (("none", Cell(PLAIN, preempt="none")), ("rt", Cell(RT))):
        for name, mask in (("planted", 2), ("twin", 1)):
            cells[f"{kernel}, {name}"] = replace(cell, boot=ISOLATED, setup=(at % mask, mounts, AUDITED))
    return Question(
        "Unbound work of the kernel runs on the isolated CPU",
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
        "An interrupt is served by the isolated CPU",
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
        for kernel, cell in (("none", Cell(PLAIN, preempt="none")), ("rt", Cell(RT)))
        for name, setup in (("planted", (moves,)), ("twin", (stays,)))
    }
    return Question(
        "The measured thread moves to a loaded CPU and back",
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
        "Real-time throttling stops the measured thread of one CPU",
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
        "The server for ordinary threads of 6.12 stops the measured thread of one CPU",
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
        for kernel, cell in (("none", Cell(PLAIN, preempt="none")), ("rt", Cell(RT)))
        for load in ("idle", "mmap")
        for sender in ("same", "other")
    }
    return Question(
        "How long does a wake-up from another CPU take?",
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
        "all, nohz_full": WHOLE_TICK,
    }
    cells = {name: Cell(PLAIN, "mmap", boot, "none") for name, boot in boots.items()}
    return Question("What does each argument of the boot give?", cells, (Order(("none", 1), ("all three", 1), 10),))


@question
def four() -> Question:
    """Four CPUs, the last isolated, with the load on the others."""
    base = Cell(RT, "mmap", FOURTH_ISOLATED, measured="3", cpus=4)
    return Question(
        "Does it hold with four CPUs?",
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


def measure(cell: Cell, output: Path) -> CellFigures:
    """Run the cell, or take it from the cache. RuntimeError with the command's last words if it fails."""
    command = ["-m", *cell.command(), "--jobs", "1", "--output", str(output)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    folders = sorted(output.glob("cells/*"))
    if not folders or done.returncode not in (0, 3):
        raise RuntimeError(f"{shlex.join(cell.command())}: {(done.stdout + done.stderr).strip()[-600:]}")
    found = [analyse(run_folder.open_run(folder).record, None, 1) for folder in folders]
    cpus = {}
    for at, first in enumerate(found[0].summaries):
        each = [one.summaries[at] for one in found]
        maxima = tuple(max(one.observed.max, one.stalled_ns) for one in each)
        least, missed = min(one.observed.min for one in each), sum(one.never_ran for one in each)
        cpus[first.series.cpu] = CpuFigures(least, first.observed.mean or 0.0, max(maxima), missed, maxima)
    return CellFigures(cpus, tuple(dict.fromkeys(doubt.code for one in found for doubt in one.doubts)), folders[0])


def audit(folder: Path) -> list[str]:
    """The findings about isolation that the audit of a cell's facts has, a sentence each."""
    words = [sys.executable, "-m", "rtproof", "audit", str(folder / "facts.rtrec"), "--cpus", "1", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    checks = json.loads(done.stdout)["checks"]
    return [
        f"{check['id']}: {check['sentence']}"
        for check in checks
        if check["id"].startswith("iso.") and check["outcome"] == "finding"
    ]


@dataclass
class Answer:
    """The figures of a question's cells, the orders with whether they hold, and what audits found."""

    asks: str
    cells: dict[str, dict[str, object]] = field(default_factory=dict)
    orders: list[tuple[str, bool]] = field(default_factory=list)
    audits: dict[str, list[str]] = field(default_factory=dict)


def answer(asked: Question) -> Answer:
    """Run all cells of a question, printing the line of each, and judge its orders."""
    found: dict[str, CellFigures] = {}
    told = Answer(asked.asks)
    print(f"\n{asked.asks}", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for number, (name, cell) in enumerate(asked.cells.items()):
            found[name] = figures = measure(cell, Path(scratch) / str(number))
            print_cell(name, figures)
            cpus = {str(cpu): asdict(one) for cpu, one in figures.cpus.items()}
            told.cells[name] = {"command": shlex.join(cell.command()), "cpus": cpus, "doubts": figures.doubts}
            if name in asked.audited:
                told.audits[name] = audit(figures.folder)
                print(*(f"    audit: {sentence}" for sentence in told.audits[name]), sep="\n", flush=True)
    told.orders = [(str(order), order.holds(found)) for order in asked.orders]
    print(*(f"  {'holds' if holds else 'FAILS'}: {words}" for words, holds in told.orders), sep="\n", flush=True)
    return told


def print_cell(name: str, figures: CellFigures) -> None:
    """A line for each CPU: min / mean / max in microseconds, with several shifts each maximum, what was missed."""
    for cpu, one in figures.cpus.items():
        words = " / ".join(f"{ns / 1e3:,.1f}" for ns in (one.min_ns, one.mean_ns, one.max_ns))
        each = ", ".join(f"{ns / 1e3:,.1f}" for ns in one.max_of_each_ns)
        shifts = f" (of each shift {each})" if len(one.max_of_each_ns) > 1 else ""
        missed = f", {one.missed_count} missed" if one.missed_count else ""
        print(f"  {name:32} CPU {cpu}  {words}{shifts}{missed}  {' '.join(figures.doubts)}", flush=True)


def main(words: Sequence[str]) -> int:
    """Run the questions of these names, all without a name; 1 if an order does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", nargs="*", metavar="QUESTION", help="the questions to run (default: all)")
    names = parser.parse_args(words).questions or list(QUESTIONS)
    kept = json.loads(OUTPUT.read_text()) if OUTPUT.exists() else {}
    for name in names:
        told = answer(QUESTIONS[name]())
        kept[name] = asdict(told)
        OUTPUT.parent.mkdir(exist_ok=True)
        OUTPUT.write_text(json.dumps(kept, indent=2) + "\n")
    return 0 if all(holds for name in names for _, holds in kept[name]["orders"]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
