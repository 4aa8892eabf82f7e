# SPDX-License-Identifier: Apache-2.0
"""The numbers per thread: activations due, run, missed and lost; lateness of those that ran and of every due time."""

from collections.abc import Callable
from dataclasses import replace

from rtproof.analysis import moments
from rtproof.analysis.fields import several_stages
from rtproof.analysis.model import Analysis, Moments
from rtproof.analysis.phrases import duration
from rtproof.analysis.spread import Spread, spread
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.streams import Stream, latency_unit, streams


def render(analysis: Analysis) -> list[Block]:
    found = streams(analysis)
    unit = latency_unit(analysis)
    stages = several_stages(analysis)
    field = f", {stages[-1].series.field}, the last stage" if stages else ""
    observed = _latencies(f"Observed: latency of the activations that ran{field}", found, _observed, unit)
    return [_activations(found), observed, _spreads(found, unit), _of_the_schedule(analysis, found, unit)]


def _activations(found: list[Stream]) -> Table:
    header = ("thread", "CPU", "due", "ran", "missed", "lost", "missed of due", "measured")
    rows = tuple(_activation_row(stream) for stream in found)
    return Table(
        "Activations: due, ran, missed; lost: ran, but the value was not kept", header, rows, tuple(range(1, 8))
    )


def _activation_row(stream: Stream) -> tuple[str, ...]:
    summary = stream.summary
    counts = (summary.due, summary.obtained, summary.never_ran, summary.lost)
    rate = figures.share(summary.never_ran, summary.due)
    return (stream.name, stream.cpu, *map(figures.count, counts), rate, duration(summary.span_ns))


def _of_the_schedule(analysis: Analysis, found: list[Stream], unit: figures.Unit) -> Block:
    if not analysis.pooled.never_ran:
        return Text(("No activation was missed, so the schedule view (every due time) has the same numbers.",))
    table = _latencies(
        "Schedule: latency of every due time, the missed ones charged with theirs", found, _schedule, unit
    )
    return replace(table, rows=tuple(_to_the_end(row, each, unit) for row, each in zip(table.rows, found, strict=True)))


def _to_the_end(row: tuple[str, ...], stream: Stream, unit: figures.Unit) -> tuple[str, ...]:
    """A stall that lasted to the end is in no mean; of the largest it says what it was at least."""
    if stream.summary.stalled_ns <= _schedule(stream).max:
        return row
    return (*row[:4], f"at least {unit.show(stream.summary.stalled_ns)}", *row[5:])


def _observed(stream: Stream) -> Moments:
    return stream.summary.observed


def _schedule(stream: Stream) -> Moments:
    return moments.merge((stream.summary.observed, stream.summary.charged))


def _latencies(caption: str, found: list[Stream], view: Callable[[Stream], Moments], unit: figures.Unit) -> Table:
    seen = [view(stream) for stream in found]
    header = ("thread", "n", *figures.headings(unit, "min", "mean", "max", "deviation"))
    rows = tuple(
        (stream.name, figures.count(each.count), *map(unit.show, _values(each)))
        for stream, each in zip(found, seen, strict=True)
    )
    return Table(caption, header, rows, tuple(range(1, len(header))))


def _values(seen: Moments) -> tuple[float | None, ...]:
    """Smallest and largest of nothing are unknown, not 0."""
    ends = (seen.min, seen.max) if seen.count else (None, None)
    return ends[0], seen.mean, ends[1], seen.deviation


def _spreads(found: list[Stream], unit: figures.Unit) -> Table:
    spreads = [spread(stream.summary) for stream in found]
    header: tuple[str, ...] = ("thread", *figures.headings(unit, "offset", "jitter", "peak to peak"))
    rows = [(stream.name, *_spread(each, unit)) for stream, each in zip(found, spreads, strict=True)]
    if any(each.drift_ppm is not None for each in spreads):
        header = (*header, "drift [ppm]")
        rows = [(*row, _drift(each)) for row, each in zip(rows, spreads, strict=True)]
    caption = "Offset (median) and jitter (99 % minus 1 %) apart"
    return Table(caption, header, tuple(rows), tuple(range(1, len(header))))


def _spread(seen: Spread, unit: figures.Unit) -> tuple[str, ...]:
    return tuple(map(unit.show, (seen.offset, seen.jitter, seen.peak_to_peak)))


def _drift(seen: Spread) -> str:
    """Of a single thread off the grid only."""
    return "" if seen.drift_ppm is None else f"{seen.drift_ppm:,.1f}"
