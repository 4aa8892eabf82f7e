# SPDX-License-Identifier: Apache-2.0
"""What the sections on stages have in common: which runs they speak of, and a row of numbers in microseconds."""

from rtproof.analysis.counts import Counts
from rtproof.analysis.model import Analysis, Moments
from rtproof.analysis.quantiles import quantile
from rtproof.report import figures

SHARES = (0.99, 0.99999)
HEADINGS = ("n", *figures.headings(figures.US, "min", "avg", "p99", "p99.999", "max"))
ANSWERS = {"edge", "output", "answer", "response"}
"""Values that only an answer has: the edge that began it, the output that ended it, or the whole."""
ENDS = ("n", *figures.headings(figures.US, "min", "avg", "max"))


def is_response(analysis: Analysis) -> bool:
    """Whether the run measured answers to events from outside, which the names of its values tell."""
    return bool(ANSWERS & {stage.series.field for stage in analysis.stages})


def numbers(counts: Counts, moments: Moments) -> tuple[str, ...]:
    """Under HEADINGS; unknown where n does not carry a percentile."""
    n, least, mean, most = ends(moments)
    shares = [quantile(counts, share, ends=moments).value for share in SHARES]
    return (n, least, mean, *map(figures.US.show, shares), most)


def ends(moments: Moments) -> tuple[str, str, str, str]:
    """Under ENDS; the smallest and largest of nothing are unknown, not 0."""
    least, most = (moments.min, moments.max) if moments.count else (None, None)
    show = figures.US.show
    return figures.count(moments.count), show(least), show(moments.mean), show(most)
