# SPDX-License-Identifier: Apache-2.0
"""How a notebook shows a result: lines, and small tables of escaped HTML without a style sheet, script or link."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from rtproof.core.phrases import value
from rtproof.core.printable import clean

MOST_ROWS = 40
"""A notebook shows this many rows; the objects hold all of them."""


Sentences = tuple[tuple[str, str], ...]
"""Lines to print: label and text. An empty label continues the line before."""


def printed_sentences(sentences: Sentences) -> Iterator[str]:
    """The lines of text, each with its label."""
    width = max((len(label) for label, _ in sentences), default=0)
    return (f"{label:<{width}} {text}" for label, text in sentences)


def time_text(ns: float | None) -> str:
    """A time for people, such as 34.7 us; a dash where it is not known."""
    return "-" if ns is None else value(round(ns))


def number_text(number: int | None) -> str:
    """A whole number for people; a dash where it is not known."""
    return "-" if number is None else f"{number:,}"


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. The first column is text, all others are numbers."""
    all_rows = list(rows)
    more = len(all_rows) - MOST_ROWS
    parts = [f"<table><caption>{_safe(caption)}</caption>"]
    if head:
        parts.append("<thead><tr>" + "".join(f"<th>{_safe(name)}</th>" for name in head) + "</tr></thead>")
    cells = ("".join(f"<td>{_safe(cell)}</td>" for cell in row) for row in all_rows[:MOST_ROWS])
    parts.append("<tbody>" + "".join(f"<tr>{row}</tr>" for row in cells) + "</tbody></table>")
    return "".join(parts) + (f"<p>and {more:,} more</p>" if more > 0 else "")


def html_lines(title: str, lines: Iterable[str]) -> str:
    """A title and a paragraph for each line."""
    return f"<p><b>{_safe(title)}</b></p>" + "".join(f"<p>{_safe(line)}</p>" for line in lines)


def _safe(text: str) -> str:
    return escape(clean(text))
