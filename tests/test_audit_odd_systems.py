# SPDX-License-Identifier: Apache-2.0
"""What the audit says of systems that are rare, and of facts that somebody made to harm."""

import dataclasses

import pytest
from audit_cases import MISSING, REFUSED, judged, made_facts

from rtproof.audit import check_file, judgement
from rtproof.audit.audit_model import Outcome
from rtproof.audit.facts import Facts, Reading, State, kernel_version, parse_cpu_list
from rtproof.audit.interrupts import read_table

CPU = "/sys/devices/system/cpu"


HOSTILE = {
    "escape codes": "\x1b[31mred\x1b[0m\u202e\u2028\n",
    "a line of 1 MiB": "a" * (1 << 20),
    "many words": " ".join(f"w{i:x}" for i in range(150_000)),
    "overlapping lists of CPUs": ",".join(f"{i}-65535" for i in range(0, 65_000, 7)),
    "numbers without end": "9" * (1 << 20),
    "digits that are no ASCII": "\u0663\u00b2\u2167",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_files_are_shown_short_and_clean(text: str) -> None:
    sources = {source for check in check_file.all_checks() for source in check.read if source.startswith("/")}
    paths = {source.replace("[0-9]*", "1").replace("[0-9]", "1").replace("*", "1") for source in sources}
    files: dict[str, str | int] = dict.fromkeys(
        (paths | {"kernel-log", "/proc/cpuinfo", f"{CPU}/possible"}) - {"/proc/mounts"}, text
    )
    found = judgement.audit(made_facts(files, end=files))
    for result in found.results:
        assert len(result.sentence) <= judgement.LONGEST_SENTENCE + 3
        assert result.sentence.isprintable()
        assert all(value.value.isprintable() and value.path.isprintable() for value in result.read)


def test_a_list_that_names_a_cpu_again_and_again_is_no_list() -> None:
    assert parse_cpu_list(",".join(["0-60000"] * 100)) is None
    assert parse_cpu_list(",".join(str(cpu) for cpu in range(0, 8192, 2))) == frozenset(range(0, 8192, 2))
    assert kernel_version("6.18.0-rc1") == (6, 18)


def test_a_row_with_a_name_of_many_digits_is_no_interrupt() -> None:
    table = "           CPU0\n  1:   5   IO-APIC   1-edge   i8042\n" + "9" * 5000 + ":   5   IO-APIC   2-edge   eth0\n"
    read = read_table(Reading("/proc/interrupts", State.HERE, table))
    assert read is not None
    assert read[1] == {1: ("i8042",)}


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
