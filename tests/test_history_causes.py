# SPDX-License-Identifier: Apache-2.0

from history_cases import run

from rtproof.compare.history import fact_changes
from rtproof.compare.run_metrics import RunFigures


def runs(**texts: str) -> list[RunFigures]:
    """Ten runs; each fact has a letter for each of them."""
    return [
        run(n, values=10, facts={key.replace("_", " "): letters[n] for key, letters in texts.items()})
        for n in range(10)
    ]


def found(at: int, since: int = 0, until: int = 10, **texts: str) -> list[tuple[str, str, str, int, bool]]:
    changes = fact_changes(runs(**texts), since, at, until)
    return [(one.key, one.before, one.after, one.at, one.steady) for one in changes]


def test_a_fact_that_changes_nearby_is_told_with_its_run() -> None:
    assert found(5, governor="aaaaaabbbb") == [("governor", "a", "b", 6, True)]


def test_a_fact_that_changes_far_away_or_never_is_not() -> None:
    assert found(5, governor="abbbbbbbbb", machine="xxxxxxxxxx") == []


def test_a_fact_of_another_stretch_does_not_count() -> None:
    assert found(5, since=4, governor="aaabbbbbbb") == []


def test_what_holds_on_both_sides_comes_before_what_matters_more_and_flickers() -> None:
    keys = [each[0] for each in found(5, governor="aaaaabbbbb", preemption_model="ababababab")]
    assert keys == ["governor", "preemption model"]


def test_among_those_that_hold_what_is_known_to_matter_comes_first() -> None:
    order = found(5, unheard_of="aaaaabbbbb", kernel_release="aaaaabbbbb", preemption_model="aaaaabbbbb")
    assert [each[0] for each in order] == ["preemption model", "kernel release", "unheard of"]


def test_a_reason_and_its_source_come_with_it() -> None:
    (change,) = fact_changes(runs(governor="aaaaabbbbb"), 0, 5, 10)
    assert change.why
    assert change.source


def test_a_fact_that_was_not_known_before() -> None:
    some = [run(n, values=10) if n < 5 else run(n, values=10, facts={"governor": "performance"}) for n in range(10)]
    (change,) = fact_changes(some, 0, 5, 10)
    assert (change.before, change.after) == ("not known", "performance")
