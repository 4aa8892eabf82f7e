# SPDX-License-Identifier: Apache-2.0
"""The page of a profile's cells: what each gave, beside the figures that the article published.

``sections`` is all that the rest of the program needs; it is a pure function, of local runs and of the lab's alike.
"""

from collections.abc import Sequence

from rtproof.articles import Article
from rtproof.errors import UserError
from rtproof.profiles import Profile
from rtproof.report.blocks import Section, Text
from rtproof.report.campaign import conditions, curves, extras, first, honest, metrics, objected, result, tails
from rtproof.report.campaign.answer import answer
from rtproof.report.campaign.outcome import NOTHING_MORE, Given, More, Outcome, exit_code, marked

__all__ = ["Given", "More", "Outcome", "check", "exit_code", "sections", "title"]


def check(profile: Profile, article: Article) -> None:
    """UserError where the page can't be made as the profile asks, which is better known before hours of measuring."""
    try:
        metrics.metrics(profile.columns)
        extras.check(profile.extras)
    except UserError as problem:
        raise UserError(f"the profile {profile.name}: {problem}") from None
    for key in (key for cell in profile.cells for key in cell.article_rows):
        if article.row(key) is None:
            raise UserError(f"the profile {profile.name}: row: the article {article.name} has no row {key!r}")


def sections(
    profile: Profile,
    outcomes: Sequence[Outcome],
    article: Article | None,
    more: More = NOTHING_MORE,
    *,
    short: bool = False,
) -> list[Section]:
    """outcomes: of every cell on every system, cells in the profile's order. short: for a terminal."""
    outcomes = marked(outcomes)
    table = result.section(profile, outcomes, article, more.given, short=short)
    losses = (*conditions.in_band(outcomes), *conditions.virtual_time(outcomes), *first.missing(outcomes))
    answered = [answer(profile, outcomes)] if outcomes else []
    before = (*losses, *answered, *first.different(profile, outcomes), Text((profile.about,)))
    parts = [
        Section(table.name, table.title, (*before, *table.blocks)),
        *conditions.faults(outcomes),
        objected.section(profile, outcomes, article),
        *([] if short else _curves_and_more(profile, outcomes, article)),
        conditions.section(profile, outcomes, article, more.command, short=short),
    ]
    return [part for part in parts if part.blocks]


def _curves_and_more(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> list[Section]:
    """What a terminal has no room for."""
    drawn = [curves.section(profile, outcomes), tails.section(profile, outcomes, article)]
    return [*extras.sections(profile, outcomes, article), *drawn, honest.section(profile, article)]


def title(profile: Profile, outcomes: Sequence[Outcome]) -> str:
    """Tells this page from others: the profile, and the systems."""
    systems = ", ".join(dict.fromkeys(each.system for each in marked(outcomes)))
    virtual = ", virtual time" if any(each.virtual for each in outcomes) else ""
    return f"rtproof: profile {profile.name} on {systems}{virtual}"
