# SPDX-License-Identifier: Apache-2.0
"""Functions for the checks of hardware, firmware and virtual machines."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from rtproof.audit import conditions
from rtproof.audit.audit_model import Judgement, Outcome, ReadValue
from rtproof.audit.check import Check
from rtproof.audit.facts import Facts
from rtproof.audit.readings import (
    LONGEST_VALUE,
    hidden,
    read_values,
    unknown,
)
from rtproof.audit.system_threads import AuditedThread, all_threads
from rtproof.core.phrases import duration, quantity
from rtproof.core.printable import clean
from rtproof.core.units import whole_number
from rtproof.summary import system_facts

_STAT = "/proc/stat"
_STEAL_COLUMN = 7
_TICK_NS = 10_000_000
_OLD_FIRMWARE_YEARS = 5
_HOST_SETTINGS = {
    "/sys/module/kvm_intel/parameters/ple_gap": ("0",),
    "/sys/module/kvm/parameters/kvmclock_periodic_sync": ("N", "0"),
}
"""As tuned's profile for a host of real-time guests has them."""
_VCPU = re.compile(r"CPU \d+/KVM")


def virtual_machine(facts: Facts, _: Check) -> Judgement:
    """Whether a hypervisor decides when a CPU runs."""
    found = conditions.virtual_machine(facts)
    names = [facts.read(path) for path in ("/proc/cpuinfo", *conditions.NAMES_OF_THE_MACHINE)]
    told = system_facts.guest_fact(facts.record)
    says = clean(told.says[:LONGEST_VALUE])
    read = (
        *(ReadValue(clean(path), says) for path in told.source.split(", ") if facts.read(path).here),
        *read_values(reading for reading in names[1:] if reading.here),
    )
    if found.holds is None:
        return Judgement(Outcome.UNKNOWN, found.sentence, read_values(names))
    if not found.holds:
        return Judgement(Outcome.GOOD, found.sentence, read)
    stolen = sum(_steal(facts.read(_STAT).text).values()) * _TICK_NS
    told_too = f" Since the boot, its CPUs waited {duration(stolen)} for the host (steal)." if stolen else ""
    return Judgement(Outcome.FINDING, f"{found.sentence}{told_too}", read)


def _steal(text: str) -> dict[str, int]:
    """The ticks that were taken from each CPU."""
    rows = [line.split() for line in text.splitlines() if re.match(r"cpu\d+ ", line)]
    counted = {row[0]: whole_number(row[_STEAL_COLUMN + 1]) for row in rows if len(row) > _STEAL_COLUMN + 1}
    return {cpu: ticks for cpu, ticks in counted.items() if ticks is not None}


def host_of_guests(facts: Facts, _: Check) -> Judgement:
    """Whether a host gives its guests' CPUs what real time needs."""
    module, seen = facts.read("/sys/module/kvm/parameters/halt_poll_ns"), all_threads(facts)
    guests = [task for task in seen.seen if _VCPU.fullmatch(task.name)]
    if not guests:
        if module.absent:
            return Judgement(
                Outcome.NOT_APPLICABLE, "The kernel hosts no guests: KVM is not there.", read_values([module])
            )
        if seen.hidden:
            return Judgement(Outcome.UNKNOWN, f"It is not known whether guests run: {seen.hidden}.", ())
        return Judgement(Outcome.NOT_APPLICABLE, "No guest of KVM runs here.", ())
    readings = [facts.read(path) for path in _HOST_SETTINGS]
    wrong = [reading for reading in readings if reading.here and reading.word not in _HOST_SETTINGS[reading.path]]
    says = [*_of_guests(facts, guests), *(f"{value.path} is {value.value}" for value in read_values(wrong))]
    if says:
        return Judgement(Outcome.FINDING, f"{'; '.join(says)}.", read_values(wrong))
    lost = hidden(readings)
    return unknown(lost) if lost else Judgement(Outcome.GOOD, "", read_values(readings))


def _of_guests(facts: Facts, guests: Sequence[AuditedThread]) -> list[str]:
    online = facts.cpus("/sys/devices/system/cpu/online")
    ordinary = [task for task in guests if not task.real_time]
    free = [task for task in guests if task.cpus is not None and online and len(task.cpus & online) > 1]
    says = [f"without a real-time policy: {quantity(len(ordinary), 'CPU')} of guests"] if ordinary else []
    return [*says, *([f"not bound to one CPU: {quantity(len(free), 'CPU')} of guests"] if free else [])]


def firmware(facts: Facts, _: Check) -> Judgement:
    """How old the firmware is. Its settings cannot be read."""
    folder = "/sys/class/dmi/id"
    names = [facts.read(f"{folder}/{name}") for name in ("bios_date", "bios_vendor", "bios_version")]
    date, *others = names
    read = read_values(names)
    match = re.fullmatch(r"(\d\d)/(\d\d)/(\d{4})", date.word) if date.here else None
    if not match:
        return unknown([date], "" if not date.here else f"{date.path} holds no date.")
    taken = datetime.fromtimestamp(facts.record.begin.origin_realtime_ns / 1e9, UTC).year
    if taken < int(match[3]):
        return unknown([date], f"The clock of the machine says {taken}, and the firmware is of {match[3]}.")
    what = clean(" ".join(reading.word for reading in others if reading.here)) or "The firmware"
    if taken - int(match[3]) >= _OLD_FIRMWARE_YEARS:
        return Judgement(Outcome.FINDING, f"{what} is of {match[3]}.", read)
    return Judgement(Outcome.GOOD, f"{what} is of {match[3]}. Its settings cannot be read.", read)
