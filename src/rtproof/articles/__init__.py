# SPDX-License-Identifier: Apache-2.0
"""The numbers that five articles published, as data with their sources: one TOML file per article in this folder.

``load`` reads an article and refuses every mistake in its file. ``claims`` gives its rows to ``judge.doubts``.
Tables that compare a run with an article read the ``figures`` of a row.
"""

from rtproof.articles.article import (
    BELOW,
    Article,
    ArticleFigure,
    ArticleNumbers,
    ArticleRow,
    ArticleStatement,
    claims,
    load,
    names,
    read,
)

__all__ = [
    "BELOW",
    "Article",
    "ArticleFigure",
    "ArticleNumbers",
    "ArticleRow",
    "ArticleStatement",
    "claims",
    "load",
    "names",
    "read",
]
