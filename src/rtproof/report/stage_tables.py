# SPDX-License-Identifier: Apache-2.0
"""What the sections on stages and loops share: rows of numbers in one unit, and the plots of loops."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rtproof.core.phrases import duration, value
from rtproof.record.contents import Int64Array, Record
from rtproof.report import number_format
from rtproof.report.blocks import Curve, Marker, Plot
from rtproof.report.number_format import MS, US, PrintedUnit
from rtproof.summary import loops
from rtproof.summary.counts import Counts, DominantBin, dominant_bin
from rtproof.summary.loops import MOST_POINTS, Envelope, Loops
from rtproof.summary.quantiles import quantile
from rtproof.summary.summary_model import Cycles, Moments, Summary

SHARES = (0.5, 0.99, 0.999, 0.99999)


def headings(unit: PrintedUnit = US) -> tuple[str, ...]:
    """The headings of ``stage_numbers``."""
    return ("n", *number_format.unit_headings(unit, "min", "avg", "median", "p99", "p99.9", "p99.999", "max"))


HEADINGS = headings()
ENDS = ("n", *number_format.unit_headings(number_format.US, "min", "avg", "max"))


def stage_numbers(counts: Counts, moments: Moments, unit: PrintedUnit = US) -> tuple[str, ...]:
    """The cells of a row under ``headings``. A percentile is unknown if there are too few values for it."""
    n, least, mean, most = stage_ends(moments, unit)
    shares = [quantile(counts, share, ends=moments).value for share in SHARES]
    return (n, least, mean, *map(unit.show, shares), most)


def stage_ends(moments: Moments, unit: PrintedUnit = US) -> tuple[str, str, str, str]:
    """The cells of a row under ENDS. Without a value, smallest and largest are unknown, not 0."""
    least, most = (moments.min, moments.max) if moments.count else (None, None)
    show = unit.show
    return number_format.count_text(moments.count), show(least), show(moments.mean), show(most)


@dataclass(frozen=True)
class ContextSwitch:
    """The time from the interrupt to the task, in nanoseconds. interrupt, task: the fullest bin of each."""

    interrupt: DominantBin
    task: DominantBin

    @property
    def least(self) -> int:
        """It lasts at least this long."""
        return max(self.task.start - self.interrupt.end, 0)

    @property
    def most(self) -> int:
        """It lasts at most this long."""
        return self.task.end - self.interrupt.start

    @property
    def n(self) -> int:
        return min(self.interrupt.total, self.task.total)

    @property
    def range_us(self) -> str:
        """The bounds in us as text."""
        return f"{exact_us(self.least)} to {exact_us(self.most)}"


def context_switch(interrupt: Summary, task: Summary, interrupt_bin_ns: int, task_bin_ns: int) -> ContextSwitch | None:
    """Return the context switch by bins of these widths; None without values."""
    early = dominant_bin(interrupt.observed_counts, interrupt_bin_ns)
    late = dominant_bin(task.observed_counts, task_bin_ns)
    return ContextSwitch(early, late) if early and late else None


def bin_text(found: DominantBin) -> str:
    """The ends of a bin in us."""
    return f"{exact_us(found.start)} to {exact_us(found.end)}"


def exact_us(ns: int) -> str:
    return f"{ns / US.ns:g}"


LoopTime = tuple[str, str, str, Callable[[Loops], tuple[Int64Array, Int64Array]]]
"""One of the times of a loop: title, what it shows, its name on the axis, and the loops' numbers and times in ns."""
LOOP_TIMES: tuple[LoopTime, ...] = (
    (
        "Overall loop time",
        "The time from the top of each loop to the next.",
        "loop time",
        lambda piece: (piece.index[piece.followed], piece.loop_ns[piece.followed]),
    ),
    (
        "Top of loop timing error",
        "How late the top of each loop was.",
        "lateness of the top",
        lambda piece: (piece.index, piece.error_ns),
    ),
    ("Work duration", "How long the work of each loop took.", "work", lambda piece: (piece.index, piece.work_ns)),
)
"""As the article on simple-rt-app plots them."""
LoopPoints = tuple[Envelope | None, ...]
"""The points to draw for each of LOOP_TIMES; None without a loop."""


