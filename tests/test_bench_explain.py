# SPDX-License-Identifier: Apache-2.0
"""``make bench-explain`` without its guests: constructed streams are explained exactly."""

import constructed_streams
import disturbances
import pytest
from disturbances import KINDS, AlsoRight, Answer, Disturbance

from rtproof.explain.budget import BudgetPart, LateActivation, Phase, System, TimeBudget
from rtproof.explain.causes import Cause, NamedCause


@pytest.mark.parametrize("kind", constructed_streams.KINDS)
def test_constructed_streams_are_explained_to_the_nanosecond(kind: str) -> None:
    found = constructed_streams.constructed_answers(kind, System())
    assert len(found) == constructed_streams.NUMBER
    assert all(each.right and each.name_right for each in found)
    assert {each.error_ns for each in found} == {0}
    assert len({each.overlap_ns for each in found}) > 50, "the lengths differ"


def answer(kind: str, cause: Cause, also_right: AlsoRight = frozenset()) -> Answer:
    """A late activation of which all the time has one cause."""
    activation = LateActivation(0, 0, 100, 0, 1_000, 300_000)
    part = BudgetPart(1_000, 301_000, Phase.B, NamedCause(cause, "rtproof_disturb", 7), 0)
    found = TimeBudget(activation, (part,), None, None)
    ((only,), alone) = disturbances.answers([found], [Disturbance(kind, 500, 301_500, 7)], also_right)
    assert alone == []
    assert only.overlap_ns == 300_000
    return only


def test_a_wrong_cause_is_counted_as_wrong() -> None:
    for kind, causes in KINDS.items():
        for cause in Cause:
            assert answer(kind, cause).right is (cause in causes)
    assert disturbances.confusion([answer("nmi", Cause.HARDIRQ)])["nmi"] == {"hardirq": 1}
