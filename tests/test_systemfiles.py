# SPDX-License-Identifier: Apache-2.0

from report_cases import system_file
from system_records import missing, target

from rtproof.record.contents import Moment
from rtproof.summary import recorded_facts

RECORD = target(
    "x",
    system_file("/a", "Linux \0\n"),
    system_file("/a", "other", Moment.END),
    missing("/gone"),
    missing("/locked", 13),
    missing("/folder", 21),
)


def test_a_file_has_the_text_of_its_moment() -> None:
    assert recorded_facts.file_text(RECORD, "/a") == "Linux \0\n"
    assert recorded_facts.file_line(RECORD, "/a") == "Linux"
    assert recorded_facts.file_text(RECORD, "/a", Moment.END) == "other"


def test_a_file_that_could_not_be_read_has_no_text() -> None:
    assert recorded_facts.file_text(RECORD, "/gone") is recorded_facts.file_line(RECORD, "/locked") is None
    assert recorded_facts.why_no_file(RECORD, "/locked") == "Permission denied"
    assert recorded_facts.why_no_file(RECORD, "/never") == "not in the record"


def test_what_nobody_was_let_in_to_see_may_be_there() -> None:
    assert [recorded_facts.file_is_there(RECORD, path) for path in ("/a", "/folder", "/gone", "/locked", "/never")] == [
        *(True, True, False),
        *(None, None),
    ]
