# SPDX-License-Identifier: Apache-2.0
"""The article's numbers and ours, one by one: each number that was entered, beside what, and why there is none."""

from collections.abc import Iterable
from dataclasses import replace

import campaign_cases
import msgspec
import pytest
import report_cases
from analysis_records import MS, SERIES
from report_cases import system_file
from stage_records import GPIO, LOOP, staged, stimuli, usual
from system_records import DEBUGFS

from rtproof import articles, profiles
from rtproof.articles import Article
from rtproof.judge.analyse import analyse
from rtproof.judge.analysis_model import Analysis
from rtproof.profiles import Profile
from rtproof.report.blocks import Table
from rtproof.report.pages.article_numbers import FIGURES, NOT_HERE, NOT_TOLD, article_section
from rtproof.report.pages.campaign_cells import (
    CellOutcome,
    MeasuredCampaign,
    OtherToolResult,
)

RT = "#1 SMP PREEMPT_RT Debian"
DYNAMIC = "#1 SMP PREEMPT_DYNAMIC Debian"
Line = dict[str, str]
WHERE = "measured on, or why not here"


def on_kernel(found: Analysis, version: str, model: str = "") -> Analysis:
    """The same run on a kernel of this version; model: the one that it had chosen at the end."""
    words = ("none", "voluntary", "full")
    chosen = " ".join(f"({word})" if word == model else word for word in words)
    files = (*found.record.files, *([system_file(DEBUGFS, chosen)] if model else []))
    begin = replace(found.record.begin, kernel_version=version)
    return replace(found, run_record=replace(found.record, begin=begin, files=files))


def lines(name: str, outcomes: Iterable[CellOutcome], *given: OtherToolResult) -> list[Line]:
    """The table with every cell filled in from above."""
    profile = profiles.load(name)
    section = article_section(MeasuredCampaign(profile, list(outcomes), articles.load(profile.article), given))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    found: list[Line] = []
    for row in table.rows:
        above = found[-1] if found else {}
        found.append({head: cell or above[head] for head, cell in zip(table.header, row, strict=True)})
    return found


def of_row(found: Iterable[Line], label: str) -> dict[str, Line]:
    return {each["number"]: each for each in found if each["row of the article"] == label}


def loaded(name: str, *measured: tuple[str, Analysis | None], key: str = "loaded") -> list[CellOutcome]:
    """A cell on several systems."""
    profile = campaign_cases.shortened(name)
    return [campaign_cases.outcome(profile, key, analysis, system) for system, analysis in measured]


def entered(article: Article, profile: Profile) -> list[tuple[str, str]]:
    """Label of the row and text of each figure that the profile's cells repeat."""
    rows = [row for cell in profile.cells for key in cell.article_rows if (row := article.row(key))]
    over = {"bin_share": "over "}
    told = [
        (row.label, f"{over.get(key, '')}{own.figures[key].text}")
        for row in rows
        for own in row.numbers
        for key in own.figures
    ]
    return told + [(row.label, (row.duration or row.asked).text) for row in rows if row.duration or row.asked]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", profiles.names())
def test_every_number_that_was_entered_has_a_line(name: str) -> None:
    profile = profiles.load(name)
    article = articles.load(profile.article)
    told = [CellOutcome("a board", cell, failure="the board was off") for cell in profile.cells]
    found = lines(name, told)
    printed = [(each["row of the article"], each["article"]) for each in found]
    for wanted in entered(article, profile):
        printed.remove(wanted)
    assert {each["here"] for each in found} == {NOT_HERE}
    assert {each[WHERE] for each in found} == {"a board: the board was off"}


def test_every_row_of_the_articles_is_in_a_table() -> None:
    repeated = {key for name in profiles.names() for cell in profiles.load(name).cells for key in cell.article_rows}
    assert {row.key for name in articles.names() for row in articles.load(name).rows} == repeated


def test_every_figure_of_an_article_s_file_has_a_name() -> None:
    assert set(FIGURES) == set(articles.article.FIGURES)


def test_a_row_stands_beside_the_kernel_of_its_own_model() -> None:
    rt, plain = on_kernel(report_cases.normal(), RT), on_kernel(report_cases.missed(), DYNAMIC, "none")
    told = loaded("bootlin-timer", ("rt", rt), ("plain", plain), key="posix-timer")
    found = lines("bootlin-timer", told)
    beside = {each["row of the article"]: each[WHERE] for each in found}
    assert set(beside.values()) == {"rt", "plain"}
    assert {label: label.endswith("plain") for label in beside} == {k: v == "plain" for k, v in beside.items()}
    line = of_row(found, "POSIX timer, SAM9G45, RT")["max"]
    assert (line["article"], line["here"]) == ("1106 us", f"{rt.pooled.observed.max / 1_000:,.3f} us")
    assert line["n here"] == f"{rt.pooled.observed.count:,}"


def test_another_kernel_is_named() -> None:
    told = loaded("toradex", ("desktop", on_kernel(report_cases.normal(), DYNAMIC, "voluntary")))
    found = lines("toradex", told)
    others = {each["row of the article"]: each[WHERE].removeprefix("desktop").partition(": ")[0] for each in found}
    assert others == {
        "iMX6, voluntary": "",
        "iMX6, preempt": "; preempt=voluntary in place of the article's preempt=full",
        **dict.fromkeys(
            ("iMX6, RT", "iMX7, RT", "Vybrid, RT"), "; preempt=voluntary in place of the article's PREEMPT_RT"
        ),
    }


