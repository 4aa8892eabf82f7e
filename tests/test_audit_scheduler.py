# SPDX-License-Identifier: Apache-2.0
"""Checks of the scheduler, limits and privileges: good, a finding, not applicable, and unknown."""

from audit_cases import REFUSED, judged, made_facts

from rtproof.audit.audit_model import CheckResult, Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest

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
