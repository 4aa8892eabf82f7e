# SPDX-License-Identifier: Apache-2.0
"""Whether activations above a level come alone or in bursts, from the record's counts of each second."""

from dataclasses import dataclass

from rtproof.analysis.fields import judged
from rtproof.analysis.model import Analysis, Summary
from rtproof.analysis.persecond import SECOND_NS
from rtproof.record import Level, Series


@dataclass(frozen=True)
class Clusters:
    """What is above one level of one thread, of ``seconds`` whole or partial seconds that count.

    ran, missed: activations above it. hit: seconds that have any that ran. size: ran of each of those, on average, None
    without any. dispersion: variance of the counts of all seconds over their mean, 1 if each activation is above the
    level by chance alone (the index of dispersion; Cox and Lewis 1966); None with fewer than two counted.
    """

    series: Series
    level: Level
    seconds: int
    ran: int
    missed: int
    hit: int
    size: float | None
    dispersion: float | None


def clusters(analysis: Analysis) -> tuple[Clusters, ...]:
    """Of every level of every thread that the record has."""
    levels, wanted = analysis.record.levels, {series.id for series in judged(analysis.record)}
    summaries = [summary for summary in analysis.summaries if summary.series.id in wanted]
    return tuple(_of(summary, level) for summary in summaries for level in levels.get(summary.series.id, ()))


def _of(summary: Summary, level: Level) -> Clusters:
    known = summary.seconds.second
    seconds = int((known >= level.since_ns // SECOND_NS).sum())
    counts = [int(count) for count in level.ran if count]
    total, squares = sum(counts), sum(count * count for count in counts)
    dispersion = None
    if total > 1 and seconds > 1:
        mean = total / seconds
        dispersion = (squares - seconds * mean * mean) / (seconds - 1) / mean
    return Clusters(
        series=summary.series,
        level=level,
        seconds=seconds,
        ran=total,
        missed=int(level.missed.sum()),
        hit=len(counts),
        size=total / len(counts) if counts else None,
        dispersion=dispersion,
    )
