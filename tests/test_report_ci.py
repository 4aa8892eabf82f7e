# SPDX-License-Identifier: Apache-2.0

import pytest

from rtproof.judge.analysis_model import State
from rtproof.report.pages.ci_verdicts import (
    CiClaim,
    CiRow,
    ci_exit_code,
    ci_junit,
    ci_markdown,
    ci_text,
    unread_row,
    worst_row,
)

HOSTILE = 'a|b <img src=x> ]]> & "q" \x1b[31m\x00\u202e `c` *d*'


def claim(state: State, text: str = "above 1 ms") -> CiClaim:
    return CiClaim(text, state, f"because {state.value}", "1 episode", "2 h", (f"VERDICT {state.value}", "MAX 3 us"))


def row(name: str, *states: State) -> CiRow:
    return CiRow(name, states[0], tuple(claim(state) for state in states), ("a doubt",), 10**10)


ROWS = [
    row("good", State.PROVEN),
    row("bad", State.REFUTED, State.UNDECIDED),
    row("wrong", State.INVALID),
    row("short", State.UNDECIDED),
    row("open", State.NOT_ASKED),
    unread_row("torn", "torn is not a record"),
]


def test_the_worst_decides() -> None:
    assert (ci_exit_code(ROWS), worst_row(ROWS)) == (2, "ERROR, 1 of 6 runs could not be read")
    assert (ci_exit_code(ROWS[:5]), worst_row(ROWS[:5])) == (3, "INVALID")
    assert (ci_exit_code([]), ci_exit_code(ROWS[:1])) == (0, 0)
    assert (worst_row([]), worst_row(ROWS[:1]), worst_row([ROWS[4]])) == ("NOT ASKED", "PROVEN", "NOT ASKED")


def test_a_run_without_a_limit_is_not_among_the_proven() -> None:
    mixed = [ROWS[4], ROWS[0], ROWS[0]]
    assert (ci_exit_code(mixed), worst_row(mixed)) == (0, "PROVEN, but for 1 run without a limit")
    assert ci_markdown(mixed).decode().startswith("## rtproof: PROVEN, but for 1 run without a limit")


def test_junit_is_read_by_others() -> None:
    junitparser = pytest.importorskip("junitparser")
    found = junitparser.JUnitXml.fromstring(ci_junit(ROWS))
    assert (found.tests, found.failures, found.errors, found.skipped) == (7, 1, 2, 3)
    (suite,) = found
    cases = {(case.classname, case.name): case for case in suite}
    good = cases["good", "above 1 ms"]
    assert good.is_passed
    assert good.time == 10.0
    (failure,) = next(case for case in suite if case.classname == "bad").result
    assert isinstance(failure, junitparser.Failure)
    assert (failure.message, failure.type) == ("REFUTED: because REFUTED", "REFUTED")
    assert isinstance(cases["wrong", "above 1 ms"].result[0], junitparser.Error)
    assert cases["torn", "verdict"].result[0].message == "ERROR: torn is not a record"
    assert isinstance(cases["short", "above 1 ms"].result[0], junitparser.Skipped)
    assert cases["short", "above 1 ms"].result[0].message.endswith("because UNDECIDED; how much longer: 2 h")
    assert "MAX 3 us" in good.system_out


def test_strict_takes_what_is_not_proven_for_a_failure() -> None:
    junitparser = pytest.importorskip("junitparser")
    found = junitparser.JUnitXml.fromstring(ci_junit(ROWS, strict=True))
    assert (found.failures, found.errors, found.skipped) == (4, 2, 0)


def test_the_counts_are_those_of_the_suite() -> None:
    junitparser = pytest.importorskip("junitparser")
    found = junitparser.JUnitXml.fromstring(ci_junit(ROWS))
    before = (found.tests, found.failures, found.errors, found.skipped)
    found.update_statistics()
    assert (found.tests, found.failures, found.errors, found.skipped) == before


def test_nothing_from_a_run_breaks_out_of_the_document() -> None:
    junitparser = pytest.importorskip("junitparser")
    made = CiRow(HOSTILE, State.REFUTED, (claim(State.REFUTED, HOSTILE),), (HOSTILE,), 1)
    (suite,) = junitparser.JUnitXml.fromstring(ci_junit([made]))
    (case,) = suite
    assert "<img src=x>" in case.name
    assert "\x00" not in case.name
    shown = ci_markdown([made], HOSTILE).decode()
    assert "<img" not in shown.replace("\\<img", "")
    line = next(line for line in shown.splitlines() if "REFUTED |" in line)
    assert line.replace("\\|", "").count("|") == 7


def test_markdown_is_a_table_with_folded_details() -> None:
    shown = ci_markdown(ROWS, "the user says so").decode()
    assert shown.startswith("## rtproof: ERROR, 1 of 6 runs could not be read - 6 runs\n")
    assert shown.count("<details>") == shown.count("</details>") == 6
    assert "> the user says so" in shown
    assert "| run | verdict | claim | seen | how much longer | doubts |" in shown
    assert "|  | UNDECIDED |" in shown, "a second limit of the same run"
    assert "</summary>\n\n- VERDICT" in shown, "GitHub needs the empty line"


def test_text_has_the_reasons() -> None:
    shown = ci_text(ROWS).decode()
    for words in (
        "rtproof: ERROR, 1 of 6 runs could not be read - 6 runs",
        "REFUTED: because REFUTED",
        "doubt: a doubt",
        "torn is not a record",
    ):
        assert words in shown


def test_several_verdicts_are_not_sure_together() -> None:
    both = [row("good", State.PROVEN), row("bad", State.REFUTED), row("short", State.UNDECIDED)]
    for shown in (ci_text(both).decode(), ci_markdown(both).decode()):
        assert "That the verdicts on all 2 decided runs are right is less sure" in " ".join(shown.split())
    assert "less sure" not in ci_text(both[1:]).decode()
