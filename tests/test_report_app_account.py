# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from app_cases import TABLE, app_record
from report_cases import normal, row, system_file, tables

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment
from rtproof.report.sections import loops

COUNTS = "pulses_work 0\npulses_sleep 0\npulses_no_sleep 0\n"


def of(*contents: str) -> Analysis:
    files = (system_file(f"app/thread{at}", text, Moment.END) for at, text in enumerate(contents))
    return analyse(replace(app_record(*[TABLE] * len(contents)), files=tuple(files)))


def test_what_was_not_asked_for_is_no_column() -> None:
    told = of(
        f"loops 7\nslept 6\nshifted 0\n{COUNTS}primes 9592\nsensed \n", "loops 7\nslept 7\nprimes 9592\nsensed 23500\n"
    )
    (table,) = tables(loops.app_account_section(told)).values()
    assert table.header == ("", "loops", "slept first", "primes found", "last reading")
    assert row(table, "thread 0")["last reading"] == ""
    assert table.rows[1] == ("thread 1", "7", "7", "9592", "23500")


def test_moved_targets_and_pulses_are_told() -> None:
    told = of("loops 7\nshifted 2\npulses_work 7\npulses_sleep 5\npulses_no_sleep 2\n")
    (table,) = tables(loops.app_account_section(told)).values()
    assert table.header[2:] == ("targets moved", "pulses: work", "pulses: sleep", "pulses: no sleep")
    assert table.rows == (("thread 0", "7", "2", "7", "5", "2"),)


def test_nothing_is_said_without_an_account() -> None:
    assert loops.app_account_section(of("")) == []
    assert loops.app_account_section(normal()) == []
