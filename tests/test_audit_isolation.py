# SPDX-License-Identifier: Apache-2.0
"""Checks of the isolation of CPUs and of interrupts: good, a finding, not applicable, and unknown."""

from audit_cases import MISSING, MOUNTS, REFUSED, made_facts

CPUS = "/sys/devices/system/cpu"
ONLINE, PRESENT, ISOLATED = f"{CPUS}/online", f"{CPUS}/present", f"{CPUS}/isolated"


def test_the_kernel_isolates_by_boot_words_and_partitions() -> None:
    old = made_facts({ISOLATED: MISSING, "/proc/cmdline": "isolcpus=managed_irq,domain,2-3\n"})
    assert old.kernel_isolated == frozenset({2, 3})
    partition = {ISOLATED: "\n", "/sys/fs/cgroup/cpuset.cpus.isolated": "1\n", f"{CPUS}/nohz_full": "70\n"}
    assert made_facts(partition).kernel_isolated == frozenset({1, 70})
    assert made_facts({ISOLATED: REFUSED}).kernel_isolated is None


def test_a_tmpfs_of_control_groups_hides_nothing() -> None:
    mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
    path = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance"
    facts = made_facts({"/proc/mounts": MOUNTS.replace("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", mounts), path: "1\n"})
    assert facts.read(path).here
    none = made_facts({"/proc/mounts": MOUNTS + "tmpfs /sys/kernel tmpfs rw 0 0\n", "/sys/kernel/x": MISSING})
    assert not none.read("/sys/kernel/x").absent
