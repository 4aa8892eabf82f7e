# SPDX-License-Identifier: Apache-2.0
"""Runs that were not taken by turns have no winner, however sure the test looks."""

from dataclasses import replace

import pytest
from comparison_cases import DAY_NS, FIRST_DAY, in_time, side

from rtproof import report
from rtproof.compare.compare import compare_sides
from rtproof.compare.comparison_model import Comparison, ComparisonFinding
from rtproof.compare.likeness import run_turns, shown_turns, turn_changes, turn_imbalance
from rtproof.compare.run_metrics import RunFigures
from rtproof.report.pages.comparison_page import ComparisonContext, comparison_sections, comparison_title
from rtproof.schema.comparison_json import comparison_dict

TOLD = ComparisonContext(("the new one", "the old one"))
UNTIMED = [RunFigures("run", {}, side(1, 1)[0].counts)] * 5


def ordered(order: str) -> tuple[list[RunFigures], list[RunFigures]]:
    """B is later by a factor of 2; the runs started in this order, an hour apart."""
    sides = {"A": side(1, order.count("A"), scatter=0.05), "B": side(2, order.count("B"), factor=2, scatter=0.05)}
    places = {name: [at for at, one in enumerate(order) if one == name] for name in sides}
    a, b = (
        [
            replace(run, started_ns=FIRST_DAY * DAY_NS + at * DAY_NS // 24, run_id=f"{at}")
            for run, at in zip(sides[name], places[name], strict=True)
        ]
        for name in ("A", "B")
    )
    return a, b


def page(said: Comparison, form: str) -> str:
    return " ".join(report.render(form, comparison_title(said), comparison_sections(said, TOLD)).decode().split())


@pytest.mark.parametrize(
    "order", ["ABBAABBAAB", "ABABABABAB", "BBAABABABAB", "AABBAABBABAB", "ABBA" * 5, "ABBAABBAABBA"]
)
def test_turns_have_a_winner(order: str) -> None:
    said = compare_sides(*ordered(order))
    assert said.turns.interleaved is True
    assert (said.turns.order, said.turns.why) == (order, "")
    assert said.finding is ComparisonFinding.A_BETTER


@pytest.mark.parametrize(
    "order",
    [
        "AAAAABBBBB",
        "BBBBBAAAAA",
        "AABBBBBAAA",
        "AABBAAABBB",
        "AAAABABBBB",
        "A" * 8 + "B" * 8,
        "ABABAB" + "A" * 7 + "B" * 7,
    ],
)
def test_a_series_without_turns_has_none(order: str) -> None:
    said = compare_sides(*ordered(order))
    assert said.turns.interleaved is False
    assert said.turns.order == order
    assert said.finding is ComparisonFinding.NOT_INTERLEAVED
    assert {effect.finding for effect in said.effects} <= {
        ComparisonFinding.NOT_INTERLEAVED,
        ComparisonFinding.NO_DIFFERENCE,
    }
    lines = dict(said.sentences)
    assert lines["VERDICT"].startswith(
        "not interleaved, so neither side is called better: in order of time the runs are"
    )
    told = " ".join(text for _, text in said.sentences)
    assert "ratio 0.5" in told
    assert "if nothing else changed from run to run" in told
    assert "surely" not in told


def test_no_output_names_a_winner() -> None:
    said = compare_sides(*ordered("AAAAABBBBB"))
    assert comparison_title(said).endswith("not interleaved")
    for form in ("text", "html", "markdown"):
        shown_page = page(said, form)
        assert "is better" not in shown_page, form
        assert "Not interleaved" in shown_page, form
        assert "interval and p hold only if nothing else changed from run to run" in shown_page, form
    plain = comparison_dict(said)
    assert "is better" not in str(plain)
    assert plain["finding"] == "not interleaved"
    assert plain["turns"] == {
        "interleaved": False,
        "order": "AAAAABBBBB",
        "why_not": "in order of time the runs are 5 A, 5 B",
    }


def test_without_times_the_order_is_not_known() -> None:
    a, b = ordered("ABBAABBAAB")
    said = compare_sides([*a[:4], replace(a[4], started_ns=None)], b)
    assert said.finding is ComparisonFinding.UNKNOWN_ORDER
    assert dict(said.sentences)["VERDICT"].startswith("not known to be interleaved, so neither side is called better")
    assert comparison_dict(said)["turns"] == {
        "interleaved": None,
        "order": None,
        "why_not": "when it began is not known of 1 of 10 runs",
    }
    assert run_turns(UNTIMED, UNTIMED).interleaved is None


def test_a_clock_that_nobody_set_tells_no_order() -> None:
    """Each boot of a board without a clock begins in 1970, so its runs seem to take turns."""
    a, b = (
        [replace(run, started_ns=(run.started_ns or 0) - FIRST_DAY * DAY_NS) for run in some]
        for some in ordered("ABBAABBAAB")
    )
    assert run_turns(a, b).interleaved is None
    same = [replace(run, started_ns=FIRST_DAY * DAY_NS) for run in a]
    assert run_turns(same, same).why == "runs of both sides have the same start time"


def test_an_even_series_without_turns_is_not_said_to_be_alike() -> None:
    said = compare_sides(in_time(side(1, 5), 0, 1), in_time(side(2, 5), 10, 1))
    assert said.finding is ComparisonFinding.NOT_INTERLEAVED
    assert "no difference shown either" in " ".join(text for _, text in said.sentences)


def test_fewer_than_five_runs_are_not_judged_in_any_order() -> None:
    assert compare_sides(*ordered("AAABBB")).finding is ComparisonFinding.NOT_JUDGED


def test_figures_of_an_order() -> None:
    assert turn_imbalance("AAAABBBB") == 1
    assert turn_imbalance("ABBAABBA") == 0.25
    assert (turn_changes("AAAABBBB"), turn_changes("ABBAABBA")) == (1, 4)
    assert shown_turns("AAABBA") == "3 A, 2 B, 1 A"
    assert shown_turns("AB" * 8).endswith("1 A, 1 B, ...")
