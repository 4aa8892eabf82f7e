# SPDX-License-Identifier: Apache-2.0
"""An article's published numbers as frozen data, and its rows as claims to object to. Times are in nanoseconds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from rtproof.judge.doubts.result_row import (
    Figures,
    ResultBins,
    ResultClaim,
    RowKind,
    ShareAtMost,
    Span,
    counts_in_bins,
    exact_span,
)

SAME, BETTER_ABOVE, BELOW, NOT_BELOW = "same", "better above", "below", "not below"
"""What a conclusion can say."""


PREEMPTIONS = ("none", "voluntary", "full", "lazy", "rt", "plain", "core", "")
"""What a row can say of its kernel. plain: any model but PREEMPT_RT; core: a co-kernel beside Linux; "": nothing."""


@dataclass(frozen=True)
class ArticleFigure:
    """A number that an article printed.

    text: the number as printed. value: the same in ``unit``, which is ns, count or %; with % the value is a share of 1.
    step: one unit of the last printed digit, in ``unit``. at_least: the article gives a lower bound only.
    """

    text: str
    value: int | float
    unit: str
    step: int | float = 0
    at_least: bool = False


class ArticleNumbers(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of one thread or field, by name. ``article_file.FIGURES`` has the names.

    percentiles, curve: pairs of a share and a value; in a curve, the share was read at the value. bin_counts: the
    values in each bin, from bin_start on.
    """

    name: str
    figures: dict[str, ArticleFigure]
    kind: RowKind = RowKind.LATENCY
    percentiles: tuple[tuple[ArticleFigure, ArticleFigure], ...] = ()
    curve: tuple[tuple[ArticleFigure, ArticleFigure], ...] = ()
    bin_counts: tuple[int, ...] = ()

    def value(self, name: str) -> float | None:
        figure = self.figures.get(name)
        return figure.value if figure else None

    @property
    def named_figures(self) -> dict[str, ArticleFigure]:
        """The figures with the percentiles, which are named as printed ("p99.9")."""
        return {**self.figures, **{f"p{share.text.rstrip(' %')}": at for share, at in self.percentiles}}


class ArticleRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One run that an article describes. Where the article says nothing, a text is empty and a number is None.

    preemption: the kernel's preemption model, one of PREEMPTIONS.
    section: heading in the article. method_claimed: the method that the options choose according to the article;
    method: the method that they really choose. duration: the length of the run as printed; asked: the length that the
    command asked for, exact to the second. load: the article's description of the load; load_line: its shell line.
    cpus: the number of CPUs of the board. group: rows of one group are compared with each other. judged: the article
    calls the result good. varies: the conditions in which the article varies the rows of the group on purpose. stopped:
    the loop stopped. caveats: what the article itself says against the row.
    """

    key: str
    label: str
    section: str
    board: str
    kernel: str
    load: str = ""
    preemption: str = ""
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
    varies: tuple[str, ...] = ()
    stopped: bool = False
    caveats: tuple[str, ...] = ()
    numbers: tuple[ArticleNumbers, ...] = ()
    figures: dict[str, ArticleFigure] = {}


class ArticleStatement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conclusion that an article draws from rows about the values of ``field``.

    says: of two rows "same", or "better above": the first row is better for values above ``above``, which are
    ``top_share`` of all. Of any rows "below" or "not below": whether all values of each stay below ``limit``.
    """

    key: str
    rows: tuple[str, ...]
    field: str
    says: str
    above: ArticleFigure | None = None
    top_share: ArticleFigure | None = None
    limit: ArticleFigure | None = None


@dataclass(frozen=True)
class Article:
    """One article with its rows and its conclusions.

    name: name of its file without the ending. about: what the article measured and how to read its numbers.
    threshold: the percentile that the article judges by, as a share. The rows need not contain that percentile.
    threshold_note: what a reader has to know of the article's own thresholds.
    """

    name: str
    title: str
    source: str
    about: str
    rows: tuple[ArticleRow, ...]
    statements: tuple[ArticleStatement, ...] = ()
    threshold: ArticleFigure | None = None
    threshold_note: str = ""

    def row(self, key: str) -> ArticleRow | None:
        """The row with this key, or None."""
        return next((row for row in self.rows if row.key == key), None)


# The next functions make the figures of a whole row by name, for tables that compare a run with the article.


