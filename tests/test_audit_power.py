# SPDX-License-Identifier: Apache-2.0
"""The checks of power: what makes each good, a finding, not applicable, or unknown."""

import errno
from collections.abc import Mapping

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit import check_file
from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Severity

GOOD, FINDING, UNKNOWN, NOT_APPLICABLE = Outcome.GOOD, Outcome.FINDING, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE
CPU = "/sys/devices/system/cpu"
POLICY = f"{CPU}/cpufreq/policy"
GOVERNORS = f"{POLICY}*/scaling_governor"
CPUINFO = "vendor_id\t: GenuineIntel\nmodel name\t: x\nflags\t\t: fpu\n"
GUEST = "Booting paravirtualized kernel on KVM\n"
Files = dict[str, str | int]


def policy(
    number: int, governor: str | int, low: str | int = "800000", high: str | int = "3000000", now: str | int = "3000000"
) -> Files:
    """The files of a policy."""
    folder = f"{POLICY}{number}"
    names = ("scaling_governor", "scaling_min_freq", "scaling_max_freq", "scaling_cur_freq")
    return {f"{folder}/{name}": value for name, value in zip(names, (governor, low, high, now), strict=True)}


def idle(cpu: int, *states: tuple[str, str | int, str | int], limit: str | int = "0") -> Files:
    """The idle states of a CPU: name, latency and whether it is disabled; and the limit of the CPU itself."""
    files: Files = {f"{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us": limit}
    for number, (name, latency, disable) in enumerate(states):
        folder = f"{CPU}/cpu{cpu}/cpuidle/state{number}"
        files |= {f"{folder}/name": name, f"{folder}/latency": latency, f"{folder}/disable": disable}
    return files


POLL, C1, C6 = ("POLL", "0", "0"), ("C1", "2", "0"), ("C6", "133", "0")
NOBODY: Files = {"dma-latency": "2000000000\n", "dma-latency-holders": ""}


# Frequencies.


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        (policy(0, "performance"), GOOD),
        (policy(0, "schedutil"), FINDING),
        ({**policy(0, "performance"), **policy(4, "powersave")}, FINDING),
        (policy(0, "userspace", "1200000", "1200000"), GOOD),
        (policy(0, "schedutil", REFUSED), FINDING),
        (policy(0, "turbo-mode-of-a-vendor"), UNKNOWN),
        (policy(0, ""), UNKNOWN),
        ({**policy(0, "performance"), **policy(4, MISSING)}, UNKNOWN),
        ({**policy(0, "performance"), **policy(4, errno.EBUSY), f"{CPU}/online": "0-3\n"}, GOOD),
        (policy(0, MISSING), UNKNOWN),
        ({GOVERNORS: MISSING, "frequencies": "cpu0 ondemand 800000 2000000 800000\n"}, FINDING),
        ({GOVERNORS: MISSING, "frequencies": "cpu0 performance 800000 2000000 800000\n"}, GOOD),
    ],
)
def test_governors(files: Files, outcome: Outcome) -> None:
    assert judged("pm.governor", made_facts(files)).outcome is outcome


FIXED = policy(0, "performance", "3000000")
CURRENT = f"{POLICY}0/scaling_cur_freq"


@pytest.mark.parametrize(
    ("files", "end", "outcome", "severity"),
    [
        (FIXED, {CURRENT: "2990000"}, GOOD, Severity.MEDIUM),
        (FIXED, {CURRENT: "1200000"}, FINDING, Severity.MEDIUM),
        (FIXED, {}, UNKNOWN, Severity.MEDIUM),
        (FIXED, {CURRENT: MISSING}, UNKNOWN, Severity.MEDIUM),
        (policy(0, "performance"), {CURRENT: "3000000"}, FINDING, Severity.LOW),
        (policy(0, "schedutil"), {CURRENT: "3000000"}, FINDING, Severity.MEDIUM),
        (policy(0, "performance", "fast"), {CURRENT: "3000000"}, UNKNOWN, Severity.MEDIUM),
    ],
)
def test_a_fixed_frequency_does_not_move(files: Files, end: Files, outcome: Outcome, severity: Severity) -> None:
    found = judged("pm.freq.fixed", made_facts(files, end=end))
    assert (found.outcome, found.severity) == (outcome, severity)


# Idle states.


