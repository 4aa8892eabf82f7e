# SPDX-License-Identifier: Apache-2.0
"""The section on the forecast: the level expected in a longer time, and the fits behind it."""

from dataclasses import replace

from rtproof.core.phrases import duration, percent
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.verdict_sentences import texts_under_labels
from rtproof.report.blocks import Block, Table, Text
from rtproof.report.number_format import PrintedUnit, in_unit, latency_unit, number_text, table_of
from rtproof.tail import forecast
from rtproof.tail.forecast import FORECAST_CONFIDENCE, Forecast
from rtproof.tail.thresholds import ThresholdLadder

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
