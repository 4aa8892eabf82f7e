# SPDX-License-Identifier: Apache-2.0

import pytest
from analysis_records import fact, record

from rtproof.record.contents import Moment
from rtproof.summary.recorded_facts import agent_time_ns, fact_number, requested_duration_ns


@pytest.mark.parametrize(("text", "value"), [("80", 80), ("-1", -1), ("unavailable: no", None), ("", None)])
def test_facts_that_are_numbers(text: str, value: int | None) -> None:
    made = record([], facts=(fact("priority", text, Moment.START, 3),))
    assert fact_number(made, "priority", Moment.START, 3) == value
    assert fact_number(made, "priority") is None


@pytest.mark.parametrize(("text", "value"), [("20000000000", 20_000_000_000), ("0", None)])
def test_a_duration_of_0_was_not_asked_for(text: str, value: int | None) -> None:
    assert requested_duration_ns(record([], facts=(fact("duration_ns", text),))) == value


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        *(("0s", 0), ("1.5ms", 1_500_000), (".5ms", 500_000), ("2.s", 2 * 10**9), ("0.0000000019s", 1)),
        *(("1min", 60 * 10**9), ("2d", 172_800 * 10**9), ("1day", 86_400 * 10**9)),
        *((text, None) for text in (None, "", "5", "ms", ".ms", "1.2.3ms", "-1ms", "1 ms", "1m", "1sec")),
    ],
)
def test_times_are_read_as_the_agent_reads_them(text: str | None, ns: int | None) -> None:
    """The cases of agent/tests/test_text.c."""
    assert agent_time_ns(text) == ns
