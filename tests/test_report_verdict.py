# SPDX-License-Identifier: Apache-2.0
import pytest
from analysis_records import MS, block, record
from report_cases import CASES, all_equal, missed, no_limit, normal, tables

from rtproof.analysis.analyse import analyse
from rtproof.analysis.model import Analysis, Requirement, State
from rtproof.report.blocks import Text
from rtproof.report.sections import verdict


def headline(analysis: Analysis) -> Text:
    first = verdict.render(analysis)[0]
    assert isinstance(first, Text)
    return first


@pytest.mark.parametrize("name", CASES)
def test_the_state_comes_first_in_words_with_every_reason(name: str) -> None:
    analysis = CASES[name]()
    said = headline(analysis)
    assert said.headline.startswith(f"{analysis.verdict.state.value}: ")
    assert said.paragraphs == analysis.verdict.reasons


@pytest.mark.parametrize(
    ("analysis", "state", "kind"),
    [
        (normal, State.INVALID, "bad"),
        (missed, State.REFUTED, "bad"),
        (all_equal, State.UNDECIDED, "doubt"),
        (no_limit, State.INVALID, "bad"),
    ],
)
def test_kinds(analysis: object, state: State, kind: str) -> None:
    assert callable(analysis)
    found: Analysis = analysis()
    assert found.verdict.state is state
    assert headline(found).kind == kind


def test_every_state_has_words_of_its_own_and_a_kind() -> None:
    assert set(verdict.MEANINGS) == set(verdict.KINDS) == set(State)
    assert all(words.startswith(f"{state.value}: ") for state, words in verdict.MEANINGS.items())
    assert verdict.KINDS[State.PROVEN] == "good"


def test_the_other_sentences_follow_and_say_how_much_longer() -> None:
    analysis = all_equal()
    (table,) = tables(verdict.render(analysis)).values()
    assert [row[0] for row in table.rows if row[0]] == ["LIMIT", "NEEDED", "MAX", "UNSEEN", "FORECAST", "VALID FOR"]
    assert any("more if nothing exceeds" in words for _, words in table.rows)
    assert ("", *analysis.verdict.reasons) not in table.rows


def test_every_other_limit_has_a_line() -> None:
    made = record([block([10_000] * 1000)])
    analysis = analyse(made, (Requirement(MS), Requirement(5_000)), 1)
    others = tables(verdict.render(analysis))["The other limits"]
    ((asked, said),) = others.rows
    assert (analysis.verdict.state, asked.startswith("1,000 us, ")) == (State.REFUTED, True)
    assert said.startswith("UNDECIDED - 0 episodes above 1,000 us")
