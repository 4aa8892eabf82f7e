# SPDX-License-Identifier: Apache-2.0

from analysis_records import record
from hypothesis import given
from hypothesis import strategies as st
from report_cases import interrupts, system_file

from rtproof.record.contents import Moment
from rtproof.report.sections import evidence
from rtproof.report.sections.evidence import CountRise

PATH = "/proc/interrupts"


def test_what_rose_most_comes_first_and_what_did_not_is_left_out() -> None:
    files = (interrupts(100, 1_000, 0, moment=Moment.START), interrupts(107, 4_000, 2, moment=Moment.END))
    assert evidence.count_rises(record([], files=files), PATH) == [
        CountRise("LOC", {0: 3_000, 1: 0}, "Local timer interrupts"),
        CountRise("0", {0: 7, 1: 0}, "IO-APIC 2-edge timer"),
        CountRise("ERR", {evidence.WHOLE_MACHINE: 2}, ""),
    ]


def test_without_both_readings_nothing_is_said() -> None:
    assert evidence.count_rises(record([], files=(interrupts(1, 1, 1, moment=Moment.START),)), PATH) is None


def test_an_interrupt_that_came_up_during_the_run_counts_from_zero() -> None:
    files = (system_file(PATH, "CPU0\n"), system_file(PATH, "CPU0\n 9: 5 new\n", Moment.END))
    assert evidence.count_rises(record([], files=files), PATH) == [CountRise("9", {0: 5}, "new")]


def test_a_counter_of_32_bits_goes_round() -> None:
    files = (system_file(PATH, "CPU0\n 9: 4294967290 x\n"), system_file(PATH, "CPU0\n 9: 4 x\n", Moment.END))
    assert evidence.count_rises(record([], files=files), PATH) == [CountRise("9", {0: 10}, "x")]


def test_cpus_that_are_offline_leave_gaps_in_the_numbers() -> None:
    rows = evidence.per_cpu_counts("     CPU0   CPU2\n LOC: 5 6 Local timer\n")
    assert rows["LOC"].counts == {0: 5, 2: 6}


@given(st.text(), st.text())
def test_no_text_is_too_strange(before: str, after: str) -> None:
    files = (system_file(PATH, before), system_file(PATH, after, Moment.END))
    rises = evidence.count_rises(record([], files=files), PATH)
    assert rises is not None
    assert all(rise.total > 0 for rise in rises)
