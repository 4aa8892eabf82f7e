# SPDX-License-Identifier: Apache-2.0

from analysis_records import SECOND, block, end, fact, record

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Requirement, State
from rtproof.judge.verdict import ended_when_decided
from rtproof.record.contents import EndReason

BLOCKS = (block([9000] * 5000),)


def codes(at_most_ns: int, reason: EndReason) -> tuple[State, set[str]]:
    made = record(BLOCKS, end=end(BLOCKS, reason), facts=(fact("duration_ns", 100 * SECOND),))
    analysis = ended_when_decided(analyse(made, Requirement(500_000, at_most_ns)))
    return analysis.verdict.state, {doubt.code for doubt in analysis.doubts}


def test_a_decided_run_was_stopped_as_asked() -> None:
    state, doubts = codes(SECOND, EndReason.INTERRUPTED)
    assert state is State.PROVEN
    assert "ended-early" not in doubts


def test_an_undecided_one_was_not_and_other_ends_stay_what_they_are() -> None:
    assert codes(100 * SECOND, EndReason.INTERRUPTED) == (State.UNDECIDED, {"ended-early"})
    state, doubts = codes(SECOND, EndReason.NO_SPACE)
    assert state is State.PROVEN
    assert "ended-early" in doubts
