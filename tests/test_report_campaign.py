# SPDX-License-Identifier: Apache-2.0
"""The page of a profile's cells: what stands in it, and beside what."""

from collections.abc import Callable
from dataclasses import replace

import campaign_cases
import pytest
import report_cases

from rtproof import articles, profiles, report
from rtproof.core.errors import UserError
from rtproof.judge.analysis_model import Analysis
from rtproof.profiles import Profile
from rtproof.report.blocks import Link, Plot, Section, Table
from rtproof.report.pages import campaign_outcomes, campaign_page
from rtproof.report.pages.campaign_outcomes import CampaignExtras, CellOutcome

S = 1_000_000_000
NOTHING = CampaignExtras()
CASES = {
    "akamina": (campaign_cases.akamina, "akamina"),
    "ten-ms": (campaign_cases.ten_ms, "ten-ms"),
    "simple-rt-app": (campaign_cases.simple_rt_app, "simple-rt-app"),
    "bootlin-timer": (campaign_cases.bootlin, "bootlin"),
}


def drawn(
    name: str, profile: Profile | None = None, more: CampaignExtras = NOTHING, short: bool = False
) -> dict[str, Section]:
    make, article = CASES[name]
    profile = profile or campaign_cases.shortened(name)
    told = campaign_page.campaign_sections(profile, make(), articles.load(article), more, short=short)
    return {section.name: section for section in told}


def tables(section: Section) -> list[Table]:
    return [block for block in section.blocks if isinstance(block, Table)]


def texts(section: Section) -> str:
    return report_cases.words(list(section.blocks))


