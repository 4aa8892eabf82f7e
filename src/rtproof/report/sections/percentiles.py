# SPDX-License-Identifier: Apache-2.0
"""Percentiles of both views with the intervals that the number of samples gives; "unknown" where it gives none."""

from rtproof.analysis.model import Analysis, Dependence, Quantile, Summary
from rtproof.analysis.phrases import percent
from rtproof.analysis.quantiles import CONFIDENCE, quantiles, shares_of
from rtproof.analysis.virtual_time import virtual_time
from rtproof.record import View
from rtproof.report import figures
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.streams import Stream, latency_unit, left_out_at_the_end, streams

Shares = tuple[float, ...]

VIEWS = {View.OBSERVED: "observed", View.CHARGED: "schedule"}
EXPLAINED = (
    "A percentile is unknown where fewer than one value would be expected above it. The interval is the one of order "
    "statistics: it says how well this run's samples fix the value, not what another run would show. "
)
SAID = {
    Dependence.ESTIMATED: "Where late values come together, a run is worth fewer independent values than it has. The "
    'column "independent values" tells how many, and each interval is that of so many.',
    Dependence.UNCLEAR: "Where that number is unknown, there is no interval: the run is too short for how long late "
    "values stay together, or too few of them are above the percentile.",
    Dependence.ASSUMED_NONE: "It takes the values as independent, so it is too narrow where they come in bursts or in "
    "bad minutes.",
}
"""What an interval rests on, of those that occur in the table."""
INDEPENDENT = "independent values"

VIRTUAL = (
    "A percentile is unknown where fewer than one value would be expected above it. In virtual time it has no "
    "interval: a second run has the same values."
)


def render(analysis: Analysis) -> list[Block]:
    found, unit, shares = streams(analysis), latency_unit(analysis), shares_of(analysis)
    views = [View.OBSERVED, View.CHARGED] if analysis.pooled.missed else [View.OBSERVED]
    if virtual_time(analysis.record):
        tables = [_per_thread(found, view, unit, shares) for view in views]
        return [*left_out_at_the_end(analysis), *tables, Text((VIRTUAL,))]
    blocks = left_out_at_the_end(analysis)
    blocks += [_intervals(found[-1], views, unit, shares), Text((_explained(found, views, shares),))]
    if len(found) > 1:
        blocks += [_per_thread(found, view, unit, shares) for view in views]
        blocks += [_all_intervals(found[:-1], view, unit, shares) for view in views]
    return blocks


def _intervals(stream: Stream, views: list[View], unit: figures.Unit, shares: Shares) -> Table:
    columns = [quantiles(stream.summary, view, shares) for view in views]
    known = (INDEPENDENT,) if stream.summary.blocks else ()
    header = [part for view in views for part in (*_header(view, unit), *known)]
    rows = tuple(
        (
            _name(share),
            *(
                cell
                for column in columns
                for cell in (*_value_and_interval(column[at], unit), *_worth(column[at], known))
            ),
        )
        for at, share in enumerate(shares)
    )
    caption = (
        f"Latency not exceeded by this share of the activations, {stream.name} ({_amounts(stream.summary, views)})"
    )
    return Table(caption, ("share", *header), rows, tuple(range(1, len(header) + 1)))


def _explained(found: list[Stream], views: list[View], shares: Shares) -> str:
    """The sentences on what the intervals of all tables rest on."""
    rest = {
        q.dependence
        for stream in found
        for view in views
        for q in quantiles(stream.summary, view, shares)
        if q.value is not None
    }
    measured = bool(rest - {Dependence.ASSUMED_NONE})
    said = [text for kind, text in SAID.items() if kind in rest or (measured and kind is Dependence.ESTIMATED)]
    return EXPLAINED + " ".join(said or [SAID[Dependence.ASSUMED_NONE]])


def _header(view: View, unit: figures.Unit) -> tuple[str, str]:
    return f"{VIEWS[view]} [{unit.name}]", f"{percent(CONFIDENCE)} interval"


def _worth(q: Quantile, known: tuple[str, ...]) -> tuple[str, ...]:
    """How many independent values, where the record tells it of any percentile."""
    return tuple(figures.UNKNOWN if q.effective is None else figures.count(q.effective) for _ in known)


def _per_thread(found: list[Stream], view: View, unit: figures.Unit, shares: Shares) -> Table:
    rows = [(stream, quantiles(stream.summary, view, shares)) for stream in found]
    cells = tuple((stream.name, figures.count(row[0].n), *(unit.show(q.value) for q in row)) for stream, row in rows)
    header = ("thread", "n", *map(_name, shares))
    return Table(f"Per thread, {VIEWS[view]} [{unit.name}]", header, cells, tuple(range(1, len(header))))


def _all_intervals(threads: list[Stream], view: View, unit: figures.Unit, shares: Shares) -> Table:
    rows = [(stream, quantiles(stream.summary, view, shares)) for stream in threads]
    cells = tuple(
        (stream.name if at == 0 else "", _name(q.p), *_value_and_interval(q, unit))
        for stream, row in rows
        for at, q in enumerate(row)
    )
    header = ("thread", "share", f"{VIEWS[view]} [{unit.name}]", f"{percent(CONFIDENCE)} interval")
    return Table(f"Intervals per thread, {VIEWS[view]}", header, cells, (1, 2, 3), folded=True)


def _name(share: float) -> str:
    """With all the digits that were asked for: 99.99999 % is not 100 %."""
    return f"{share * 100:.10g} %"


def _value_and_interval(q: Quantile, unit: figures.Unit) -> tuple[str, str]:
    ends = f"{unit.show(q.low)} to {unit.show(q.high)}"
    return unit.show(q.value), figures.UNKNOWN if q.low is None and q.high is None else ends


def _amounts(summary: Summary, views: list[View]) -> str:
    counts = {View.OBSERVED: summary.observed_counts, View.CHARGED: summary.schedule_counts}
    return ", ".join(f"n = {figures.count(counts[view].total)} {VIEWS[view]}" for view in views)
