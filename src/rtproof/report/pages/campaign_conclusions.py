# SPDX-License-Identifier: Apache-2.0
"""What an article concludes of a limit, held against its own figures and against the runs that repeat its rows."""

from collections.abc import Iterator, Sequence

from rtproof import articles
from rtproof.articles import BELOW, Article, ArticleStatement
from rtproof.core.phrases import duration, percent
from rtproof.judge.objections.rules.bound import CONFIDENCE
from rtproof.judge.objections.rules.conclusion import contradiction
from rtproof.profiles import Profile
from rtproof.report import number_format
from rtproof.report.blocks import Section, Table, Text
from rtproof.report.number_format import US
from rtproof.report.pages.campaign_outcomes import CellOutcome, outcomes_by_name
from rtproof.report.pages.campaign_table import ARTICLE_PREFIX, as_published
from rtproof.statistics import share_upper

NO_RATE = "virtual time shows no rate"
HEADER = ("conclusion", "of", "n", "not below", "max [us]", "one every", "what this shows")
ONE_EVERY = (
    "One every: where none of n values was at the limit or above, they may still come as often as this "
    f"({percent(CONFIDENCE)} confidence, if values do not depend on each other). A missed activation counts with how "
    "late it was."
)


def conclusions_section(profile: Profile, outcomes: Sequence[CellOutcome], article: Article | None) -> Section:
    """Return a row for each row of the article that a conclusion is about, and for each run that repeats one."""
    told = [each for each in article.statements if each.limit] if article else []
    rows = [row for each in told if article for row in _statement_rows(profile, outcomes, article, each)]
    caption = "The article's conclusions by its own figures, and by the runs that repeat its rows"
    table = Table(caption, HEADER, tuple(rows), (2, 3, 4, 5))
    return Section("conclusions", "What the article concludes", (table, Text((ONE_EVERY,))) if rows else ())


def _statement_rows(
    profile: Profile, outcomes: Sequence[CellOutcome], article: Article, each: ArticleStatement
) -> Iterator[tuple[str, ...]]:
    repeating = [one for one in outcomes_by_name(outcomes) if set(one[1].cell.article_rows) & set(each.rows)]
    stage = next((bins.stage for bins in profile.bins if bins.name.startswith(each.field)), "")
    here = [(name, *_measured(outcome, stage, each)) for name, outcome in repeating]
    text = f"{each.field} {each.says} {each.limit.text if each.limit else ''}"
    for at, row in enumerate((*_published(article, each), *here) if here else ()):
        yield ("" if at else text, *row)


def _published(article: Article, each: ArticleStatement) -> Iterator[tuple[str, ...]]:
    claimed = {claim.name: {own.name: own for own in claim.figures} for claim in articles.claims(article)}
    for row in filter(None, map(article.row, each.rows)):
        figures = claimed[row.key][each.field]
        told = next(own for own in row.numbers if own.name == each.field).figures
        against = contradiction(figures)
        none = each.says == BELOW and not against and bool(figures.count)
        often = _one_every(figures.count or 0, figures.period_ns) if none else ""
        shown = against or ("" if "max" in told else "the article gives no maximum to check it with")
        count, most = (as_published(told.get(name), US) for name in ("count", "max"))
        yield (f"{ARTICLE_PREFIX}{row.label}", count, "0" if none else "", most, often, shown)


def _one_every(count: int, period_ns: float | None) -> str:
    return duration(period_ns / share_upper(0, count, CONFIDENCE)) if count and period_ns else ""


def _measured(outcome: CellOutcome, stage: str, each: ArticleStatement) -> tuple[str, ...]:
    """n, how many were not below the limit, the maximum, how often such may come, and what this shows."""
    summary = outcome.stage(stage)
    if summary is None or each.limit is None or not summary.schedule_counts.total:
        return "", "", "", "", "not measured"
    n = summary.schedule_counts.total
    least, most = summary.schedule_counts.exceedances(round(each.limit.value) - 1)
    often = "" if most or outcome.virtual else _one_every(n, summary.series.period_ns / max(len(summary.threads), 1))
    amount = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    shown = _shown(outcome, least, most + summary.lost, each.says == BELOW)
    return number_format.count_text(n), amount, US.show(summary.observed.max), often, shown


def _shown(outcome: CellOutcome, least: int, most: int, below: bool) -> str:
    """least, most: how many values were not below the limit. below: the article concludes that none is."""
    if outcome.invalid:
        return f"nothing, for the run is INVALID: {outcome.invalid[0]}"
    if least:
        return "it does not hold here" if below else "it holds here"
    if most:
        return "undecided: values were lost, or a bin holds the limit"
    return f"{'it held here' if below else 'it was not seen here'}{f'; {NO_RATE}' if outcome.virtual else ''}"
