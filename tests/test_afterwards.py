# SPDX-License-Identifier: Apache-2.0
import pytest
from analysis_records import MS, block, record

from rtproof.analysis.afterwards import WHAT, chosen_after_the_data
from rtproof.analysis.analyse import analyse
from rtproof.analysis.model import Analysis, Requirement, State

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
    assert any(WHAT in reason for reason in after.verdict.reasons)
    assert any(WHAT in text for _, text in after.verdict.sentences)
    assert after.doubts[-1].code == "limit-after-data"
    assert after.verdict.rate_high == before.verdict.rate_high


def test_what_it_would_have_been_is_said() -> None:
    label, text = chosen_after_the_data(analysed(PROVEN)).verdict.sentences[0]
    assert label == "VERDICT"
    assert text.startswith("UNDECIDED - ")
    assert text.endswith("fixed before the run, it would have been PROVEN")


def test_an_invalid_run_stays_invalid() -> None:
    after = chosen_after_the_data(analyse(record([]), PROVEN, 1))
    assert after.verdict.state is State.INVALID
