# SPDX-License-Identifier: Apache-2.0
"""The checks of hardware, firmware and virtual machines."""

import dataclasses

from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.facts import Facts

INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc\n"
GUEST = INTEL.replace("tsc", "tsc hypervisor")
FIRST, OWN = "pid:[4026531836]", "pid:[4026532201]"
TASKS = "PID TID PPID CLS RTPRIO NICE CPU CPUS FLAGS COMM\n2 2 0 TS - 0 0 0-3 0x00208040 [kthreadd]\n"
ONLINE: dict[str, str | int] = {"/sys/devices/system/cpu/online": "0-3\n"}


def outcome(check: str, files: dict[str, str | int], machine: str = "x86_64") -> Outcome:
    return judged(check, made_facts(files, machine=machine)).outcome


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


def dated(date: str | int, taken: int) -> Outcome:
    facts = made_facts({"/proc/cpuinfo": INTEL, "/sys/class/dmi/id/bios_date": date})
    begin = dataclasses.replace(facts.record.begin, origin_realtime_ns=(taken - 1970) * 31_557_600 * 10**9)
    return judged("hw.bios", Facts(dataclasses.replace(facts.record, begin=begin), facts.request)).outcome


def test_firmware_is_old_by_the_time_of_the_record() -> None:
    assert dated("04/01/2014\n", 2026) is Outcome.FINDING
    assert dated("04/01/2014\n", 2016) is Outcome.GOOD
    for unknown in (MISSING, REFUSED, "spring\n"):
        assert dated(unknown, 2026) is Outcome.UNKNOWN
