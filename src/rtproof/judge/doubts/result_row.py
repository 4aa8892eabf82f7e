# SPDX-License-Identifier: Apache-2.0
"""One result row, published or measured, as the rules see it. A figure that the row does not have is None."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

import msgspec
import numpy as np

from rtproof.core.phrases import quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.doubts.case import cpu_count, sentence_list
from rtproof.record.contents import EndReason, Moment, Record
from rtproof.summary import recorded_facts
from rtproof.summary.counts import Counts
from rtproof.summary.imported_histogram import ImportedHistogram, PrintedFigures
from rtproof.summary.recorded_facts import IMPORTED_EVENT, requested_duration_ns
from rtproof.summary.summary_model import Cycles, Doubt, Summary


class RowKind(Enum):
    """What the values of a row are.

    LATENCY: how late something ran after its due time. LENGTH: how long cycles or work lasted. TOP, LOOP: how late a
    loop began, and how long it lasted (article 3). RESPONSE: how long after an event the answer came. None longer than
    the period can be seen, because the next event comes first.
    """

    LATENCY = "latency"
    LENGTH = "length"
    TOP = "top"
    LOOP = "loop"
    RESPONSE = "response"


@dataclass(frozen=True)
class ShareAtMost:
    """A share of the values that are at most ``value_ns``: a percentile, or a point of a cumulative curve.

    share_step: the unit of the share's last printed digit, 0 if the share was chosen and so is exact.
    value_step_ns: the unit of the last printed digit of the value.
    """

    share: float
    value_ns: float
    share_step: float = 0.0
    value_step_ns: float = 0.0


@dataclass(frozen=True)
class ResultBins:
    """The scale of a histogram as a row tells it, and its fullest bin.

    Every bin is ``width_ns`` wide, and the first begins at ``start_ns``. number: how many bins there are. full_from_ns,
    full_to_ns: the ends of the fullest bin. full_share: at least this share of all values lies in it. share_step: the
    unit of the last printed digit of that share.
    """

    start_ns: float = 0.0
    width_ns: float | None = None
    number: int | None = None
    full_from_ns: float | None = None
    full_to_ns: float | None = None
    full_share: float | None = None
    share_step: float = 0.0

    @property
    def end_ns(self) -> float | None:
        """Where the last bin ends; None if the row does not say."""
        if self.width_ns is None or self.number is None:
            return None
        return self.start_ns + self.width_ns * self.number


def counts_in_bins(bins: ResultBins, told: Sequence[int]) -> Counts | None:
    """The counts of bins of one width, in order; None if the row does not tell them or the width."""
    if bins.width_ns is None or not told:
        return None
    n = np.array(told, np.int64)
    edges = np.rint(bins.start_ns + bins.width_ns * np.arange(n.size + 1)).astype(np.int64)
    return Counts(edges[:-1][n > 0], edges[1:][n > 0] - 1, n[n > 0])


@dataclass(frozen=True)
class Figures:
    """The figures of one stream of values in a row: of a thread, or of one of several fields.

    step_ns: the unit of the last printed digit, 0 if the figures are exact. steps: the same for single figures, by the
    names min, mean, max and deviation, where it is another. low_ns, high_ns: the band in which values
    should lie. below, above, out_of_band: how many values lie outside of it. counts: the
    histogram, with bins of any widths. beyond: how many values are in no bin; None: unknown. beyond_from_ns: they are
    not smaller; None: unknown, as of lost values.
    lattice_ns: the common step of all values. at_least: the largest value was cut off, so max_ns is a lower bound.
    loops: so many loops ran at the same time. percentiles, curve: shares of the values. bins: the histogram.
    said_below_ns: all values stay below it, as the author concludes; said_beyond_ns: not all do.
    """

    name: str
    kind: RowKind = RowKind.LATENCY
    period_ns: int | None = None
    count: int | None = None
    min_ns: float | None = None
    mean_ns: float | None = None
    max_ns: float | None = None
    deviation_ns: float | None = None
    step_ns: int = 0
    at_least: bool = False
    low_ns: float | None = None
    high_ns: float | None = None
    below: int | None = None
    above: int | None = None
    out_of_band: int | None = None
    counts: Counts | None = None
    beyond: int | None = 0
    beyond_from_ns: float | None = None
    lattice_ns: int | None = None
    loops: int = 1
    percentiles: tuple[ShareAtMost, ...] = ()
    curve: tuple[ShareAtMost, ...] = ()
    bins: ResultBins | None = None
    steps: Mapping[str, float] = field(default_factory=dict)
    said_below_ns: float | None = None
    said_beyond_ns: float | None = None

    def step(self, name: str) -> float:
        """The possible error in ns of the minimum, mean, maximum or deviation."""
        return self.steps.get(name, self.step_ns)


@dataclass(frozen=True)
class Span:
    """The length of a run as the row states it, and the shortest and the longest length that this statement allows."""

    told_ns: int
    shortest_ns: int
    longest_ns: int


def exact_span(length_ns: int) -> Span:
    """The span of a length that is known exactly."""
    return Span(length_ns, length_ns, length_ns)


class RowConditions(msgspec.Struct, frozen=True, kw_only=True):
    """How a row was measured, as its author told it.

    group: rows of the same group are compared with each other; "" is no group. load_line: the shell line that should
    make the load. loadavg: the load averages at the end. judged: a conclusion was drawn from the row beyond its own
    samples. method: the method that the options really choose; method_claimed: the one that the author names. varies:
    the conditions in which the rows of the group differ on purpose, because they are what is compared.
    """

    load: str = ""
    command: str = ""
    method: str = ""
    method_claimed: str = ""
    policy: str = ""
    priority: int | None = None
    loadavg: tuple[float, ...] = ()
    load_line: str = ""
    group: str = ""
    judged: bool = False
    varies: tuple[str, ...] = ()


class ResultClaim(RowConditions, frozen=True):
    """A row and the circumstances that were published or recorded with it.

    loads: the work per second of each load by its name; None if nobody counted it. said_idle: the author says that
    nothing disturbed the run. loadavg_before: the load averages at the start. online_count: the number of CPUs of the
    machine. doubts: those about a measured run.
    """

    name: str
    figures: tuple[Figures, ...] = ()
    measured: bool = False
    span: Span | None = None
    loadavg_before: tuple[float, ...] = ()
    said_idle: bool = False
    loads: Mapping[str, float | None] = msgspec.field(default_factory=dict)
    online_count: int | None = None
    doubts: tuple[Doubt, ...] = ()


RowRule = Callable[[Sequence[ResultClaim]], Iterable[Doubt]]


def counted(claim: ResultClaim) -> Iterator[tuple[Figures, int, tuple[int, int, int]]]:
    """The figures of latencies with their count, and how many were due: as the length is told, at least, at most.

    Figures that lack one of these are left out.
    """
    for each in claim.figures:
        if claim.span and each.period_ns and each.count is not None and each.kind is RowKind.LATENCY:
            span, period = claim.span, each.period_ns
            yield each, each.count, (span.told_ns // period, span.shortest_ns // period, -(-span.longest_ns // period))


def of_each(doubt: Doubt, find: Callable[[ResultClaim, Figures], Iterable[str]]) -> RowRule:
    """A rule on rows one by one. find: what is wrong with the figures of a thread or field of a row."""

    def rule(claims: Sequence[ResultClaim]) -> Iterable[Doubt]:
        for claim in claims:
            yield from of_parts(doubt, claim, ((each, says) for each in claim.figures for says in find(claim, each)))

    return rule


def of_parts(doubt: Doubt, claim: ResultClaim, found: Iterable[tuple[Figures, str]]) -> Iterator[Doubt]:
    """The doubt about a row, with what was found in its threads or fields as its detail; none if nothing was found.

    Without a fact of its own, it says how many figures contradict others.
    """
    several = len(claim.figures) > 1
    says = [f"{each.name}: {detail}" if several else detail for each, detail in found]
    if says:
        what = doubt.what or contradictions(len(says))
        yield replace(doubt, what=what, detail=sentence_list(says), rows=(claim.name,))


def shown(ns: float) -> str:
    """A figure in a sentence."""
    return value(round(ns))


def contradictions(count: int) -> str:
    return f"its figures have {quantity(count, 'contradiction')}"


LOADAVG = "/proc/loadavg"
ONLINE = "/sys/devices/system/cpu/online"
LOAD = "load."
FEWEST = 20
"""A lattice needs this many different values. So many values have no common step by chance."""


def claim_of(analysis: Analysis, name: str, group: str = "", *, said_idle: bool = False) -> ResultClaim:
    """A row with this name of a run. said_idle: the user says that nothing should disturb it."""
    if analysis.imported:
        return row_of_import(analysis.imported, name, group, analysis.doubts)
    record = analysis.record
    row = row_of_run(record, analysis.summaries, analysis.pooled, analysis.cycles, analysis.doubts)
    idle = said_idle and not any(counter.name.startswith(LOAD) for counter in record.counters)
    return msgspec.structs.replace(row, name=name, group=group, said_idle=idle)


def row_of_run(
    record: Record, summaries: Sequence[Summary], together: Summary, cycles: Cycles | None, doubts: tuple[Doubt, ...]
) -> ResultClaim:
    """The figures of a run. summaries: of each thread. together: of all of them. cycles: those of a loop."""
    return ResultClaim(
        "this run",
        (*(_figures(summary) for summary in summaries), *_cycles(cycles)),
        measured=True,
        span=_span(record, summaries, together),
        loadavg=_loadavg(record, Moment.END),
        loadavg_before=_loadavg(record, Moment.START),
        loads=dict(_loads(record)),
        online_count=cpu_count(recorded_facts.file_line(record, ONLINE)),
        doubts=doubts,
    )


WHOLE_SECONDS_NS = 1_000_000_000
"""Other tools tell how long they measured in whole seconds."""


def row_of_import(
    imported: ImportedHistogram, name: str, group: str = "", doubts: tuple[Doubt, ...] = ()
) -> ResultClaim:
    """A row of what another tool printed: the author told it, and nothing of it was measured here."""
    said, told_ns = dict(imported.facts), imported.duration_ns
    span = Span(told_ns, max(told_ns - WHOLE_SECONDS_NS, 0), told_ns + WHOLE_SECONDS_NS) if told_ns else None
    return ResultClaim(
        name,
        tuple(_figures_of_import(imported, each) for each in imported.threads),
        group=group,
        span=span,
        loadavg=_numbers(said.get("load average", "").split()),
        doubts=doubts,
        policy=said.get("policy", ""),
        priority=imported.priority,
        command=said.get("command", ""),
    )


def _figures_of_import(imported: ImportedHistogram, each: PrintedFigures) -> Figures:
    """The figures of a thread, or of the whole file if it does not tell threads apart."""
    count = each.told or each.count
    return Figures(
        f"thread {each.number}" if imported.parts else "all threads",
        RowKind.LENGTH if imported.busy_loop else RowKind.LATENCY,
        period_ns=imported.period_of(each),
        count=count,
        min_ns=each.min_ns if count != 0 else None,
        mean_ns=each.mean_ns if count != 0 else None,
        max_ns=each.max_ns,
        step_ns=imported.resolution_ns or 0,
        # Ends that are rounded down like the values are on the lower end of the bin that holds them.
        steps={} if imported.rounded_up else {"min": 0, "max": 0},
        counts=None if imported.unsure else each.histogram,
        beyond=each.overflow,
        beyond_from_ns=imported.scale_end_ns,
    )


def lattice_ns(counts: Counts) -> int | None:
    """The common step of all values in whole nanoseconds; None if there is none above 1 ns."""
    if not counts.exact or counts.n.size < FEWEST or int(counts.lo[-1]) - int(counts.lo[0]) >= 1 << 63:
        return None
    gaps = np.diff(counts.lo)
    rough = int(gaps.min())
    steps = np.rint(gaps / rough)
    step = float(gaps.sum() / steps.sum())
    on_it = rough > 1 and bool(np.all(np.abs(gaps - steps * step) <= 1))
    return round(step) if on_it else None


def _figures(summary: Summary) -> Figures:
    observed = summary.observed
    known = observed.count > 0
    return Figures(
        f"thread {summary.series.thread}",
        period_ns=summary.series.period_ns if summary.series.on_grid else None,
        count=summary.obtained,
        min_ns=observed.min if known else None,
        mean_ns=observed.mean,
        max_ns=observed.max if known else None,
        deviation_ns=observed.deviation,
        counts=None if summary.unbinned else summary.observed_counts,
        beyond=summary.lost,
        lattice_ns=lattice_ns(summary.observed_counts),
    )


def _cycles(found: Cycles | None) -> Iterator[Figures]:
    if found is not None and found.counted:
        yield Figures(
            "cycles",
            RowKind.LENGTH,
            period_ns=found.period_ns,
            count=found.counted,
            min_ns=found.min_ns,
            max_ns=found.max_ns,
            loops=found.loops,
            # In virtual time the same run has the same count again. So the count needs no bound for other runs.
            out_of_band=None if found.deterministic else found.out_of_band,
        )


def _span(record: Record, summaries: Sequence[Summary], together: Summary) -> Span | None:
    """The asked length if the run ended as asked, otherwise the measured length.

    None with events from outside, because nobody knows how many activations were due. Nor does anybody know it of the
    threads of another tool, each of which begins and ends at times of its own.
    """
    others = any(event.kind == IMPORTED_EVENT for event in record.events)
    if not summaries or others or any(summary.series.external for summary in summaries):
        return None
    asked = requested_duration_ns(record)
    ended = record.end is not None and record.end.reason is EndReason.AS_ASKED
    length = asked if asked and ended else together.span_ns
    return exact_span(length)


def _loadavg(record: Record, moment: Moment) -> tuple[float, ...]:
    """The three load averages at a moment; empty if they are not known."""
    return _numbers((recorded_facts.file_text(record, LOADAVG, moment) or "").split()[:3])


def _numbers(words: list[str]) -> tuple[float, ...]:
    """The words as numbers; empty if one is none."""
    try:
        return tuple(map(float, words))
    except ValueError:
        return ()


def _loads(record: Record) -> Iterator[tuple[str, float | None]]:
    """The work per second of each load between its first and last reading; None if there is only one."""
    for counter in record.counters:
        if counter.name.startswith(LOAD):
            seconds = (int(counter.time_ns[-1]) - int(counter.time_ns[0])) / 1e9 if counter.time_ns.size > 1 else 0
            done = int(counter.value[-1]) - int(counter.value[0]) if seconds else 0
            yield counter.name.removeprefix(LOAD), done / seconds if seconds else None
