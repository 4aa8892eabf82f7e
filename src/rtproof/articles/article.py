# SPDX-License-Identifier: Apache-2.0
"""What an article published, as frozen data. Times are in nanoseconds and remember how they were printed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LATENCY, LENGTH, TOP, LOOP = "latency", "length", "top", "loop"


@dataclass(frozen=True)
class Figure:
    """A number as it was printed. unit: ns, count or % (then value is a share of 1).

    step: one unit of the last printed digit, in ``unit``. at_least: the article gives a lower bound only.
    """

    text: str
    value: int | float
    unit: str
    step: int | float = 0
    at_least: bool = False


@dataclass(frozen=True)
class Numbers:
    """Of one thread or field: figures by name. kind: latency, length (of cycles or work), top or loop (article 3)."""

    name: str
    kind: str
    figures: Mapping[str, Figure]

    def value(self, name: str) -> float | None:
        figure = self.figures.get(name)
        return figure.value if figure else None


@dataclass(frozen=True)
class Row:
    """One run as the article tells of it; a text is empty and a number None where it does not tell.

    section: heading in the article. method_claimed: what the article says that its options choose; method: what they
    choose. duration: as printed; asked: as the command asked for it, to the second. load: what the article says it
    was. cpus: how many the board has. load_line: the shell line for it. group: rows with the same one are compared with
    each other. judged: it was taken for good. stopped: the loop ran no more. caveats: what the article says itself
    against the row.
    """

    key: str
    label: str
    section: str
    board: str
    kernel: str
    load: str
    command: str = ""
    method: str = ""
    method_claimed: str = ""
    policy: str = ""
    priority: int | None = None
    duration: Figure | None = None
    asked: Figure | None = None
    loadavg: tuple[float, ...] = ()
    cpus: int | None = None
    load_line: str = ""
    group: str = ""
    judged: bool = False
    stopped: bool = False
    caveats: tuple[str, ...] = ()
    numbers: tuple[Numbers, ...] = ()
    figures: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    """What an article concluded of two rows: field is the same, or the first is better above ``above``, the top share.

    says: "same" or "better above".
    """

    key: str
    rows: tuple[str, str]
    field: str
    says: str
    above: Figure | None = None
    top_share: Figure | None = None


@dataclass(frozen=True)
class Article:
    """name: of its file. about: what was measured, and what there is to know of its numbers.

    threshold: the percentile that the article judges by, as a share; it may be gone from the rows.
    """

    name: str
    title: str
    source: str
    about: str
    rows: tuple[Row, ...]
    statements: tuple[Statement, ...] = ()
    threshold: Figure | None = None

    def row(self, key: str) -> Row | None:
        """The row with this key, None if there is none."""
        return next((row for row in self.rows if row.key == key), None)
