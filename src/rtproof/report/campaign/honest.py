# SPDX-License-Identifier: Apache-2.0
"""What the published rows are worth by their own length and number of values, whatever was measured here."""

from collections.abc import Iterator, Sequence

from rtproof.analysis import honesty
from rtproof.articles import Article, Row
from rtproof.profiles import Profile
from rtproof.report.blocks import Section, Table, Text

EXPLAINED = (
    "None of this is about how well it was measured: it is what any run of this length can tell at best, if one run is "
    "like another. The article's length is taken as fixed before the run."
)
TOGETHER = "rows of this article"
CAPTION = "By their length, largest value and number of values"
TITLE = "What the article's rows are worth"


def section(profile: Profile, article: Article | None) -> Section:
    """Of those rows that the profile repeats."""
    wanted = {key for cell in profile.cells for key in cell.article_rows}
    told = lines(article, wanted) if article else []
    before = [label for label, _, _ in told[:-1]]
    rows = tuple(
        ("" if label == above else label, f"{name}: {text}" if name else text)
        for above, (label, name, text) in zip(["", *before], told, strict=False)
    )
    table = Table(CAPTION, ("row", "what it is worth"), rows, folded=True)
    return Section("honest", TITLE, (table, Text((EXPLAINED,))) if rows else ())


def lines(article: Article, wanted: Sequence[str] | set[str] | None = None) -> list[tuple[str, str, str]]:
    """Label of the row, name of the thread or field ("" for all), sentence. wanted: keys of rows; None for all."""
    chosen = [row for row in article.rows if wanted is None or row.key in wanted]
    told = [(row.label, name, text) for row in chosen for name, text in _of_row(row)]
    return told + [(TOGETHER, "", text) for text in _threshold(article, chosen)]


def _of_row(row: Row) -> Iterator[tuple[str, str]]:
    """A maximum that is only a lower bound is worth nothing here."""
    length = row.asked or row.duration
    largest = [(each.name, each.figures["max"]) for each in row.numbers if "max" in each.figures]
    known = [(name, int(figure.value)) for name, figure in largest if not figure.at_least]
    if length is None or length.at_least or not known:
        return
    duration_ns = int(length.value)
    told = [(name, honesty.largest(max_ns, duration_ns)) for name, max_ns in known]
    yield from ((name, bound) for name, (_, _, bound) in told)
    again, later, _ = told[0][1]
    yield "the maximum" if len(told) == 1 else "each maximum", f"{again}; {later}"
    yield from (("", text) for text in honesty.unseen(duration_ns))


def _threshold(article: Article, rows: Sequence[Row]) -> Iterator[str]:
    """Of each number of values that stands behind it."""
    if article.threshold is None:
        return
    counts = [each.value("count") for row in rows for each in row.numbers]
    for count in dict.fromkeys(int(count) for count in counts if count):
        yield honesty.behind(honesty.threshold(1 - article.threshold.value, count))
