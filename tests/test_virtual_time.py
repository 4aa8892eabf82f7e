# SPDX-License-Identifier: Apache-2.0
from analysis_records import fact, record
from stage_records import VIRTUAL

from rtproof.analysis.virtual_time import WORDS, virtual_time
from rtproof.record import Moment


def test_a_record_says_itself_that_its_clock_counts_instructions() -> None:
    assert virtual_time(record([], facts=(VIRTUAL,))) == VIRTUAL.value
    assert "does not sign off hardware" in WORDS


def test_a_clock_that_shows_time_needs_no_word() -> None:
    assert virtual_time(record([])) is None
    assert virtual_time(record([], facts=(fact("virtual_time", "", Moment.START),))) is None
    assert virtual_time(record([], facts=(fact("virtual_time", "asked only"),))) is None
