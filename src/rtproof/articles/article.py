# SPDX-License-Identifier: Apache-2.0
"""What an article published, as frozen data, and its rows as the objections see them. Times are in nanoseconds."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from rtproof.judge.objections.result_row import Figures, ResultClaim, RowKind, Span, exact_span

LATENCY, LENGTH, TOP, LOOP = "latency", "length", "top", "loop"


@dataclass(frozen=True)
class ArticleFigure:
    """A number as it was printed. unit: ns, count or % (then value is a share of 1).

    step: one unit of the last printed digit, in ``unit``. at_least: the article gives a lower bound only.
    """

    text: str
    value: int | float
    unit: str
    step: int | float = 0
    at_least: bool = False


@dataclass(frozen=True)
class ArticleNumbers:
    """Of one thread or field: figures by name. kind: latency, length (of cycles or work), top or loop (article 3)."""

    name: str
    kind: str
    figures: Mapping[str, ArticleFigure]

    def value(self, name: str) -> float | None:
        figure = self.figures.get(name)
        return figure.value if figure else None


@dataclass(frozen=True)
class ArticleRow:
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
    duration: ArticleFigure | None = None
    asked: ArticleFigure | None = None
    loadavg: tuple[float, ...] = ()
    cpus: int | None = None
    load_line: str = ""
    group: str = ""
    judged: bool = False
    stopped: bool = False
    caveats: tuple[str, ...] = ()
    numbers: tuple[ArticleNumbers, ...] = ()
    figures: Mapping[str, ArticleFigure] = field(default_factory=dict)


@dataclass(frozen=True)
class ArticleStatement:
    """What an article concluded of two rows: field is the same, or the first is better above ``above``, the top share.

    says: "same" or "better above".
    """

    key: str
    rows: tuple[str, str]
    field: str
    says: str
    above: ArticleFigure | None = None
    top_share: ArticleFigure | None = None


@dataclass(frozen=True)
class Article:
    """name: of its file. about: what was measured, and what there is to know of its numbers.

    threshold: the percentile that the article judges by, as a share; it may be gone from the rows.
    """

    name: str
    title: str
    source: str
    about: str
    rows: tuple[ArticleRow, ...]
    statements: tuple[ArticleStatement, ...] = ()
    threshold: ArticleFigure | None = None

    def row(self, key: str) -> ArticleRow | None:
        """The row with this key, None if there is none."""
        return next((row for row in self.rows if row.key == key), None)


# The figures of a whole row by name, for tables that put a run beside the article.
#
# A row with one thread or field has its figures as they are. With several, each has its name in front ("top.max"),
# and
# threads of one kind also stand together: the smallest, the largest, the mean of all values and their number. Fields
# of
# the same activations have their number in common.


def row_figures(several: tuple[ArticleNumbers, ...]) -> dict[str, ArticleFigure]:
    """Of all numbers of a row."""
    if len(several) == 1:
        return dict(several[0].figures)
    named = {f"{each.name}.{key}": figure for each in several for key, figure in each.figures.items()}
    threads = len({each.kind for each in several}) == 1 and all(each.name.startswith("thread ") for each in several)
    return named | dict(_together(several) if threads else _in_common(several))


def _in_common(several: tuple[ArticleNumbers, ...]) -> Iterator[tuple[str, ArticleFigure]]:
    counts = [each.figures.get("count") for each in several]
    if counts and counts[0] and all(each == counts[0] for each in counts):
        yield "count", counts[0]


def _together(several: tuple[ArticleNumbers, ...]) -> Iterator[tuple[str, ArticleFigure]]:
    for key, choose in (("min", min), ("max", max)):
        found = [each.figures[key] for each in several if key in each.figures]
        if len(found) == len(several):
            yield key, _extreme(choose, found)
    counts = [each.value("count") for each in several]
    means = [each.value("mean") for each in several]
    pairs = [(count, mean) for count, mean in zip(counts, means, strict=True) if count is not None and mean is not None]
    if len(pairs) == len(several):
        total = sum(count for count, _ in pairs)
        yield "count", ArticleFigure(f"{int(total):,}", total, "count", 1)
        mean = sum(count * mean for count, mean in pairs) / total if total else 0.0
        yield "mean", ArticleFigure(f"{mean / 1000:.1f} us", mean, "ns", several[0].figures["mean"].step)


def _extreme(choose: Callable[..., ArticleFigure], found: Iterable[ArticleFigure]) -> ArticleFigure:
    return choose(found, key=lambda figure: figure.value)


VALUES = ("min", "mean", "max")
IDLE = ("none", "idle", "unloaded")


def claims(article: Article) -> tuple[ResultClaim, ...]:
    """One claim per row, in order, by the row's key."""
    return tuple(_claim(row) for row in article.rows)


def _claim(row: ArticleRow) -> ResultClaim:
    return ResultClaim(
        name=row.key,
        figures=tuple(_figures(numbers) for numbers in row.numbers),
        group=row.group,
        span=_span(row),
        loadavg=row.loadavg,
        said_idle=row.load.lower() in IDLE,
        online_count=row.cpus,
        load_line=row.load_line,
        judged=row.judged,
    )


def _figures(numbers: ArticleNumbers) -> Figures:
    largest = numbers.figures.get("max")
    below, above = (_whole(numbers.value(key)) for key in ("below", "above"))
    return Figures(
        numbers.name,
        RowKind(numbers.kind),
        period_ns=_whole(numbers.value("period")),
        count=_whole(numbers.value("count")),
        min_ns=numbers.value("min"),
        mean_ns=numbers.value("mean"),
        max_ns=numbers.value("max"),
        deviation_ns=numbers.value("deviation"),
        step_ns=_step(numbers),
        at_least=largest is not None and largest.at_least,
        low_ns=numbers.value("low"),
        high_ns=numbers.value("high"),
        below=below,
        above=above,
        out_of_band=None if below is None or above is None else below + above,
    )


def _step(numbers: ArticleNumbers) -> int:
    """Of the mean where there is one, because it is held against the others."""
    steps = [numbers.figures[key].step for key in VALUES if key in numbers.figures]
    mean = numbers.figures.get("mean")
    return int(mean.step if mean else max(steps, default=0))


def _span(row: ArticleRow) -> Span | None:
    """What was asked for to the second is exact. A printed duration was cut or rounded behind its last digit."""
    if row.asked is not None:
        return exact_span(int(row.asked.value))
    if row.duration is None or row.duration.at_least:
        return None
    printed, step = int(row.duration.value), int(row.duration.step)
    return Span(printed, printed - step // 2, printed + step)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
