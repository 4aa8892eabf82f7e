# SPDX-License-Identifier: Apache-2.0

from analysis_records import fact, record
from stage_records import VIRTUAL

from rtproof.record.contents import Moment
from rtproof.summary.recorded_facts import VIRTUAL_TIME_SENTENCE, virtual_time_clock


def test_a_record_says_itself_that_its_clock_counts_instructions() -> None:
    assert virtual_time_clock(record([], facts=(VIRTUAL,))) == VIRTUAL.value
    assert "does not sign off hardware" in VIRTUAL_TIME_SENTENCE


def test_a_clock_that_shows_time_needs_no_word() -> None:
    assert virtual_time_clock(record([])) is None
    assert virtual_time_clock(record([], facts=(fact("virtual_time", "", Moment.START),))) is None
    assert virtual_time_clock(record([], facts=(fact("virtual_time", "asked only"),))) is None
