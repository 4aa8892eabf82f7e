# SPDX-License-Identifier: Apache-2.0
"""The checks of clocks: what makes each good, a finding, not applicable, or unknown."""

import gzip

import pytest
from audit_cases import judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.facts import Facts
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