def row_figures(several: tuple[ArticleNumbers, ...]) -> dict[str, ArticleFigure]:
    """The figures of a row by name, made from the numbers of its threads or fields.

    One thread or field keeps its names. With several, the name of the thread or field stands in front ("top.max").
    Threads of one kind also get figures for all of them: smallest, largest and number of values. Fields of the
    same activations get one common number of values.
    """
    if len(several) == 1:
        return several[0].named_figures
    named = {f"{each.name}.{key}": figure for each in several for key, figure in each.named_figures.items()}
    if len({each.kind for each in several}) == 1 and all(each.name.startswith("thread ") for each in several):
        return named | dict(_together(several))
    counts = [each.figures.get("count") for each in several]
    return named | ({"count": counts[0]} if counts and counts[0] and counts == counts[:1] * len(counts) else {})


def _together(several: tuple[ArticleNumbers, ...]) -> Iterator[tuple[str, ArticleFigure]]:
    """Yield the smallest and the largest value, and the number of values, as far as all threads have them."""
    for key, choose in (("min", min), ("max", max)):
        found = {each.figures[key].value: each.figures[key] for each in several if key in each.figures}
        if all(key in each.figures for each in several):
            yield key, found[choose(found)]
    counts = [each.value("count") for each in several]
    if None not in counts:
        total = int(sum(count or 0 for count in counts))
        yield "count", ArticleFigure(f"{total:,}", total, "count", 1)


VALUES = ("min", "mean", "max", "deviation")
IDLE = ("none", "idle", "unloaded")


AS_TOLD = (
    *("group", "loadavg", "load_line", "judged", "load", "policy", "priority", "method", "method_claimed"),
    *("command", "varies"),
)
"""Attributes that a row and the claim made of it have in common."""


def claims(article: Article) -> tuple[ResultClaim, ...]:
    """One claim per row, in order, by the row's key."""
    found = []
    for row in article.rows:
        own = [each for each in article.statements if row.key in each.rows and each.limit]
        figures = tuple(_figures(each, [said for said in own if said.field == each.name]) for each in row.numbers)
        told: dict[str, Any] = {name: getattr(row, name) for name in AS_TOLD}
        said_idle = row.load.lower() in IDLE
        claim = ResultClaim(row.key, figures, span=_span(row), said_idle=said_idle, online_count=row.cpus, **told)
        found.append(claim)
    return tuple(found)


def _figures(numbers: ArticleNumbers, statements: Sequence[ArticleStatement]) -> Figures:
    below, beyond = (
        [each.limit.value for each in statements if each.limit and each.says == says] for says in (BELOW, NOT_BELOW)
    )
    value, figures, bins = numbers.value, numbers.figures, _bins(numbers)
    short, long, overflow = (_whole(value(key)) for key in ("below", "above", "overflow"))
    times: dict[str, Any] = {f"{key}_ns": value(key) for key in (*VALUES, "low", "high")}
    # The precision of the row is that of the mean if there is one, otherwise the coarsest of its values.
    steps = {key: figures[key].step for key in VALUES if key in figures}
    return Figures(
        numbers.name,
        numbers.kind,
        period_ns=_whole(value("period")),
        count=_whole(value("count")),
        step_ns=int(steps.get("mean", max(steps.values(), default=0))),
        at_least="max" in figures and figures["max"].at_least,
        below=short,
        above=long,
        out_of_band=None if short is None or long is None else short + long,
        percentiles=tuple(ShareAtMost(share.value, at.value, 0.0, at.step) for share, at in numbers.percentiles),
        curve=tuple(ShareAtMost(share.value, at.value, share.step, 0.0) for share, at in numbers.curve),
        bins=bins,
        counts=counts_in_bins(bins, numbers.bin_counts) if bins else None,
        beyond=overflow or 0,
        beyond_from_ns=bins.end_ns if bins else None,
        steps=steps,
        said_below_ns=min(below, default=None),
        said_beyond_ns=max(beyond, default=None),
        **times,
    )


def _bins(numbers: ArticleNumbers) -> ResultBins | None:
    """The histogram, None if the article tells nothing of it."""
    if not any(key.startswith("bin") for key in numbers.figures) and not numbers.bin_counts:
        return None
    share = numbers.figures.get("bin_share")
    return ResultBins(
        start_ns=numbers.value("bin_start") or 0.0,
        width_ns=numbers.value("bin_width"),
        number=len(numbers.bin_counts) or _whole(numbers.value("bins")),
        full_from_ns=numbers.value("bin_from"),
        full_to_ns=numbers.value("bin_to"),
        full_share=share.value if share else None,
        share_step=share.step if share else 0.0,
    )


def _span(row: ArticleRow) -> Span | None:
    """The length of the run, None if unknown.

    A length that the command asked for is exact. A printed length was cut or rounded after its last digit.
    """
    if row.asked is not None:
        return exact_span(int(row.asked.value))
    if row.duration is None or row.duration.at_least:
        return None
    printed, step = int(row.duration.value), int(row.duration.step)
    return Span(printed, printed - step // 2, printed + step)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
