# SPDX-License-Identifier: Apache-2.0
"""The simulations of ``make bench-stats`` in their short form, seeds fixed."""

import pytest
from acceptance import Simulation, simulations


@pytest.mark.slow
@pytest.mark.parametrize("one", simulations(), ids=lambda one: one.key)
def test_the_goal_holds(one: Simulation) -> None:
    assert [row for row in one.rows(True) if not row.holds] == []
