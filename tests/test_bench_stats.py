# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of ``make bench-stats`` in their short form, seeds fixed."""

import pytest
from acceptance import Benchmark, benchmarks

SHORT = [one for one in benchmarks() if one.in_tests]


@pytest.mark.slow
@pytest.mark.parametrize("one", SHORT, ids=lambda one: one.key)
def test_the_goal_holds(one: Benchmark) -> None:
    result = one.measure(True)
    assert result.holds, f"{one.title}: {result.value}, goal: {result.goal}"
