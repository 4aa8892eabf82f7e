# SPDX-License-Identifier: Apache-2.0
"""The figures of a whole row by name, for tables that put a run beside the article.

A row with one thread or field has its figures as they are. With several, each has its name in front ("top.max"), and
threads of one kind also stand together: the smallest, the largest, the mean of all values and their number. Fields of
the same activations have their number in common.
"""

from collections.abc import Callable, Iterable, Iterator

from rtproof.articles.article import Figure, Numbers


def row_figures(several: tuple[Numbers, ...]) -> dict[str, Figure]:
    """Of all numbers of a row."""
    if len(several) == 1:
        return dict(several[0].figures)
    named = {f"{each.name}.{key}": figure for each in several for key, figure in each.figures.items()}
    threads = len({each.kind for each in several}) == 1 and all(each.name.startswith("thread ") for each in several)
    return named | dict(_together(several) if threads else _in_common(several))


def _in_common(several: tuple[Numbers, ...]) -> Iterator[tuple[str, Figure]]:
    counts = [each.figures.get("count") for each in several]
    if counts and counts[0] and all(each == counts[0] for each in counts):
        yield "count", counts[0]


def _together(several: tuple[Numbers, ...]) -> Iterator[tuple[str, Figure]]:
    for key, choose in (("min", min), ("max", max)):
        found = [each.figures[key] for each in several if key in each.figures]
        if len(found) == len(several):
            yield key, _extreme(choose, found)
    counts = [each.value("count") for each in several]
    means = [each.value("mean") for each in several]
    pairs = [(count, mean) for count, mean in zip(counts, means, strict=True) if count is not None and mean is not None]
    if len(pairs) == len(several):
        total = sum(count for count, _ in pairs)
        yield "count", Figure(f"{int(total):,}", total, "count", 1)
        mean = sum(count * mean for count, mean in pairs) / total if total else 0.0
        yield "mean", Figure(f"{mean / 1000:.1f} us", mean, "ns", several[0].figures["mean"].step)


def _extreme(choose: Callable[..., Figure], found: Iterable[Figure]) -> Figure:
    return choose(found, key=lambda figure: figure.value)
