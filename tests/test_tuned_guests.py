# SPDX-License-Identifier: Apache-2.0
"""The files of a tuning in a fresh guest: its settings and its latency are those of the run that was tuned."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import lab_kernels
import numpy as np
import pytest
from agent_process import agent
from probe_guest import Guest, values

from rtproof.tune.knobs import KnobOnTarget, TunedCpus, all_knobs, for_cpus, settings_of
from rtproof.tune.permanent import BOOT, FOLDERS, SCRIPT, SYSCTL, permanent_files
from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow
KERNEL = "debian-6.12"
CPUS = TunedCpus((0,), ())
SAMPLES = 150
START = f"""\
run() {{
    name=$1; shift
    /agent run --warmup 20ms --samples {SAMPLES} --policy fifo -o /out/$name "$@" 2> /out/$name.said
}}
try() {{ /agent try "$@" 2> /out/tried || true; }}
spam() {{
    echo on > /proc/sys/kernel/printk_devkmsg
    while :; do echo "<3>{"noise " * 100}" > /dev/kmsg; done &
}}
"""
"""spam: messages that a console needs long for, at a level that it shows."""
APPLY = f"""\
sysctl -p {FOLDERS[SYSCTL]}/{SYSCTL} > /out/sysctl 2>&1
sh {FOLDERS[SCRIPT]}/{SCRIPT} hold > /out/script 2>&1 &
held() {{ od -An -td4 /dev/cpu_dma_latency | tr -d ' '; }}
until [ "$(held)" = 0 ]; do kill -0 $! || exit; sleep 0.1; done
cat /sys/kernel/debug/sched/preempt > /out/preempt
"""


def guest(folder: Path, script: str, files: dict[str, str], boot: str = "") -> Guest:
    """What a script leaves in a fresh guest, which has these files and boots with these words."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    placed = tuple((f"{FOLDERS[name]}/{name}", folder / name) for name in files)
    machine = Machine(lab_kernels.kernel(KERNEL), boot=tuple(boot.split()))
    outcome = run_job(machine, Job(START + script, (("/agent", Path(agent())), *placed)), folder / "out")
    assert outcome.exit_code == 0, outcome.said
    return Guest(KERNEL, folder / "out")


def tries(settings: list[str]) -> str:
    """Each setting tried alone."""
    return "try " + shlex.join([word for each in settings for word in ("--", "--set", each)][1:]) + "\n"


def tried(guest: Guest) -> Iterator[str]:
    """What became of each."""
    lines = guest.text("tried").splitlines()
    return (line.split("\t")[-1] for line in lines if line.startswith(("setting\t", "refused\t")))


def median_ns(guest: Guest, name: str) -> float:
    return float(np.median(values(guest.record(name))["latency"]))


def test_files_give_a_fresh_guest_the_settings_and_the_latency_of_the_tuned_run(tmp_path: Path) -> None:
    """In virtual time these are numbers of instructions, so that they can be asserted.

    The knob preempt is tuned, and a word for the boot has to do the same.
    """
    knobs = [knob for knob in all_knobs() if not (knob.danger or knob.whole or knob.name == "preempt")]
    wanted = [setting for knob in knobs for setting in settings_of(knob, CPUS)]
    tuned = "--set /proc/sys/kernel/printk=1 --set /sys/kernel/debug/sched/preempt=full"
    first = guest(tmp_path / "first", f"{tries(wanted)}spam\nrun before\nrun tuned {tuned}\nkill $!", {})
    works = [name for name, said in zip(wanted, tried(first), strict=True) if re.match(r"[1-9]\d* set", said)]
    assert {"/proc/sys/kernel/printk=1", "/proc/sys/vm/swappiness=1", "threads:ksoftirqd/*:policy=fifo:1"} <= {*works}
    at_boot = "preempt-at-boot"
    kept = [
        KnobOnTarget(knob, own, for_cpus(knob.boot, CPUS) if knob.name == at_boot else "")
        for knob in knobs
        if (own := tuple(each for each in settings_of(knob, CPUS) if each in works))
        or knob.agent
        or knob.name == at_boot
    ]
    files = permanent_files(kept)
    boot = files[BOOT].splitlines()[-1]
    assert boot == "preempt=full"
    script = f"{APPLY}{tries(works)}spam\nrun after\nkill $!"
    fresh = guest(tmp_path / "fresh", script, {name: files[name] for name in (SYSCTL, SCRIPT)}, boot)
    refused = fresh.text("script")
    for setting, said in zip(works, tried(fresh), strict=True):
        thread = setting.startswith("threads:") and f"no thread {setting.split(':')[1]} takes chrt" in refused
        assert thread or re.match(r"0 set, [1-9]", said) or "keeps the value that it has" in said, (setting, said)
    assert "(full)" in fresh.text("preempt")
    assert median_ns(first, "before") > 5 * median_ns(first, "tuned")
    assert median_ns(first, "before") > 5 * median_ns(fresh, "after")
