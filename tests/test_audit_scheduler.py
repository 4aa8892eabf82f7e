# SPDX-License-Identifier: Apache-2.0
"""Checks of the scheduler, limits and privileges: good, a finding, not applicable, and unknown."""

from audit_cases import REFUSED, judged, made_facts

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


def test_throttling_since_6_12_depends_on_group_scheduling() -> None:
    files = {RUNTIME: "950000\n", PERIOD: "1000000\n"}
    assert _good(judged("sched.rt_throttle", made_facts(files | GROUPS_OFF, kernel=NEW)))
    assert judged("sched.rt_throttle", made_facts(files | GROUPS_ON, kernel=NEW)).outcome is Outcome.FINDING
    assert judged("sched.rt_throttle", made_facts(files, kernel=NEW)).outcome is Outcome.UNKNOWN
    switched_off = {"/proc/cmdline": "rt_group_sched=0\n"}
    assert _good(judged("sched.rt_throttle", made_facts(files | GROUPS_ON | switched_off, kernel=NEW)))
    budget = {"rt-group": "/sys/fs/cgroup/cpu 950000 1000000\n"}
    assert judged("sched.rt_throttle", made_facts(files | budget, kernel=NEW)).outcome is Outcome.FINDING


def test_the_fair_server_is_judged_on_the_isolated_cpus() -> None:
    both = {SERVER_0: "50000000\n", SERVER_1: "0\n", SERVER_0.replace("runtime", "period"): "1000000000\n"}
    found = judged("sched.fair_server", made_facts(both))
    assert found.outcome is Outcome.FINDING
    assert "50 ms of each 1000 ms on CPU 0" in found.sentence
    assert _good(judged("sched.fair_server", made_facts(both, request=AuditRequest(cpus=frozenset({1})))))


def test_timers_matter_only_if_cpus_are_isolated() -> None:
    files = {"/proc/sys/kernel/timer_migration": "1", "/sys/devices/system/cpu/online": "0-3"}
    nothing = {"/sys/devices/system/cpu/isolated": "\n"}
    full = {"/sys/devices/system/cpu/nohz_full": "2-3\n"}
    found = [
        judged("sched.timer_migration", made_facts(files | full, request=AuditRequest(cpus=frozenset(cpus))))
        for cpus in ({3}, {1, 3})
    ]
    assert [(one.outcome, one.severity) for one in found] == [
        (Outcome.FINDING, Severity.INFO),
        (Outcome.FINDING, Severity.LOW),
    ]
    assert "Opinions on that differ" in found[0].sentence
    assert judged("sched.timer_migration", made_facts(files | nothing)).outcome is Outcome.NOT_APPLICABLE


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


def test_services_that_come_before_the_application_are_named_with_what_lowers_them() -> None:
    """Asked in https://github.com/ros-realtime/ros-realtime-rpi4-image/issues/30."""
    multipathd = "700 701 1 RR 99 - 1 0-3 0x00400000 multipathd\n"
    system = {"tasks": f"{HEAD}{KERNEL_THREAD}{multipathd}800 800 1 FF 70 - 1 0-3 0x00400000 chronyd\n"}
    found = judged("sched.prio99", made_facts(system))
    assert (found.named, "LimitRTPRIO=0 in its unit" in found.sentence) == (("701",), True)
    app = {"process/threads": f"{HEAD.replace('FLAGS', 'FLAGS SLACK')}500 500 1 FF 70 - 1 0-3 0x00400000 0 app\n"}
    both = judged("sched.prio99", made_facts(system | app, request=AuditRequest(pid=500)))
    assert (both.named, "sched_priority in chrony.conf" in both.sentence) == (("701", "800"), True)


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
