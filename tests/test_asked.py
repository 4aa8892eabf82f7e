# SPDX-License-Identifier: Apache-2.0
import pytest
from analysis_records import fact, record

from rtproof.analysis.asked import asked_duration_ns, number
from rtproof.record import Moment


@pytest.mark.parametrize(("text", "value"), [("80", 80), ("-1", -1), ("unavailable: no", None), ("", None)])
def test_facts_that_are_numbers(text: str, value: int | None) -> None:
    made = record([], facts=(fact("priority", text, Moment.START, 3),))
    assert number(made, "priority", Moment.START, 3) == value
    assert number(made, "priority") is None


@pytest.mark.parametrize(("text", "value"), [("20000000000", 20_000_000_000), ("0", None)])
def test_a_duration_of_0_was_not_asked_for(text: str, value: int | None) -> None:
    assert asked_duration_ns(record([], facts=(fact("duration_ns", text),))) == value
