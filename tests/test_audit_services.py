# SPDX-License-Identifier: Apache-2.0
"""The checks of services: by the processes that were seen, and never good where others may be hidden."""

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit.audit_model import Outcome

HEAD = "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM\n"
KERNEL = "2 2 0 TS - 0 0 0-3 0x00208040 [kthreadd]\n"
SYSTEMD = "1 1 0 TS - 0 0 0-3 0x00400100 systemd\n"
FIRST, OWN = "pid:[4026531836]", "pid:[4026532201]"
TIMERS: dict[str, str | int] = {
    "/etc/systemd/system/timers.target.wants/": "fstrim.timer\n",
    "/usr/lib/systemd/system/timers.target.wants/": "systemd-tmpfiles-clean.timer\n",
}
NO_TIMERS: dict[str, str | int] = {**TIMERS, "/etc/systemd/system/timers.target.wants/": MISSING}
BY_PROCESSES = ("svc.tuners", "svc.noise", "svc.stalld")


def listed(*names: str, kernel: str = KERNEL, first: str = SYSTEMD) -> dict[str, str | int]:
    """A system with these processes of user space."""
    lines = [f"{700 + i} {700 + i} 1 TS - 0 1 0-3 0x00400000 {name}\n" for i, name in enumerate(names)]
    return {"tasks": HEAD + first + kernel + "".join(lines), "/proc/self/ns/pid": FIRST, **NO_TIMERS}


def test_a_quiet_system_is_good() -> None:
    facts = made_facts(listed("my control"))
    assert [judged(name, facts).outcome for name in BY_PROCESSES] == [Outcome.GOOD] * 3


def test_a_thread_of_the_kernel_or_a_second_thread_is_no_such_program() -> None:
    lines = "9 9 2 TS - 0 0 0-3 0x00208040 [tuned]\n700 701 1 TS - 0 0 0-3 0x00400000 auto-cpufreq\n"
    facts = made_facts({**listed("tuned"), "tasks": HEAD + SYSTEMD + KERNEL + lines})
    assert judged("svc.tuners", facts).outcome is Outcome.GOOD


def test_timers_count_only_where_systemd_runs_them() -> None:
    init = "1 1 0 TS - 0 0 0-3 0x00400100 init\n"
    assert judged("svc.noise", made_facts({**listed("sh", first=init), **TIMERS})).outcome is Outcome.GOOD
    refused = {**listed("sh"), "/etc/systemd/system/timers.target.wants/": REFUSED}
    assert judged("svc.noise", made_facts(refused)).outcome is Outcome.UNKNOWN
    assert judged("svc.noise", made_facts({**listed("sh"), "/.dockerenv": ""})).outcome is Outcome.UNKNOWN


def test_stalld_is_a_finding_beside_the_fair_server() -> None:
    old = made_facts(listed("stalld"), kernel=("6.1.0-rt", "#1 SMP PREEMPT_RT"))
    new = made_facts(listed("stalld"), kernel=("6.12.0", "#1 SMP PREEMPT_RT"))
    backported = made_facts({**listed("stalld"), "fair-server": "cpu0 50000000 1000000000\n"}, kernel=("6.6.0", "#1"))
    assert judged("svc.stalld", old).outcome is Outcome.GOOD
    assert judged("svc.stalld", new).outcome is Outcome.FINDING
    assert judged("svc.stalld", backported).outcome is Outcome.FINDING


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({**listed("sh"), "/proc/1/cgroup": "0::/init.scope\n"}, Outcome.GOOD),
        ({**listed("sh"), "/proc/self/ns/pid": OWN}, Outcome.FINDING),
        ({**listed("sh"), "/proc/1/cgroup": "0::/docker/0123\n"}, Outcome.FINDING),
        ({"/run/.containerenv": "", "/proc/self/ns/pid": MISSING}, Outcome.FINDING),
        ({**listed("sh"), "/.dockerenv": ""}, Outcome.CONFLICTING),
        ({"/proc/self/ns/pid": REFUSED}, Outcome.UNKNOWN),
        ({}, Outcome.UNKNOWN),
    ],
)
def test_a_container_is_told_by_its_namespace_its_group_or_its_mark(
    files: dict[str, str | int], outcome: Outcome
) -> None:
    assert judged("svc.container", made_facts(files)).outcome is outcome
