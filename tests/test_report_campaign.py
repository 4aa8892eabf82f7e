# SPDX-License-Identifier: Apache-2.0
"""The page of a profile's cells: what stands in it, and beside what."""

from collections.abc import Callable
from dataclasses import replace

import campaign_cases
import pytest
import report_cases

from rtproof import articles, profiles, report
from rtproof.articles import ArticleFigure
from rtproof.core.errors import UserError
from rtproof.judge.analysis_model import Analysis
from rtproof.profiles import OptionChange, Profile, ProfileLimit
from rtproof.profiles.profile import GuestReplacement, with_claims, with_options, with_parameters, with_settings
from rtproof.report.blocks import Link, Plot, Section, Table
from rtproof.report.pages import campaign_conditions, campaign_curves, campaign_outcomes, campaign_page, campaign_table
from rtproof.report.pages.campaign_outcomes import CampaignExtras, CellOutcome, OtherToolResult
from rtproof.summary.summary_model import Doubt, Severity

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
@pytest.mark.parametrize("form", ["text", "html", "markdown", "json"])
def test_every_format_draws_every_page(name: str, form: str) -> None:
    page = report.render(form, "a title", list(drawn(name).values()))
    assert profiles.load(name).title.encode() in page


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


def test_rows_of_the_article_without_figures_are_left_out() -> None:
    (table,) = tables(drawn("akamina")["result"])
    assert not any("article" in row["measured on"] for row in rows(table))


def test_a_cell_leads_to_its_own_report() -> None:
    (table,) = tables(drawn("ten-ms")["result"])
    link = table.rows[0][1]
    assert isinstance(link, Link)
    assert link.path == "cells/other--idle.html"
    html = report.render("html", "a title", [drawn("ten-ms")["result"]]).decode()
    assert '<a href="./cells/other--idle.html">a board (INVALID)</a>' in html
    assert "[a board" not in report.render("text", "a title", [drawn("ten-ms")["result"]]).decode()


def test_a_link_can_lead_nowhere_else() -> None:
    table = Table("t", ("a",), ((Link("x", '//bad.example/"><script>'),),), row_headers=False)
    html = report.render("html", "t", [Section("s", "S", (table,))]).decode()
    assert 'href=".///bad.example/%22%3E%3Cscript%3E"' in html


def test_values_that_are_gone_are_told_of_though_the_cell_is_valid() -> None:
    first = campaign_cases.bootlin()[0]
    assert first.analysis
    doubts = (
        Doubt("lost", Severity.WARNING, "the lateness of 3 activations could not be kept", "a remedy"),
        Doubt("virtual-time", Severity.WARNING, "told elsewhere", "a remedy"),
        Doubt("damage", Severity.INVALID, "half of it is gone", "a remedy"),
    )
    outcome = replace(first, analysis=replace(first.analysis, doubts=doubts))
    assert outcome.losses == ("the lateness of 3 activations could not be kept",)
    (section,) = campaign_conditions.cell_fault_blocks([outcome])
    told = texts(section)
    assert "the lateness of 3 activations could not be kept" in told
    assert told.count("half of it is gone") == 1
    assert "told elsewhere" not in told
    assert campaign_conditions.cell_fault_blocks([replace(first, analysis=replace(first.analysis, doubts=()))]) == []


def test_failed_and_invalid_cells_have_their_sentences() -> None:
    found = drawn("ten-ms")
    assert "there is no load 'pingflood'" in texts(found["faults"])
    (table,) = tables(found["result"])
    failed = next(row for row in rows(table) if row["cell"] == "other, stress+flood")
    assert failed["cycles"] == "not measured"
    assert "STALLED" in rows(table)[0]["stalled"]
    assert next(row for row in rows(table) if "flood" in row["measured on"])["stalled"] == "stopped"


