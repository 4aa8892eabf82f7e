# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

import numpy as np
import pytest
from analysis_records import record
from hypothesis import given
from hypothesis import strategies as st
from report_cases import interrupts, normal, pairs, row, system_file, tables, work

from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Counter, Moment
from rtproof.report.blocks import Text
from rtproof.report.sections import evidence
from rtproof.summary import recorded_facts
from rtproof.summary.recorded_facts import CpuCounts

WORK = "Work of the loads"


def with_counters(*counters: Counter) -> Analysis:
    analysis = normal()
    return replace(analysis, run_record=replace(analysis.record, counters=counters))


def test_a_load_that_stands_still_shows() -> None:
    done = row(tables(evidence.loads_section(with_counters(work(5, 5, 5))))[WORK], "load.sched")
    assert (done["work done"], done["per second"]) == ("0", "0")


def test_a_last_reading_that_comes_at_once_is_no_second() -> None:
    counter = replace(work(0, 1_000, 1_000), time_ns=np.array([0, 1_000_000_000, 1_000_000_100]))
    assert row(tables(evidence.loads_section(with_counters(counter)))[WORK], "load.sched")["slowest second"] == "1,000"


@pytest.mark.parametrize("counter", [work(7), replace(work(7, 9), time_ns=np.array([5, 5]))])
def test_readings_that_give_no_rate(counter: Counter) -> None:
    assert row(tables(evidence.loads_section(with_counters(counter)))[WORK], "load.sched")["per second"] == "unknown"


CAPTION = "Interrupts that rose between start and end"


def test_only_cpus_that_were_measured_count_as_such() -> None:
    analysis = normal()
    files = (
        system_file("/proc/interrupts", "CPU1 CPU9\n5: 0 0 x"),
        system_file("/proc/interrupts", "CPU1 CPU9\n5: 3 40 x", Moment.END),
    )
    table = tables(evidence.interrupts_section(replace(analysis, run_record=replace(analysis.record, files=files))))[
        CAPTION
    ]
    assert table.rows[0][:4] == ("5", "43", "14.3", "3")
    unbound = tuple(replace(each, series=replace(each.series, cpu=-1)) for each in analysis.summaries)
    free = replace(analysis, summaries=unbound, run_record=replace(analysis.record, files=files))
    assert tables(evidence.interrupts_section(free))[CAPTION].rows[0][3] == "unknown"


def code(blocks: object) -> list[tuple[str, ...]]:
    assert isinstance(blocks, list | tuple)
    return [block.paragraphs for block in blocks if isinstance(block, Text) and block.kind == "code"]


def test_paths_are_quoted_for_the_shell() -> None:
    analysis = normal()
    odd = replace(analysis, run_record=replace(analysis.record, path="/tmp/my run/it's.rtrec"))
    assert code(evidence.repeat_section(odd))[-1][0] == "rtproof show '/tmp/my run/it'\"'\"'s.rtrec'"
    assert pairs(tables(evidence.repeat_section(odd))["The record"])["file"].startswith("it's.rtrec, ")


PATH = "/proc/interrupts"


def test_without_both_readings_nothing_is_said() -> None:
    assert recorded_facts.count_rises(record([], files=(interrupts(1, 1, 1, moment=Moment.START),)), PATH) is None


def test_an_interrupt_that_came_up_during_the_run_counts_from_zero() -> None:
    files = (system_file(PATH, "CPU0\n"), system_file(PATH, "CPU0\n 9: 5 new\n", Moment.END))
    assert recorded_facts.count_rises(record([], files=files), PATH) == [CpuCounts("9", {0: 5}, "new")]


def test_a_counter_of_32_bits_goes_round() -> None:
    files = (system_file(PATH, "CPU0\n 9: 4294967290 x\n"), system_file(PATH, "CPU0\n 9: 4 x\n", Moment.END))
    assert recorded_facts.count_rises(record([], files=files), PATH) == [CpuCounts("9", {0: 10}, "x")]


def test_cpus_that_are_offline_leave_gaps_in_the_numbers() -> None:
    rows = recorded_facts.per_cpu_counts("     CPU0   CPU2\n LOC: 5 6 Local timer\n")
    assert rows["LOC"].per_cpu == {0: 5, 2: 6}


@given(st.text(), st.text())
def test_no_text_is_too_strange(before: str, after: str) -> None:
    files = (system_file(PATH, before), system_file(PATH, after, Moment.END))
    rises = recorded_facts.count_rises(record([], files=files), PATH)
    assert rises is not None
    assert all(rise.total > 0 for rise in rises)
