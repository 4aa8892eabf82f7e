# SPDX-License-Identifier: Apache-2.0
"""Checks of the isolation of CPUs and of interrupts: good, a finding, not applicable, and unknown."""

import errno
from collections.abc import Mapping

from audit_cases import MISSING, MOUNTS, REFUSED, judged, made_facts

from rtproof.audit import conditions
from rtproof.audit.audit_model import CheckResult, Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest

CPUS = "/sys/devices/system/cpu"
ONLINE, PRESENT, ISOLATED = f"{CPUS}/online", f"{CPUS}/present", f"{CPUS}/isolated"
FOUR: dict[str, str | int] = {
    ONLINE: "0-3\n",
    PRESENT: "0-3\n",
    ISOLATED: "2-3\n",
    "/proc/cpuinfo": "processor : 0\nflags : fpu\n",
}
FOUR["/proc/sys/net/core/rps_default_mask"] = MISSING
"""A machine of four CPUs, of which two are isolated."""
HEAD = "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM\n"
INIT = "1 1 0 TS - 0 0 {} 0x00400100 systemd\n"
KERNEL = "2 2 0 TS - 0 1 0-3 0x00208040 [kthreadd]\n"
BOUND = "13 13 2 FF 99 - 3 3 0x04208040 [migration/3]\n"


def _judged(check: str, files: Mapping[str, str | int], request: AuditRequest | None = None) -> CheckResult:
    return judged(check, made_facts(FOUR | dict(files), request=request))


def _outcome(check: str, files: Mapping[str, str | int], request: AuditRequest | None = None) -> Outcome:
    return _judged(check, files, request).outcome


def _interrupt(
    number: int, action: str, wanted: str, effective: str | None = None, details: str | None = None
) -> dict[str, str | int]:
    files: dict[str, str | int] = {
        f"/proc/irq/{number}/smp_affinity_list": f"{wanted}\n",
        f"/sys/kernel/irq/{number}/actions": f"{action}\n",
    }
    if effective is not None:
        files[f"/proc/irq/{number}/effective_affinity_list"] = f"{effective}\n"
    if details is not None:
        files[f"/sys/kernel/debug/irq/irqs/{number}"] = details
    return files


def test_the_kernel_isolates_by_boot_words_and_partitions() -> None:
    old = made_facts({ISOLATED: MISSING, "/proc/cmdline": "isolcpus=managed_irq,domain,2-3\n"})
    assert conditions.kernel_isolated_cpus(old) == frozenset({2, 3})
    partition = {ISOLATED: "\n", "/sys/fs/cgroup/cpuset.cpus.isolated": "1\n", f"{CPUS}/nohz_full": "70\n"}
    assert conditions.kernel_isolated_cpus(made_facts(partition)) == frozenset({1, 70})
    assert conditions.kernel_isolated_cpus(made_facts({ISOLATED: REFUSED})) is None


def test_a_tmpfs_of_control_groups_hides_nothing() -> None:
    mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n"
    path = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance"
    facts = made_facts({"/proc/mounts": MOUNTS.replace("cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n", mounts), path: "1\n"})
    assert facts.read(path).here
    none = made_facts({"/proc/mounts": MOUNTS + "tmpfs /sys/kernel tmpfs rw 0 0\n", "/sys/kernel/x": MISSING})
    assert not none.read("/sys/kernel/x").absent


def test_only_threads_of_the_kernel_that_can_be_moved_count() -> None:
    worker = "30 30 2 TS - 0 {} {} 0x00208040 [kswapd0]\n"
    fine = HEAD + KERNEL + BOUND + INIT.format("0-3")
    assert _outcome("iso.kthreads", {"tasks": fine + worker.format(0, "0-1")}) is Outcome.GOOD
    ran = _judged("iso.kthreads", {"tasks": fine + worker.format(3, "0-3")})
    assert (ran.outcome, ran.severity) == (Outcome.FINDING, Severity.MEDIUM)
    assert "kswapd0" in ran.sentence
    seldom = _judged("iso.kthreads", {"tasks": fine + worker.format(0, "0-3")})
    assert (seldom.outcome, seldom.severity) == (Outcome.FINDING, Severity.LOW)
    for content in (REFUSED, "nothing\n", HEAD + "30 30 2 TS - 0 0 - 0x00208040 [kswapd0]\n"):
        assert _outcome("iso.kthreads", {"tasks": content}) is Outcome.UNKNOWN


