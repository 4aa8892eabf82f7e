# SPDX-License-Identifier: Apache-2.0
"""Draws a table as lines of text. Columns are as wide as needed; cells are wrapped if the line becomes too long."""

import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from rtproof.core.printable import clean
from rtproof.report.blocks import Table

WIDTH = 100
SCREEN_WIDTH = 80
"""Columns of a text without tables where standard output is no terminal."""
NARROWEST_PAGE = 40
_columns = ContextVar("columns", default=WIDTH)
GAP = "  "
NARROWEST = 12
WIDEST_WORD = 30
"""Longer words, such as those of a path that is deep, are broken."""


def page_width() -> int:
    """Columns of a line: WIDTH, or fewer where ``fitted_to_terminal`` says so."""
    return _columns.get()


@contextmanager
def fitted_to_terminal(piped: int = WIDTH) -> Iterator[None]:
    """Within it text is no wider than the terminal, or than ``piped`` if standard output is none."""
    columns = shutil.get_terminal_size((piped, 24)).columns if sys.stdout and sys.stdout.isatty() else piped
    before = _columns.set(min(max(columns, NARROWEST_PAGE), WIDTH))
    try:
        yield
    finally:
        _columns.reset(before)


def plain_table(rows: Sequence[Sequence[str]], words: int = 0) -> list[str]:
    """A line for each row. The first ``words`` columns begin on the left, the others end on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        GAP.join(
            cell.ljust(width) if at < words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def without_column(rows: Sequence[tuple[str, ...]], heading: str) -> list[tuple[str, ...]]:
    """The rows without the column of this heading, which stands in the first row."""
    kept = [at for at, each in enumerate(rows[0]) if each != heading]
    return [tuple(row[at] for at in kept) for row in rows]


def lay_out(table: Table) -> str:
    """The table as text: caption, header, a rule and the rows."""
    rows = [[clean(cell) for cell in row] for row in table.rows]
    header = [clean(cell) for cell in table.header]
    widths = _widths(header, rows, table.numeric)
    lines = [
        *textwrap.wrap(clean(table.caption), page_width()),
        *_row(header, widths, table.numeric),
        GAP.join("-" * width for width in widths),
    ]
    for row in rows:
        lines += _row(row, widths, table.numeric)
    return "\n".join(lines)


def _widths(header: list[str], rows: list[list[str]], numeric: tuple[int, ...]) -> list[int]:
    """The widths of the columns, at least 1. The widest column is made narrower until the line fits.

    First the headings of numbers take two lines. A column stays as wide as its longest word, such as the path of a run,
    as long as another one can give way. Words are broken only if that makes the line fit.
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(1, *map(len, column)) for column in columns]
    words = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    if _too_wide(widths):
        for at in numeric:
            widths[at] = max(1, _in_two_lines(header[at]), *(len(row[at]) for row in rows))
    whole_words = [max(NARROWEST, min(word, WIDEST_WORD)) for word in words]
    widths = _narrowed(widths, whole_words)
    broken_words = _narrowed(widths, [NARROWEST] * len(columns))
    return widths if _too_wide(broken_words) else broken_words


def _narrowed(widths: list[int], least: list[int]) -> list[int]:
    widths = list(widths)
    while _too_wide(widths) and (wide := [at for at, width in enumerate(widths) if width > least[at]]):
        widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _in_two_lines(heading: str) -> int:
    """The least width in which a heading has two lines; of a single word its length."""
    words = heading.split()
    return min(
        (max(len(" ".join(words[:at])), len(" ".join(words[at:]))) for at in range(1, len(words))), default=len(heading)
    )


def _too_wide(widths: list[int]) -> bool:
    return sum(widths) + len(GAP) * (len(widths) - 1) > page_width()


def _row(cells: list[str], widths: list[int], numeric: tuple[int, ...]) -> list[str]:
    wrapped = [
        textwrap.wrap(cell, width, break_on_hyphens=False) or [""] for cell, width in zip(cells, widths, strict=True)
    ]
    height = max(len(lines) for lines in wrapped)
    return [_line([lines[at] if at < len(lines) else "" for lines in wrapped], widths, numeric) for at in range(height)]


def _line(cells: list[str], widths: list[int], numeric: tuple[int, ...]) -> str:
    padded = [
        cell.rjust(width) if at in numeric else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return GAP.join(padded).rstrip()
