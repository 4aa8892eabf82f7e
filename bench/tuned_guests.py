# SPDX-License-Identifier: Apache-2.0
"""Does a tuning find what is wrong in a guest, and does its interval cover the truth? In virtual time.

Usage: python bench/tuned_guests.py FOLDER [PLANT ...]. For each plant it tunes, and then measures each knob alone and
the expected set against the untouched guest, RUNS times each: this long direct comparison is the truth.
"""

import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from rtproof import statistics
from rtproof.cli.main import main
from rtproof.experiment import tuning_runs
from rtproof.lab import kernel_catalogue
from rtproof.tune import design, tuning

RUNS = 8
RUN_NS = 1_000_000_000
NOTHING = "swappiness"
"""A knob that does nothing in a guest that has no swap."""
OTHERS = (
    *("memory-statistics", "hung-task", "dirty-pages", "huge-pages", "khugepaged", "compaction"),
    *("perf", "schedstats", "timer-migration"),
)
"""Nine more."""
PRINTS = (
    "echo on >/proc/sys/kernel/printk_devkmsg; echo 8 >/proc/sys/kernel/printk; mkfifo /tmp/never; "
    'text="<4>$(printf %0900d 0)"; '
    '(exec 3<>/tmp/never 4>/dev/kmsg; while :; do echo "$text" >&4; read -t 0.003 x <&3; done) &'
)
"""By the shell alone: a process that starts delays as much as a line on the console."""
DEEP = "insmod /deep.ko exit_us={}"
HOG = (
    "echo {allowed} >/proc/sys/kernel/sched_rt_runtime_us; echo 100000 >/proc/sys/kernel/sched_rt_period_us; "
    "/rtproof/programs/rtproof-agent run --probe app:work=busy,busy_us=6000 --method shift --period 10ms "
    "--duration 60s --warmup 0ms --priority 50 --cpus 0 -o /tmp/hog.rtrec >/tmp/hog.log 2>&1 & sleep 0.05"
)
SERIAL = (
    "echo 2 >/proc/irq/4/smp_affinity; text=$(printf %04000d 0); "
    '(while :; do echo "$text"; usleep 5000; done) >/dev/ttyS0 &'
)


@dataclass(frozen=True)
class Plant:
    """What is wrong in a guest, and the knobs that must be kept. deep: whether its idle state is planted."""

    kept: tuple[str, ...]
    setup: str = ""
    boot: str = "preempt=full"
    kernel: str = "debian-6.1"
    knobs: tuple[str, ...] = (NOTHING,)
    words: tuple[str, ...] = ()
    options: dict[str, str] = field(default_factory=dict)
    deep: bool = False


PLANTS = {
    "console": Plant(("printk",), PRINTS),
    "deep-idle": Plant(("idle-states",), DEEP.format(60), deep=True),
    "together": Plant(("idle-states", "printk"), f"{DEEP.format(22)}; {PRINTS}", knobs=(), deep=True),
    "preemption": Plant(("preempt-at-boot",), boot="preempt=none", words=("--load", "mmap")),
    "timer-slack": Plant(("timer-slack",), words=("--policy", "other")),
    "nothing": Plant((), knobs=(NOTHING, *OTHERS)),
    "throttled": Plant(("throttling",), HOG.format(allowed=58000), boot="", kernel="debian-6.1-rt"),
    "interrupts": Plant(
        ("irq-affinity",),
        SERIAL,
        boot="isolcpus=domain,managed_irq,1 rcu_nocbs=1 preempt=none",
        options={"cpus": "2"},
    ),
}


def tuned(plant: Plant, folder: Path, seed: int) -> bool:
    """Tune a guest, print what was found and the truth; whether the set is right and every interval covers it."""
    right: list[bool] = []
    names = (*plant.kept, *plant.knobs)
    original = tuning.tune

    def planned(*_: object) -> tuple[tuning.Plan, int]:
        together = min(len(names), tuning.MOST_TOGETHER)
        pairs = design.screening_pairs(len(names)) if len(names) > together else 0
        # As few blocks as may be; a screening must be at most half of all runs.
        runs = max(tuning.LEAST_BLOCKS * 2**together, 2 * pairs)
        plan = tuning.plan(names, tuning.PILOT_RUNS + 2 * pairs + runs)
        assert plan
        return plan, RUN_NS

    def tune(plan: tuning.Plan, metric: str, measure: tuning.Measure, *given: Any) -> tuning.Tuning:
        found = original(plan, metric, measure, *given)
        right.append(set(found.kept or ()) == set(plant.kept))
        sets = [frozenset(), *(frozenset({name}) for name in names), frozenset(plant.kept)]
        if not plant.kept:
            sets = []  # The truth is that they do nothing.
        runs = [{each: measured[metric] for each in sets if (measured := measure(each))} for _ in range(RUNS)]
        differences = {each: [run[each] - run[frozenset()] for run in runs] for each in sets}
        truth = {each: mean(values) for each, values in differences.items()}
        # The truth is measured, too: the 95 % interval of RUNS differences.
        reach = statistics.student_quantile(0.975, RUNS - 1) / math.sqrt(RUNS)
        unsure = {each: reach * stdev(values) for each, values in differences.items()}
        effects = {frozenset({each.name}): (each.effects[metric], each.alpha) for each in found.knobs}
        if found.kept:
            effects[frozenset(found.kept)] = found.together[metric], tuning.ALPHA
        for each, (effect, alpha) in effects.items():
            low, high = effect.interval(alpha)
            true, error = truth.get(each, 0.0), unsure.get(each, 0.0)
            right.append(low - error <= true <= high + error)
            ratios = "{:.3f} ({:.3f} to {:.3f}), truth {:.3f} ({:.3f} to {:.3f})".format(
                *map(math.exp, (effect.ln, low, high, true, true - error, true + error))
            )
            print(f"    {' and '.join(sorted(each))}: {ratios}{'' if right[-1] else ' MISSED'}", flush=True)
        print(f"    kept: {', '.join(found.kept or ()) or 'nothing'}{'' if right[0] else ' WRONG'}", flush=True)
        return found

    options = {"kernel": plant.kernel, "boot": plant.boot, "setup": plant.setup, **plant.options}
    if plant.deep:
        options["files"] = f"/deep.ko={kernel_catalogue.module_for_kernel(plant.kernel, 'rtproof_deep_idle')}"
    words = [word for name, text in options.items() if text for word in ("--target-option", f"{name}={text}")]
    lengths = ("--run-length", "1s", "--warmup", "100ms", "--budget", "10h", "--seed", str(seed))
    tuning.tune, tuning_runs.planned = tune, planned  # type: ignore[assignment]
    try:
        ended = main(
            ["tune", "--target", "qemu", *words, *plant.words, "--knobs", ",".join(names), *lengths, "-o", str(folder)]
        )
    finally:
        tuning.tune = original
    return ended == 0 and bool(right) and all(right)


if __name__ == "__main__":
    place, *chosen = sys.argv[1:]
    Path(place).mkdir(exist_ok=True)
    wrong = []
    for name in chosen or PLANTS:
        print(f"{name}:", flush=True)
        if not tuned(PLANTS[name], Path(place) / name, seed=1):
            wrong.append(name)
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)