def test_other_programs_and_not_the_application() -> None:
    fine = HEAD + KERNEL + INIT.format("0-1")
    pump = "700 700 1 FF 80 - 3 3 0x00400000 pump\n"
    daemon = "400 400 1 TS - 0 3 3 0x00400000 logger\n"
    own = {"/proc/self/status": "Name:\tx\nPid:\t77\nPPid:\t76\n"}
    measuring = "76 76 1 TS - 0 3 0-3 0x00400000 x\n77 77 76 TS - 0 3 0-3 0x00400000 x\n"
    assert _outcome("iso.tasks", own | {"tasks": fine + pump + measuring}) is Outcome.GOOD
    found = _judged("iso.tasks", {"tasks": fine + pump + daemon})
    assert (found.outcome, found.severity) == (Outcome.FINDING, Severity.MEDIUM)
    assert "logger" in found.sentence
    assert "pump" not in found.sentence
    asleep = _judged("iso.tasks", {"tasks": fine + daemon.replace("3 3", "0 3")})
    assert asleep.severity is Severity.MEDIUM  # it must run there when it wakes
    assert "pump" in _judged("iso.tasks", {"tasks": fine + pump}, AuditRequest(pid=400)).sentence
    assert _outcome("iso.tasks", {"tasks": fine + daemon}, AuditRequest(pid=400)) is Outcome.GOOD
    assert _outcome("iso.tasks", {"tasks": REFUSED}) is Outcome.UNKNOWN


def test_interrupts_without_handler_of_each_cpu_and_of_the_application_are_no_noise() -> None:
    none = _interrupt(26, "", "0-3", "3") | _interrupt(27, "arch_timer", "0-3", "")
    per_cpu = _interrupt(28, "odd", "0-3", "0-3", "dstate: 0x1\n  IRQD_PER_CPU\n")
    fine = _interrupt(24, "eth0", "0-3", "1")
    assert _outcome("iso.irq.eff", none | per_cpu | fine) is Outcome.GOOD
    device = fine | _interrupt(29, "daq", "3", "3")
    assert _outcome("iso.irq.eff", device) is Outcome.FINDING
    request = AuditRequest(pid=700)
    threads = HEAD.replace("FLAGS", "FLAGS SLACK") + "700 700 1 FF 80 - 3 3 0x00400000 0 pump\n"
    assert _outcome("iso.irq.eff", device | {"process/threads": threads}, request) is Outcome.GOOD


def test_interrupts_that_only_the_kernel_places() -> None:
    queue = _interrupt(40, "nvme0q3", "2", "2")
    shared = _interrupt(41, "nvme0q1", "0-3", "3")
    flagged = _interrupt(42, "odd", "1-2", "2", "IRQD_AFFINITY_MANAGED\n")
    assert _outcome("iso.irq.managed", _interrupt(24, "eth0", "0-1", "0")) is Outcome.NOT_APPLICABLE
    assert _outcome("iso.irq.managed", queue) is Outcome.GOOD
    assert _outcome("iso.irq.managed", queue | shared) is Outcome.FINDING
    assert _outcome("iso.irq.managed", flagged) is Outcome.FINDING
    assert _outcome("iso.irq.eff", queue | shared) is Outcome.GOOD
    assert _outcome("iso.irq.managed", {"/proc/irq/*/smp_affinity_list": REFUSED}) is Outcome.UNKNOWN
    assert _outcome("iso.irq.managed", _interrupt(40, "nvme0q3", "garbage", "garbage")) is Outcome.UNKNOWN


def test_what_isolated_cpus_served_between_the_looks() -> None:
    head = "      CPU0   CPU1   CPU2   CPU3\n"
    interrupts = head + " 24:  {}  0  {}  0  PCI-MSI  1-edge  eth0\nLOC:  5  5  {}  5   Local timer interrupts\n"
    softirqs = "      CPU0   CPU1   CPU2   CPU3\n  NET_RX:  {}  0  0  {}\n   TIMER:  0  0  {}  0\n"

    def outcome(hard: tuple[int, ...], soft: tuple[int, ...], **more: str | int) -> CheckResult:
        start = {"/proc/interrupts": interrupts.format(5, 5, 5), "/proc/softirqs": softirqs.format(0, 0, 0)}
        end = {"/proc/interrupts": interrupts.format(*hard), "/proc/softirqs": softirqs.format(*soft)}
        return judged("iso.irq.flood", made_facts(FOUR | start, end=end | more))

    assert outcome((99, 5, 99), (99, 0, 99)).outcome is Outcome.GOOD
    bad = outcome((5, 8, 5), (0, 0, 0))
    assert (bad.outcome, bad.severity) == (Outcome.FINDING, Severity.HIGH)
    assert "interrupt 24 3 times" in bad.sentence
    assert outcome((5, 5, 5), (0, 4, 0)).severity is Severity.MEDIUM
    assert outcome((5, 5, 5), (0, 4, 0)).outcome is Outcome.FINDING
    once = made_facts(
        FOUR | {"/proc/interrupts": interrupts.format(5, 5, 5), "/proc/softirqs": softirqs.format(0, 0, 0)}
    )
    assert judged("iso.irq.flood", once).outcome is Outcome.UNKNOWN
    assert outcome((5, 5, 5), (0, 0, 0), **{"/proc/interrupts": "nothing\n"}).outcome is Outcome.UNKNOWN


