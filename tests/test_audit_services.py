# SPDX-License-Identifier: Apache-2.0
"""The checks of services: by the processes that were seen, and never good where others may be hidden."""

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


def listed(*names: str, kernel: str = KERNEL, first: str = SYSTEMD) -> dict[str, str | int]:
    """A system with these processes of user space."""
    lines = [f"{700 + i} {700 + i} 1 TS - 0 1 0-3 0x00400000 {name}\n" for i, name in enumerate(names)]
    return {"tasks": HEAD + first + kernel + "".join(lines), "/proc/self/ns/pid": FIRST, **NO_TIMERS}


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
