# SPDX-License-Identifier: Apache-2.0
"""The numbers that five articles published, as data with their sources: one TOML file per article in this folder.

``load`` reads one strictly; ``claims`` hands its rows to the objections engine. A row's ``figures`` are for tables.
"""

from rtproof.articles.article import Article, ArticleFigure, ArticleRow, ArticleStatement, claims
from rtproof.articles.article_file import load, names, read

__all__ = ["Article", "ArticleFigure", "ArticleRow", "ArticleStatement", "claims", "load", "names", "read"]
