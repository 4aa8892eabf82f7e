# SPDX-License-Identifier: Apache-2.0
"""Functions for the checks of hardware, firmware and virtual machines."""

import re
from datetime import UTC, datetime

from rtproof.audit import conditions
from rtproof.audit.audit_model import Judgement, Outcome, ReadValue
from rtproof.audit.check import Check
from rtproof.audit.facts import ONLINE, Facts
from rtproof.audit.readings import LONGEST_VALUE, finding, hidden, not_applicable, read_values, unknown
from rtproof.audit.system_threads import all_threads, why_hidden
from rtproof.core.phrases import duration, quantity
from rtproof.core.printable import clean
from rtproof.summary import system_facts

_STAT = "/proc/stat"
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
    holds, sentence = conditions.virtual_machine(facts)
    names = [facts.read(path) for path in ("/proc/cpuinfo", *conditions.NAMES_OF_THE_MACHINE)]
    told = system_facts.guest_fact(facts.record)
    says = clean(told.says[:LONGEST_VALUE])
    read = (
        *(ReadValue(clean(path), says) for path in told.source.split(", ") if facts.read(path).here),
        *read_values(reading for reading in names[1:] if reading.here),
    )
    if holds is None:
        return Judgement(Outcome.UNKNOWN, sentence, read_values(names))
    if not holds:
        return Judgement(Outcome.GOOD, sentence, read)
    rows = (re.match(r"cpu\d+(?: \d{1,20}){7} (\d{1,20})", line) for line in facts.read(_STAT).text.splitlines())
    stolen_ns = sum(int(row[1]) for row in rows if row) * _TICK_NS
    steal = f" Since the boot, its CPUs waited {duration(stolen_ns)} for the host (steal)." if stolen_ns else ""
    return Judgement(Outcome.FINDING, f"{sentence}{steal}", read)


def host_of_guests(facts: Facts, _: Check) -> Judgement:
    """Whether a host gives its guests' CPUs what real time needs."""
    module = facts.read("/sys/module/kvm/parameters/halt_poll_ns")
    guests = [task for task in all_threads(facts) or () if _VCPU.fullmatch(task.name)]
    if not guests and module.absent:
        return not_applicable("The kernel hosts no guests: KVM is not there.", [module])
    if not guests and (why := why_hidden(facts)):
        return Judgement(Outcome.UNKNOWN, f"It is not known whether guests run: {why}.", ())
    if not guests:
        return not_applicable("No guest of KVM runs here.")
    online, readings = facts.cpus(ONLINE) or frozenset(), [facts.read(path) for path in _HOST_SETTINGS]
    counts = {
        "without a real-time policy": sum(not task.real_time for task in guests),
        "not bound to one CPU": sum(len((task.cpus or frozenset()) & online) > 1 for task in guests),
    }
    says = [f"{what}: {quantity(count, 'CPU')} of guests" for what, count in counts.items() if count]
    wrong = [reading for reading in readings if reading.here and reading.word not in _HOST_SETTINGS[reading.path]]
    says += [f"{value.path} is {value.value}" for value in read_values(wrong)]
    if says:
        return finding(f"{'; '.join(says)}.", wrong)
    lost = hidden(readings)
    return unknown(lost) if lost else Judgement(Outcome.GOOD, "", read_values(readings))


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