def test_what_differs_from_the_article_is_said() -> None:
    found = drawn("akamina", more=CampaignExtras(command="rtproof run --profile akamina"))
    first, run = texts(found["result"]), texts(found["conditions"])
    assert "Shortened: 20.0 s instead of 4 h 10 min." in first
    assert "All cells: measured by way of timerlat. The kernel's tracer timerlat gives" in first
    assert "All cells: kernel can't be had: the module rtproof.ko is not loaded." in run
    assert "rtproof run --profile akamina" in run
    (table,) = tables(found["conditions"])
    assert "--probe timerlat" in rows(table)[0]["options of rtproof run, or the article's command"]
    assert [(row["where"], row["length"]) for row in rows(table)[:2]] == [("here", "20.0 s"), ("article", "4 h 10 min")]


def test_the_article_s_command_stands_below_the_options_of_a_cell() -> None:
    (table,) = tables(drawn("bootlin-timer")["conditions"])
    told = rows(table)[:2]
    assert [row["cell"] for row in told] == ["clock_nanosleep", ""]
    assert [row["where"] for row in told] == ["here", "article: clock_nanosleep, SAM9G20, RT"]
    assert told[1]["options of rtproof run, or the article's command"] == "cyclictest -m -a -t -n -p99"
    assert told[1]["length"] == "44 h 30 min"


def test_changes_and_chosen_cells_are_said() -> None:
    profile = with_options(campaign_cases.shortened("bootlin-timer"), {"priority": 50})
    words = texts(drawn("bootlin-timer", with_settings(profile, {"method": "nanosleep"}))["result"])
    assert "Changed: priority 50 instead of 99." in words
    assert "Only method nanosleep, of clock_nanosleep, nanosleep, setitimer, posix_timer." in words


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


def test_what_stands_for_something_in_a_guest_is_told_there_only() -> None:
    profile = replace(campaign_cases.shortened("akamina"), guest=GuestReplacement(says="Something stands for it."))
    assert "Something stands for it." in texts(drawn("akamina", profile, short=True)["result"])
    other = replace(campaign_cases.shortened("ten-ms"), guest=GuestReplacement(says="Something stands for it."))
    assert "stands for it." not in texts(drawn("ten-ms", other, short=True)["result"])


def test_a_run_as_long_as_the_article_s_is_not_called_shortened() -> None:
    assert "hortened" not in texts(drawn("bootlin-timer", profiles.load("bootlin-timer"))["result"])


def test_virtual_time_is_labelled_where_it_is() -> None:
    assert "not a board's microseconds" in texts(drawn("akamina")["result"])
    assert "irtual" not in texts(drawn("ten-ms")["result"])
    assert campaign_page.campaign_title(campaign_cases.shortened("akamina"), campaign_cases.akamina()).endswith(
        "virtual time"
    )


def test_article_1_s_matrix() -> None:
    (table,) = tables(drawn("bootlin-timer")["matrix"])
    told = {row["board"]: row for row in rows(table)}
    assert told["plain"]["nanosleep"] == "400,000.000"
    assert told["article: AT91SAM9G45"]["POSIX timer"] == "94,991"
    assert [row["kernel"] for row in rows(table) if row["board"] == "article: AT91SAM9G20"] == [
        "3.0.12-rt30+ PREEMPT RT",
        "3.0.12",
    ]


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


def test_article_5_s_curves_with_its_zooms() -> None:
    plots = report_cases.plots(list(drawn("akamina")["curves"].blocks))
    assert [plot.title for plot in plots] == [
        "Cumulative percentage: interrupt latency",
        "Cumulative percentage, the top 2 %: interrupt latency",
        "Cumulative percentage: preemption latency",
        "Cumulative percentage, the top 20 %: preemption latency",
        "Cumulative percentage, the top 3 %: preemption latency",
    ]
    assert [curve.name for curve in plots[0].curves] == ["unloaded", "loaded (comms)"]
    assert "curves" not in drawn("ten-ms")


