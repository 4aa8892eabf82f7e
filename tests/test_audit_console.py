# SPDX-License-Identifier: Apache-2.0
"""The checks of the console, of tracing and of the kernel's watchdogs."""

import errno

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest
from rtproof.audit.fitted_advice import fitted

STOCK, REAL_TIME = ("6.12.0", "#1 SMP PREEMPT_DYNAMIC"), ("6.12.0", "#1 SMP PREEMPT_RT")
PRINTK, CONSOLES = "/proc/sys/kernel/printk", "/proc/consoles"
SERIAL = "ttyS0                -W- (EC p a)    4:64\ntty0                 -WU (E  p  )    4:1\n"
SYSCTL, TRACING = "/proc/sys/kernel", "/sys/kernel/tracing"
OLD_TRACING = "/sys/kernel/debug/tracing"
QUIET_TRACING: dict[str, str | int] = {f"{TRACING}/current_tracer": "nop\n", f"{TRACING}/set_event": ""}
CONFIG = "/boot/config-6.12.0"


def test_a_serial_console_is_a_finding_by_level_and_kernel() -> None:
    files: dict[str, str | int] = {
        PRINTK: "7\t4\t1\t7\n",
        CONSOLES: SERIAL,
        "/proc/cmdline": "console=ttyS0,115200n8 root=/dev/sda1\n",
    }
    stock = judged("con.printk", made_facts(files, kernel=STOCK))
    assert (stock.outcome, stock.severity) == (Outcome.FINDING, Severity.HIGH)
    assert "ttyS0, a serial line at 115,200 baud; 80 characters take 7 ms" in stock.sentence
    errors = judged("con.printk", made_facts({**files, PRINTK: "4 4 1 7\n"}, kernel=STOCK))
    assert (errors.outcome, errors.severity) == (Outcome.FINDING, Severity.MEDIUM)
    assert judged("con.printk", made_facts(files, kernel=REAL_TIME)).severity is Severity.LOW


@pytest.mark.parametrize(
    ("printk", "consoles"),
    [
        ("1\t4\t1\t7\n", SERIAL),
        ("1\t4\t1\t7\n", REFUSED),
        ("7\t4\t1\t7\n", SERIAL.replace("EC p a", "EC N a")),
        ("7\t4\t1\t7\n", SERIAL.replace("EC p a", "   p a")),
        ("7\t4\t1\t7\n", SERIAL.splitlines()[1]),
        (MISSING, MISSING),
    ],
    ids=["level 1", "level 1, consoles unknown", "nbcon", "disabled", "no serial line", "no printk"],
)
def test_a_console_that_delays_nothing_is_good(printk: str | int, consoles: str | int) -> None:
    facts = made_facts({PRINTK: printk, CONSOLES: consoles}, kernel=STOCK)
    assert judged("con.printk", facts).outcome is Outcome.GOOD


@pytest.mark.parametrize(
    ("start", "end", "outcome", "severity"),
    [
        ("812\n", "812\n", Outcome.GOOD, Severity.MEDIUM),
        ("812\n", "813\n", Outcome.FINDING, Severity.LOW),
        ("812\n", "912\n", Outcome.FINDING, Severity.MEDIUM),
        (MISSING, MISSING, Outcome.UNKNOWN, Severity.MEDIUM),
        ("812\n", "3\n", Outcome.UNKNOWN, Severity.MEDIUM),
    ],
)
def test_messages_are_counted_between_two_moments(
    start: str | int, end: str | int, outcome: Outcome, severity: Severity
) -> None:
    found = judged("con.spam", made_facts({"log-messages": start}, end={"log-messages": end}))
    assert (found.outcome, found.severity) == (outcome, severity)


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        (QUIET_TRACING, Outcome.GOOD),
        ({**QUIET_TRACING, f"{TRACING}/current_tracer": "function\n"}, Outcome.FINDING),
        ({**QUIET_TRACING, f"{TRACING}/set_event": "sched:sched_switch\n"}, Outcome.FINDING),
        ({**QUIET_TRACING, f"{TRACING}/instances/mine/set_event": "irq:irq_handler_entry\n"}, Outcome.FINDING),
        ({**QUIET_TRACING, f"{TRACING}/set_event": errno.EIO, f"{TRACING}/events/enable": "X\n"}, Outcome.FINDING),
        ({**QUIET_TRACING, f"{TRACING}/set_event": errno.EIO, f"{TRACING}/events/enable": "0\n"}, Outcome.GOOD),
        ({f"{OLD_TRACING}/current_tracer": "nop\n", f"{OLD_TRACING}/set_event": ""}, Outcome.GOOD),
        ({CONFIG: "# Linux/x86 6.12.0 Kernel Configuration\n# CONFIG_FTRACE is not set\n"}, Outcome.GOOD),
    ],
)
def test_tracing_is_a_tracer_or_an_event_in_any_instance(files: dict[str, str | int], outcome: Outcome) -> None:
    assert judged("trace.active", made_facts(files)).outcome is outcome


