# SPDX-License-Identifier: Apache-2.0
"""What another tool printed about one measurement: a histogram and a few figures, without the order in time."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import quantity
from rtproof.core.units import format_duration
from rtproof.record.activations import LARGEST_VALUE
from rtproof.record.contents import Int64Array, Series
from rtproof.summary.counts import NO_COUNTS, Counts, merge_counts
from rtproof.summary.summary_model import NO_MOMENTS, Doubt, Moments, Severity, Summary

BoolArray = NDArray[np.bool_]
DURATION_STATED = "the user states the duration (--measured-for)"
PERIOD_STATED = "the user states the period of all threads (--period)"
DURATION_UNUSED = "--measured-for is not used"
PERIOD_UNUSED = "--period is not used"
LINES_UNREAD = "lines-unread"
"""The doubt on lines of figures that could not be read. What they told may be the largest value."""
LARGER_ELSEWHERE = "larger-elsewhere"
"""The doubt on a larger value in an earlier place where the tool measures. The place that is taken lacks it."""


@dataclass(frozen=True, kw_only=True)
class PrintedFigures:
    """What a tool prints of the values of one thread, or of all threads; None where it does not say.

    number: that of the thread; 0 of all threads. cpu: the CPU on which the thread ran.
    count, min_ns, mean_ns, max_ns: as the tool counted them. Latencies may be negative (early).
    histogram: single samples. overflow: samples beyond the scale of the histogram. They are counted but are in no bin.
    told: the count that the tool prints beside the histogram.
    period_ns: the period, which may be longer than the shortest one of the file.
    """

    number: int = 0
    cpu: int | None = None
    count: int | None = None
    min_ns: int | None = None
    mean_ns: int | None = None
    max_ns: int | None = None
    overflow: int | None = None
    histogram: Counts | None = None
    told: int | None = None
    period_ns: int | None = None


NEVER = int(np.iinfo(np.int64).max)
"""Later than any clock shows."""


@dataclass(frozen=True)
class TimedLines:
    """What a tool printed again and again while it measured: the figures of consecutive stretches of time.

    All are arrays of equal length in the order of time, in ns. name: whose they are, "" for the whole measurement.
    start, end: of each stretch, from the beginning of the measurement, counted in periods: no stretch was shorter.
    latest: when the stretch had ended at the latest; NEVER where nothing tells. least, most: of the values in it.
    so_far: whether these are those of all stretches so far, as some tools print them.
    mean: of the values in it; None if the tool prints none of a stretch.
    """

    name: str
    start_ns: Int64Array
    end_ns: Int64Array
    latest_ns: Int64Array
    least_ns: Int64Array
    most_ns: Int64Array
    so_far: bool = False
    mean_ns: Int64Array | None = None

    @property
    def fresh(self) -> BoolArray:
        """Where the stretch itself has a value as large as its maximum."""
        if not self.so_far:
            return np.ones(self.most_ns.size, bool)
        return np.diff(self.most_ns, prepend=np.iinfo(np.int64).min) > 0


@dataclass(frozen=True)
class ImportedHistogram(PrintedFigures):
    """What a tool printed about one measurement: the figures of all threads, and what is known of the measurement.

    tool: the name of the tool. title: what it measured.
    parts: the figures of each thread; () if the tool does not tell threads apart.
    duration_ns: how long it measured, by its own account. asked_duration_ns: how long it was asked to measure.
    shortest_period_ns: no thread has a shorter period.
    overruns, mode_switches: as the tool counted them.
    scale_ns: each sample of the overflow was at least this.
    resolution_ns: the step to which each value was rounded down, the minimum and the maximum too; or up, as oslat does
    since 2.5. rounded_up: whether it was up.
    left_out: at most this many activations ran and are in no count.
    unsure: whether a bin may hold values that were in truth smaller or early.
    lossy: whether activations may have run that the tool neither measured nor counted.
    started_s: when the measurement began, in seconds since 1970.
    lines: what it printed of one stretch of time after the other, one item for each thread; () if only of the whole.
    stated: sentences on what the user states and the file does not contain.
    facts: key and value of what the tool says about the system and its own settings.
    notes: sentences on what the format cannot tell.
    faults: sentences on where the file contradicts itself.
    doubts: further reasons not to believe its figures.
    stop: a sentence if a value could end the measurement, so its length depends on the data; "" if none could.
    recorded: whether rtproof ran the tool itself, so that a record tells the conditions.
    busy_loop: whether its values are lengths that followed one another in a loop that never slept.
    """

    tool: str
    title: str
    priority: int | None = None
    duration_ns: int | None = None
    asked_duration_ns: int | None = None
    overruns: int | None = None
    mode_switches: int | None = None
    scale_ns: int | None = None
    resolution_ns: int | None = None
    rounded_up: bool = False
    parts: tuple[PrintedFigures, ...] = ()
    started_s: int | None = None
    shortest_period_ns: int | None = None
    left_out: int = 0
    unsure: bool = False
    lossy: bool = False
    lines: tuple[TimedLines, ...] = ()
    stated: tuple[str, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    stop: str = ""
    recorded: bool = False
    busy_loop: bool = False

    def with_stated(self, duration_ns: int | None, period_ns: int | None) -> "ImportedHistogram":
        """The same with what the user states about the duration and the period. What the file says itself is kept."""
        stated = list(self.stated)
        if duration_ns is not None:
            stated.append(DURATION_STATED if self.duration_ns is None else DURATION_UNUSED)
        if period_ns is not None:
            stated.append(PERIOD_STATED if self.shortest_period_ns is None else PERIOD_UNUSED)
        length_ns = duration_ns if self.duration_ns is None else self.duration_ns
        shortest_ns = period_ns if self.shortest_period_ns is None else self.shortest_period_ns
        return replace(self, stated=tuple(stated), duration_ns=length_ns, shortest_period_ns=shortest_ns)

    @property
    def troubles(self) -> tuple[Doubt, ...]:
        """Doubts about what the tool itself tells against its run."""
        overruns = f"the tool counted {quantity(self.overruns or 0, 'overrun')}"
        passed = "these periods passed before their activation, and no bin holds them"
        switches = f"the tool counted {self.mode_switches or 0:,} mode switches"
        fixed = "let it run for a time that was fixed beforehand"
        left = "its thread left the co-kernel for Linux, so it measured neither of them alone"
        longer, call = "choose a longer period", "find the call of Linux"
        return (
            *([Doubt("overruns", Severity.WARNING, overruns, longer, passed)] if self.overruns else []),
            *([Doubt("mode-switches", Severity.WARNING, switches, call, left)] if self.mode_switches else []),
            *([Doubt("ended-by-value", Severity.WARNING, self.stop, fixed)] if self.stop else []),
            *self.doubts,
        )

    @property
    def threads(self) -> tuple[PrintedFigures, ...]:
        """The figures of each thread; those of the whole file if it does not tell threads apart."""
        return self.parts or (self,)

    def period_of(self, figures: PrintedFigures) -> int | None:
        """The period of a thread: its own, or else the shortest one."""
        return figures.period_ns or self.shortest_period_ns

    @property
    def at_least_ns(self) -> int | None:
        """How long it measured at least: each activation took a period. None if a count or a period is unknown."""
        return max((each.count or 0) * (self.period_of(each) or 0) for each in self.threads) or None

    @property
    def scale_end_ns(self) -> int:
        """The smallest latency that can lie beyond the scale."""
        bins = self.histogram
        last = int(bins.hi[-1]) + 1 if bins is not None and bins.n.size else 0
        return max(self.scale_ns or 0, last)

    @property
    def largest_ns(self) -> int | None:
        """The largest value that the printed maximum may stand for."""
        return self._largest_of(self)

    def _largest_of(self, figures: PrintedFigures) -> int | None:
        step_ns = 0 if self.rounded_up else (self.resolution_ns or 1) - 1
        return None if figures.max_ns is None else figures.max_ns + step_ns

    def exceeds(self, limit_ns: int) -> bool:
        """Whether the printed maximum shows that a value was above the limit."""
        least_ns = (self.max_ns or 0) - (self.resolution_ns or 1) + 1 if self.rounded_up else self.max_ns or 0
        return self.max_ns is not None and least_ns > limit_ns

    @property
    def comparable(self) -> dict[str, str]:
        """What is known of the measurement, with the keys of ``compare.likeness``."""
        said = dict(self.facts)
        known = {
            "probe": self.tool.removesuffix(" --json"),
            "unit": "ns",
            "period": format_duration(self.period_ns) if self.period_ns else "",
            "priority": "" if self.priority is None else str(self.priority),
            "threads": str(len(self.parts)) if self.parts else "",
            "kernel release": said.get("release", ""),
            "kernel version": said.get("version", ""),
            "machine": said.get("machine", ""),
        }
        return {key: value for key, value in known.items() if value}

    def counts_of(self, figures: PrintedFigures) -> Counts:
        """The histogram, and one wide bin up to the maximum, in 63 bits, for the values beyond the scale."""
        bins = figures.histogram if figures.histogram is not None else NO_COUNTS
        if not figures.overflow:
            return bins
        start = min(self.scale_end_ns, LARGEST_VALUE)
        end = min(max(self._largest_of(figures) or start, start), LARGEST_VALUE)
        return merge_counts([bins, Counts(*(np.array([x], np.int64) for x in (start, end, figures.overflow)))])

    @property
    def summary(self) -> Summary:
        """The values of all threads. What needs time is 0 or empty in it."""
        thread = self.parts[0] if len(self.parts) == 1 else self
        return self._summary_of(self, thread, self.parts, self.shortest_period_ns)

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """The values of each thread; () if the file does not hold a histogram of every thread."""
        unlike = (
            each.histogram is None or (each.overflow is None) is not (self.overflow is None) for each in self.parts
        )
        return (
            () if any(unlike) else tuple(self._summary_of(each, each, (each,), each.period_ns) for each in self.parts)
        )

    def _summary_of(
        self, figures: PrintedFigures, thread: PrintedFigures, parts: tuple[PrintedFigures, ...], period_ns: int | None
    ) -> Summary:
        """observed.max: what the printed maximum may stand for, if the file does not contradict itself."""
        counts, observed = self.counts_of(figures), NO_MOMENTS
        if counts.total:
            largest_ns = None if self.faults else self._largest_of(figures)
            most = int(counts.hi[-1]) if largest_ns is None else largest_ns
            observed = Moments(counts.total, figures.min_ns or 0, most, (figures.mean_ns or 0) * counts.total)
        return Summary(
            series=Series(
                id=thread.number,
                thread=thread.number,
                cpu=-1 if thread.cpu is None else thread.cpu,
                on_grid=False,
                has_samples=False,
                period_ns=period_ns or 0,
                first_due_ns=0,
                probe=self.tool,
                method="",
                field="latency",
                unit="ns",
            ),
            threads=tuple(part.number for part in parts),
            observed=observed,
            observed_counts=counts,
            schedule_counts=counts,
        )
