# SPDX-License-Identifier: Apache-2.0
"""Article 4's comparison table in one picture, and the logarithmic axis below its bars."""

import re

import campaign_cases
import pytest
import report_cases

from rtproof import articles
from rtproof.articles import Article
from rtproof.report.blocks import BarPart, Bars
from rtproof.report.formats.html import bar_place, bar_ticks, block_html
from rtproof.report.pages.article_numbers import KINDS, article_picture
from rtproof.report.pages.campaign_cells import MeasuredCampaign


def toradex() -> Bars:
    profile = campaign_cases.shortened("toradex")
    told = [campaign_cases.outcome(profile, cell.key, report_cases.normal(), way=0) for cell in profile.cells]
    (picture,) = article_picture(MeasuredCampaign(profile, told, articles.load("toradex")))
    return picture


def rectangles(markup: str) -> list[tuple[float, float]]:
    """Begin and end of each part of the bars, in shares of the axis."""
    found = re.findall(r'<rect x="([\d.]+)" width="([\d.]+)" height="18" class="part-', markup)
    return [(float(x) / 1_000, (float(x) + float(width)) / 1_000) for x, width in found]


def test_article_4_s_table_is_in_one_picture_with_names_and_values() -> None:
    picture, article = toradex(), articles.load("toradex")
    printed = [own for row in article.rows for own in row.numbers]
    names = [label for label, _ in picture.bars if label.startswith("article: ")]
    assert len(names) == len(set(names)) == len(printed) == 17
    values = [value for value in picture.values if value.endswith(" us")]
    assert len(values) == len(picture.bars)
    assert {f"avg {own.figures['mean'].text}, max {own.figures['max'].text}" for own in printed} <= set(values)
    assert {part.kind for _, parts in picture.bars for part in parts} == set(KINDS)
    page = str(block_html(picture, "bars"))
    assert [words for words in (*names, *values) if words not in page] == []


def test_the_largest_of_17_threads_and_the_smallest_are_told_apart_on_the_axis() -> None:
    """From 9 us to 23 ms: on an axis from 0 on the RT rows would be one point."""
    picture = toradex()
    spans = dict(zip([label for label, _ in picture.bars], (parts for _, parts in picture.bars), strict=True))
    rt, voluntary = spans["article: iMX7, RT, thread 1"], spans["article: iMX6, voluntary, thread 0"]
    widths = [bar_place(picture, parts[-1].end) - bar_place(picture, parts[0].begin) for parts in (rt, voluntary)]
    assert widths[1] > widths[0] > 0.1
    assert [part.begin for part in voluntary] == [10, 44]
    assert voluntary[-1].end == 23_350


def test_equal_factors_are_equal_lengths() -> None:
    bars = Bars("bars", "red", "us", (), (), 1_000.0, log=True, begin=1.0)
    assert [bar_place(bars, at) for at in (0.0, 0.5, 1.0, 10.0, 1_000.0)] == pytest.approx([0, 0, 0, 1 / 3, 1])
    assert bar_place(bars, 200) - bar_place(bars, 100) == pytest.approx(bar_place(bars, 20) - bar_place(bars, 10))


@pytest.mark.parametrize(
    ("begin", "end", "ticks"), [(9.0, 23_350.0, (1, 10, 100, 1_000, 10_000, 100_000)), (10.0, 10.0, (10, 100))]
)
def test_the_axis_has_whole_decades(begin: float, end: float, ticks: tuple[float, ...]) -> None:
    parts = (BarPart("red", begin, end * 1.0001, "it is red"),)
    bars = Bars("bars", "red", "us", ("red",), (("first", parts),), end, log=True, begin=begin)
    assert bar_ticks(bars) == ticks
    ((left, right),) = rectangles(str(block_html(bars, "bars")))
    assert 0 <= left <= right <= 1


def test_without_two_maxima_there_is_no_picture() -> None:
    """Article 5's maxima are lost."""
    profile, told = campaign_cases.shortened("akamina"), campaign_cases.akamina()
    assert article_picture(MeasuredCampaign(profile, told, articles.load("akamina"))) == []
    article: Article | None = None
    assert article_picture(MeasuredCampaign(profile, told, article)) == []


def test_bars_that_are_left_out_are_counted() -> None:
    profile = campaign_cases.shortened("toradex")
    told = [
        campaign_cases.outcome(profile, cell.key, report_cases.normal(), f"board {at}")
        for cell in profile.cells
        for at in range(9)
    ]
    (picture,) = article_picture(MeasuredCampaign(profile, told, articles.load("toradex")))
    assert len(picture.bars) == 60
    (whole,) = re.findall(r"Of (\d+) bars the first 60 are drawn", picture.says)
    assert int(whole) > 60


def test_a_value_of_0_or_less_begins_at_the_edge() -> None:
    profile = campaign_cases.shortened("bootlin-xenomai")
    (picture,) = article_picture(
        MeasuredCampaign(profile, [campaign_cases.outcome(profile, "irq", None)], articles.load("bootlin"))
    )
    edge = min(part.begin for _, parts in picture.bars for part in parts)
    below = {label: parts[0].begin for label, parts in picture.bars if "G20" in label or "G45" in label}
    assert set(below.values()) == {edge}
    assert len(picture.bars) == 3