@pytest.mark.parametrize(
    ("files", "outcome"),
    [
        ({**idle(0, POLL, C1), **NOBODY}, GOOD),
        ({**idle(0, POLL, C1, C6), **NOBODY}, FINDING),
        ({**idle(0, POLL, C1, ("C6", "133", "1")), **NOBODY}, GOOD),
        ({**idle(0, POLL, ("C6", "133", MISSING)), **NOBODY}, FINDING),
        ({**idle(0, POLL, ("C6", "deep", "0")), **NOBODY}, UNKNOWN),
        ({**idle(0, POLL, C1, C6, limit="n/a"), **NOBODY}, GOOD),
        ({**idle(0, POLL, C1, C6, limit="20"), **NOBODY}, GOOD),
        ({**idle(0, POLL, C1, C6, limit="0"), **NOBODY}, FINDING),
        ({**idle(0, POLL, C1, C6), "dma-latency": "0\n", "dma-latency-holders": "812 control loop\n"}, GOOD),
        ({**idle(0, POLL, C1, C6), "dma-latency": "0\n", "dma-latency-holders": "812 cyclictest\n"}, FINDING),
        ({**idle(0, POLL, C1, C6), "dma-latency": "0\n", "dma-latency-holders": ""}, UNKNOWN),
        ({**idle(0, POLL, C1, C6), "dma-latency": "150\n", "dma-latency-holders": "812 sound\n"}, FINDING),
        ({**idle(0, POLL, C1, C6)}, UNKNOWN),
        ({**idle(0, POLL, C1), **idle(1, POLL, ("C6", MISSING, MISSING)), **NOBODY}, UNKNOWN),
        ({**idle(0, POLL, ("haltpoll idle", "1", "0")), f"{CPU}/cpuidle/current_driver": "haltpoll"}, NOT_APPLICABLE),
    ],
)
def test_idle_states_that_can_be_entered(files: Files, outcome: Outcome) -> None:
    assert judged("pm.cstate", made_facts(files)).outcome is outcome
    assert judged("pm.idle.arm", made_facts(files, machine="aarch64")).outcome is outcome
    assert judged("pm.cstate", made_facts(files, machine="aarch64")).outcome is NOT_APPLICABLE
    assert judged("pm.idle.arm", made_facts(files)).outcome is NOT_APPLICABLE


POLLING, GOVERNOR = "/sys/module/haltpoll/parameters/guest_halt_poll_ns", f"{CPU}/cpuidle/current_governor"
BOARD: Files = {"/sys/class/dmi/id/sys_vendor": "Acme\n", "/sys/class/dmi/id/product_name": "Board 1\n"}


@pytest.mark.parametrize(
    ("files", "outcome", "severity"),
    [
        ({POLLING: "200000", GOVERNOR: "haltpoll"}, GOOD, Severity.MEDIUM),
        ({POLLING: "0", GOVERNOR: "haltpoll"}, FINDING, Severity.MEDIUM),
        ({POLLING: "200000", GOVERNOR: "menu"}, FINDING, Severity.LOW),
        ({POLLING: MISSING, GOVERNOR: MISSING}, FINDING, Severity.LOW),
        ({POLLING: MISSING, "/proc/cmdline": "idle=poll"}, GOOD, Severity.MEDIUM),
        ({POLLING: MISSING, GOVERNOR: MISSING, "/proc/cmdline": "nohlt"}, FINDING, Severity.LOW),
        ({POLLING: "long", GOVERNOR: "haltpoll"}, UNKNOWN, Severity.MEDIUM),
    ],
)
def test_polling_in_a_virtual_machine(files: Files, outcome: Outcome, severity: Severity) -> None:
    found = judged("pm.vm.haltpoll", made_facts({"/proc/cpuinfo": CPUINFO, "kernel-log": GUEST, **files}))
    assert (found.outcome, found.severity) == (outcome, severity)
    bare = made_facts({"/proc/cpuinfo": CPUINFO, "kernel-log": "", **BOARD, **files})
    assert judged("pm.vm.haltpoll", bare).outcome is NOT_APPLICABLE


# Devices, and heat.


CORE, PACKAGE = (f"{CPU}/cpu{{}}/thermal_throttle/{name}_throttle_count" for name in ("core", "package"))
FIRMWARE = "/sys/devices/platform/soc/soc:firmware/get_throttled"

ALARM = "/sys/class/hwmon/hwmon1/in0_lcrit_alarm"


def cooling(kind: str, state: str) -> Files:
    folder = "/sys/class/thermal/cooling_device0"
    return {f"{folder}/type": kind, f"{folder}/cur_state": state}


def heat(cpu: int, core: str | int, package: str | int = "0") -> Files:
    return {CORE.format(cpu): core, PACKAGE.format(cpu): package}


@pytest.mark.parametrize(
    ("start", "end", "outcome"),
    [
        (heat(0, "12"), heat(0, "12"), GOOD),
        (heat(0, "12"), heat(0, "13"), FINDING),
        (heat(0, "12"), heat(0, "12", "4"), FINDING),
        (heat(0, "12"), {}, UNKNOWN),
        (heat(0, "many"), heat(0, "many"), UNKNOWN),
        (heat(0, "12") | heat(1, "3"), heat(0, "12") | heat(1, MISSING, MISSING), UNKNOWN),
        ({FIRMWARE: "0"}, {FIRMWARE: "0"}, GOOD),
        ({FIRMWARE: "50000"}, {FIRMWARE: "50000"}, GOOD),
        ({FIRMWARE: "50005"}, {FIRMWARE: "50005"}, FINDING),
        ({FIRMWARE: "0"}, {FIRMWARE: "0x40000"}, FINDING),
        ({ALARM: "0"}, {ALARM: "1"}, FINDING),
        ({ALARM: "0"}, {ALARM: "0"}, NOT_APPLICABLE),
        (cooling("cpufreq-cpu0", "0"), cooling("", "0"), GOOD),
        (cooling("thermal-cpufreq-0", "2"), cooling("", "2"), FINDING),
        (cooling("fan", "2"), cooling("", "2"), NOT_APPLICABLE),
    ],
)
def test_only_new_throttling_is_a_finding(start: Files, end: Mapping[str, str | int], outcome: Outcome) -> None:
    absent: Files = dict.fromkeys(check_file.find_check("pm.thermal").read, MISSING)
    assert judged("pm.thermal", made_facts({**absent, **start}, end=end)).outcome is outcome
