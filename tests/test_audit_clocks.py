# SPDX-License-Identifier: Apache-2.0
"""The checks of clocks: what makes each good, a finding, not applicable, or unknown."""

import gzip

import pytest
from audit_cases import MISSING, judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest, Facts
from rtproof.record.contents import Moment, SystemFile

GOOD, FINDING, UNKNOWN, NOT_APPLICABLE = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE
FOLDER = "/sys/devices/system/clocksource/clocksource0"
CURRENT, AVAILABLE = f"{FOLDER}/current_clocksource", f"{FOLDER}/available_clocksource"
NODES = "/sys/devices/system/node/online"
FLAGS = "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc tsc_adjust\n"
TSC: dict[str, str | int] = {
    CURRENT: "tsc\n",
    AVAILABLE: "tsc hpet acpi_pm\n",
    "/proc/cpuinfo": FLAGS,
    "kernel-log": "",
}


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("tsc", GOOD),
        ("arch_sys_counter", GOOD),
        ("kvm-clock", GOOD),
        ("hpet", FINDING),
        ("acpi_pm", FINDING),
        ("jiffies", FINDING),
        ("some-soc-timer", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_how_quick_the_clock_source_is(name: str, outcome: Outcome) -> None:
    found = judged("clk.source", made_facts({CURRENT: f"{name}\n", AVAILABLE: "tsc hpet acpi_pm\n"}))
    assert found.outcome is outcome
    if outcome is FINDING:
        assert "tsc is there as well" in found.sentence
    if outcome is UNKNOWN:
        assert found.severity is Severity.LOW


def test_a_clock_source_that_changes_while_it_is_watched_is_a_finding() -> None:
    found = judged("clk.source", made_facts({CURRENT: "tsc\n"}, end={CURRENT: "hpet\n"}))
    assert found.outcome is FINDING
    assert "left the clock source tsc for hpet" in found.sentence


def test_the_counter_must_run_at_one_rate() -> None:
    assert judged("clk.tsc", made_facts(TSC)).outcome is GOOD
    slow = judged("clk.tsc", made_facts({**TSC, "/proc/cpuinfo": FLAGS.replace("nonstop_tsc", "")}))
    assert slow.outcome is FINDING
    assert "nonstop_tsc" in slow.sentence
    line = "<4>[   12.6] clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable\n"
    hpet = judged("clk.tsc", made_facts({**TSC, CURRENT: "hpet\n", "kernel-log": line}))
    assert hpet.outcome is FINDING
    assert "the TSC: clocksource: timekeeping watchdog" in hpet.sentence
    assert judged("clk.tsc", made_facts({**TSC, "kernel-log": line})).outcome is Outcome.CONFLICTING
    assert judged("clk.tsc", made_facts({**TSC, CURRENT: "kvm-clock\n", "kernel-log": line})).outcome is NOT_APPLICABLE
    assert judged("clk.tsc", made_facts({**TSC, "/proc/cpuinfo": "model name\t: x\n"})).outcome is UNKNOWN
    assert judged("clk.tsc", made_facts({**TSC, CURRENT: "kvm-clock\n"})).outcome is NOT_APPLICABLE
    assert judged("clk.tsc", made_facts(TSC, machine="aarch64")).outcome is NOT_APPLICABLE


def timer_list(*names: str, broadcast: str = "<NULL>", mask: str = "0") -> str:
    """The end of /proc/timer_list: the device of each CPU, and that of the broadcast."""
    cpus = "".join(
        f"Tick Device: mode:     1\nPer CPU device: {cpu}\nClock Event Device: {name}\n mult: 1\n\n"
        for cpu, name in enumerate(names)
    )
    head = f"Tick Device: mode:     1\nBroadcast device\nClock Event Device: {broadcast}\n"
    return f"{head}tick_broadcast_mask: {mask}\ntick_broadcast_oneshot_mask: 0\n\n{cpus}"


LAPIC = "lapic-deadline"


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (timer_list(LAPIC, LAPIC), GOOD),
        (timer_list("arch_sys_timer"), GOOD),
        (timer_list("tc_clkevt"), FINDING),
        (timer_list(LAPIC, "hpet2"), FINDING),
        (timer_list("pit"), FINDING),
        (timer_list("lapic", "lapic", broadcast="hpet", mask="2"), FINDING),
        (timer_list("new_timer"), UNKNOWN),
        ("nothing of use\n", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_device_of_the_timer(text: str, outcome: Outcome) -> None:
    assert judged("clk.event", made_facts({"timer-devices": text})).outcome is outcome
    assert judged("clk.event", made_facts({"/proc/timer_list": text})).outcome is outcome


def test_only_the_timers_of_isolated_cpus_count_if_there_are_any() -> None:
    files: dict[str, str | int] = {"timer-devices": timer_list("hpet", LAPIC)}
    assert judged("clk.event", made_facts(files)).outcome is FINDING
    assert judged("clk.event", made_facts(files, request=AuditRequest(cpus=frozenset({1})))).outcome is GOOD
    assert judged("clk.event", made_facts(files, request=AuditRequest(cpus=frozenset({5})))).outcome is UNKNOWN


def watchdog_facts(files: dict[str, str | int], release: str = "6.12.0", option: str = "y") -> Facts:
    """Facts of a kernel whose configuration has, or has not, the watchdog."""
    made = made_facts({**TSC, NODES: "0\n", **files}, kernel=(release, "#1 SMP"))
    text = f"CONFIG_CLOCKSOURCE_WATCHDOG={option}\n" if option else "CONFIG_SMP=y\n"
    config = SystemFile(0, Moment.START, "/proc/config.gz", 0, False, gzip.compress(text.encode()))
    object.__setattr__(made.record, "files", (*made.record.files, config))
    return made


@pytest.mark.parametrize(
    ("files", "release", "outcome"),
    [
        ({}, "6.12.0", GOOD),
        ({}, "5.10.0", FINDING),
        ({"/proc/cmdline": "tsc=nowatchdog\n"}, "5.10.0", GOOD),
        ({"/proc/cmdline": "tsc=reliable\n"}, "5.10.0", GOOD),
        ({"/proc/cmdline": "tsc=watchdog\n"}, "6.12.0", FINDING),
        ({NODES: "0-3\n"}, "6.12.0", FINDING),
        ({"/proc/cpuinfo": FLAGS.replace("tsc_adjust", "")}, "6.12.0", FINDING),
        ({AVAILABLE: "hpet acpi_pm\n"}, "5.10.0", NOT_APPLICABLE),
        ({CURRENT: "kvm-clock\n"}, "5.10.0", FINDING),
    ],
)
def test_who_checks_the_clock_source(files: dict[str, str | int], release: str, outcome: Outcome) -> None:
    assert judged("clk.watchdog", watchdog_facts(files, release)).outcome is outcome


def adjust(offset: int = 0, rate: int = 1200, slept: int = 0) -> str:
    return f"status 0x2001\noffset_ns {offset}\nfrequency_ppb {rate}\nslept_ns {slept}\n"


@pytest.mark.parametrize(
    ("start", "end", "outcome", "severity"),
    [
        (adjust(), adjust(), GOOD, Severity.INFO),
        (adjust(), adjust(slept=1_000_000), GOOD, Severity.INFO),
        (adjust(slept=5_000_000_000), adjust(slept=9_000_000_000), FINDING, Severity.HIGH),
        (adjust(), adjust(rate=900), FINDING, Severity.INFO),
        (adjust(), adjust(offset=-5000), FINDING, Severity.INFO),
        (adjust(), "status 0x40\n", UNKNOWN, Severity.INFO),
        (adjust(), None, UNKNOWN, Severity.INFO),
        (MISSING, MISSING, UNKNOWN, Severity.INFO),
    ],
)
def test_the_clock_between_two_moments(
    start: str | int, end: str | int | None, outcome: Outcome, severity: Severity
) -> None:
    facts = made_facts({"clock-adjust": start}, end={} if end is None else {"clock-adjust": end})
    found = judged("clk.step", facts)
    assert (found.outcome, found.severity) == (outcome, severity)
