# SPDX-License-Identifier: Apache-2.0
"""All that can be set of a system: how a shell writes it down, and what has changed from one time to another.

/proc/sys, /sys/kernel, CPUs, interrupts, workqueues, control groups, and the CPUs and policies of all threads.
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

KILLS = int(os.environ.get("RTPROOF_KILLS") or 25)
"""How many agents are killed, over all ways and tests."""
SEED = int(os.environ.get("RTPROOF_SEED") or 39)
STATE = """\
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
    } > $1
}
ours() {
    grep -lsaE '^(/agent|(/[a-z0-9/-]+/)?rtproof-agent)' /proc/[0-9]*/cmdline | cut -d / -f 3
}
journals() {
    ls /var/lib/rtproof/rtproof-settings-* 2> /dev/null
}
"""
"""Of a BusyBox: state FILE; ours: the agents and keepers that live; journals: of settings, on the disk."""
CHANGING = re.compile(
    r"/random/|/tcp_fastopen_key$|/ns_last_pid|/(dentry|inode)-state|/inode-nr|/file-nr|/pty/nr|/cpuidle/state\d+/\D+$|runtime_(active|suspended)_"
    r"|/slab|cgroup\.(procs|threads)|\.(stat|events|current|peak|pressure)$|/debug/sched/debug|/max_newidle_lb_cost|/trace"
)
"""What counts, or is drawn at boot."""
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


@dataclass(frozen=True)
class Killed:
    """What the system had when something was killed, and after all of ours had ended.

    journal: settings were journalled on the disk at the kill; left: one journal still was when all of ours had ended.
    keeper: its control group at the kill, "" without one.
    """

    way: str
    journal: bool
    left: bool
    keeper: str = ""


def counts(killed: Iterable[Killed]) -> dict[str, tuple[int, int, int]]:
    """By way: how many times, how often with a journal on the disk, and how often one was left. Printed, too."""
    found: dict[str, tuple[int, int, int]] = {}
    for each in killed:
        trials, journals, left = found.get(each.way, (0, 0, 0))
        found[each.way] = trials + 1, journals + each.journal, left + each.left
    for way, (trials, journals, left) in found.items():
        print(f"{way}: killed {trials} times, {journals} with a journal on the disk, which {left} times was left")
    return found
