# SPDX-License-Identifier: Apache-2.0

import pytest

from rtproof.run.live_view import OverLine, parse_over


def test_a_line_of_the_agent() -> None:
    line = "over thread=1 limit_ns=500000 second=17 worst_ns=612345"
    assert parse_over(line) == OverLine(1, 500_000, 17, 612_345)
    assert parse_over(line + " more=1") == OverLine(1, 500_000, 17, 612_345)


@pytest.mark.parametrize(
    "line", ["", "over", "over thread=1", "over thread=x limit_ns=1 second=1 worst_ns=1", "overthread=1"]
)
def test_what_is_no_such_line(line: str) -> None:
    assert parse_over(line) is None
