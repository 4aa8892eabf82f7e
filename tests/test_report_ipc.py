# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace

from analysis_records import SERIES, block, record
from report_cases import normal, row, system_file, tables, words

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Moment
from rtproof.report.sections import stages

ACCOUNT = """\
sender_cpu 3
sender_policy fifo
sender_priority 80
posts 1020
answered 1019
skipped 2
sender_latest_ns 1234567
"""
TITLE = "The threads that posted, one for each measuring thread"


def of(*contents: str) -> Analysis:
    series = [replace(SERIES, id=at, thread=at, cpu=at + 2, probe="ipc", method="pipe") for at in range(len(contents))]
    made = record([block([5_000] * 10, series=each) for each in series], series)
    files = (system_file(f"ipc/thread{at}", text, Moment.END) for at, text in enumerate(contents))
    return analyse(replace(made, files=tuple(files)))


def test_each_sender_is_told_by_its_account() -> None:
    blocks = stages.ipc_section(of(ACCOUNT))
    assert row(tables(blocks)[TITLE], "thread 0") == {
        "": "thread 0",
        "CPU woken": "2",
        "CPU of the sender": "3",
        "policy": "fifo",
        "priority": "80",
        "posts": "1,020",
        "answered": "1,019",
        "skipped": "2",
        "latest post [us]": "1,234.567",
    }
    assert "How late it was itself is in no value" in words(blocks)


def test_what_damage_took_is_unknown() -> None:
    (table,) = tables(stages.ipc_section(of("posts many\n", ACCOUNT))).values()
    assert [each[0] for each in table.rows] == ["thread 0", "thread 1"]
    assert set(table.rows[0][2:]) == {"unknown"}


def test_other_runs_have_no_senders() -> None:
    assert stages.ipc_section(normal()) == []
    assert stages.ipc_section(of("")) == []
