# SPDX-License-Identifier: Apache-2.0
"""The section on the forecast: the level expected in a longer time, its plot, and the fits behind it."""

from dataclasses import replace

from rtproof.core.phrases import duration, percent, value
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.verdict_sentences import texts_under_labels
from rtproof.report.blocks import Block, Curve, Marker, Plot, Table, Text
from rtproof.report.number_format import (
    PrintedUnit,
    axis_unit,
    in_unit,
    latency_unit,
    limit_of_responses,
    number_text,
    table_of,
)
from rtproof.tail import forecast, forecast_model
from rtproof.tail.forecast_model import FORECAST_CONFIDENCE, Forecast, TailUnits, tail_units
from rtproof.tail.thresholds import ThresholdFit, ThresholdLadder

SURE = percent(FORECAST_CONFIDENCE)
MODEL = "The verdict does not use this."
REFUSED = "There is no forecast."
TOO_COARSE = "no: the clock's steps are too wide for it"


def forecast_section(analysis: Analysis) -> list[Block]:
    """The forecast, its plot and its fits; only the reasons if it is refused to a user who asked; [] if nobody did."""
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
    rung = found.ladder.shown if found.ladder else None
    if rung is None or found.ladder is None:
        return blocks
    units, unit = tail_units(analysis.pooled), latency_unit(analysis)
    return [*blocks, _levels(analysis, found, rung, units, unit), _table(found, found.ladder, unit)]


def _said(analysis: Analysis, found: Forecast, limit_ns: int) -> Text:
    limits = (verdict.requirement.limit_ns for verdict in analysis.verdicts if verdict.requirement)
    rates = ((level, found.rate_above(level)) for level in limits)
    above = tuple(forecast_model.level_above(level, rate) for level, rate in rates if rate is not None)
    return Text(
        (
            *forecast_model.basis_sentence(found),
            *above,
            forecast_model.unseen_rhythms_sentence(found),
            *found.warnings,
            MODEL,
        ),
        headline=forecast_model.given_sentence(found, limit_ns),
    )


def _levels(analysis: Analysis, found: Forecast, rung: ThresholdFit, units: TailUnits, unit: PrintedUnit) -> Plot:
    drawn, time = forecast.return_levels(found, rung, units), axis_unit(found.measured_ns)
    x, measured_x = ([time.scale(each) for each in some] for some in (drawn.period, drawn.measured_period))
    rows = (
        ("measured", "whole", measured_x, drawn.measured),
        ("fitted", "part", x, drawn.fitted),
        (f"upper limit, {SURE}", "other", x, drawn.high),
        (f"lower limit, {SURE}", "other", x, drawn.low),
    )
    positive = all(ys.min() > 0 for _, _, _, ys in rows)
    return Plot(
        "Level that is exceeded once in a time",
        f"The upper limit at {duration(found.horizon_ns)} is "
        f"{value(forecast_model.level_rounded_up(found.limit_ns or 0))}.",
        f"once in this time [{time.name}]",
        f"latency [{unit.name}]",
        tuple(Curve(name, tuple(xs), tuple(unit.scale(float(y)) for y in ys), role) for name, role, xs, ys in rows),
        (*limit_of_responses(analysis, "y", unit), Marker("measured until here", "x", time.scale(found.measured_ns))),
        log_x=True,
        log_y=positive,
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
        ("p", lambda rung: forecast_model.probability_sentence(rung.p).removeprefix("= ")),
        in_unit(unit, "limit", lambda rung: rung.limit(share)),
        ("holds", lambda rung: TOO_COARSE if rung.coarse else "yes" if rung in ladder.used else "no"),
        numeric=tuple(range(7)),
        folded=True,
    )
    return replace(table, row_headers=False)
