# SPDX-License-Identifier: Apache-2.0
"""What an article's rows are worth, on the page of the profile that repeats them."""

from rtproof import articles, profiles
from rtproof.report.blocks import Table
from rtproof.report.pages import campaign_page


def test_only_rows_that_the_profile_repeats() -> None:
    found = campaign_page.article_evidence_section(profiles.load("toradex"), articles.load("toradex"))
    table = found.blocks[0]
    assert isinstance(table, Table)
    labels = {row.label for row in articles.load("toradex").rows}
    named = [row[0] for row in table.rows if row[0]]
    assert table.folded
    assert set(named) <= labels
    assert len(named) == len(set(named)) == 7
    texts = [row[1] for row in table.rows]
    assert "thread 0: > 166 us: less often than once per 10 min (95 %, fixed-time)" in texts
    assert any(text.startswith("each maximum: a second, equally long run") for text in texts)


def test_without_an_article_nothing_is_said() -> None:
    assert campaign_page.article_evidence_section(profiles.load("toradex"), None).blocks == ()


def test_a_maximum_that_is_a_lower_bound_only_is_worth_nothing() -> None:
    told = campaign_page.article_evidence_rows(articles.load("bootlin"), {"gpio-g45-rt", "gpio-g45-plain"})
    assert {label for label, _, _ in told} == {"GPIO, SAM9M10-G45, RT"}


def test_a_threshold_is_told_once_for_each_number_of_values() -> None:
    ((label, name, text),) = campaign_page.article_evidence_rows(articles.load("akamina"))
    assert (label, name) == (campaign_page.EVIDENCE_OF_ALL_ROWS, "")
    assert text.startswith("the 99.999 % threshold of 1,500,000 activations")
