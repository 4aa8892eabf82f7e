# SPDX-License-Identifier: Apache-2.0
"""The page of a profile's cells: what stands in it, and beside what."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import campaign_cases
import pytest
import report_cases
from campaign_cases import page
from msgspec import structs
from report_cases import tables_of as tables
from stage_records import stimuli

from rtproof import articles, profiles, report
from rtproof.articles import article
from rtproof.core.errors import UserError
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.profiles import Profile
from rtproof.report.blocks import Link, Plot, Section, Table
from rtproof.report.pages import campaign_page
from rtproof.report.pages.campaign_cells import CellOutcome, MeasuredCampaign

S = 1_000_000_000
CASES = {
    "akamina": (campaign_cases.akamina, "akamina"),
    "ten-ms": (campaign_cases.ten_ms, "ten-ms"),
    "simple-rt-app": (campaign_cases.simple_rt_app, "simple-rt-app"),
    "bootlin-timer": (campaign_cases.bootlin, "bootlin"),
}


def drawn(name: str, profile: Profile | None = None) -> dict[str, Section]:
    make, article = CASES[name]
    return page(profile or campaign_cases.shortened(name), make(), article)


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


def test_every_thread_has_cyclictest_s_columns_with_the_last_latency() -> None:
    profile = structs.replace(campaign_cases.shortened("bootlin-timer"), extras=("threads",))
    (table,) = tables(drawn("bootlin-timer", profile)["threads"])
    assert table.header[-5:] == ("n", "min [us]", "Act [us]", "avg [us]", "max [us]")
    outcomes = [each for each in campaign_cases.bootlin() if each.analysis]
    summaries = [(each.analysis, summary) for each in outcomes if each.analysis for summary in each.analysis.summaries]
    last = [[*analysis.record.blocks(summary.series.id)][-1].values[-1] for analysis, summary in summaries]
    assert [row["Act [us]"] for row in rows(table)] == [f"{value / 1_000:,.3f}" for value in last]


def test_the_result_has_a_row_for_each_cell_on_each_system() -> None:
    told = rows(tables(drawn("bootlin-timer")["result"])[0])[:3]
    assert [row["cell"] for row in told] == ["clock_nanosleep", "", "nanosleep"]
    assert [row["measured on"] for row in told] == ["rt (INVALID)", "plain", "rt (INVALID)"]
    assert told[1]["missed"] == "798"


def test_a_link_can_lead_nowhere_else() -> None:
    table = Table("t", ("a",), ((Link("x", '//bad.example/"><script>'),),), row_headers=False)
    html = report.render("html", "t", [Section("s", "S", (table,))]).decode()
    assert 'href=".///bad.example/%22%3E%3Cscript%3E"' in html


@pytest.mark.parametrize(("systems", "curves"), [(4, 8), (6, 6), (10, 8)])
def test_a_plot_holds_no_more_curves_than_can_be_told_apart(systems: int, curves: int) -> None:
    """With more than 8 each cell has plots of its own; of those a plot holds 8 again, and the page says so."""
    profile = campaign_cases.shortened("akamina")
    told = [replace(each, system=f"board {at}") for at in range(systems) for each in campaign_cases.akamina()]
    found = page(profile, told, "akamina")
    plots = report_cases.plots(list(found["curves"].blocks))
    assert {len(plot.curves) for plot in plots} == {curves}
    assert ("Cumulative percentage: interrupt latency, unloaded" in [plot.title for plot in plots]) is (systems > 4)
    assert ("Of 10 curves the first 8 are drawn." in texts(found["curves"])) is (systems > 8)


def frequent_edges() -> Analysis:
    """Edges every 3.1 ms, although the series says 30 ms; number 40 has no answer."""
    edges = [(at * 3_100_000, 20_000 + at * 10, 33_000 + at * 15) for at in range(101)]
    return analyse(stimuli(edges, unanswered=40), workers=1)


@pytest.mark.parametrize(
    ("case", "longest"),
    [(report_cases.response, "> 30,000.000"), (report_cases.missed, "400,000.000"), (frequent_edges, "> 3,100.000")],
)
def test_an_edge_without_an_answer_is_later_than_a_period(case: Callable[[], Analysis], longest: str) -> None:
    profile = campaign_cases.shortened("bootlin-gpio")
    told = [campaign_cases.outcome(profile, "loaded", case())]
    found = page(profile, told, "bootlin")
    (here,) = rows(tables(found["result"])[0])
    assert here["max [us]"] == longest
    assert f"Largest latency answer to an edge: {longest} us (n = " in texts(found["result"])
    (beside,) = tables(found["article"])
    maxima, lengths = ([(row[2], row[3]) for row in beside.rows if row[1] == name] for name in ("max", "length"))
    in_ms = f"{'> ' * longest.startswith('>')}{float(longest.lstrip('> ').replace(',', '')) / 1_000:,.3f} ms"
    assert maxima == [("618 us", f"{longest} us"), (">30 ms", in_ms), ("608 us", f"{longest} us"), (">30 ms", in_ms)]
    assert [article for article, _ in lengths] == ["12 h", "4 h", "11 h", "11 h"]


def test_the_page_of_answers_has_the_picture_of_all_answers_of_each_cell() -> None:
    profile = campaign_cases.shortened("bootlin-gpio")
    told = [replace(campaign_cases.outcome(profile, "loaded", report_cases.response()), system=name) for name in "ab"]
    told.append(campaign_cases.outcome(profile, "loaded", report_cases.normal()))
    pictures = report_cases.heat_maps(list(page(profile, told, "bootlin")["answers"].blocks))
    assert [each.title for each in pictures] == [
        f"All answers laid over each other: answer to an edge, {system}" for system in "ab"
    ]
    assert all("All 99 answers" in each.says for each in pictures)


@pytest.mark.parametrize(
    ("case", "code"),
    [(report_cases.no_limit, 0), (report_cases.normal, 3), (report_cases.missed, 1), (report_cases.response, 0)],
)
def test_the_exit_code_is_the_worst_verdict(case: Callable[[], Analysis], code: int) -> None:
    profile = campaign_cases.shortened("akamina")
    good = campaign_cases.outcome(profile, "unloaded", report_cases.response())
    told = campaign_cases.outcome(profile, "loaded", case())
    assert MeasuredCampaign(profile, [good, told]).exit_code == told.analysis.verdict.state.exit_code  # type: ignore[union-attr]
    assert MeasuredCampaign(profile, [good, replace(told, analysis=None, failure="x")]).exit_code == 2


@pytest.mark.parametrize(("key", "words"), [("columns", "no column 'moon'"), ("extras", "no section 'moon'")])
def test_unknown_columns_and_sections_are_refused(key: str, words: str) -> None:
    profile = campaign_cases.shortened("akamina")
    profile = (
        structs.replace(profile, columns=("moon",)) if key == "columns" else structs.replace(profile, extras=("moon",))
    )
    with pytest.raises(UserError, match=words):
        campaign_page.check_profile_page(profile, articles.load("akamina"))


@pytest.mark.parametrize("name", profiles.names())
def test_columns_sections_and_rows_of_every_profile_are_there(name: str) -> None:
    profile = profiles.load(name).shortened(duration_ns=S)
    told = [CellOutcome("a board", cell, None, failure="nothing was measured") for cell in profile.cells]
    article = articles.load(profile.article)
    assert campaign_page.campaign_sections(MeasuredCampaign(profile, told, article))
    for cell in profile.cells:
        assert [key for key in cell.article_rows if article.row(key) is None] == []


# Article 5's tables and curves with figures entered. These figures are made up: those of the article are lost.


ENTERED = {
    ("rtai-unloaded", "interrupt"): "bin_counts = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1480000, 15000, 4990, 5, 4, 0, 1]",
    ("rtai-unloaded", "preemption"): 'max = "41 us", percentiles = [["99.999 %", "17 us"]]',
    ("rtai-loaded", "interrupt"): 'max = "50 us", percentiles = [["99.999 %", "40 us"]]',
    (
        "rtai-loaded",
        "preemption",
    ): 'max = "72 us", curve = [["10 us", "80 %"], ["20 us", "97.5 %"], ["40 us", "99.2 %"]]',
    ("linux-26-loaded", "preemption"): 'curve = [["20 us", "80 %"], ["70 us", "98.7 %"]]',
    ("linux-24-loaded", "preemption"): 'max = "900 us"',
    ("lxrt-loaded", "preemption"): 'max = "612 us"',
}
NOT_BELOW = """[[statement]]
key = "no"
rows = ["linux-24-loaded"]
field = "preemption"
says = "not below"
limit = "500 us"

