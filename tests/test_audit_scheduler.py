# SPDX-License-Identifier: Apache-2.0
"""Checks of the scheduler, limits and privileges: good, a finding, not applicable, and unknown."""

import errno

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit.audit_model import CheckResult, Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest

RUNTIME, PERIOD = "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_rt_period_us"
FEATURES, OLD_FEATURES = "/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"
SERVER = "/sys/kernel/debug/sched/fair_server/cpu*/runtime"
SERVER_0, SERVER_1 = (SERVER.replace("*", str(cpu)) for cpu in (0, 1))
GROUPS_ON = {"/boot/config-6.12.0": "# Linux/x86 6.12.0 Kernel Configuration\nCONFIG_RT_GROUP_SCHED=y\n"}
GROUPS_OFF = {"/boot/config-6.12.0": "# Linux/x86 6.12.0 Kernel Configuration\n# CONFIG_RT_GROUP_SCHED is not set\n"}
OLD, NEW = ("6.1.0", "#1 SMP"), ("6.12.0", "#1 SMP")
HEAD = "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM\n"
KERNEL_THREAD = "12 12 2 FF 99 - 0 0 0x04208040 [migration/0]\n"
INTERRUPT_THREAD = "90 90 2 FF 50 - 1 0-3 0x00208040 [irq/24-eth0]\n"
DAEMON = "400 400 1 TS - 0 1 0-3 0x00400000 sshd\n"
STATUS = "Name:\tagent\nPid:\t77\nPPid:\t76\nCapEff:\t{}\nSeccomp:\t{}\n"
LIMITS_PATH = "/proc/self/limits"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max locked memory         {}              8388608              bytes     \n"
    "Max realtime priority     {}                    0                    \n"
)
NO_CAPABILITY, ALL_CAPABILITIES = "0000000000000000", "000001ffffffffff"


def _good(result: CheckResult) -> bool:
    return result.outcome is Outcome.GOOD


def test_throttling_before_6_12_is_a_finding_of_what_it_takes() -> None:
    found = judged("sched.rt_throttle", made_facts({RUNTIME: "950000\n", PERIOD: "1000000\n"}, kernel=OLD))
    assert (found.outcome, found.severity) == (Outcome.FINDING, Severity.LOW)
    assert "50 ms of each 1000 ms" in found.sentence
    harsh = judged("sched.rt_throttle", made_facts({RUNTIME: "500000\n", PERIOD: "1000000\n"}, kernel=OLD))
    assert harsh.severity is Severity.HIGH
    log = {"kernel-log": "<5>[    9.1] sched: RT throttling activated\n"}
    happened = judged("sched.rt_throttle", made_facts({RUNTIME: "950000\n", PERIOD: "1000000\n"} | log, kernel=OLD))
    assert (happened.outcome, happened.severity) == (Outcome.FINDING, Severity.HIGH)
    telecom = AuditRequest(purpose="telecom")
    spinning = judged(
        "sched.rt_throttle", made_facts({RUNTIME: "950000", PERIOD: "1000000"}, kernel=OLD, request=telecom)
    )
    assert spinning.severity is Severity.HIGH


@pytest.mark.parametrize("runtime", ["-1\n", "1000000\n"])
def test_no_throttling_is_good(runtime: str) -> None:
    assert _good(judged("sched.rt_throttle", made_facts({RUNTIME: runtime, PERIOD: "1000000\n"}, kernel=OLD)))


def test_throttling_since_6_12_depends_on_group_scheduling() -> None:
    files = {RUNTIME: "950000\n", PERIOD: "1000000\n"}
    assert _good(judged("sched.rt_throttle", made_facts(files | GROUPS_OFF, kernel=NEW)))
    assert judged("sched.rt_throttle", made_facts(files | GROUPS_ON, kernel=NEW)).outcome is Outcome.FINDING
    assert judged("sched.rt_throttle", made_facts(files, kernel=NEW)).outcome is Outcome.UNKNOWN
    switched_off = {"/proc/cmdline": "rt_group_sched=0\n"}
    assert _good(judged("sched.rt_throttle", made_facts(files | GROUPS_ON | switched_off, kernel=NEW)))
    budget = {"rt-group": "/sys/fs/cgroup/cpu 950000 1000000\n"}
    assert judged("sched.rt_throttle", made_facts(files | budget, kernel=NEW)).outcome is Outcome.FINDING


