# SPDX-License-Identifier: Apache-2.0
"""What the sections on stages and loops share: rows of numbers in one unit, and the plot of loop times."""

from collections.abc import Iterator, Mapping, Sequence

from rtproof.core.phrases import value
from rtproof.judge.analysis_model import Analysis
from rtproof.record.contents import Record
from rtproof.report import number_format
from rtproof.report.blocks import Curve, Plot
from rtproof.report.number_format import US
from rtproof.summary import loops
from rtproof.summary.counts import Counts
from rtproof.summary.loops import MOST_POINTS, DrawnPoints, Envelope
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Moments

SHARES = (0.99, 0.99999)
HEADINGS = ("n", *number_format.unit_headings(number_format.US, "min", "avg", "p99", "p99.999", "max"))
ANSWERS = {"edge", "output", "answer", "response"}
"""Fields that only answers have: the edge that began the answer, the output that ended it, or the whole."""
ENDS = ("n", *number_format.unit_headings(number_format.US, "min", "avg", "max"))


def is_response(analysis: Analysis) -> bool:
    """Whether the run measured answers to events from outside, judged by the names of its fields."""
    return bool(ANSWERS & {stage.series.field for stage in analysis.stages})


def stage_numbers(counts: Counts, moments: Moments) -> tuple[str, ...]:
    """The cells of a row under HEADINGS. A percentile is unknown if there are too few values for it."""
    n, least, mean, most = stage_ends(moments)
    shares = [quantile(counts, share, ends=moments).value for share in SHARES]
    return (n, least, mean, *map(number_format.US.show, shares), most)


def stage_ends(moments: Moments) -> tuple[str, str, str, str]:
    """The cells of a row under ENDS. Without a value, smallest and largest are unknown, not 0."""
    least, most = (moments.min, moments.max) if moments.count else (None, None)
    show = number_format.US.show
    return number_format.count_text(moments.count), show(least), show(moments.mean), show(most)


TITLE = "Overall loop time"


def loop_time_plots(record: Record, lengths: Mapping[int, int]) -> dict[int, DrawnPoints]:
    """The loop times to draw, by thread. lengths: by thread, one more than the index of its last loop."""
    envelopes = {thread: Envelope(length, MOST_POINTS) for thread, length in lengths.items()}
    for piece in loops.application_loops(record):
        if piece.thread in envelopes:
            envelopes[piece.thread].add(piece.index[piece.followed], piece.loop_ns[piece.followed])
    found = {thread: envelope.result() for thread, envelope in envelopes.items()}
    return {thread: each for thread, each in found.items() if each.at.size}


def loop_time_plot(named: Sequence[tuple[str, DrawnPoints]], title: str = TITLE, more: str = "") -> Plot | None:
    """One plot of all the loop times; None without a loop.

    The curves that vary most are drawn first, so that the others lie over them. more: a sentence to add to ``says``.
    """
    some = sorted(named, key=lambda each: int(each[1].low.min()) - int(each[1].high.max()))
    if not some:
        return None
    width = max(each.width for _, each in some)
    least, most = min(int(each.low.min()) for _, each in some), max(int(each.high.max()) for _, each in some)
    what = (
        "The time from the top of each loop to the next."
        if width == 1
        else f"The shortest and the longest of each {width:,} loops."
    )
    ends = [f"{name}: {value(int(each.low.min()))} to {value(int(each.high.max()))}." for name, each in named]
    says = " ".join(filter(None, (what, *ends, more)))
    curves = tuple(curve for name, each in some for curve in _curves(name, each))
    return Plot(title, says, "loop", f"loop time [{US.name}]", curves, y_ends=_ends(least, most))


def _ends(least: int, most: int) -> tuple[float, float]:
    """The range of the y axis. Loops differ little compared with their length, so the axis does not begin at 0."""
    room = max((most - least) / 20, 1)
    return US.scale(least - room), US.scale(most + room)


def _curves(name: str, each: DrawnPoints) -> Iterator[Curve]:
    x = tuple(map(float, each.at))
    for ending, ys in (("", each.high),) if each.width == 1 else ((" longest", each.high), (" shortest", each.low)):
        yield Curve(f"{name}{ending}", x, tuple(US.scale(y) for y in ys.tolist()))
