# SPDX-License-Identifier: Apache-2.0
"""Settings of a run are as before, byte for byte, after SIGKILL of the agent, of its control group, or of everything.

``RTPROOF_KILLS`` sets how often. In a guest, because others use this machine, and because some of the settings are
dangerous. Everything that can be set is compared there: /proc/sys, /sys/kernel, CPUs, interrupts, workqueues, control
groups, and the CPUs and policies of all threads.
"""

import os
import random
import re
from pathlib import Path

import lab_kernels
import pytest
from agent_process import agent

from rtproof.vm.guest import Job, run_job
from rtproof.vm.machine import Machine

pytestmark = pytest.mark.slow
KILLS = int(os.environ.get("RTPROOF_KILLS") or 20)
SEED = int(os.environ.get("RTPROOF_SEED") or 39)
LONGEST_S = 3600
WAYS = ("agent", "group", "all")
MILESTONES = ("/proc", "/var/lib/rtproof", "/out/record")
"""What is there first: the agent may not have begun; it has a journal; it measures, with everything set."""
SETTINGS = (
    "/proc/sys/vm/stat_interval=7",
    "/proc/sys/vm/swappiness=3",
    "/proc/sys/vm/dirty_background_ratio=3",
    "/proc/sys/kernel/printk=1",
    "/proc/sys/kernel/timer_migration=0",
    "/proc/sys/kernel/sched_rt_runtime_us=-1",
    "/sys/kernel/mm/transparent_hugepage/enabled=never",
    "/sys/devices/virtual/workqueue/cpumask=1",
    "/proc/irq/[0-9]*/smp_affinity_list=0",
    "/proc/irq/default_smp_affinity=1",
    "threads:ksoftirqd/*:policy=fifo:1",
    "controller:cpuset=on",
    "mkdir:/sys/fs/cgroup/tuned",
    "/sys/fs/cgroup/tuned/cpuset.cpus=1",
    "/sys/fs/cgroup/tuned/cpuset.cpus.partition=isolated",
    "join:/sys/fs/cgroup/tuned",
    "threads:*:cpus=0",
)
SCRIPT = """\
mount -t cgroup2 none /sys/fs/cgroup
mkdir -p /var/lib /out/states /sys/fs/cgroup/victim
state() {
    {
        for place in /proc/sys /proc/irq /sys/kernel /sys/kernel/debug/sched /sys/devices/system /sys/devices/virtual \\
            /sys/module /sys/fs/cgroup; do
            find $place -path /sys/kernel/debug/tracing -prune -o -path /sys/kernel/tracing -prune -o \\
                -path /sys/kernel/slab -prune -o -path '/sys/kernel/debug/[!s]*' -prune -o -type f -perm -200 -print
        done | xargs grep -Hsa ''
        find /sys/fs/cgroup /var/lib/rtproof /run -type d 2> /dev/null
        ls /var/lib/rtproof/* /run/rtproof-* 2> /dev/null
        grep -Hs Cpus_allowed: /proc/[0-9]*/task/[0-9]*/status
        cat /proc/[0-9]*/task/[0-9]*/stat 2> /dev/null
    } > /out/states/$1
}
ours() {
    grep -lsaE '^(/agent|rtproof-agent)' /proc/[0-9]*/cmdline | cut -d / -f 3
}
trial() {
    sh -c 'echo $$ > /sys/fs/cgroup/victim/cgroup.procs; exec /agent run --cpus 1 -o /out/record --duration 1h SET' &
    until [ -e $4 ] || ! kill -0 $!; do sleep 0.1; done
    sleep $3
    case $2 in
        agent) kill -9 $! ;;
        group) echo 1 > /sys/fs/cgroup/victim/cgroup.kill; kill -9 $! ;;
        all) kill -9 $(ours); kill -9 $(ours) ;;
    esac
    wait
    while [ -n "$(ours)" ]; do sleep 0.1; done
    ls /var/lib/rtproof/* | sed "s/^/left /" >> /out/told
    /agent undo 2>> /out/told || echo "undo failed" >> /out/told
    rm -f /out/record
    state $1
} 2> /dev/null
state 0
"""
CHANGING = re.compile(
    r"/random/|/ns_last_pid|/(dentry|inode)-state|/inode-nr|/file-nr|/pty/nr|/cpuidle/state\d+/\D+$|runtime_(active|suspended)_"
    r"|/slab|cgroup\.(procs|threads)|\.(stat|events|current|peak|pressure)$|/debug/sched/debug|/max_newidle_lb_cost|/trace"
)
KEPT_ON_ITS_CPU = 0x04000000
"""PF_NO_SETAFFINITY: only the kernel moves such a thread. It does so by itself: a rescuer goes to the CPU in need."""


def read_state(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """What each file says, and of each thread its CPUs and its policy; threads by their number and start."""
    files: dict[str, str] = {}
    allowed: dict[str, str] = {}
    threads: dict[str, str] = {}
    for line in path.read_text(errors="replace").splitlines():
        if thread := re.match(r"/proc/\d+/task/(\d+)/status:Cpus_allowed:\s*(\S+)", line):
            allowed[thread[1]] = thread[2]
        elif thread := re.match(r"(\d+) \((.*)\) (.*)", line):
            fields = thread[3].split()
            policy = " ".join((fields[15], fields[16], fields[37], fields[38]))
            cpus = "kept" if int(fields[6]) & KEPT_ON_ITS_CPU else allowed.get(thread[1])
            threads[f"{thread[1]} {fields[19]} {thread[2]}"] = f"{cpus} {policy}"
        else:
            name, _, content = line.partition(":")
            files[name] = f"{files[name]}\n{content}" if name in files else content
    return {name: content for name, content in files.items() if not CHANGING.search(name)}, threads


def differences(before: Path, after: Path) -> list[str]:
    (files, threads), (files_after, threads_after) = read_state(before), read_state(after)
    assert len(files) > 300
    assert len(threads) > 20
    changed = [name for name in files.keys() | files_after.keys() if files.get(name) != files_after.get(name)]
    moved = [name for name in threads.keys() & threads_after.keys() if threads[name] != threads_after[name]]
    told = [f"{name}: {files.get(name)!r} -> {files_after.get(name)!r}" for name in sorted(changed)]
    return told + [f"{name}: {threads[name]} -> {threads_after[name]}" for name in sorted(moved)]


def test_everything_is_as_before_whatever_is_killed(tmp_path: Path) -> None:
    draw = random.Random(SEED)
    chosen = " ".join(f'--set "{one}"' for one in SETTINGS)
    delays = [draw.random() * draw.choice((0.5, 1, 3)) for _ in range(KILLS)]
    trials = [(n, WAYS[n % 3], delay, MILESTONES[(n + n // 3) % 3]) for n, delay in enumerate(delays, 1)]
    script = SCRIPT.replace("SET", chosen) + "\n".join(
        f"trial {n} {way} {delay:.3f} {place}" for n, way, delay, place in trials
    )
    machine = Machine(lab_kernels.kernel("debian-6.1"), cpus=2, in_virtual_time=False)
    outcome = run_job(machine, Job(script, (("/agent", Path(agent())),)), tmp_path / "out", LONGEST_S)
    assert outcome.exit_code == 0, outcome.said
    states = tmp_path / "out" / "states"
    found = {f"{n} {way}": differences(states / "0", states / str(n)) for n, way, *_ in trials}
    told = (tmp_path / "out" / "told").read_text()
    assert not any(found.values()), (found, told)
    assert "undo failed" not in told
    assert "is again" in told
    assert "there is nothing to restore" in told