def test_all_limits_are_drawn_and_told_of_and_none_on_a_stage() -> None:
    profile = campaign_cases.shortened("akamina")
    given = (ProfileLimit(100_000, 3600 * S), ProfileLimit(100_000, 86_400 * S), ProfileLimit(90_000, 3600 * S))
    sections = drawn("akamina", with_claims(profile, given))
    markers = [[marker.name for marker in plot.markers] for plot in report_cases.plots(list(sections["curves"].blocks))]
    assert ["limit 100 us", "limit 90 us"] in markers
    assert [] in markers
    told = texts(sections["result"])
    assert (
        "Changed: limit 100us at most once per 1h and 100us at most once per 1d and 90us at most once per 1h instead "
        "of 500us at most once per 17min."
    ) in told
    assert "Asked: 500 us, at most once per 1 h, none longer than 10 min. An episode joins" in told


def test_asked_is_told_of_each_limit_with_its_gap_and_its_longest_episode() -> None:
    claims = (ProfileLimit(100_000, 3600 * S), ProfileLimit(90_000, 60 * S, 2 * S, 9 * S, 2.0))
    by_profile = campaign_outcomes.judged_requirements(claims, [])
    assert campaign_outcomes.requirement_sentences(by_profile) == (
        "Asked: 100 us, at most once per 1 h, none longer than 10 min, confidence 95 %. An episode joins all times "
        "above 100 us, on any thread, that are no more than 1 min apart.",
        "Asked: 90 us, at most once per 1 min, none longer than 9.0 s, in bunches of 2 on average, confidence 95 %. "
        "An episode joins all times above 90 us, on any thread, that are no more than 2.0 s apart.",
    )
    assert ", confidence" not in "".join(campaign_outcomes.requirement_sentences(by_profile, virtual=True))


def test_the_threshold_is_that_of_the_profile_s_own_article() -> None:
    profile = campaign_cases.shortened("akamina")
    article = articles.load("akamina")
    own = replace(article, threshold=ArticleFigure("99.9 %", 0.999, "%"), threshold_note="Mine.")
    for each, says, note in (
        (article, "99.999 %", "not to be had"),
        (own, "99.9 %", "Mine."),
        (replace(article, threshold=None, threshold_note=""), "99.999 %", ""),
    ):
        told = campaign_page.campaign_sections(profile, campaign_cases.akamina(), each)
        (section,) = [section for section in told if section.name == "thresholds"]
        assert all(table.header[3] == f"{says} threshold [us]" for table in tables(section))
        assert f"The {says} threshold is" in texts(section)
        assert note in texts(section)
        assert ("not to be had" in texts(section)) is (note == "not to be had")


def test_a_setting_that_the_profile_has_no_value_for_is_told() -> None:
    profile = replace(campaign_cases.shortened("akamina"), changes=(OptionChange("chip", (), "0"),))
    (block,) = campaign_conditions.difference_block(profile, ())
    assert "Set: chip 0, for which the profile has no value of its own." in report_cases.words([block])


def test_a_change_of_gap_length_and_bunches_is_told() -> None:
    profile = campaign_cases.shortened("akamina")
    (own,) = profile.claims
    changed = with_claims(profile, (replace(own, gap_ns=S, longest_ns=20 * S, bunches=2.0),))
    (change,) = changed.changes
    assert change.before == ("500us at most once per 17min",)
    assert change.now == "500us at most once per 17min, a gap of 1s, none longer than 20s, bunches of 2 on average"


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


def test_without_an_interrupt_there_is_no_context_switch() -> None:
    profile = campaign_cases.shortened("akamina")
    told = [campaign_cases.outcome(profile, "unloaded", report_cases.normal(), way=2)]
    found = {
        section.name: section for section in campaign_page.campaign_sections(profile, told, articles.load("akamina"))
    }
    (switches,) = tables(found["switch"])
    assert [row["task, fullest bin [us]"] for row in rows(switches)] == ["12 to 14", "12 to 14", "8 to 10", "10 to 12"]
    assert [row["cell"] for row in rows(switches)] == ["unloaded"] * 4
    assert "tells the interrupt apart" in texts(found["switch"])
    assert len(tables(found["thresholds"])) == 1


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


