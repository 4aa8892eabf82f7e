# SPDX-License-Identifier: Apache-2.0
"""The rows of an article as claims, for the objections engine."""

from rtproof.articles.article import Article, ArticleNumbers, ArticleRow
from rtproof.judge.objections.result_row import Figures, ResultClaim, RowKind, Span, exact_span

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