@pytest.mark.parametrize("root", [TRACING, OLD_TRACING])
def test_the_change_names_the_instances_that_trace(root: str) -> None:
    """Also where tracefs is below debugfs only."""
    files: dict[str, str | int] = {f"{root}/current_tracer": "nop\n", f"{root}/set_event": ""}
    left, mine = f"{root}/instances/rtproof-7_9-trace", f"{root}/instances/mine"
    for instances, expected in (
        ([left], f"echo > {left}/set_event"),
        ([left, mine], f"for folder in {mine} {left}; do "),
    ):
        traced = made_facts({**files, **{f"{each}/set_event": "sched:sched_switch\n" for each in instances}})
        assert expected in fitted(traced, judged("trace.active", traced)).check.change.now


@pytest.mark.parametrize(
    ("programs", "outcome"),
    [
        ("", Outcome.GOOD),
        ("3 8 sd_fw_egress\n4 15 sd_devices\n", Outcome.GOOD),
        ("3 8 sd_fw_egress\n9 17 sched_switch\n", Outcome.FINDING),
        ("9 2 \n", Outcome.FINDING),
        (errno.ENOSYS, Outcome.UNKNOWN),
    ],
)
def test_bpf_programs_count_if_they_run_at_events(programs: str | int, outcome: Outcome) -> None:
    assert judged("trace.bpf", made_facts({"bpf-programs": programs})).outcome is outcome


@pytest.mark.parametrize(
    ("watchdog", "mask", "cpus", "outcome", "severity"),
    [
        ("0\n", "0-3\n", None, Outcome.GOOD, Severity.MEDIUM),
        ("1\n", "0-1\n", {2, 3}, Outcome.GOOD, Severity.MEDIUM),
        ("1\n", "0-3\n", {2, 3}, Outcome.FINDING, Severity.MEDIUM),
        ("1\n", "0-3\n", None, Outcome.FINDING, Severity.LOW),
        ("1\n", "many\n", {2}, Outcome.UNKNOWN, Severity.MEDIUM),
        (MISSING, MISSING, {2}, Outcome.GOOD, Severity.MEDIUM),
    ],
)
def test_the_detector_of_lockups_spares_isolated_cpus(
    watchdog: str | int, mask: str | int, cpus: set[int] | None, outcome: Outcome, severity: Severity
) -> None:
    files = {f"{SYSCTL}/watchdog": watchdog, f"{SYSCTL}/watchdog_cpumask": mask}
    found = judged("wd.soft", made_facts(files, request=AuditRequest(frozenset(cpus) if cpus else None)))
    assert (found.outcome, found.severity) == (outcome, severity)


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({"/sys/class/watchdog/": "", "/sys/class/misc/watchdog/dev": MISSING}, Outcome.FINDING),
        ({"/sys/class/watchdog/": MISSING, "/sys/class/misc/watchdog/dev": MISSING}, Outcome.FINDING),
        ({"/sys/class/watchdog/": "watchdog0\n", "/sys/class/watchdog/watchdog0/state": "active\n"}, Outcome.GOOD),
        ({"/sys/class/watchdog/": "watchdog0\n", "/sys/class/watchdog/watchdog0/state": "inactive\n"}, Outcome.FINDING),
        ({"/sys/class/watchdog/": "watchdog0\n", "/sys/class/watchdog/*/state": MISSING}, Outcome.UNKNOWN),
        ({"/sys/class/watchdog/": MISSING, "/sys/class/misc/watchdog/dev": "10:130\n"}, Outcome.UNKNOWN),
        ({}, Outcome.UNKNOWN),
    ],
)
def test_a_watchdog_protects_if_it_is_fed(files: dict[str, str | int], outcome: Outcome) -> None:
    assert judged("wd.hw", made_facts(files)).outcome is outcome
