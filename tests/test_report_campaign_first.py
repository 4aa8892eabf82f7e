# SPDX-License-Identifier: Apache-2.0
"""What is missing from a page, and how it is not as in the article, stands before its table."""

from dataclasses import replace

import campaign_cases
import pytest

from rtproof import articles
from rtproof.judge.analyse import LOSS_CODES
from rtproof.report.blocks import Table, Text
from rtproof.report.pages import campaign_conditions, campaign_page
from rtproof.report.pages.campaign_outcomes import CellOutcome
from rtproof.summary.summary_model import Doubt, Severity


def outcomes(*parts: tuple[str, tuple[Doubt, ...]]) -> list[CellOutcome]:
    """Of each its failure and doubts."""
    made = campaign_cases.bootlin()[1]
    assert made.analysis
    found = [
        replace(made, failure=failure, analysis=replace(made.analysis, doubts=doubts)) for failure, doubts in parts
    ]
    return [replace(each, system=f"board {at}") for at, each in enumerate(found)]


def told(some: list[CellOutcome]) -> dict[str, Text]:
    blocks = [
        *campaign_conditions.missing_block(some),
        *campaign_conditions.difference_block(campaign_cases.shortened("bootlin-timer"), some),
    ]
    assert all(isinstance(block, Text) for block in blocks)
    return {block.headline: block for block in blocks if isinstance(block, Text)}


def doubt(code: str, severity: Severity = Severity.WARNING) -> Doubt:
    return Doubt(code, severity, f"what {code} says", "a remedy")


def test_nothing_is_missing_from_whole_cells() -> None:
    assert campaign_conditions.MISSING_TITLE not in told(outcomes(("", ()), ("", (doubt("guest"),))))


@pytest.mark.parametrize("code", LOSS_CODES)
def test_each_kind_of_loss_is_told(code: str) -> None:
    block = told(outcomes(("", ()), ("", (doubt("guest"), doubt(code)))))[campaign_conditions.MISSING_TITLE]
    assert block.kind == "doubt"
    assert block.paragraphs == (f"1 of 2 cells not whole: clock_nanosleep, board 1: what {code} says",)


def test_failed_and_invalid_cells_are_told_with_the_first_reason_and_how_many_there_are() -> None:
    invalid = (doubt("policy", Severity.INVALID), doubt("lost"))
    block = told(outcomes(("no GPIO", ()), ("", invalid), ("no more GPIO", ())))[campaign_conditions.MISSING_TITLE]
    assert block.kind == "bad"
    assert block.paragraphs == (
        "2 of 3 cells failed: clock_nanosleep, board 0: no GPIO (and 1 more, below)",
        "1 of 3 cells INVALID: clock_nanosleep, board 1: what policy says",
        "1 of 3 cells not whole: clock_nanosleep, board 1: what lost says",
    )


def test_what_a_way_lacks_is_told_and_for_which_cells() -> None:
    made = campaign_cases.akamina()
    said = told(made)[campaign_conditions.CHANGED_TITLE].paragraphs[0]
    assert said.startswith("All cells: measured by way of timerlat. ")
    other = told([replace(made[0], passed=()), *made[1:]])[campaign_conditions.CHANGED_TITLE].paragraphs[0]
    assert other.startswith("loaded (comms): measured by way of timerlat.")


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("name", ["akamina", "ten-ms", "simple-rt-app"])
def test_it_stands_before_the_table(name: str, short: bool) -> None:
    make = {"akamina": campaign_cases.akamina, "ten-ms": campaign_cases.ten_ms}.get(name, campaign_cases.simple_rt_app)
    page = campaign_page.campaign_sections(campaign_cases.shortened(name), make(), articles.load(name), short=short)
    headlines = [block.headline if isinstance(block, Text) else type(block) for block in page[0].blocks]
    assert (
        headlines.index(campaign_conditions.MISSING_TITLE)
        < headlines.index(campaign_conditions.CHANGED_TITLE)
        < headlines.index(Table)
    )