def test_siblings_share_a_core() -> None:
    def topology(pairs: str, active: str | int = "1\n") -> dict[str, str | int]:
        files: dict[str, str | int] = {f"{CPUS}/smt/active": active}
        for cpu, siblings in enumerate(pairs.split()):
            files[f"{CPUS}/cpu{cpu}/topology/thread_siblings_list"] = f"{siblings}\n"
        return files

    assert _outcome("iso.smt", topology("0,2 1,3 0,2 1,3")) is Outcome.FINDING
    assert _outcome("iso.smt", topology("0-1 0-1 2 3")) is Outcome.GOOD
    assert _outcome("iso.smt", {f"{CPUS}/smt/active": "0\n"}) is Outcome.GOOD
    both = _judged("iso.smt", topology("0-1 0-1 2-3 2-3"))
    assert (both.outcome, both.severity) == (Outcome.FINDING, Severity.LOW)
    assert _outcome("iso.smt", topology("", REFUSED)) is Outcome.UNKNOWN
    guest = topology("0 1 2 3") | {"/proc/cpuinfo": "flags\t\t: fpu hypervisor\n"}
    assert _outcome("iso.smt", guest) is Outcome.NOT_APPLICABLE


def test_the_last_cache() -> None:
    def caches(*lists: str) -> dict[str, str | int]:
        return {f"{CPUS}/cpu{cpu}/cache/index3/shared_cpu_list": f"{text}\n" for cpu, text in enumerate(lists)}

    assert _outcome("iso.l3", caches("0-3", "0-3", "0-3", "0-3")) is Outcome.FINDING
    assert _outcome("iso.l3", caches("0-1", "0-1", "2-3", "2-3")) is Outcome.GOOD
    divided: dict[str, str | int] = {"/sys/fs/resctrl/schemata": "L3:0=f\n", "/sys/fs/resctrl/rt/schemata": "L3:0=3\n"}
    divided |= {"/sys/fs/resctrl/x/schemata": "L3:0=c\n"}
    mounted = {"/proc/mounts": MOUNTS + "resctrl /sys/fs/resctrl resctrl rw 0 0\n"}
    assert _outcome("iso.l3", caches("0-3", "0-3", "0-3", "0-3") | divided | mounted) is Outcome.GOOD
    assert _outcome("iso.l3", caches("0-1", "0-1", "2-3", "?")) is Outcome.UNKNOWN
    pattern = f"{CPUS}/cpu*/cache/index3/shared_cpu_list"
    assert _outcome("iso.l3", {pattern: MISSING}) is Outcome.NOT_APPLICABLE
    assert _outcome("iso.l3", {pattern: REFUSED}) is Outcome.UNKNOWN


def test_kinds_of_cores() -> None:
    def capacities(*values: int) -> dict[str, str | int]:
        return {f"{CPUS}/cpu{cpu}/cpu_capacity": f"{value}\n" for cpu, value in enumerate(values)}

    none = {"/sys/devices/cpu_core/cpus": MISSING, "/sys/devices/cpu_atom/cpus": MISSING}
    assert _outcome("iso.hybrid", none | capacities(1024, 1024, 446, 446)) is Outcome.GOOD
    assert _outcome("iso.hybrid", none | capacities(446, 446, 446, 1024)) is Outcome.FINDING
    kinds = {"/sys/devices/cpu_core/cpus": "0-2\n", "/sys/devices/cpu_atom/cpus": "3\n"}
    assert _outcome("iso.hybrid", kinds) is Outcome.FINDING
    assert _outcome("iso.hybrid", kinds, AuditRequest(cpus=frozenset({1, 2}))) is Outcome.GOOD
    half = capacities(1024, 1024, 446) | {f"{CPUS}/cpu3/cpu_capacity": errno.EIO}
    assert _outcome("iso.hybrid", none | half) is Outcome.UNKNOWN
    assert _outcome("iso.hybrid", none | {f"{CPUS}/cpu*/cpu_capacity": MISSING}) is Outcome.NOT_APPLICABLE
    assert _outcome("iso.hybrid", none | {f"{CPUS}/cpu*/cpu_capacity": REFUSED}) is Outcome.UNKNOWN
