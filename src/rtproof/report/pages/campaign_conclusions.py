# SPDX-License-Identifier: Apache-2.0
"""What an article concludes on limits, checked by its own figures and by the runs that repeat its rows."""

from collections.abc import Iterator
from dataclasses import dataclass

from rtproof import articles
from rtproof.articles import BELOW, Article, ArticleStatement
from rtproof.core.phrases import duration, percent
from rtproof.judge.doubts.row_statements import CONFIDENCE, contradiction
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.number_format import US, count_text
from rtproof.report.pages.campaign_outcomes import CellOutcome, MeasuredCampaign
from rtproof.report.pages.campaign_table import ARTICLE_PREFIX, as_published, bins_of
from rtproof.statistics import share_upper

HEADER = ("conclusion", "of", "n", "not below", "max [us]", "one every", "what this shows")
ONE_EVERY = (
    "One every: where none of n values was at the limit or above, they may still come as often as this "
    f"({percent(CONFIDENCE)} confidence, if values do not depend on each other). A missed activation counts with how "
    "late it was."
)


@dataclass(frozen=True)
class CheckedRow:
    """A row that a conclusion is about, or a run that repeats one. None: it is not known.

    of: label of the article's row, or name of the run. least, most: how many of ``count`` values were not below the
    limit. max_text: the maximum in us as the article printed it. every_ns: if none was, values may come this often.
    shows: what this says of the conclusion, in words.
    """

    of: str
    published: bool
    count: int | None = None
    least: int | None = None
    most: int | None = None
    max_ns: float | None = None
    max_text: str = ""
    every_ns: int | None = None
    shows: str = ""


CheckedConclusion = tuple[ArticleStatement, tuple[CheckedRow, ...]]
"""A conclusion on a limit, with the article's rows first and the runs that repeat them behind."""


def conclusions_section(campaign: MeasuredCampaign) -> Section:
    """Return a row for each row of the article that a conclusion is about, and for each run that repeats one."""
    rows = tuple(
        (
            "" if at else f"{each.field} {each.says} {each.limit.text if each.limit else ''}",
            f"{ARTICLE_PREFIX}{row.of}" if row.published else row.of,
            "" if row.count is None else count_text(row.count),
            _not_below(row),
            row.max_text,
            "" if row.every_ns is None else duration(row.every_ns),
            row.shows,
        )
        for each, checked in checked_conclusions(campaign)
        for at, row in enumerate(checked)
    )
    caption = "The article's conclusions by its own figures, and by the runs that repeat its rows"
    table = Table(caption, HEADER, rows, (2, 3, 4, 5))
    return Section("conclusions", "What the article concludes", (table, Text((ONE_EVERY,))) if rows else ())


def _not_below(row: CheckedRow) -> str:
    if row.least is None or row.most is None:
        return ""
    return f"{row.least:,}" if row.least == row.most else f"{row.least:,} to {row.most:,}"


def checked_conclusions(campaign: MeasuredCampaign) -> list[CheckedConclusion]:
    """Return the conclusions on limits that are about rows which were repeated."""
    article, found = campaign.article, []
    for each in article.statements if article else ():
        repeating = [one for one in campaign.named if set(one[1].cell.article_rows) & set(each.rows)]
        if article and each.limit and repeating:
            bins = bins_of(campaign.profile, each.field)
            here = [_measured(name, one, bins.stage if bins else "", each) for name, one in repeating]
            found.append((each, (*_published(article, each), *here)))
    return found


def _published(article: Article, each: ArticleStatement) -> Iterator[CheckedRow]:
    claimed = {claim.name: {own.name: own for own in claim.figures} for claim in articles.claims(article)}
    for row in filter(None, map(article.row, each.rows)):
        figures = claimed[row.key][each.field]
        told = next(own for own in row.numbers if own.name == each.field).figures
        against = contradiction(figures)
        none = 0 if each.says == BELOW and not against and figures.count else None
        every_ns = None if none is None else _one_every(figures.count or 0, figures.period_ns)
        shown = against or ("" if "max" in told else "the article gives no maximum to check it with")
        most = as_published(told.get("max"), US)
        yield CheckedRow(row.label, True, figures.count, none, none, figures.max_ns, most, every_ns, shown)


def _one_every(count: int, period_ns: float | None) -> int | None:
    return round(period_ns / share_upper(0, count, CONFIDENCE)) if count and period_ns else None


def _measured(name: str, outcome: CellOutcome, stage: str, each: ArticleStatement) -> CheckedRow:
    summary = outcome.stage(stage)
    if summary is None or each.limit is None or not summary.schedule_counts.total:
        return CheckedRow(name, False, shows="not measured")
    n, most_ns = summary.schedule_counts.total, summary.observed.max
    least, most = summary.schedule_counts.exceedances(round(each.limit.value) - 1)
    period_ns = summary.series.period_ns / max(len(summary.threads), 1)
    every_ns = None if most or outcome.virtual else _one_every(n, period_ns)
    shown = _shown(outcome, least, most + summary.lost, each.says == BELOW)
    return CheckedRow(name, False, n, least, most, most_ns, US.show(most_ns), every_ns, shown)


def _shown(outcome: CellOutcome, least: int, most: int, below: bool) -> str:
    """least, most: how many values were not below the limit. below: the article concludes that none is."""
    if outcome.invalid:
        return f"nothing, for the run is INVALID: {outcome.invalid[0]}"
    if least:
        return "it does not hold here" if below else "it holds here"
    if most:
        return "undecided: values were lost, or a bin holds the limit"
    rate = "; virtual time shows no rate" if outcome.virtual else ""
    return f"{'it held here' if below else 'it was not seen here'}{rate}"