"""


def with_entered(tmp_path: Path) -> articles.Article:
    first, *blocks = (article.FOLDER / "akamina.toml").read_text().split("[[row]]")
    told = dict(enumerate(blocks))
    for (key, name), more in ENTERED.items():
        at = next(at for at, block in told.items() if f'key = "{key}"' in block)
        told[at] = told[at].replace(f'name = "{name}",', f'name = "{name}", {more},')
        told[at] = told[at].replace(", bins = 2000", "") if "bin_counts" in more else told[at]
    path = tmp_path / "entered.toml"
    path.write_text("[[row]]".join([first + NOT_BELOW, *told.values()]))
    return articles.read(path)


@pytest.fixture
def beside_entered(tmp_path: Path) -> dict[str, Section]:
    return page(campaign_cases.shortened("akamina"), campaign_cases.akamina(), with_entered(tmp_path))


def test_an_article_s_maxima_and_thresholds_stand_in_tables_4_and_6(beside_entered: dict[str, Section]) -> None:
    interrupt, preemption = (
        [row[0:4] for row in table.rows if "article" in row[0]] for table in tables(beside_entered["thresholds"])
    )
    assert interrupt == [
        ("article: RTAI, unloaded", "1,500,000", "", "6.5"),
        ("article: RTAI, loaded", "1,500,000", "50", "40"),
    ]
    assert preemption == [
        ("article: RTAI, unloaded", "1,500,000", "41", "17"),
        ("article: Linux 2.4, loaded", "1,500,000", "900", ""),
        ("article: RTAI, loaded", "1,500,000", "72", ""),
        ("article: LXRT, loaded", "1,500,000", "612", ""),
    ]
    assert "are lost" not in texts(beside_entered["thresholds"])
    assert "are lost" in texts(drawn("akamina")["thresholds"])
    switch = [
        row for row in rows(tables(beside_entered["switch"])[0]) if row["measured on"] == "article: RTAI, unloaded"
    ]
    assert [row["context switch [us]"] for row in switch] == ["2.5 to 5"]


def test_an_article_s_curves_stand_in_the_plot_and_in_its_zooms(beside_entered: dict[str, Section]) -> None:
    plots = {plot.title: plot for plot in report_cases.plots(list(beside_entered["curves"].blocks))}
    whole = {curve.name: curve for curve in plots["Cumulative percentage: preemption latency"].curves}
    assert whole["article: RTAI, loaded"].x == (10, 20, 40, 72)
    assert whole["article: RTAI, loaded"].y == pytest.approx((80, 97.5, 99.2, 100))
    assert whole["article: Linux 2.6, loaded"].y == pytest.approx((80, 98.7))
    top = {curve.name: curve for curve in plots["Cumulative percentage, the top 3 %: preemption latency"].curves}
    assert top["article: RTAI, loaded"].x == (20, 40, 72)
    assert top["article: Linux 2.6, loaded"].x == (70,)
    groups = [curve.group for curve in whole.values()]
    assert None not in groups
    assert len(set(groups)) == len(groups), "each curve has a colour of its own"
    assert "article: RTAI, unloaded" not in whole, "a maximum and one percentile are no curve"
    interrupt = {curve.name: curve for curve in plots["Cumulative percentage: interrupt latency"].curves}
    assert interrupt["article: RTAI, unloaded"].x[-1] == pytest.approx(8.5, abs=0.001)


def test_virtual_time_shows_no_rate_of_what_a_conclusion_says(beside_entered: dict[str, Section]) -> None:
    found = rows(tables(beside_entered["conclusions"])[0])
    assert [row["what this shows"] for row in found if not row["of"].startswith("article")] == [
        *["it held here; virtual time shows no rate"] * 2,
        "it was not seen here; virtual time shows no rate",
    ]
    (silent,) = (row["what this shows"] for row in found if row["of"] == "article: LXRT, unloaded")
    assert silent == "the article gives no maximum to check it with"
