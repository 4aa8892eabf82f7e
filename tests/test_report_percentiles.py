# SPDX-License-Identifier: Apache-2.0

import re
from collections.abc import Sequence

from report_cases import missed, normal, nothing, one_sample, row, summary_only, tables, words

from rtproof.report.blocks import Table
from rtproof.report.sections import numbers

SHARES = ["50 %", "90 %", "99 %", "99.9 %", "99.99 %", "99.999 %", "99.9999 %"]
MAIN = "Latency not exceeded by this share of the activations, "


def main_table(blocks: Sequence[object]) -> Table:
    assert isinstance(blocks[0], Table)
    return blocks[0]


def test_seven_shares_with_their_intervals() -> None:
    table = main_table(list(numbers.percentiles_section(normal())))
    assert table.caption == f"{MAIN}all threads (n = 6,000 observed)"
    assert [each[0] for each in table.rows] == SHARES
    middle = row(table, "50 %")
    low, high = map(float, re.findall(r"[0-9.]+", middle["95 % interval"]))
    assert low <= float(middle["observed [us]"]) <= high


def test_what_n_does_not_carry_is_unknown() -> None:
    table = main_table(list(numbers.percentiles_section(normal())))
    assert row(table, "99.9 %")["observed [us]"] != "unknown"
    assert row(table, "99.99 %")["observed [us]"] == "unknown"
    assert row(table, "99.99 %")["95 % interval"].endswith(" to unknown")
    assert {each[1] for each in main_table(list(numbers.percentiles_section(one_sample()))).rows} == {"unknown"}
    assert {each[2] for each in main_table(list(numbers.percentiles_section(nothing()))).rows} == {"unknown"}
    assert "unknown where fewer than one value" in words(numbers.percentiles_section(normal()))


def test_missed_activations_show_in_the_schedule_only() -> None:
    table = main_table(list(numbers.percentiles_section(missed())))
    assert table.caption.endswith("thread 0 (n = 3,012 observed, n = 3,810 schedule)")
    high = row(table, "99 %")
    assert (high["observed [us]"], high["schedule [us]"]) == ("6.000", "381,000.000")


def test_every_thread_has_its_row_and_its_intervals_on_demand() -> None:
    found = tables(numbers.percentiles_section(normal()))
    per_thread = found["Per thread, observed [us]"]
    assert [each[0] for each in per_thread.rows] == ["thread 0", "thread 1", "all threads"]
    assert per_thread.header[2:] == tuple(SHARES)
    intervals = found["Intervals per thread, observed"]
    assert intervals.folded
    assert len(intervals.rows) == 2 * len(SHARES)
    assert len(tables(numbers.percentiles_section(one_sample()))) == 1


def test_a_summary_has_percentiles_too() -> None:
    assert row(main_table(list(numbers.percentiles_section(summary_only()))), "50 %")["observed [us]"] != "unknown"


def test_what_the_interval_rests_on_is_said() -> None:
    found = list(numbers.percentiles_section(normal()))
    assert row(main_table(found), "50 %")["independent values"] == "6,000"
    assert 'column "independent values"' in words(found)
    assert "takes the values as independent" not in words(found)
    without = list(numbers.percentiles_section(summary_only()))
    assert "independent values" not in main_table(without).header
    assert "takes the values as independent" in words(without)
