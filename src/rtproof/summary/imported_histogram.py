# SPDX-License-Identifier: Apache-2.0
"""What another tool printed about one measurement: a histogram and a few figures, without the order in time."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rtproof.core.phrases import quantity
from rtproof.core.units import format_duration
from rtproof.record.activations import LARGEST_VALUE
from rtproof.record.contents import Begin, Block, ChunkRef, Int64Array, Record, Series
from rtproof.summary.counts import NO_COUNTS, Counts, merge_counts
from rtproof.summary.per_second import NO_SECONDS, NO_TOP
from rtproof.summary.summary_model import NO_LAG, NO_MOMENTS, Doubt, Moments, Severity, Summary

BoolArray = NDArray[np.bool_]
DURATION_STATED = "the user states the duration (--measured-for)"
PERIOD_STATED = "the user states the period of all threads (--period)"
DURATION_UNUSED = "--measured-for is not used"
PERIOD_UNUSED = "--period is not used"
LINES_UNREAD = "lines-unread"
"""The doubt on lines of figures that could not be read. What they told may be the largest value."""
LARGER_ELSEWHERE = "larger-elsewhere"
"""The doubt on a larger value in an earlier place where the tool measures. The place that is taken lacks it."""


@dataclass(frozen=True)
class ImportedPart:
    """One thread of a measurement; None where the tool does not say.

    cpu: the CPU on which the thread ran.
    told: the count that the tool prints beside the histogram.
    period_ns: the thread's own period, which may be longer than the shortest.
    The other fields are those of ``ImportedHistogram``.
    """

    number: int
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
class ImportedHistogram:
    """What a tool printed about one measurement; None where it does not say. Latencies may be negative (early).

    tool: the name of the tool. title: what it measured.
    duration_ns: how long it measured, by its own account. asked_duration_ns: how long it was asked to measure.
    shortest_period_ns: no thread has a shorter period.
    count, min_ns, mean_ns, max_ns, overruns, mode_switches: as the tool counted them.
    histogram: single samples of all threads.
    overflow: samples beyond the scale of the histogram. They are counted but are in no bin.
    scale_ns: each sample of the overflow was at least this.
    resolution_ns: the step to which each value was rounded down, the minimum and the maximum too; or up, as oslat does
    since 2.5. rounded_up: whether it was up.
    left_out: at most this many activations ran and are in no count.
    unsure: whether a bin may hold values that were in truth smaller or early.
    lossy: whether activations may have run that the tool neither measured nor counted.
    parts: the threads of the measurement.
    started_s: when the measurement began, in seconds since 1970.
    lines: what it printed of one stretch of time after the other, one item for each thread; () if only of the whole.
    stated: sentences on what the user states and the file does not contain.
    facts: key and value of what the tool says about the system and its own settings.
    notes: sentences on what the format cannot tell.
    faults: sentences on where the file contradicts itself.
    doubts: further reasons not to believe its figures.
    stop: a sentence if a value could end the measurement, so its length depends on the data; "" if none could.
    recorded: whether rtproof ran the tool itself, so that a record tells the conditions.
    """

    tool: str
    title: str
    period_ns: int | None = None
    priority: int | None = None
    duration_ns: int | None = None
    asked_duration_ns: int | None = None
    count: int | None = None
    min_ns: int | None = None
    mean_ns: int | None = None
    max_ns: int | None = None
    overruns: int | None = None
    mode_switches: int | None = None
    histogram: Counts | None = None
    overflow: int | None = None
    scale_ns: int | None = None
    resolution_ns: int | None = None
    rounded_up: bool = False
    parts: tuple[ImportedPart, ...] = ()
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

    def with_stated(self, duration_ns: int | None, period_ns: int | None) -> "ImportedHistogram":
        """The same with what the user states about the duration and the period. What the file says itself is kept."""
        found = self
        if duration_ns is not None:
            tells = self.duration_ns is not None
            found = replace(found, stated=(*found.stated, DURATION_UNUSED if tells else DURATION_STATED))
            found = found if tells else replace(found, duration_ns=duration_ns)
        if period_ns is not None:
            tells = self.shortest_period_ns is not None
            found = replace(found, stated=(*found.stated, PERIOD_UNUSED if tells else PERIOD_STATED))
            found = found if tells else replace(found, shortest_period_ns=period_ns)
        return found

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
    def at_least_ns(self) -> int | None:
        """How long it measured at least: each activation took a period. None if a count or a period is unknown."""
        whole = self.parts or (ImportedPart(0, count=self.count),)
        lengths = [(part.count or 0) * (part.period_ns or self.shortest_period_ns or 0) for part in whole]
        return max(lengths) or None

    @property
    def largest_ns(self) -> int | None:
        """The largest value that the printed maximum may stand for."""
        return None if self.max_ns is None else self.max_ns + (0 if self.rounded_up else (self.resolution_ns or 1) - 1)

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


def scale_end_ns(imported: ImportedHistogram) -> int:
    """The smallest latency in nanoseconds that can lie beyond the scale."""
    bins = imported.histogram
    last = int(bins.hi[-1]) + 1 if bins is not None and bins.n.size else 0
    return max(imported.scale_ns or 0, last)


def with_overflow(imported: ImportedHistogram) -> Counts:
    """The histogram with one more wide bin up to the maximum, for the values beyond its scale.

    A maximum that lost its sign may be beyond 63 bits. The bin ends at the largest number of 63 bits then.
    """
    bins = imported.histogram if imported.histogram is not None else NO_COUNTS
    if not imported.overflow:
        return bins
    start = min(scale_end_ns(imported), LARGEST_VALUE)
    end = min(max(imported.largest_ns or start, start), LARGEST_VALUE)
    return merge_counts([bins, Counts(*(np.array([x], np.int64) for x in (start, end, imported.overflow)))])


# A file without time order in the classes of a run. What needs time is 0 or empty there and is shown nowhere:
# ``Analysis.imported`` tells these classes from those of a run.


def record_of_histogram(imported: ImportedHistogram) -> Record:
    """A record that holds nothing but the machine, as far as the tool names it."""
    facts = dict(imported.facts)
    system = (facts.get(key, "") for key in ("machine", "release", "version"))
    nothing: tuple[()] = ()
    return Record(
        *("", 0, Begin(0, 0, b"", 0, 0, "", *system), nothing, nothing, nothing, nothing, {}, {}, nothing, nothing),
        *(None, nothing, nothing, _no_blocks),
    )


def _no_blocks(_: tuple[ChunkRef, ...]) -> Iterator[Block]:
    return iter(())


def summaries_of_threads(imported: ImportedHistogram) -> tuple[Summary, ...]:
    """The values of each thread; empty if the file does not hold a histogram of every thread."""
    whole = all(
        part.histogram is not None and (part.overflow is None) is (imported.overflow is None) for part in imported.parts
    )
    return tuple(summary_of_histogram(_of_thread(imported, part)) for part in imported.parts) if whole else ()


def _of_thread(imported: ImportedHistogram, part: ImportedPart) -> ImportedHistogram:
    return replace(
        imported,
        scale_ns=scale_end_ns(imported),
        parts=(part,),
        shortest_period_ns=part.period_ns,
        **{name: getattr(part, name) for name in ("count", "min_ns", "mean_ns", "max_ns", "histogram", "overflow")},
    )


def summary_of_histogram(imported: ImportedHistogram) -> Summary:
    """The values of all threads together.

    observed.max: the largest value that the printed maximum may stand for, if the file does not contradict itself. The
    squares are unknown.
    """
    counts, parts = with_overflow(imported), imported.parts
    thread, cpu = (parts[0].number, parts[0].cpu) if len(parts) == 1 else (0, None)
    grid, period_ns = (False, False), imported.shortest_period_ns or 0
    series = Series(thread, thread, -1 if cpu is None else cpu, *grid, period_ns, 0, imported.tool, "", "latency", "ns")
    observed, total = NO_MOMENTS, counts.total
    if total:
        largest_ns = None if imported.faults else imported.largest_ns
        most = int(counts.hi[-1]) if largest_ns is None else largest_ns
        observed = Moments(total, imported.min_ns or 0, most, (imported.mean_ns or 0) * total)
    threads = tuple(part.number for part in parts)
    return Summary(
        *(series, threads, 0, 0, 0, 0, observed, NO_MOMENTS, counts, counts, NO_LAG, NO_SECONDS, NO_TOP), exact=False
    )