def rows(table: Table) -> list[dict[str, str]]:
    return [dict(zip(table.header, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("name", CASES)
def test_the_first_screen_has_the_latencies_of_every_cell_and_their_course(name: str) -> None:
    foremost = [
        block
        for section in drawn(name).values()
        for block in section.blocks
        if isinstance(block, Plot) and block.foremost
    ]
    course = "Overall loop time" if name == "simple-rt-app" else "Largest latency"
    assert [plot.title for plot in foremost[::-1] if plot.title.startswith(course)] == [course]
    (latencies,) = (plot for plot in foremost if plot.title == "All latencies, the rare ones too")
    cells = {each.cell.label for each in CASES[name][0]() if each.shown and each.shown.observed.count}
    assert 0 < len(latencies.curves) <= 8
    assert all(any(label in curve.name for label in cells) for curve in latencies.curves)
    assert sum(map(sum, (curve.y for curve in latencies.curves))) > 0


@pytest.mark.parametrize("name", CASES)
def test_rows_are_as_wide_as_their_headers(name: str) -> None:
    for section in drawn(name).values():
        for table in tables(section):
            assert {len(row) for row in table.rows} <= {len(table.header)}


def test_the_article_s_figures_stand_beside_with_their_digits() -> None:
    (table,) = tables(drawn("bootlin-timer")["result"])
    told = rows(table)[:3]
    assert [row["cell"] for row in told] == ["clock_nanosleep", "", ""]
    assert [row["measured on"] for row in told] == ["rt (INVALID)", "plain", "article: clock_nanosleep, SAM9G20, RT"]
    assert (told[2]["n"], told[2]["min [us]"], told[2]["max [us]"]) == ("160,247,021", "16", "177")
    assert told[1]["missed"] == "798"
    assert "another machine" in texts(drawn("bootlin-timer")["result"])


def test_a_link_can_lead_nowhere_else() -> None:
    table = Table("t", ("a",), ((Link("x", '//bad.example/"><script>'),),), row_headers=False)
    html = report.render("html", "t", [Section("s", "S", (table,))]).decode()
    assert 'href=".///bad.example/%22%3E%3Cscript%3E"' in html


@pytest.mark.parametrize(("systems", "curves"), [(4, 8), (6, 6), (10, 8)])
def test_a_plot_holds_no_more_curves_than_can_be_told_apart(systems: int, curves: int) -> None:
    """With more than 8 each cell has plots of its own; of those a plot holds 8 again, and the page says so."""
    profile = campaign_cases.shortened("akamina")
    told = [replace(each, system=f"board {at}") for at in range(systems) for each in campaign_cases.akamina()]
    found = {
        section.name: section for section in campaign_page.campaign_sections(profile, told, articles.load("akamina"))
    }
    plots = report_cases.plots(list(found["curves"].blocks))
    assert {len(plot.curves) for plot in plots} == {curves}
    assert ("Cumulative percentage: interrupt latency, unloaded" in [plot.title for plot in plots]) is (systems > 4)
    assert ("Of 10 curves the first 8 are drawn." in texts(found["curves"])) is (systems > 8)


def test_cycles_tell_of_those_that_nobody_saw() -> None:
    found = drawn("ten-ms")["cycles"]
    (table,) = tables(found)
    here, idle = rows(table)
    assert (here["catch-up pairs"], here["correlation"]) == ("448", "-0.50")
    assert (idle["measured on"], idle["cycles"], idle["out of the band"]) == (
        "article: other policy, idle",
        "11,229",
        "0",
    )
    assert (idle["possible share"], idle["that is one every"]) == ("0.00027", "37.4 s")
    assert table.caption == "Cycles out of the band of 8 ms to 12 ms"
    assert "the rule of three" in texts(found)


@pytest.mark.parametrize(
    ("case", "longest"), [(report_cases.response, "> 30,000.000"), (report_cases.missed, "400,000.000")]
)
def test_an_edge_without_an_answer_is_later_than_a_period(case: Callable[[], Analysis], longest: str) -> None:
    profile = campaign_cases.shortened("bootlin-gpio")
    told = [campaign_cases.outcome(profile, "loaded", case())]
    result, *more = campaign_page.campaign_sections(profile, told, articles.load("bootlin"))
    here, *published = rows(tables(result)[0])
    assert here["max [us]"] == longest
    (matrix,) = [table for section in more if section.name == "matrix" for table in tables(section)]
    assert rows(matrix)[0]["answer to an edge"] == longest
    assert f"Largest latency answer to an edge: {longest} us (n = " in texts(result)
    assert [row["max [us]"] for row in published] == ["618", "> 30,000", "608", "> 30,000"]
    assert [row["length"] for row in published] == ["12 h", "4 h", "11 h", "11 h"]


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (report_cases.no_limit, 0),
        (report_cases.normal, 3),
        (report_cases.missed, 1),
        (report_cases.response, 0),
    ],
)
def test_the_exit_code_is_the_worst_verdict(case: Callable[[], Analysis], code: int) -> None:
    profile = campaign_cases.shortened("akamina")
    good = campaign_cases.outcome(profile, "unloaded", report_cases.response())
    told = campaign_cases.outcome(profile, "loaded", case())
    assert campaign_outcomes.campaign_exit_code([good, told]) == told.analysis.verdict.state.exit_code  # type: ignore[union-attr]
    assert campaign_outcomes.campaign_exit_code([good, replace(told, analysis=None, failure="x")]) == 2


@pytest.mark.parametrize(("key", "words"), [("columns", "no column 'moon'"), ("extras", "no section 'moon'")])
def test_unknown_columns_and_sections_are_refused(key: str, words: str) -> None:
    profile = campaign_cases.shortened("akamina")
    profile = replace(profile, columns=("moon",)) if key == "columns" else replace(profile, extras=("moon",))
    with pytest.raises(UserError, match=words):
        drawn("akamina", profile)


@pytest.mark.parametrize("name", profiles.names())
def test_columns_sections_and_rows_of_every_profile_are_there(name: str) -> None:
    profile = profiles.load(name).shortened(duration_ns=S)
    told = [CellOutcome("a board", cell, None, failure="nothing was measured") for cell in profile.cells]
    article = articles.load(profile.article)
    assert campaign_page.campaign_sections(profile, told, article)
    for cell in profile.cells:
        assert [key for key in cell.article_rows if article.row(key) is None] == []
