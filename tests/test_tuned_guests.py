# SPDX-License-Identifier: Apache-2.0
"""The files of a tuning in a fresh guest: its settings and its latency are those of the run that was tuned."""

import re
import shlex
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import lab_kernels
import numpy as np
import pytest
from agent_process import agent
from probe_guest import Guest, values

from rtproof.tune.knobs import KnobOnTarget, TunedCpus, all_knobs, for_cpus, settings_of
from rtproof.tune.permanent import BOOT, FOLDERS, SCRIPT, SYSCTL, TUNED, permanent_files
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


PROFILE = "/root/etc/tuned/rtproof"
LOG = "/root/var/log/tuned/tuned.log"
APPLY_BY_TUNED = f"""\
tar -C /root -xzf /root.tar.gz
cp /rtproof/busybox /root/bin/cat
mkdir -p /root/proc /root/sys /root/dev /root/run /root/tmp ${{LOG%/*}}
for folder in proc sys dev sys/kernel/debug; do mount --bind /$folder /root/$folder; done
chmod 755 {PROFILE}/{SCRIPT}
chroot /root tuned --no-dbus --no-socket --profile rtproof --log ${{LOG#/root}} > /out/said 2>&1 &
until grep -qs "static tuning from profile 'rtproof' applied" $LOG; do kill -0 $! || exit; sleep 0.1; done
cp $LOG /out/script
cat /root/etc/tuned/bootcmdline > /out/boot
od -An -td4 /dev/cpu_dma_latency > /out/held
cat /sys/kernel/debug/sched/preempt > /out/preempt
"""
"""tuned itself, from packages of Debian: it has its own Python and C library."""
PACKAGES = ("python3-dbus", "python3-gi", "python3-pyudev", "python3-linux-procfs", "dash", "ethtool", "util-linux")


def debian_with_tuned(folder: Path) -> Path:
    """An archive of a root folder with tuned and what it needs; skips if the packages cannot be had here."""
    (folder / "archives" / "partial").mkdir(parents=True)
    (folder / "status").touch()
    root = folder / "root"
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / "usr" / name).mkdir(parents=True)
        (root / name).symlink_to(f"usr/{name}")
    options = f"-o Dir::State::status={folder}/status -o Dir::Cache::archives={folder}/archives"
    shell = f"""\
set -e
cd {folder}/archives
apt-get {options} -o APT::Install-Recommends=false --download-only -y install {" ".join(PACKAGES)}
apt-get download tuned
for package in *.deb; do
    dpkg-deb --fsys-tarfile $package | tar -x -C {root} --keep-directory-symlink --exclude=./usr/share --exclude=gconv
done
tar -C {root} -czf {folder}/root.tar.gz .
"""
    ran = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip(f"the packages of tuned cannot be had here: {ran.stderr[-200:]}")
    return folder / "root.tar.gz"


def guest(folder: Path, script: str, files: dict[str, str | Path], boot: str = "") -> Guest:
    """What a script leaves in a fresh guest, which has these files, and boots with these words."""
    folder.mkdir()
    placed = []
    for number, (place, content) in enumerate(files.items()):
        if isinstance(content, str):
            (folder / str(number)).write_text(content)
        placed.append((place, folder / str(number) if isinstance(content, str) else content))
    machine = Machine(lab_kernels.kernel(KERNEL), boot=tuple(boot.split()), memory_mib=768)
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


@dataclass(frozen=True)
class TunedRun:
    """A guest with runs before a tuning and with it. works: the settings that this guest takes."""

    guest: Guest
    works: list[str]
    files: dict[str, str]
    boot: str


@pytest.fixture(scope="module")
def tuned_run(tmp_path_factory: pytest.TempPathFactory) -> TunedRun:
    """The knob preempt is tuned, and a word for the boot has to do the same."""
    knobs = [knob for knob in all_knobs() if not (knob.danger or knob.whole or knob.name == "preempt")]
    wanted = [setting for knob in knobs for setting in settings_of(knob, CPUS)]
    tuned = "--set /proc/sys/kernel/printk=1 --set /sys/kernel/debug/sched/preempt=full"
    folder = tmp_path_factory.mktemp("tuned") / "first"
    first = guest(folder, f"{tries(wanted)}spam\nrun before\nrun tuned {tuned}\nkill $!", {})
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
    assert median_ns(first, "before") > 5 * median_ns(first, "tuned")
    return TunedRun(first, works, files, boot)


def check(fresh: Guest, run: TunedRun) -> None:
    """The fresh guest has each setting, and reacts as early as the tuned run.

    In virtual time these are numbers of instructions, so that they can be asserted.
    """
    refused = fresh.text("script")
    for setting, said in zip(run.works, tried(fresh), strict=True):
        thread = setting.startswith("threads:") and f"no thread {setting.split(':')[1]} takes chrt" in refused
        assert thread or re.match(r"0 set, [1-9]", said) or "keeps the value that it has" in said, (setting, said)
    assert "(full)" in fresh.text("preempt")
    assert median_ns(run.guest, "before") > 5 * median_ns(fresh, "after")


def test_sysctl_script_and_command_line_tune_a_fresh_guest(tuned_run: TunedRun, tmp_path: Path) -> None:
    script = f"{APPLY}{tries(tuned_run.works)}spam\nrun after\nkill $!"
    files: dict[str, str | Path] = {f"{FOLDERS[name]}/{name}": tuned_run.files[name] for name in (SYSCTL, SCRIPT)}
    check(guest(tmp_path / "fresh", script, files, tuned_run.boot), tuned_run)


def test_tuned_itself_applies_the_profile_to_a_fresh_guest(tuned_run: TunedRun, tmp_path: Path) -> None:
    files: dict[str, str | Path] = {f"{PROFILE}/{name}": tuned_run.files[name] for name in (TUNED, SCRIPT)}
    files["/root.tar.gz"] = debian_with_tuned(tmp_path / "debian")
    script = f"LOG={LOG}\n{APPLY_BY_TUNED}{tries(tuned_run.works)}spam\nrun after\nkill $!"
    fresh = guest(tmp_path / "fresh", script, files, tuned_run.boot)
    check(fresh, tuned_run)
    assert fresh.text("held").strip() == "0"
    assert 'TUNED_BOOT_CMDLINE="preempt=full"' in fresh.text("boot")
