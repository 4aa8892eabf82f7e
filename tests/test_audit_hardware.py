# SPDX-License-Identifier: Apache-2.0
"""The checks of hardware, firmware and virtual machines."""

import dataclasses

from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit.audit_model import Outcome
from rtproof.audit.facts import Facts

INTEL = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu tsc\n"


def dated(date: str | int, taken: int) -> Outcome:
    facts = made_facts({"/proc/cpuinfo": INTEL, "/sys/class/dmi/id/bios_date": date})
    begin = dataclasses.replace(facts.record.begin, origin_realtime_ns=(taken - 1970) * 31_557_600 * 10**9)
    return judged("hw.bios", Facts(dataclasses.replace(facts.record, begin=begin), facts.request)).outcome


def test_firmware_is_old_by_the_time_of_the_record() -> None:
    assert dated("04/01/2014\n", 2026) is Outcome.FINDING
    assert dated("04/01/2014\n", 2016) is Outcome.GOOD
    for unknown in (MISSING, REFUSED, "spring\n"):
        assert dated(unknown, 2026) is Outcome.UNKNOWN
