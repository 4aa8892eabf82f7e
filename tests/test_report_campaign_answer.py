# SPDX-License-Identifier: Apache-2.0
"""What the first screen of a campaign says before its table."""

from dataclasses import replace

import campaign_cases
import report_cases

from rtproof.report.pages.campaign_page import MOST_LISTED_CELLS, answer_block


def test_a_limit_is_answered_with_the_worst_verdict_and_what_was_asked() -> None:
    profile = campaign_cases.shortened("akamina")
    told = [
        campaign_cases.outcome(profile, "unloaded", report_cases.normal()),
        campaign_cases.outcome(profile, "loaded", report_cases.missed()),
    ]
    states = [each.analysis.verdict.state.value for each in told if each.analysis]
    first = answer_block(profile, told)
    assert states == ["INVALID", "REFUTED"]
    assert (first.headline, first.kind) == ("INVALID in 1 of 2 cells", "bad")
    assert first.paragraphs == (
        "Asked: 500 us, at most once per 1 h, none longer than 10 min, confidence 95 %. An episode joins all "
        "times above 500 us, on any thread, that are no more than 1 min apart.",
        "Each cell by itself: wrong in at most 5 % of runs, if episodes come independently of one another and at a "
        "steady rate.",
    )
    ((words, listed),) = first.terms
    assert words == "Largest latency"
    assert [each.split(",")[0] for each in listed.split("; ")] == ["unloaded: INVALID", "loaded (comms): REFUTED"]


def test_of_several_systems_each_has_its_line() -> None:
    first = answer_block(campaign_cases.shortened("bootlin-timer"), campaign_cases.bootlin())
    assert [name for name, _ in first.terms] == ["rt", "plain"]
    assert first.terms[1][1].count("400,000.000 us (n = 3,012)") == 4


def test_how_long_a_proof_takes_is_told_where_it_is_open() -> None:
    profile = campaign_cases.shortened("akamina")
    open_ = campaign_cases.outcome(profile, "unloaded", report_cases.several_fields())
    needed = open_.analysis.verdict.needed_ns if open_.analysis else None
    assert ("PROVEN takes" in "".join(answer_block(profile, [open_]).paragraphs)) is bool(needed)


def test_cycles_and_loops_are_answered_by_what_their_articles_count() -> None:
    ((words, cycles),) = answer_block(campaign_cases.shortened("ten-ms"), campaign_cases.ten_ms()).terms
    assert words == "Cycles out of the band (95 % confidence)"
    assert "STALLED" in cycles
    assert " % possible)" in cycles
    assert cycles.endswith("other, stress+flood: not measured")
    ((words, loops),) = answer_block(campaign_cases.shortened("simple-rt-app"), campaign_cases.simple_rt_app()).terms
    assert (words, loops) == (
        "Loop time",
        "5 ms loop: 4,000.000 to 6,000.000 us (n = 3), top late by at most 1,300.000 us",
    )


def test_many_cells_are_told_of_in_part() -> None:
    profile = campaign_cases.shortened("bootlin-timer")
    cell = profile.cells[0]
    told = [
        replace(campaign_cases.outcome(profile, cell.key, report_cases.response()), cell=replace(cell, label=str(at)))
        for at in range(20)
    ]
    ((_, listed),) = answer_block(profile, told).terms
    assert listed.endswith("; and 12 more cells, below")
    assert listed.count("n = ") == MOST_LISTED_CELLS
