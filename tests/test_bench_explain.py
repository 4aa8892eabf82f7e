# SPDX-License-Identifier: Apache-2.0
"""``make bench-explain`` without its guests: constructed streams, names of systems, and what it refuses."""

import constructed_streams
import disturbances
import pytest
from disturbances import KINDS, NOT_COUNTED, AlsoRight, Answer, Disturbance
from disturbed_guests import SYSTEMS

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


def test_causes_that_look_alike_are_right_only_where_the_kernel_does_not_count() -> None:
    alike = Cause.PREEMPT_OFF_OR_NO_POINT
    kinds = {kind for kind, cause in NOT_COUNTED if cause is alike}
    assert {kind for kind in KINDS if answer(kind, alike, NOT_COUNTED).right} == kinds
    assert not any(answer(kind, alike).right for kind in KINDS)
    assert answer("preempt-off", Cause.PREEMPT_OFF, NOT_COUNTED).right


def test_who_meets_no_disturbance_is_told_apart() -> None:
    late = answer("irqs-off", Cause.IRQ_OFF).found
    assert disturbances.answers([late], [Disturbance("irqs-off", 301_000, 400_000, 7)]) == ([], [late])
    assert disturbances.answers([late], []) == ([], [late])


def test_every_system_has_a_name_of_its_own_and_says_why_a_kind_is_not_made() -> None:
    names = [system.name for system in SYSTEMS]
    assert len(set(names)) == len(names)
    assert names[:3] == ["6.1-none", "6.1-full", "6.1-rt"]
    assert "5.10-rt" in names
    for system in SYSTEMS:
        assert all(why.startswith(("constructed: ", "not possible: ")) for _, why in system.not_made)
        assert set(system.constructed) <= set(constructed_streams.KINDS)
