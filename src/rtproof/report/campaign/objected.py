# SPDX-License-Identifier: Apache-2.0
"""What speaks against the rows: those measured here, and those of the article that stand beside them."""

from collections.abc import Sequence
from dataclasses import replace

from rtproof import articles
from rtproof.analysis.objections import Claim, Objection, claim_of, objections
from rtproof.articles import Article, Row
from rtproof.profiles import CellPlan, Profile
from rtproof.profiles.model import LOAD
from rtproof.report.blocks import Block, Section, Table, Text
from rtproof.report.campaign.outcome import Outcome

NONE_HERE = "Nothing in the figures that were measured here speaks against them."
NONE_THERE = "Nothing in the article's own figures speaks against its rows."
HEADER = ("row", "what speaks against it")


def section(profile: Profile, outcomes: Sequence[Outcome], article: Article | None) -> Section:
    own, published = found(profile, outcomes, article)
    blocks = [_block("Objections to the rows measured here", own, NONE_HERE)]
    if article:
        blocks.append(_block("Objections to the article's rows", published, NONE_THERE))
        blocks += _of_the_article(profile, article)
    return Section("objections", "Objections", tuple(blocks) if outcomes else ())


def found(
    profile: Profile, outcomes: Sequence[Outcome], article: Article | None
) -> tuple[tuple[Objection, ...], tuple[Objection, ...]]:
    """To the rows measured here, and to those of the article that the profile repeats."""
    return objections(_own(outcomes)), objections(_published(profile, article) if article else [])


def _own(outcomes: Sequence[Outcome]) -> list[Claim]:
    """The same cell on several systems is compared."""
    measured = [(each, each.analysis) for each in outcomes if each.analysis]
    return [
        claim_of(found, f"{each.cell.label}, {each.system}", each.cell.key, said_idle=_said_idle(each.cell))
        for each, found in measured
    ]


def _said_idle(cell: CellPlan) -> bool:
    """Whether it is the one without a load of a profile whose cells differ by it."""
    return LOAD in cell.axes and not cell.loads


def _published(profile: Profile, article: Article) -> list[Claim]:
    """Those rows only that the profile repeats, by their labels."""
    labels = {row.key: row.label for row in _repeated(profile, article)}
    return [replace(claim, name=labels[claim.name]) for claim in articles.claims(article) if claim.name in labels]


def _of_the_article(profile: Profile, article: Article) -> list[Block]:
    """What there is to know of its figures, and what it says against them itself; what nobody said is no block."""
    rows = tuple((row.label, each) for row in _repeated(profile, article) for each in row.caveats)
    table = [Table("What the article itself says against its rows", HEADER, rows)] if rows else []
    return [*table, Text((" ".join(article.about.split()),), headline="The article's figures")]


def _repeated(profile: Profile, article: Article) -> list[Row]:
    """Those rows of the article that the profile repeats."""
    wanted = {key for cell in profile.cells for key in cell.article_rows}
    return [row for row in article.rows if row.key in wanted]


def _block(caption: str, some: Sequence[Objection], none: str) -> Block:
    if not some:
        return Text((none,))
    rows = tuple(("; ".join(each.claims), _without_name(each.what, each.claims)) for each in some)
    return Table(caption, HEADER, rows)


def _without_name(what: str, claims: Sequence[str]) -> str:
    """The row stands in the column before."""
    return what.removeprefix(f"{claims[0]}: ") if len(claims) == 1 else what
