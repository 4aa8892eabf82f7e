# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on the screen: every verdict, in at most 20 lines of the terminal's width, with nothing untold."""

from dataclasses import replace

import pytest
from analyses_by_verdict import FIRST, measured, proven, undecided
from analysis_records import SERIES, block, fact, record

from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.record.requirement import Requirement
from rtproof.report.pages.first_screen import MOST_LINES, summary_text
from rtproof.summary.summary_model import Doubt, Severity

WHERE = (("page", "runs/a.html"), ("more", "rtproof show runs/a"))


@pytest.mark.parametrize("width", [70, 80, 100])
@pytest.mark.parametrize("name", FIRST)
def test_each_verdict_fits_on_a_screen(name: str, width: int) -> None:
    analysis = FIRST[name]()
    lines = summary_text(analysis, WHERE, width).splitlines()
    state = analysis.verdict.state.word
    assert lines[0].startswith(f"{state} ")
    assert "..." not in "".join(lines)
    assert lines[-2:] == ["page      runs/a.html", "more      rtproof show runs/a"]
    assert len(lines) <= MOST_LINES + (width < 80)
    assert max(map(len, lines)) <= width


def rows(analysis: Analysis, width: int = 80) -> list[list[str]]:
    """The words of the table, a list for each line."""
    return [line.split() for line in summary_text(analysis, WHERE, width).split("\n\n")[1].splitlines()]


def test_of_many_threads_the_latest_are_shown_and_the_rest_is_counted() -> None:
    threads = [replace(SERIES, id=number, thread=number, cpu=number) for number in range(40)]
    blocks = [block([each.thread * 10_000 + 5_000] * 50, series=each) for each in threads]
    lines = rows(analyse(record(blocks, threads), None, 1))
    shown = [line[0] for line in lines[1:-1]]
    assert shown == [str(thread) for thread in range(40 - len(shown), 40)]
    assert lines[-1] == ["and", str(40 - len(shown)), "more", "threads,", "none", "later"]


def test_the_maximum_over_time_has_its_peak_where_the_late_activation_was() -> None:
    shape = rows(undecided())[1][-1]
    assert len(shape) == 6
    assert shape.index("█") == 3


def test_each_doubt_stands_once_and_what_does_not_fit_is_counted() -> None:
    doubts = tuple(Doubt(f"kind-{n // 2}", Severity.WARNING, f"doubt {n // 2}", "") for n in range(20))
    told = summary_text(replace(proven(), doubts=doubts), WHERE)
    assert told.count("doubt 0") == 1
    shown = sum(f"doubt {n}" in told for n in range(10))
    assert 0 < shown < 10
    assert f"          and {10 - shown} more\n" in told
    assert len(told.splitlines()) == MOST_LINES


def test_a_hostile_name_does_not_reach_the_terminal() -> None:
    told = replace(measured(), facts=(*measured().facts, fact("simulated", "seed=\x1b[2J")))
    text = summary_text(analyse(told, Requirement(500_000, 10**9, gap_ns=10**9), 1), (("page", "\x1b[2J.html"),))
    assert "\x1b" not in text
