# SPDX-License-Identifier: Apache-2.0
"""The checks of hardware, firmware and virtual machines."""

import dataclasses

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.check import Severity
from rtproof.audit.facts import AuditRequest, Facts

INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc\n"
GUEST = INTEL.replace("tsc", "tsc hypervisor")
BARE = "Booting paravirtualized kernel on bare hardware\n"
ARM = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n"
FIRST, OWN = "pid:[4026531836]", "pid:[4026532201]"
TASKS = "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM\n2 2 0 TS - 0 0 0-3 0x00208040 [kthreadd]\n"
ONLINE: dict[str, str | int] = {"/sys/devices/system/cpu/online": "0-3\n"}


def outcome(check: str, files: dict[str, str | int], machine: str = "x86_64") -> Outcome:
    return judged(check, made_facts(files, machine=machine)).outcome


@pytest.mark.parametrize(
    ("files", "machine", "expected"),
    [
        ({"/proc/cpuinfo": GUEST}, "x86_64", Outcome.FINDING),
        ({"/proc/cpuinfo": INTEL}, "x86_64", Outcome.GOOD),
        ({"/proc/cpuinfo": INTEL, "hypervisor": "KVMKVMKVM\n"}, "x86_64", Outcome.FINDING),
        ({"/proc/cpuinfo": INTEL, "/sys/class/dmi/id/sys_vendor": "QEMU\n"}, "x86_64", Outcome.FINDING),
        ({"/proc/cpuinfo": INTEL, "kernel-log": BARE}, "x86_64", Outcome.GOOD),
        ({"/proc/cpuinfo": ARM, "/proc/device-tree/model": "linux,dummy-virt\0"}, "aarch64", Outcome.FINDING),
        ({"/proc/cpuinfo": ARM, "/proc/device-tree/model": "Toradex Apalis iMX6Q\0"}, "armv7l", Outcome.GOOD),
        ({"/proc/cpuinfo": ARM}, "aarch64", Outcome.UNKNOWN),
    ],
)
def test_a_virtual_machine_is_told_by_any_sign(files: dict[str, str | int], machine: str, expected: Outcome) -> None:
    assert outcome("hw.virt", files, machine) is expected


def test_a_virtual_machine_is_fatal_for_a_control_loop() -> None:
    facts = made_facts({"/proc/cpuinfo": GUEST}, request=AuditRequest(purpose="control-loop"))
    assert judged("hw.virt", facts).severity is Severity.FATAL
    assert judged("hw.virt", made_facts({"/proc/cpuinfo": GUEST})).severity is Severity.HIGH


def test_a_guest_is_told_how_much_its_host_took() -> None:
    rows = "".join(f"cpu{cpu} 1 2 3 4 5 6 7 {ticks} 0 0\n" for cpu, ticks in enumerate((5, 9)))
    found = judged("hw.virt", made_facts({"/proc/cpuinfo": GUEST, "/proc/stat": f"cpu  1 2 3 4 5 6 7 14 0 0\n{rows}"}))
    assert "Since the boot, its CPUs waited 140 ms for the host (steal)." in found.sentence
    assert "taken" not in judged("hw.virt", made_facts({"/proc/cpuinfo": GUEST, "/proc/stat": REFUSED})).sentence


HOST: dict[str, str | int] = {
    **ONLINE,
    "/sys/module/kvm/parameters/halt_poll_ns": "200000\n",
    "/sys/module/kvm/parameters/kvmclock_periodic_sync": "N\n",
    "/sys/module/kvm_intel/parameters/ple_gap": "0\n",
    "/proc/self/ns/pid": FIRST,
    "tasks": TASKS + "900 901 1 FF 1 - 2 2 0x00400040 CPU 0/KVM\n",
}


def test_a_host_pins_its_guests_and_gives_them_a_policy() -> None:
    assert outcome("hw.host", HOST) is Outcome.GOOD
    moving = judged("hw.host", made_facts({**HOST, "tasks": TASKS + "900 901 1 TS - 0 2 0-3 0x00400040 CPU 0/KVM\n"}))
    assert moving.outcome is Outcome.FINDING
    assert "without a real-time policy: 1 CPU of guests; not bound to one CPU: 1 CPU of guests" in moving.sentence
    assert outcome("hw.host", {**HOST, "/sys/module/kvm_intel/parameters/ple_gap": "128\n"}) is Outcome.FINDING
    assert outcome("hw.host", {**HOST, "/sys/module/kvm_intel/parameters/ple_gap": REFUSED}) is Outcome.UNKNOWN


def firmware_interrupts(start: str | int, end: str | int, cpu: str = INTEL) -> Outcome:
    return judged("hw.smi", made_facts({"/proc/cpuinfo": cpu, "smi": start}, end={"smi": end})).outcome


def test_interrupts_of_the_firmware_are_counted_on_bare_metal() -> None:
    assert firmware_interrupts("cpu0 12\ncpu1 12\n", "cpu0 12\ncpu1 12\n") is Outcome.GOOD
    assert firmware_interrupts("cpu0 12\ncpu1 12\n", "cpu0 13\ncpu1 13\n") is Outcome.FINDING
    assert firmware_interrupts("cpu0 0\n", "cpu0 0\n", GUEST) is Outcome.NOT_APPLICABLE


TRACING = "/sys/kernel/tracing"


@pytest.mark.parametrize(
    ("current", "largest", "tracers", "expected"),
    [
        ("hwlat\n", "37\n", "hwlat nop\n", Outcome.FINDING),
        ("hwlat\n", "0\n", "hwlat nop\n", Outcome.GOOD),
        ("nop\n", "37\n", "hwlat nop\n", Outcome.UNKNOWN),
        ("nop\n", "0\n", "function nop\n", Outcome.UNKNOWN),
    ],
)
def test_gaps_of_the_hardware_are_known_only_while_their_tracer_runs(
    current: str | int, largest: str | int, tracers: str | int, expected: Outcome
) -> None:
    names = ("current_tracer", "tracing_max_latency", "available_tracers")
    files = {f"{TRACING}/{name}": text for name, text in zip(names, (current, largest, tracers), strict=True)}
    assert outcome("hw.hwlat", {**files, "/proc/cpuinfo": INTEL}) is expected


def dated(date: str | int, taken: int) -> Outcome:
    facts = made_facts({"/proc/cpuinfo": INTEL, "/sys/class/dmi/id/bios_date": date})
    begin = dataclasses.replace(facts.record.begin, origin_realtime_ns=(taken - 1970) * 31_557_600 * 10**9)
    return judged("hw.bios", Facts(dataclasses.replace(facts.record, begin=begin), facts.request)).outcome


def test_firmware_is_old_by_the_time_of_the_record() -> None:
    assert dated("04/01/2014\n", 2026) is Outcome.FINDING
    assert dated("04/01/2014\n", 2016) is Outcome.GOOD
    for unknown in (MISSING, REFUSED, "spring\n"):
        assert dated(unknown, 2026) is Outcome.UNKNOWN


ERRORS = "/sys/devices/system/edac/mc/mc0/ce_count"


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        ("0\n", "0\n", Outcome.GOOD),
        ("3\n", "4\n", Outcome.FINDING),
        ("3\n", "3\n", Outcome.FINDING),
        ("0\n", "some\n", Outcome.UNKNOWN),
    ],
)
def test_corrected_errors(start: str | int, end: str | int, expected: Outcome) -> None:
    assert judged("hw.edac", made_facts({ERRORS: start}, end={ERRORS: end})).outcome is expected