def loop_points(record: Record, lengths: Mapping[int, int]) -> dict[int, LoopPoints]:
    """The loops to draw, by thread. lengths: by thread, one more than the index of its last loop."""
    envelopes = {thread: [Envelope(length, MOST_POINTS) for _ in LOOP_TIMES] for thread, length in lengths.items()}
    for piece in loops.application_loops(record):
        for (*_, take), envelope in zip(LOOP_TIMES, envelopes.get(piece.thread, []), strict=False):
            envelope.add(*take(piece))
    return {thread: tuple(each if each.points[0].size else None for each in some) for thread, some in envelopes.items()}


def loop_plots(named: Sequence[tuple[str, LoopPoints]], of: str = "", more: str = "") -> list[Plot]:
    """A plot for each of LOOP_TIMES, without those that have no point. named: names of curves, with their points.

    of: what is added to each title. more: a sentence to add to each ``says``.
    """
    parted = [[(name, each) for name, points in named if (each := points[at])] for at in range(len(LOOP_TIMES))]
    return [
        replace(_lengths_plot(f"{title}{of}", says, curves, more), y_label=f"{axis} [{US.name}]")
        for (title, says, axis, _), curves in zip(LOOP_TIMES, parted, strict=True)
        if curves
    ]


def _lengths_plot(
    title: str, says: str, named: Sequence[tuple[str, Envelope]], more: str, unit: PrintedUnit = US
) -> Plot:
    """The curves that vary most are drawn first, so that the others lie over them."""
    extremes = [(int(low.min()), int(high.max())) for _, low, high in (each.points for _, each in named)]
    order = sorted(range(len(named)), key=lambda at: extremes[at][0] - extremes[at][1])
    width = max(each.width for _, each in named)
    least, most = min(low for low, _ in extremes), max(high for _, high in extremes)
    what = says if width == 1 else f"{says} Drawn are the shortest and the longest of each {width:,} loops."
    ends = [f"{name}: {value(low)} to {value(high)}." for (name, _), (low, high) in zip(named, extremes, strict=True)]
    told = " ".join(filter(None, (what, *ends, more)))
    curves = tuple(curve for at in order for curve in _curves(*named[at], unit))
    return Plot(title, told, "loop", f"length [{unit.name}]", curves, y_ends=_ends(least, most, unit))


def cycle_plot(named: Sequence[tuple[str, Envelope]], found: Cycles) -> Plot:
    """The lengths of cycles with the band. named: names of curves, with their points; found: has the band."""
    band = f"The band is {duration(found.low_ns)} to {duration(found.high_ns)}."
    plot = _lengths_plot("Cycle length", "The time from one run of the loop to the next.", named, band, MS)
    bounds = ("shortest", found.low_ns), ("longest", found.high_ns)
    markers = tuple(Marker(f"{end} in the band", "y", MS.scale(ns)) for end, ns in bounds)
    assert plot.y_ends
    ends = min(plot.y_ends[0], 0.95 * markers[0].at), max(plot.y_ends[1], 1.05 * markers[1].at)
    return replace(plot, x_label="cycle", markers=markers, y_ends=ends, foremost=True)


def _ends(least: int, most: int, unit: PrintedUnit) -> tuple[float, float]:
    """The range of the y axis. Loops differ little compared with their length, so the axis does not begin at 0."""
    room = max((most - least) / 20, 1)
    return unit.scale(least - room), unit.scale(most + room)


def _curves(name: str, each: Envelope, unit: PrintedUnit) -> Iterator[Curve]:
    at, low, high = each.points
    x = tuple(map(float, at))
    for ending, ys in (("", high),) if each.width == 1 else ((" longest", high), (" shortest", low)):
        yield Curve(f"{name}{ending}", x, tuple(unit.scale(y) for y in ys.tolist()))