def test_throttling_that_was_not_read_is_unknown() -> None:
    cases: list[dict[str, str | int]] = [{RUNTIME: REFUSED, PERIOD: "1000000"}, {RUNTIME: "many", PERIOD: "1"}, {}]
    for files in cases:
        assert judged("sched.rt_throttle", made_facts(files, kernel=OLD)).outcome is Outcome.UNKNOWN
    odd = made_facts({RUNTIME: "950000", PERIOD: "1000000"}, kernel=("custom", "#1"))
    assert judged("sched.rt_throttle", odd).outcome is Outcome.UNKNOWN


def test_sharing_of_budgets() -> None:
    on, off = "GENTLE_FAIR_SLEEPERS RT_RUNTIME_SHARE LB_MIN\n", "GENTLE_FAIR_SLEEPERS NO_RT_RUNTIME_SHARE LB_MIN\n"
    found = judged("sched.rt_share", made_facts({FEATURES: MISSING, OLD_FEATURES: on}, kernel=("4.19.0", "#1")))
    assert found.outcome is Outcome.FINDING
    assert found.read[0].value == "RT_RUNTIME_SHARE"
    assert _good(judged("sched.rt_share", made_facts({FEATURES: off}, kernel=OLD)))
    hidden = judged("sched.rt_share", made_facts({FEATURES: REFUSED, OLD_FEATURES: MISSING}, kernel=OLD))
    assert hidden.outcome is Outcome.UNKNOWN
    assert "off in 6.1" in hidden.sentence
    none = judged("sched.rt_share", made_facts({FEATURES: on} | GROUPS_OFF, kernel=NEW))
    assert none.outcome is Outcome.NOT_APPLICABLE


def test_the_fair_server_is_judged_on_the_isolated_cpus() -> None:
    both = {SERVER_0: "50000000\n", SERVER_1: "0\n", SERVER_0.replace("runtime", "period"): "1000000000\n"}
    found = judged("sched.fair_server", made_facts(both))
    assert found.outcome is Outcome.FINDING
    assert "on CPU 0, they get 50 ms of each 1000 ms" in found.sentence
    assert _good(judged("sched.fair_server", made_facts(both, request=AuditRequest(cpus=frozenset({1})))))


def test_a_fair_server_behind_lockdown_is_unknown() -> None:
    half: dict[str, str | int] = {SERVER_0: "0", SERVER_1: errno.EIO}
    cases: list[dict[str, str | int]] = [{SERVER_0: REFUSED, SERVER_1: REFUSED}, {SERVER: MISSING}, half]
    for refused in cases:
        assert judged("sched.fair_server", made_facts(refused, kernel=NEW)).outcome is Outcome.UNKNOWN
    assert "50 ms" in judged("sched.fair_server", made_facts({SERVER_0: REFUSED}, kernel=NEW)).sentence
    assert judged("sched.fair_server", made_facts({SERVER: MISSING}, kernel=OLD)).outcome is Outcome.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("check", "path", "bad", "fine"),
    [
        ("sched.ext_server", "/sys/kernel/sched_ext/state", "enabled", "disabled"),
        ("sched.numa", "/proc/sys/kernel/numa_balancing", "1", "0"),
        ("sched.numa", "/proc/sys/kernel/numa_balancing", "2", "0"),
        ("sched.autogroup", "/proc/sys/kernel/sched_autogroup_enabled", "1", "0"),
        ("sched.timer_migration", "/proc/sys/kernel/timer_migration", "1", "0"),
    ],
)
def test_single_values(check: str, path: str, bad: str, fine: str) -> None:
    online = {"/sys/devices/system/cpu/online": "0-3\n"}
    request = AuditRequest(cpus=frozenset({3}))
    outcomes = [
        judged(check, made_facts(online | {path: content}, request=request)).outcome
        for content in (f"{bad}\n", f"{fine}\n", MISSING, REFUSED)
    ]
    assert outcomes == [Outcome.FINDING, Outcome.GOOD, Outcome.NOT_APPLICABLE, Outcome.UNKNOWN]
    if check != "sched.ext_server":
        assert judged(check, made_facts(online | {path: "?\n"}, request=request)).outcome is Outcome.UNKNOWN