def test_loop_times_of_all_systems_are_in_one_plot() -> None:
    told = [replace(each, system=name) for name in ("rt", "plain") for each in campaign_cases.simple_rt_app()]
    profile = campaign_cases.shortened("simple-rt-app")
    found = {each.name: each for each in campaign_page.campaign_sections(profile, told, articles.load("simple-rt-app"))}
    plot, top, work = report_cases.plots(list(found["app"].blocks))
    for each in (plot, top, work):
        assert [curve.name for curve in each.curves] == ["rt", "plain"]
    table, _ = tables(found["app"])
    assert table.header[2:4] == ("rt (n = 4)", "plain (n = 4)")


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


def test_objections_to_own_rows_and_to_the_article_s() -> None:
    own, published = tables(drawn("bootlin-timer")["objections"])
    told = {row["row"]: row["what speaks against it"] for row in rows(own)}
    assert told["nanosleep, plain"].startswith("3,012 samples where 3,810 were due")
    assert "not like for like" in told["nanosleep, rt; nanosleep, plain"]
    assert [row["row"] for row in rows(published)] == [
        "POSIX timer, SAM9G20, plain",
        "POSIX timer, SAM9G45, plain",
        "setitimer, SAM9G45, RT",
        "clock_nanosleep, SAM9G20, RT",
        "POSIX timer, SAM9G20, RT; POSIX timer, SAM9G20, plain; POSIX timer, SAM9G45, RT; POSIX timer, SAM9G45, plain",
        "nanosleep, SAM9G20, RT; nanosleep, SAM9G45, RT",
        "setitimer, SAM9G45, RT",
    ]
    assert "Nothing in the article's own figures" in texts(drawn("akamina")["objections"])


def test_a_result_that_was_given_is_a_row() -> None:
    given = OtherToolResult("user task", "Xenomai latency", 7, 8_720, 32_945, None)
    (table,) = tables(drawn("bootlin-timer", more=CampaignExtras([given]))["result"])
    last = rows(table)[-1]
    assert last["measured on"] == "given: Xenomai latency"
    assert (last["n"], last["min [us]"], last["max [us]"]) == ("7", "8.720", "unknown")


def test_a_result_that_was_given_stands_in_its_stage_by_its_own_title() -> None:
    given = [
        OtherToolResult(f"x.txt: {title}", tool, 7, 1, 2, 3)
        for title, tool in (
            ("in-kernel timer handler", "Xenomai latency"),
            ("KERNEL latency", "RTAI"),
            ("periodic user-mode task", "Xenomai latency"),
            ("something else", "RTAI"),
        )
    ]
    profile = profiles.load("bootlin-xenomai")
    outcomes = [campaign_cases.outcome(profile, cell.key, None) for cell in profile.cells]
    (table,) = tables(campaign_table.result_section(profile, outcomes, None, given, short=False))
    names = [row["cell"] for row in rows(table) if row["cell"]]
    assert names == [
        "timer interrupt",
        "x.txt: in-kernel timer handler",
        "task of the kernel",
        "x.txt: KERNEL latency",
        "task of user space",
        "x.txt: periodic user-mode task",
        "x.txt: something else",
    ]


def test_the_short_form_leaves_out_what_tells_nothing() -> None:
    (short,), (long,) = (tables(drawn("bootlin-timer", short=each)["result"]) for each in (True, False))
    assert [name for name in long.header if name not in short.header] == ["99.999 % [us]", "length"]


def test_the_short_form_has_no_further_sections() -> None:
    assert list(drawn("akamina", short=True)) == ["result", "faults", "objections", "conditions"]


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


def test_what_the_article_says_of_its_own_figures_stands_beside_them() -> None:
    profile = with_parameters(profiles.load("toradex"))
    found = campaign_page.campaign_sections(profile, campaign_cases.bootlin(), articles.load("toradex"))
    section = next(section for section in found if section.name == "objections")
    *_, itself = tables(section)
    assert itself.caption == "What the article itself says against its rows"
    assert [row for row in itself.rows if row[0] == "iMX6, RT" and "scheduling while atomic" in row[1]]
    assert "Longer runs (24 h) are recommended there." in texts(section)
    akamina = drawn("akamina")["objections"]
    assert "Its tables 4 to 6" in texts(akamina)
    assert tables(akamina) == []
