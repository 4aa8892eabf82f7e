# SPDX-License-Identifier: Apache-2.0

from report_cases import normal, response, row, several_fields, tables
from stage_records import stimuli

from rtproof.judge.analyse import analyse
from rtproof.report.sections import stages

EDGES = "Edges; unanswered"
TIMES = "How long answers took"


def test_answers_split_at_the_task() -> None:
    times = tables(stages.response_section(analyse(stimuli([(0, 20_000, 33_000), (31_000_000, 25_000, 30_000)]))))[
        TIMES
    ]
    assert [each[0] for each in times.rows] == ["edge to task", "task to output", "edge to output"]
    assert row(times, "task to output") == {
        "what": "task to output",
        "n": "2",
        "min [us]": "5.000",
        "avg [us]": "9.000",
        "max [us]": "13.000",
    }
    assert row(times, "edge to output")["max [us]"] == "33.000"


def test_an_edge_without_an_answer_took_longer_than_the_period() -> None:
    found = tables(stages.response_section(response()))
    assert found[EDGES].rows == (("100", "99", "1", "1 %", "0"),)
    unanswered = row(found[TIMES], "edge to answer, unanswered")
    assert (unanswered["n"], unanswered["max [us]"]) == ("1", "> 30,000.000")


def test_other_probes_have_no_response() -> None:
    assert [stages.response_section(each) for each in (normal(), several_fields())] == [[], []]