def test_timers_matter_only_if_cpus_are_isolated() -> None:
    files = {"/proc/sys/kernel/timer_migration": "1", "/sys/devices/system/cpu/online": "0-3"}
    nothing = {"/sys/devices/system/cpu/isolated": "\n"}
    full = {"/sys/devices/system/cpu/nohz_full": "2-3\n"}
    outcomes = [
        judged("sched.timer_migration", made_facts(files | full, request=AuditRequest(cpus=frozenset(cpus)))).outcome
        for cpus in ({3}, {1, 3})
    ]
    assert outcomes == [Outcome.GOOD, Outcome.FINDING]
    assert judged("sched.timer_migration", made_facts(files | nothing)).outcome is Outcome.NOT_APPLICABLE


def test_what_refuses_a_real_time_policy_is_named() -> None:
    refused = {"rt-permitted": "no: EPERM Operation not permitted\n"}
    poor = {"/proc/self/status": STATUS.format(NO_CAPABILITY, 0), LIMITS_PATH: LIMITS.format("65536", "0")}
    rich = {"/proc/self/status": STATUS.format(ALL_CAPABILITIES, 0), LIMITS_PATH: LIMITS.format("65536", "0")}
    budget = {"rt-group": "/sys/fs/cgroup/cpu/a b 0 1000000\n/sys/fs/cgroup/cpu 950000 1000000\n"}
    capability = judged("sched.rt.permitted", made_facts(refused | poor))
    assert (capability.outcome, capability.severity) == (Outcome.FINDING, Severity.HIGH)
    assert "CAP_SYS_NICE" in capability.sentence
    group = judged("sched.rt.permitted", made_facts(refused | rich | budget)).sentence
    assert "/sys/fs/cgroup/cpu/a b has no budget" in group
    assert "CAP_SYS_NICE" not in group
    filtered = {"/proc/self/status": STATUS.format(ALL_CAPABILITIES, 2)}
    assert "seccomp" in judged("sched.rt.permitted", made_facts(refused | filtered)).sentence
    assert "Neither" in judged("sched.rt.permitted", made_facts(refused | rich)).sentence
    assert "forbids" in judged("sched.rt.permitted", made_facts(refused | rich | {RUNTIME: "0\n"})).sentence


def test_a_permitted_policy_is_good_and_an_untried_one_unknown() -> None:
    assert _good(judged("sched.rt.permitted", made_facts({"rt-permitted": "yes\n"})))
    for content in ("perhaps\n", errno.EAGAIN):
        assert judged("sched.rt.permitted", made_facts({"rt-permitted": content})).outcome is Outcome.UNKNOWN
    assert judged("sched.rt.permitted", made_facts()).outcome is Outcome.UNKNOWN


def test_limits_of_locked_memory() -> None:
    poor, rich = (
        {"/proc/self/status": STATUS.format(capability, 0)} for capability in (NO_CAPABILITY, ALL_CAPABILITIES)
    )
    low = judged("sched.memlock", made_facts(poor | {LIMITS_PATH: LIMITS.format("65536", "0")}))
    assert (low.outcome, low.severity) == (Outcome.FINDING, Severity.HIGH)
    assert "0.0625 MiB" in low.sentence
    half = judged("sched.memlock", made_facts(poor | {LIMITS_PATH: LIMITS.format(str(1 << 30), "0")}))
    assert (half.outcome, half.severity) == (Outcome.FINDING, Severity.LOW)
    assert _good(judged("sched.memlock", made_facts(poor | {LIMITS_PATH: LIMITS.format("unlimited", "0")})))
    assert _good(judged("sched.memlock", made_facts(rich | {LIMITS_PATH: LIMITS.format("65536", "0")})))
    tried = judged("sched.memlock", made_facts(rich | {"lock-permitted": "no: EPERM Operation not permitted\n"}))
    assert tried.outcome is Outcome.FINDING
    for content in (REFUSED, "nothing\n"):
        assert judged("sched.memlock", made_facts(poor | {LIMITS_PATH: content})).outcome is Outcome.UNKNOWN


