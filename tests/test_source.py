# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import file, record
from stage_records import source_file

from rtproof.record.contents import Moment
from rtproof.summary.recorded_facts import SourceCount, source_counts


def test_the_account_of_each_field_is_read() -> None:
    files = (
        source_file("irq", count=9, missed=1, lost=2, min=-5, max=70),
        source_file("task", 3, count=8, max=71),
    )
    assert source_counts(record([], files=files)) == (
        SourceCount(0, "irq", 9, 1, 2, -5, 70),
        SourceCount(3, "task", 8, 0, 0, 0, 71),
    )


def test_what_is_no_account_is_left_out() -> None:
    whole = source_file("irq", count=9)
    files = (
        replace(whole, errno=2),
        replace(whole, moment=Moment.START),
        replace(whole, path="rtproof.ko/thread/irq"),
        file("rtproof.ko/thread0/irq", "count many\nnothing at all", Moment.END),
        file("rtproof.ko/thread0/irq", "", Moment.END),
    )
    assert source_counts(record([], files=files)) == ()
