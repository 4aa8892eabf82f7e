# SPDX-License-Identifier: Apache-2.0
"""Article 5's summary of a latency: the maximum, and the threshold that 99.999 % do not exceed."""

from collections.abc import Sequence

from rtproof.analysis.model import Summary
from rtproof.analysis.phrases import duration, percent
from rtproof.analysis.quantiles import quantile
from rtproof.report import figures
from rtproof.report.blocks import Table

SHARE = 0.99999
CARRIES = round(1 / (1 - SHARE))
"""So many values let one be expected above the threshold; fewer do not carry it."""
DEFINITION = (
    f"The {percent(SHARE)} threshold is the latency that {percent(SHARE)} of the values do not exceed: one of "
    f"{CARRIES:,} does, which at 100 values a second is one every 17 min. Fewer values have no such threshold."
)


def table(caption: str, named: Sequence[tuple[str, Summary]]) -> Table:
    """A row per summary. An exceedance is expected every 1 / (1 - share) values, so once per as many periods."""
    rows = tuple(
        (name, figures.count(each.observed.count), _maximum(each), _threshold(each), _often(each))
        for name, each in named
    )
    header = ("latency", "n", "maximum [us]", f"{percent(SHARE)} threshold [us]", "one value exceeds it every")
    return Table(caption, header, rows, (1, 2, 3, 4))


def _maximum(summary: Summary) -> str:
    return figures.US.show(summary.observed.max if summary.observed.count else None)


def _threshold(summary: Summary) -> str:
    found = quantile(summary.observed_counts, SHARE, ends=summary.observed)
    return f"unknown: n below {CARRIES:,}" if found.value is None else figures.US.show(found.value)


def _often(summary: Summary) -> str:
    """Of one thread; several threads together have as many more chances."""
    period = summary.series.period_ns
    return duration(CARRIES * period / max(len(summary.threads), 1)) if period else figures.UNKNOWN
