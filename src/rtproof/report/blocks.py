# SPDX-License-Identifier: Apache-2.0
"""What a report is made of. Sections compute blocks, formats draw them; neither knows the other.

Every block can be read aloud: plots carry a sentence that says what they show and the table that they draw.
"""

from dataclasses import dataclass


class Link(str):
    """A cell of a table that leads to a file beside the report: the path from there, with / between its parts."""

    path: str

    def __new__(cls, words: str, path: str) -> "Link":
        link = super().__new__(cls, words)
        link.path = path
        return link

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.path


@dataclass(frozen=True)
class Text:
    """Paragraphs of plain text. ``kind``: normal, good, bad, doubt, code. ``headline``: a line set large above them.

    ``terms``: below them short questions, each with its answer. Nothing but paragraphs is drawn of code.
    """

    paragraphs: tuple[str, ...]
    kind: str = "normal"
    headline: str = ""
    terms: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of strings.

    ``numeric``: columns to be right-aligned. ``row_headers``: the first column names the row, or is empty where the
    name above goes on. ``folded``: long or seldom read, shown on demand where a format can do that. ``heat``: per cell
    a share from 0 (cool) to 1 (hot) that shades it where a format can do that, None for no shade; () for no cell.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    row_headers: bool = True
    folded: bool = False
    heat: tuple[tuple[float | None, ...], ...] = ()


@dataclass(frozen=True)
class Curve:
    """One line, step or set of stems in a plot; x and y of equal length.

    ``role``: "part" for one of several of a kind, "whole" for all of them together, "other" for a second view of these.
    ``group``: curves of a group have its colour. Of a group, parts are drawn thin under one entry of the legend, and
    are not in the plot's table.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: str = "part"
    group: int | None = None

    @property
    def thin(self) -> bool:
        """Whether it stands behind the others of its group, to show how much they differ."""
        return self.role == "part" and self.group is not None


@dataclass(frozen=True)
class Marker:
    """A labelled vertical (axis x) or horizontal (axis y) line, such as the limit."""

    name: str
    axis: str
    at: float


@dataclass(frozen=True)
class Plot:
    """Curves over two axes. ``says``: what it shows, in a sentence for those who cannot see it.

    ``style``: line; step (y holds from its x to the next one); bars (bins of ``bin_width``
    that begin at x, the empty ones left out). A y of 0 on a logarithmic axis ends a step and is not drawn.
    ``x_ends``, ``y_ends``: what an axis shows when that is not simply where the points are.
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


@dataclass(frozen=True)
class HeatMap:
    """Counts over a grid: rows[r][c] for y edge r (lowest first) and x edge c. Edges have one element more than cells.

    ``curves`` are drawn over the map, one level per column, and ``markers`` as lines.
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


Block = Text | Table | Plot | HeatMap


@dataclass(frozen=True)
class Section:
    """A titled part of the report as a section plug-in returned it; ``name`` is the plug-in's name."""

    name: str
    title: str
    blocks: tuple[Block, ...]