def test_only_programs_with_the_priority_99_are_a_finding() -> None:
    program = "500 501 1 FF 99 - 1 0-3 0x00400000 a loop\n"
    fine = judged("sched.prio99", made_facts({"tasks": HEAD + KERNEL_THREAD + DAEMON}))
    assert _good(fine)
    bad = judged("sched.prio99", made_facts({"tasks": HEAD + KERNEL_THREAD + DAEMON + program}))
    assert bad.outcome is Outcome.FINDING
    assert "a loop/501" in bad.sentence
    own = {"tasks": HEAD + KERNEL_THREAD + program, "/proc/self/status": "Name:\tx\nPid:\t502\nPPid:\t500\n"}
    assert _good(judged("sched.prio99", made_facts(own)))
    for content in (REFUSED, HEAD, "PID\n", HEAD + "12 not a line\n"):
        assert judged("sched.prio99", made_facts({"tasks": content})).outcome is Outcome.UNKNOWN


def test_interrupt_threads_are_compared_with_the_application() -> None:
    request = AuditRequest(pid=500)
    head = HEAD.replace("FLAGS", "FLAGS SLACK")
    weak, strong, elsewhere = (
        {"process/threads": f"{head}500 500 1 FF {priority} - 1 {cpus} 0x00400000 0 app\n"}
        for priority, cpus in ((40, "0-3"), (80, "0-3"), (40, "7"))
    )
    system = {"tasks": HEAD + KERNEL_THREAD + INTERRUPT_THREAD + DAEMON}
    bad = judged("sched.irqprio", made_facts(system | weak, request=request))
    assert bad.outcome is Outcome.FINDING
    assert "irq/24-eth0 (50)" in bad.sentence
    assert _good(judged("sched.irqprio", made_facts(system | strong, request=request)))
    assert _good(judged("sched.irqprio", made_facts(system | elsewhere, request=request)))
    assert judged("sched.irqprio", made_facts(system)).outcome is Outcome.NOT_APPLICABLE
    assert judged("sched.irqprio", made_facts(system, request=request)).outcome is Outcome.UNKNOWN
    none = made_facts({"tasks": HEAD + KERNEL_THREAD + DAEMON} | weak, request=request)
    assert judged("sched.irqprio", none).outcome is Outcome.NOT_APPLICABLE
    assert judged("sched.irqprio", made_facts({"tasks": REFUSED, **weak}, request=request)).outcome is Outcome.UNKNOWN


def test_threads_with_deadlines_are_named() -> None:
    deadline = "600 600 1 DLN - - 1 0-3 0x00400000 pump\n"
    governor = "91 91 2 DLN - - 0 0 0x00208040 [sugov:0]\n"
    found = judged("sched.deadline", made_facts({"tasks": HEAD + DAEMON + governor + deadline}))
    assert (found.outcome, found.severity) == (Outcome.FINDING, Severity.INFO)
    assert "pump/600" in found.sentence
    assert "sugov" not in found.sentence
    assert _good(judged("sched.deadline", made_facts({"tasks": HEAD + DAEMON + governor})))
    own = made_facts({"tasks": HEAD + KERNEL_THREAD + deadline}, request=AuditRequest(pid=600))
    assert _good(judged("sched.deadline", own))
    assert judged("sched.deadline", made_facts({"tasks": errno.EACCES})).outcome is Outcome.UNKNOWN
