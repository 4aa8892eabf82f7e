# SPDX-License-Identifier: Apache-2.0
"""Sections on how latencies are distributed: histogram, tail, and the forecast of the level in a longer time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rtproof.core.phrases import duration, percent, quantity, value
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.verdict_sentences import texts_under_labels
from rtproof.report import plot_data
from rtproof.report.blocks import Block, Curve, Marker, Plot, Table, Text
from rtproof.report.cumulative_curves import NamedCounts, tail_plot
from rtproof.report.number_format import (
    PrintedUnit,
    ReportStream,
    in_unit,
    latency_unit,
    left_out_at_the_end,
    limit_marker,
    number_text,
    plotted_streams,
    table_of,
)
from rtproof.summary.counts import Counts, FixedBins
from rtproof.summary.quantiles import quantiles
from rtproof.tail import forecast
from rtproof.tail.forecast import FORECAST_CONFIDENCE, Forecast
from rtproof.tail.thresholds import ThresholdLadder

THREADS = 8


def histogram_section(analysis: Analysis) -> list[Block]:
    """How often each latency occurred, in about 300 equal bins; in a second plot also those beyond these bins."""
    counts = analysis.pooled.observed_counts
    start, width, amount = plot_data.bin_scale(counts, _step_ns(analysis))
    unit = latency_unit(analysis)
    drawn, left_out = plotted_streams(analysis, THREADS)
    bins = [stream.summary.observed_counts.fixed_bins(start, width, amount) for stream in drawn]
    whole = counts.fixed_bins(start, width, amount)
    says = f"{_says(analysis, whole)} {left_out}".strip()
    far = _far_plot(analysis, drawn, left_out) if whole.above else None
    plot = Plot(
        "How often each latency occurred",
        says,
        f"latency [{unit.name}]",
        "activations in the bin",
        tuple(_curve(stream, each, unit) for stream, each in zip(drawn, bins, strict=True)),
        limit_marker(analysis, "x", unit),
        log_y=True,
        style="bars",
        bin_width=unit.scale(width),
        foremost=far is None,
    )
    return [*left_out_at_the_end(analysis), *([far] if far else []), plot]


def _far_plot(analysis: Analysis, drawn: list[ReportStream], left_out: str) -> Plot | None:
    """All latencies above zero in bins that grow with the latency; None if there are none."""
    counts, unit = analysis.pooled.observed_counts, latency_unit(analysis)
    largest = _largest(analysis)
    says = (
        f"All {quantity(counts.total, 'activation')} that ran, in bins that grow with the latency; the largest is "
        f"{largest}. {left_out}".strip()
    )
    most = Marker(f"largest {largest}", "x", unit.scale(analysis.pooled.observed.max), "note")
    curves = [NamedCounts(stream.name, stream.summary.observed_counts, stream.role) for stream in drawn]
    markers = (*limit_marker(analysis, "x", unit), most)
    return log_histogram_plot(curves, markers, unit, f"{says}{left_of_log_axis(counts)}", _step_ns(analysis))


def log_histogram_plot(
    drawn: Sequence[NamedCounts], markers: tuple[Marker, ...], unit: PrintedUnit, says: str, step_ns: int
) -> Plot | None:
    """How often each latency above zero occurred, in bins that grow with the latency; None if there are none.

    step_ns: the step to which the tool rounded values down.
    """
    positive = [each.counts.lo[each.counts.lo > 0] for each in drawn]
    least = min((int(lo[0]) for lo in positive if lo.size), default=0)
    if not least:
        return None
    edges = plot_data.log_edges(least, max(int(each.counts.hi[-1]) for each in drawn if each.counts.total), step_ns)
    x = tuple(unit.scale(int(edge)) for edge in edges)
    curves = [(each, each.counts.bins_between(edges).tolist()) for each in drawn]
    return Plot(
        "All latencies, the rare ones too",
        says,
        f"latency [{unit.name}]",
        "activations in the bin",
        tuple(Curve(each.name, x, (*map(float, bins), 0.0), each.role) for each, bins in curves),
        markers,
        log_x=True,
        log_y=True,
        style="bars",
        foremost=True,
    )


def left_of_log_axis(counts: Counts) -> str:
    """A sentence on values that a logarithmic axis cannot show, with a space before it; empty if there are none."""
    early = int(counts.n[counts.lo <= 0].sum())
    return f" {quantity(early, 'activation')} at or below zero lie left of it." if early else ""


def _step_ns(analysis: Analysis) -> int:
    """The step to which another tool rounded each value down; 1 for a run."""
    return (analysis.imported.resolution_ns if analysis.imported else None) or 1


def _largest(analysis: Analysis) -> str:
    """The largest value, which another tool may have rounded down."""
    return value(analysis.pooled.observed.max) + (" or less" if _step_ns(analysis) > 1 else "")


def _curve(stream: ReportStream, bins: FixedBins, unit: PrintedUnit) -> Curve:
    filled = np.flatnonzero(bins.counts)
    x = tuple(unit.scale(bins.start + bins.width * int(at)) for at in filled)
    return Curve(stream.name, x, tuple(float(bins.counts[at]) for at in filled), stream.role)


def _says(analysis: Analysis, bins: FixedBins) -> str:
    fullest = bins.start + bins.width * int(bins.counts.argmax())
    end = bins.start + bins.width * bins.counts.size
    what = f"{quantity(analysis.pooled.observed.count, 'activation')} that ran, in bins of {value(bins.width)}"
    scale = f"from {value(bins.start)} to {value(end)}; the bin at {value(fullest)} has the most"
    beyond = "No value lies beyond these bins."
    if bins.above:
        lie = f"{quantity(bins.above, 'value')} {'lies' if bins.above == 1 else 'lie'} beyond these bins"
        beyond = f"{lie}, the largest at {_largest(analysis)}."
    unsure = "may belong to a neighbouring bin, because the record's bins are wider."
    straddling = f" {bins.straddling:,} {unsure}" if bins.straddling else ""
    return f"{what} {scale}. {beyond}{straddling}"


NOTHING = "There are not two different latencies above zero, so there is no curve to draw."


def ccdf_section(analysis: Analysis) -> list[Block]:
    """The tail: the share of the activations later than each latency, on two logarithmic axes, with the limits."""
    drawn, left_out = plotted_streams(analysis, THREADS)
    lines = [NamedCounts(stream.name, stream.summary.observed_counts, stream.role) for stream in drawn]
    if analysis.pooled.missed:
        lines.append(NamedCounts(f"{drawn[-1].name}, schedule", analysis.pooled.schedule_counts, "other"))
    lines = [line for line in lines if line.counts.total]
    grid = plot_data.survival_grid([line.counts for line in lines])
    if grid.size < 2:
        return [Text((NOTHING,))]
    unit, says = latency_unit(analysis), f"{_tail_sentence(analysis)} {left_out}".strip()
    plot = tail_plot("Share of activations later than a latency", says, lines, grid, unit)
    return [*left_out_at_the_end(analysis), replace(plot, markers=limit_marker(analysis, "x", unit))]


def _tail_sentence(analysis: Analysis) -> str:
    known = [(q.p, q.value) for q in quantiles(analysis.pooled) if q.value is not None]
    steps = [
        f"at most {percent(round(1 - p, 9))} were later than {value(at)}" for p, at in known[:: max(len(known) - 1, 1)]
    ]
    observed, counts = analysis.pooled.observed, analysis.pooled.observed_counts
    largest = f"the largest of {quantity(observed.count, 'activation')} is {_largest(analysis)}"
    early = int(counts.n[counts.hi <= 0].sum())
    left = f" {quantity(early, 'activation')} at or below zero lie left of the scale." if early else ""
    return f"Of those that ran, {'; '.join([*steps, largest])}.{left}"


SURE = percent(FORECAST_CONFIDENCE)
MODEL = "The verdict does not use this."
REFUSED = "There is no forecast."
TOO_COARSE = "no: the clock's steps are too wide for it"


def forecast_section(analysis: Analysis) -> list[Block]:
    """The forecast and its fits; only the reasons if it is refused to a user who asked; [] if nobody did."""
    found = analysis.forecast
    if found is None or not found.worth_telling:
        return []
    if found.limit_ns is None:
        return [Text(tuple(f"{each.code}: {each.message}." for each in found.refusals), "doubt", REFUSED)]
    said = analysis.verdict.sentences
    largest = [text for text in texts_under_labels(said, "MAX") if text.startswith(">")]
    without = Text((*largest, *texts_under_labels(said, "UNSEEN")), headline="What holds without a model")
    # The report never shows a forecast without what holds without a model.
    blocks: list[Block] = [_said(analysis, found, found.limit_ns), without]
    return [*blocks, _table(found, found.ladder, latency_unit(analysis))] if found.ladder else blocks


def _said(analysis: Analysis, found: Forecast, limit_ns: int) -> Text:
    limits = (verdict.requirement.limit_ns for verdict in analysis.verdicts if verdict.requirement)
    rates = ((level, found.rate_above(level)) for level in limits)
    above = tuple(forecast.level_above(level, rate) for level, rate in rates if rate is not None)
    return Text(
        (
            *forecast.basis_sentence(found),
            *above,
            forecast.unseen_rhythms_sentence(found),
            *found.warnings,
            MODEL,
        ),
        headline=forecast.given_sentence(found, limit_ns),
    )


def _table(found: Forecast, ladder: ThresholdLadder, unit: PrintedUnit) -> Table:
    share, once = found.unit_ns / found.horizon_ns, f"once in {duration(found.horizon_ns)}"
    table = table_of(
        f"Fits of the tail by number of values; limit: {SURE}, of the level that is exceeded {once}",
        ladder.rungs,
        ("highest", lambda rung: rung.k),
        in_unit(unit, "threshold", lambda rung: rung.excesses.threshold),
        in_unit(unit, "scale", lambda rung: rung.fit.sigma),
        ("shape", lambda rung: f"{rung.fit.xi:.2f}"),
        ("A^2", lambda rung: number_text(rung.a2, 3)),
        ("p", lambda rung: forecast.probability_sentence(rung.p).removeprefix("= ")),
        in_unit(unit, "limit", lambda rung: rung.limit(share)),
        ("holds", lambda rung: TOO_COARSE if rung.coarse else "yes" if rung in ladder.used else "no"),
        numeric=tuple(range(7)),
        folded=True,
    )
    return replace(table, row_headers=False)
