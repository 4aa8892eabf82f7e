# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from report_cases import normal, nothing, system_file, tables, words

from rtproof.record.contents import Moment
from rtproof.report.sections import evidence

CAPTION = "Interrupts that rose between start and end"


def test_what_rose_is_listed_with_its_rate() -> None:
    table = tables(evidence.interrupts_section(normal()))[CAPTION]
    assert table.rows == (
        ("LOC", "3,000", "1,000", "3,000", "Local timer interrupts"),
        ("0", "7", "2.33", "7", "IO-APIC 2-edge timer"),
    )


def test_only_cpus_that_were_measured_count_as_such() -> None:
    analysis = normal()
    files = (
        system_file("/proc/interrupts", "CPU1 CPU9\n5: 0 0 x"),
        system_file("/proc/interrupts", "CPU1 CPU9\n5: 3 40 x", Moment.END),
    )
    table = tables(evidence.interrupts_section(replace(analysis, record=replace(analysis.record, files=files))))[
        CAPTION
    ]
    assert table.rows[0][:4] == ("5", "43", "14.3", "3")
    unbound = tuple(replace(each, series=replace(each.series, cpu=-1)) for each in analysis.summaries)
    free = replace(analysis, summaries=unbound, record=replace(analysis.record, files=files))
    assert tables(evidence.interrupts_section(free))[CAPTION].rows[0][3] == "unknown"


def test_a_long_list_is_cut_and_says_so() -> None:
    analysis = normal()
    before = "CPU0\n" + "".join(f"{at}: 0 x\n" for at in range(40))
    after = "CPU0\n" + "".join(f"{at}: {at} x\n" for at in range(40))
    files = (system_file("/proc/softirqs", before), system_file("/proc/softirqs", after, Moment.END))
    found = evidence.interrupts_section(replace(analysis, record=replace(analysis.record, files=files)))
    (table,) = tables(found).values()
    assert table.caption.endswith(", the 15 most frequent of 39")
    assert [each[0] for each in table.rows[:2]] == ["39", "38"]


def test_what_is_missing_is_said() -> None:
    said = words(evidence.interrupts_section(nothing()))
    assert "the record does not have /proc/interrupts of both start and end" in said
    assert "/proc/softirqs" in said


def test_what_stood_still_is_said() -> None:
    analysis = normal()
    files = tuple(system_file("/proc/interrupts", "CPU0\n1: 5 x", moment) for moment in (Moment.START, Moment.END))
    said = words(evidence.interrupts_section(replace(analysis, record=replace(analysis.record, files=files))))
    assert "Interrupts: none rose between start and end." in said
