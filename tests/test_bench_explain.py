# SPDX-License-Identifier: Apache-2.0
"""``make bench-explain`` without its guests: wrong answers count as wrong, and unproven events do not count."""

import disturbances
import explain_applications_here
from disturbances import KINDS, AlsoRight, Answer, Disturbance
from own_doings import Doing, Told

from rtproof.explain.budget import BudgetPart, LateActivation, Phase, TimeBudget
from rtproof.explain.causes import Cause, NamedCause


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


def told(latency_ns: int, took_ns: int, ran_ns: int = 0, cause: Cause = Cause.BLOCKED) -> Told:
    """A time of which the program was late, all of it by one cause. took_ns: what its own clocks prove."""
    part = BudgetPart(0, latency_ns, Phase.C, NamedCause(cause, "partner", 7), 0)
    late = LateActivation(0, 0, 100, 0, 0, latency_ns, marked=True)
    return Told(
        Disturbance("kind", 0, latency_ns, 100), TimeBudget(late, (part,), None, None), ran_ns, 0, latency_ns, took_ns
    )


def test_an_event_on_this_machine_counts_if_the_program_proves_its_cause() -> None:
    doing = Doing("mutex", Cause.BLOCKED, "partner")
    reasons = [
        explain_applications_here.uncounted(told(late_ns, took_ns), doing)
        for late_ns, took_ns in ((1_000_000, 600_000), (1_000_000, 590_000), (90_000, 90_000))
    ]
    assert reasons == ["", "cause not proven", "not late"]
