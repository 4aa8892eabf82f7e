# SPDX-License-Identifier: Apache-2.0
"""How often each latency occurred, on about 300 equal bins with a logarithmic count, and how many lie beyond them."""

import numpy as np

from rtproof.analysis.counts import FixedBins
from rtproof.analysis.model import Analysis
from rtproof.analysis.phrases import quantity, value
from rtproof.report import binning, figures
from rtproof.report.blocks import Block, Curve, Plot
from rtproof.report.streams import Stream, for_plots, latency_unit, left_out_at_the_end, limit_marker

THREADS = 8


def render(analysis: Analysis) -> list[Block]:
    counts = analysis.pooled.observed_counts
    if not counts.total:
        return []
    start, width, amount = binning.scale(counts)
    unit = latency_unit(analysis)
    drawn, left_out = for_plots(analysis, THREADS)
    bins = [stream.summary.observed_counts.fixed_bins(start, width, amount) for stream in drawn]
    says = f"{_says(analysis, counts.fixed_bins(start, width, amount), unit)} {left_out}".strip()
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
    )
    return [*left_out_at_the_end(analysis), plot]


def _curve(stream: Stream, bins: FixedBins, unit: figures.Unit) -> Curve:
    filled = np.flatnonzero(bins.counts)
    x = tuple(unit.scale(bins.start + bins.width * int(at)) for at in filled)
    return Curve(stream.name, x, tuple(float(bins.counts[at]) for at in filled), stream.role)


def _says(analysis: Analysis, bins: FixedBins, unit: figures.Unit) -> str:
    fullest = bins.start + bins.width * int(bins.counts.argmax())
    end = bins.start + bins.width * bins.counts.size
    what = f"{quantity(analysis.pooled.observed.count, 'activation')} that ran, in bins of {value(bins.width)}"
    scale = f"from {unit(bins.start)} to {unit(end)}; the fullest bin begins at {unit(fullest)}"
    return f"{what} {scale}. {_beyond(analysis, bins, unit)}{_straddling(bins)}"


def _beyond(analysis: Analysis, bins: FixedBins, unit: figures.Unit) -> str:
    if not bins.above:
        return "None lies beyond."
    return f"Beyond lie {figures.count(bins.above)}, the largest at {unit(analysis.pooled.observed.max)}."


def _straddling(bins: FixedBins) -> str:
    if not bins.straddling:
        return ""
    return (
        f" {figures.count(bins.straddling)} come from bins of the record that an edge cuts, and stand at their middle."
    )
