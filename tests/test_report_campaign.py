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
from rtproof.report.pages import campaign_conditions, campaign_curves, campaign_outcomes, campaign_page, campaign_table
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


def test_of_a_short_run_fewer_cycles_are_left_out_and_that_is_told() -> None:
    assert "Not counted are the first 299 cycles instead of 1,000." in texts(drawn("ten-ms", short=True)["result"])
    made = campaign_cases.ten_ms()
    assert made[0].analysis
    assert made[0].analysis.cycles
    other = replace(made[0].analysis, cycles=replace(made[0].analysis.cycles, ignored=7))
    told = campaign_conditions.difference_block(
        campaign_cases.shortened("ten-ms"), [*made, replace(made[0], analysis=other)]
    )
    assert "Not counted are the first 7 to 299 cycles instead of 1,000." in texts(
        Section("first", "First", tuple(told))
    )
    assert "Not counted" not in texts(drawn("akamina", short=True)["result"])


def test_article_5_s_tables() -> None:
    found = drawn("akamina")
    interrupt, preemption = tables(found["thresholds"])
    assert interrupt.caption == "Interrupt latency; the article's bins were 2,000 of 500 ns"
    assert preemption.rows[0][:3] == ("unloaded", "6,000", "96.576")
    assert "unknown" in preemption.rows[0][3]
    assert "not to be had" in texts(found["thresholds"])
    (switches,) = tables(found["switch"])
    first = rows(switches)[0]
    assert (first["n"], first["interrupt, fullest bin [us]"]) == ("6,000", "1.5 to 2")
    assert first["task, fullest bin [us]"] == "6 to 8"
    assert first["context switch [us]"] == "4 to 6.5"
    assert [row["task, fullest bin [us]"] for row in rows(switches)][2:] == [
        "12 to 14",
        "12 to 14",
        "8 to 10",
        "10 to 12",
    ]


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


def test_article_3_s_table_and_figure() -> None:
    found = drawn("simple-rt-app")
    table, parts = tables(found["app"])
    assert table.header == ("", "[us]", "a board (n = 4)", "article: plain kernel", "article: RT kernel")
    told = {row[:2]: row[2:] for row in table.rows}
    assert told["work duration", "minimum"] == ("700.000", "604", "858")
    assert told["overall loop time", "minimum"] == ("4,000.000", "3,727", "4,754")
    assert told["", "maximum"] == ("1,300.000", "1,642", "546")
    assert [row[0] for row in table.rows if row[0]] == [
        "work duration",
        "overall loop time",
        "top of loop timing error",
    ]
    plot, top, work = report_cases.plots(list(found["app"].blocks))
    assert [(curve.name, curve.x, curve.y) for curve in plot.curves] == [("a board", (0, 1, 2), (5000, 6000, 4000))]
    assert max(top.curves[0].y) == 1300.0
    assert max(work.curves[0].y) == 900.0
    assert (parts.caption, parts.header) == (campaign_curves.SHARED_TERMS, table.header[1:])
    assert parts.rows == (
        ("constant: every loop, at least", "300.000", "351", "294"),
        ("varying: beyond that, average", "250.000", "49", "66"),
        ("varying: beyond that, maximum", "1,000.000", "1,291", "252"),
        ("varying: standard deviation", "500.000", "61.7", "41.9"),
    )
    first, published = rows(tables(found["result"])[0])[:2]
    assert (first["work max [us]"], first["loop max [us]"]) == ("900.000", "6,000.000")
    assert published["top avg [us]"] == "400"


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


def test_no_count_of_cycles_out_of_the_band_stands_without_what_it_leaves_possible() -> None:
    (table,) = tables(drawn("ten-ms")["result"])
    known = [row for row in rows(table) if row["below band"].replace(",", "").isdigit()]
    assert {row["measured on"] for row in known} == {"a board (INVALID)", "article: other policy, idle"}
    assert all(row["out of band, at most (95 %)"].endswith(" %") for row in known)
    row = articles.load("ten-ms").row("fifo-stress")
    assert row
    (column,) = campaign_table.metrics_by_name(("out-share",))
    assert column.article(row) == "0.027 %"
    assert column.article(replace(row, figures={})) == ""