def test_a_thread_stands_beside_the_one_of_its_number() -> None:
    two = staged({"": [10_000, 21_000]}, {"": [30_000, 45_000]}, series=replace(SERIES, probe="timer"))
    found = of_row(lines("toradex", loaded("toradex", ("board", analyse(two, None, 1)))), "iMX7, RT")
    assert [found[f"thread {at} max"]["here"] for at in (0, 1)] == ["21.000 us", "45.000 us"]
    assert [found[f"thread {at} last (Act)"]["here"] for at in (0, 1)] == ["21.000 us", "45.000 us"]
    missing = of_row(lines("toradex", loaded("toradex", ("board", analyse(two, None, 1)))), "iMX6, RT")["thread 2 max"]
    assert (missing["here"], missing["n here"]) == (NOT_HERE, "-")
    assert missing[WHERE] == "board: the run has 2 threads, one on each processor"


def test_cycles_and_a_loop_that_stopped() -> None:
    late = [0] * 200 + [5 * MS] + [0] * 100
    told = loaded("ten-ms", ("board", analyse(staged({"task": late}, series=LOOP), None, 1)), key="other--stress")
    found = of_row(lines("ten-ms", told), "other policy, stress")
    here = {name: each["here"] for name, each in found.items()}
    assert here == {
        "period": "10 ms",
        "n": "270",
        "lower end of the band": "8 ms",
        "upper end of the band": "12 ms",
        "below the band": "1",
        "above the band": "1",
        "min": "5.000 ms",
        "max": "15.000 ms",
    }
    stood = loaded("ten-ms", ("board", report_cases.loop()), key="other--stress-flood")
    (line,) = lines("ten-ms", stood)
    assert (line["number"], line["article"], line["here"]) == ("stopped", "yes", "STALLED 30.0 s")


def test_the_article_s_bins_stand_beside_ours() -> None:
    (unloaded, _) = campaign_cases.akamina()
    found = of_row(lines("akamina", [unloaded]), "Linux 2.6, unloaded")
    shown = unloaded.shown
    assert shown
    line = found["preemption fullest bin from"]
    assert line["article"] == "12 us"
    counts = shown.observed_counts
    edges = counts.lo // 2_000
    fullest = max(set(edges.tolist()), key=lambda edge: (counts.n[edges == edge].sum(), -edge))
    assert line["here"] == f"{fullest * 2} us"
    assert line[WHERE] == "a board; PREEMPT_RT in place of the article's kernel without PREEMPT_RT"
    timer = replace(unloaded, way=unloaded.cell.ways[2])
    interrupt = of_row(lines("akamina", [replace(timer, analysis=report_cases.normal())]), "Linux 2.6, unloaded")
    assert ": the way that was taken does not tell" in interrupt["interrupt n"][WHERE]


def test_what_another_tool_measured_stands_beside_the_row_of_the_co_kernel() -> None:
    given = OtherToolResult("user task", "Xenomai", 10, 1_000, 2_500, 9_123)
    cells = loaded("bootlin-xenomai", ("board", report_cases.normal()), key="user")
    found = of_row(lines("bootlin-xenomai", cells, given), "user task, SAM9G20, Xenomai")
    assert (found["max"]["here"], found["max"][WHERE]) == ("9.123 us", "given: Xenomai")
    assert found["period"][WHERE] == f"given: Xenomai: {NOT_TOLD}"
    other = of_row(lines("bootlin-xenomai", cells), "user task, SAM9G20, Xenomai")
    assert other["max"][WHERE] == "board; PREEMPT_RT in place of the article's co-kernel"


def test_an_answer_later_than_the_period_is_a_lower_bound() -> None:
    told = analyse(staged({"answer": [200_000, 300_000, 400_000]}, series=GPIO, gaps={0: 1}), None, 1)
    found = of_row(lines("bootlin-gpio", loaded("bootlin-gpio", ("board", told))), "GPIO, SAM9G20, no preemption")
    assert (found["max"]["article"], found["max"]["here"]) == (">30 ms", "> 30.000 ms")


def test_the_period_of_events_from_outside_is_the_measured_one() -> None:
    """In a guest they come every 3.1 ms where the article's board gave one every 30 ms."""
    edges = stimuli([(3_100_000 * at, 5_000, 8_000) for at in range(200)])
    told = analyse(edges, None, 1)
    found = of_row(lines("bootlin-gpio", loaded("bootlin-gpio", ("board", told))), "GPIO, SAM9G20, RT")
    assert found["period"]["article"] == "30 ms"
    assert float(found["period"]["here"].removesuffix(" ms")) == pytest.approx(3.1, rel=0.05), (
        "the span of a run has a period more"
    )


def test_percentiles_and_points_of_a_curve() -> None:
    profile, article = profiles.load("akamina"), articles.load("akamina")
    row = article.row("rtai-unloaded")
    assert row
    printed = articles.article
    points = ((printed.printed_share("50 %"), printed.printed_time("10 us")),)
    curve = ((printed.printed_share("99 %"), printed.printed_time("20 us")),)
    own = tuple(msgspec.structs.replace(each, percentiles=points, curve=curve) for each in row.numbers)
    rows = tuple(msgspec.structs.replace(each, numbers=own) if each is row else each for each in article.rows)
    irq_and_task = usual(1_000)
    way = msgspec.structs.replace(profile.cell("unloaded").ways[0], stage="task")
    told = CellOutcome("rt", profile.cell("unloaded"), on_kernel(analyse(staged(irq_and_task), None, 1), RT), way)
    (table, _) = article_section(MeasuredCampaign(profile, [told], replace(article, rows=rows))).blocks
    assert isinstance(table, Table)
    task = sorted(irq_and_task["task"])
    below = sum(each <= 20_000 for each in task) / len(task)
    shown = {row[1]: row[3] for row in table.rows if row[1].startswith(("preemption 50", "preemption up"))}
    assert shown == {
        "preemption 50 %": f"{task[499] / 1_000:,.3f} us",
        "preemption up to 20 us": f"{100 * below:.4g} %",
    }
