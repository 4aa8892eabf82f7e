# SPDX-License-Identifier: Apache-2.0
"""What was above limits and learned levels, second by second: alone or in bursts."""

from rtproof.analysis.clusters import Clusters, clusters
from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import percent
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text

HEADER = (
    "thread", "CPU", "level [us]", "what it is", "seconds", "ran above", "missed above", "seconds with any",
    "in such a second", "dispersion",
)  # fmt: skip
WORDS = (
    "In such a second: how many ran above the level on average, where any did. Dispersion: variance of the counts of "
    "all seconds over their mean; 1 is what chance alone gives, more means that they come in bursts. A learned level "
    "is what the first minute of the thread left a tenth or a hundredth of a percent above; it counts from then on."
)


def render(analysis: Analysis) -> list[Block]:
    found = clusters(analysis)
    if not found:
        return []
    caption = "Activations above each level, as the agent counted them"
    numbers = tuple(column for column, head in enumerate(HEADER) if head != "what it is")
    return [Table(caption, HEADER, tuple(map(_row, found)), numbers), Text((WORDS,))]


def _row(each: Clusters) -> tuple[str, ...]:
    level = each.level
    what = f"{percent(1 - level.share)} of {figures.count(level.taught)} values" if level.learned else "limit"
    return (
        str(each.series.thread),
        str(each.series.cpu) if each.series.cpu >= 0 else "any",
        figures.US.show(level.value),
        what,
        *map(figures.count, (each.seconds, each.ran, each.missed, each.hit)),
        _ratio(each.size),
        _ratio(each.dispersion),
    )


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f}"
