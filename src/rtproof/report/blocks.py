# SPDX-License-Identifier: Apache-2.0
"""The blocks that a report is made of. Sections compute blocks, and formats draw them; neither knows the other.

A screen reader can read every block: a plot has a sentence that says what it shows, and its points make a table.
"""

from collections.abc import Iterator
from dataclasses import dataclass


class Link(str):
    """The text of a cell that links to a file. ``path`` leads from the report to the file, with / between its parts."""

    path: str

    def __new__(cls, words: str, path: str) -> "Link":
        link = super().__new__(cls, words)
        link.path = path
        return link

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.path


@dataclass(frozen=True)
class Text:
    """Paragraphs of plain text.

    ``kind``: normal, good, bad, doubt or code; formats draw only the paragraphs of code. ``headline``: a large line
    above the paragraphs. ``terms``: short questions with their answers, below the paragraphs. ``foremost``: a page
    shows it on its first screen.
    """

    paragraphs: tuple[str, ...]
    kind: str = "normal"
    headline: str = ""
    terms: tuple[tuple[str, str], ...] = ()
    foremost: bool = False


@dataclass(frozen=True)
class Table:
    """A table of strings.

    ``numeric``: columns to be right-aligned. ``row_headers``: the first column names the row; an empty cell there means
    that the name above still applies. ``folded``: the table is long or seldom read, so a format that can fold it shows
    it on demand. ``foremost``: a page shows it on its first screen.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    row_headers: bool = True
    folded: bool = False
    foremost: bool = False

    def __post_init__(self) -> None:
        """ValueError unless each row has a cell for each column."""
        if any(len(row) != len(self.header) for row in self.rows):
            raise ValueError("a row of a table has not as many cells as its header")


@dataclass(frozen=True)
class Curve:
    """One line, step curve or set of bars in a plot; x and y have equal length.

    ``role``: "part" for one of several of a kind, "whole" for all of them together, "other" for another view of them.
    ``group``: all curves of a group have one colour. The parts of a group are drawn thin and share one entry in the
    legend, under their common name if they have one; the plot's table leaves them out.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: str = "part"
    group: int | None = None

    @property
    def thin(self) -> bool:
        """Whether the curve is a part of a group: drawn thin behind the others, to show how much the parts differ."""
        return self.role == "part" and self.group is not None


@dataclass(frozen=True)
class Marker:
    """A labelled vertical (axis x) or horizontal (axis y) line.

    ``role``: "limit" for what must not be passed, "note" for anything else.
    """

    name: str
    axis: str
    at: float
    role: str = "limit"


@dataclass(frozen=True)
class Plot:
    """Curves over two axes. ``says``: what the plot shows, in a sentence for readers who cannot see it.

    ``style``: "line"; "step", where y holds from its x to the next x; "bars", which are bins of ``bin_width`` that
    begin at x, without the empty ones; with a width of 0 a bin ends at the next x; "dots", where each point of a part
    is a dot, and other curves are steps. On a logarithmic axis a y of 0 is not drawn, and it ends a step.
    ``x_dates``: x is in seconds since 1970, UTC, and the axis shows dates. ``x_ends``, ``y_ends``: the range that an
    axis shows; None for the range of the points. ``y_words``: what the low and the high end of the y axis mean, in a
    few words. ``foremost``: a page shows the plot on its first screen and not in its section.
    """

    title: str
    says: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]
    markers: tuple[Marker, ...] = ()
    log_x: bool = False
    log_y: bool = False
    style: str = "line"
    bin_width: float = 0.0
    x_ends: tuple[float, float] | None = None
    y_ends: tuple[float, float] | None = None
    y_words: tuple[str, str] = ("", "")
    x_dates: bool = False
    foremost: bool = False


@dataclass(frozen=True)
class HeatMap:
    """Counts over a grid. rows[r][c] is the count of the cell between y edges r and r + 1 and x edges c and c + 1.

    Edges increase; there is one edge more than cells. ``curves`` are drawn over the map, one level per column, and
    ``markers`` as lines. ``row_names``: a name for each row, which stands on the y axis in place of numbers, or an
    empty one for a gap; () for numbers.
    """

    title: str
    says: str
    x_label: str
    y_label: str
    x_edges: tuple[float, ...]
    y_edges: tuple[float, ...]
    rows: tuple[tuple[int, ...], ...]
    markers: tuple[Marker, ...] = ()
    log_y: bool = True
    curves: tuple[Curve, ...] = ()
    row_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """ValueError if some rows have no place for their name."""
        if self.row_names and len(self.row_names) != len(self.rows):
            raise ValueError("a heat map has not as many names as rows")

    @property
    def named_rows(self) -> Iterator[tuple[str, float, tuple[int, ...]]]:
        """The name, the middle on the y axis and the counts of each row with a name, from the lowest."""
        places = zip(self.row_names, self.y_edges, self.y_edges[1:], self.rows, strict=False)
        yield from ((name, (low + high) / 2, row) for name, low, high, row in places if name)


@dataclass(frozen=True)
class BarPart:
    """A part of a bar. kind: what the legend calls it. words: what it is, in full."""

    kind: str
    begin: float
    end: float
    words: str


@dataclass(frozen=True)
class Bars:
    """Bars below each other over one axis, each made of coloured parts. ``says``: what they show, in a sentence.

    ``bars``: the label of each bar, and its parts in order. ``kinds``: the kinds of parts, in the order of the legend.
    ``end``: where the axis ends; it begins at 0. ``log``: the axis is logarithmic, from the decade of ``begin`` on;
    parts begin above 0 there. ``values``: for each bar what stands behind it; () for nothing.
    """

    title: str
    says: str
    x_label: str
    kinds: tuple[str, ...]
    bars: tuple[tuple[str, tuple[BarPart, ...]], ...]
    end: float
    log: bool = False
    begin: float = 0.0
    values: tuple[str, ...] = ()


Block = Text | Table | Plot | HeatMap | Bars


@dataclass(frozen=True)
class Section:
    """A part of the report: the title and the blocks of one section. ``name`` is that of its ``ReportSection``.

    ``group``: the heading under which a page folds the section; "" for none.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    group: str = ""
