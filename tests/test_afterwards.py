# SPDX-License-Identifier: Apache-2.0

import pytest
from analysis_records import MS, block, record

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis, Requirement, State
from rtproof.judge.verdict import AFTER_THE_DATA, chosen_after_the_data

PROVEN = Requirement(limit_ns=MS, at_most_ns=MS)
REFUTED = Requirement(limit_ns=5_000)
UNDECIDED = Requirement(limit_ns=MS)


def analysed(requirement: Requirement | None) -> Analysis:
    return analyse(record([block([10_000] * 1000)]), requirement, 1)


@pytest.mark.parametrize(
    ("requirement", "state"), [(PROVEN, State.PROVEN), (REFUTED, State.REFUTED), (UNDECIDED, State.UNDECIDED)]
)
def test_nothing_is_decided(requirement: Requirement, state: State) -> None:
    before = analysed(requirement)
    assert before.verdict.state is state
    after = chosen_after_the_data(before)
    assert after.verdict.state is State.UNDECIDED
    assert any(AFTER_THE_DATA in reason for reason in after.verdict.reasons)
    assert any(AFTER_THE_DATA in text for _, text in after.verdict.sentences)
    assert after.doubts[-1].code == "limit-after-data"
    assert after.verdict.chosen_after


def test_nothing_is_left_of_the_test_but_the_order_statistic() -> None:
    before = analysed(PROVEN).verdict
    after = chosen_after_the_data(analysed(PROVEN)).verdict
    assert (after.rate_high, after.rate_low, after.log_e_proven, after.needed_ns, after.alpha) == (None,) * 5
    assert after.rate_high_fixed == before.rate_high_fixed is not None
    lines = dict(after.sentences)
    assert lines["VERDICT"] == f"UNDECIDED - {AFTER_THE_DATA}"
    assert lines["LIMIT"].endswith("confidence 95 %; chosen after the fact")
    assert lines["RANK"].startswith("0 episodes above 1,000 us in 1.0 s; had this been asked of number 1 of this run's")
    assert lines["RANK"].endswith("less often than once per 333 ms (95 %, fixed-time)")
    assert {"MAX", "UNSEEN", "VALID FOR"} < set(lines)
    assert not any("PROVEN" in text or "any stopping time" in text for text in lines.values())


def test_a_limit_that_was_fixed_beside_one_that_was_not_keeps_its_verdict() -> None:
    found = analyse(record([block([10_000] * 1000)]), (PROVEN, REFUTED), 1)
    after = chosen_after_the_data(found, (PROVEN,))
    assert [verdict.state for verdict in after.verdicts] == [State.PROVEN, State.UNDECIDED]
    assert (after.verdict.state, after.verdicts[0]) == (State.UNDECIDED, found.verdicts[0])


def test_an_invalid_run_stays_invalid() -> None:
    after = chosen_after_the_data(analyse(record([]), PROVEN, 1))
    assert after.verdict.state is State.INVALID
