# SPDX-License-Identifier: Apache-2.0
"""``make bench-explain`` without its guests: constructed streams are explained exactly."""

import constructed_streams
import disturbances
import explain_applications_here
import explain_cpu_max
import pytest
from disturbances import KINDS, AlsoRight, Answer, Disturbance
from explain_cpu_max import Trial
from own_doings import Doing, Told

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


@pytest.mark.parametrize(
    ("own", "took_ms", "cause", "words"),
    [
        (True, 18, Cause.THROTTLED_OR_THREAD, "limit: may be cpu.max"),
        (True, 18, Cause.THREAD, "limit: a thread"),
        (True, 1, Cause.THROTTLED, "turn: may be cpu.max"),
        (True, 8, Cause.THREAD, "both"),
        (False, 18, Cause.THROTTLED_OR_THREAD, "turn beside a limit of others: may be cpu.max"),
    ],
)
def test_the_trial_of_cpu_max_tells_right_answers_from_wrong_ones(
    own: bool, took_ms: int, cause: Cause, words: str
) -> None:
    trial = Trial(5_000, 20_000, 1, 0, own)
    found = told(30_000_000, took_ms * 1_000_000, 10_000_000, cause)
    assert explain_cpu_max.outcome(found, trial) == words
    assert explain_cpu_max.outcome(told(30_000_000, 0, 25_000_000, cause), trial) == "no wait of 10 ms"
