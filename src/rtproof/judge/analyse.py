# SPDX-License-Identifier: Apache-2.0
"""Make an ``Analysis`` of a record: numbers, doubts about the run, verdict and forecast."""

from collections.abc import Sequence
from dataclasses import replace

from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.judge.doubts.registry import doubts_about_figures, doubts_about_run
from rtproof.judge.doubts.result_row import row_of_run
from rtproof.judge.episodes import with_stalls_to_the_end
from rtproof.judge.evidence import gather_evidence
from rtproof.judge.verdict import deciding_verdict, judge_requirement
from rtproof.judge.verdict_sentences import length_was_fixed
from rtproof.judge.worst_first import worst_first
from rtproof.record.contents import Record
from rtproof.record.requirement import Requirement, rated
from rtproof.summary.fields import judged_series, series_by_field, stage_switches, summaries_of_field
from rtproof.summary.loops import loop_cycles
from rtproof.summary.recorded_facts import virtual_time_clock
from rtproof.summary.series import pooled, summarise
from rtproof.summary.summary_model import Doubt
from rtproof.tail import forecast_sentences
from rtproof.tail.forecast import forecast, open_length_forecast
from rtproof.tail.forecast_model import NOWHERE, ForecastHorizon

Requirements = Requirement | Sequence[Requirement] | None


def analyse(
    record: Record,
    requirement: Requirements = None,
    workers: int | None = None,
    horizon: ForecastHorizon | None = None,
    limits: int = 0,
) -> Analysis:
    """Compute numbers, doubts, verdict and forecast. requirement: one, or several that are judged together.

    workers: the number of threads that count a large record, by default one per CPU. horizon: how far the forecast
    looks, by default ten times the measured time; ``NOWHERE`` makes none. limits: how many limits share the probability
    of error, if more than those given do. Raises RecordError if samples cannot be read or have values that no clock can
    show.
    """
    every = with_stalls_to_the_end(record, summarise(record, workers))
    fields = series_by_field(record)
    summaries = summaries_of_field(every, judged_series(record))
    together = pooled(summaries)
    between = stage_switches(record, fields)
    cycles = loop_cycles(record) if any(series.loop for series in judged_series(record)) else None
    found = doubts_about_run(record, every, requirement_tuple(requirement), between)
    found = worst_first((*found, *doubts_about_figures(row_of_run(record, summaries, together, cycles, found))))
    measured = Analysis(
        record,
        summaries,
        together,
        found,
        NOT_JUDGED,
        every=every,
        stages=tuple(pooled(summaries_of_field(every, field)) for field in fields),
        switches=between,
        cycles=cycles,
    )
    return _judged(measured, requirement, horizon, limits)


NOT_JUDGED = Verdict(State.NOT_ASKED, None, (), (), (), None, None, None)
"""Stands in an analysis until its verdict is known, which rests on the rest of it."""


def _judged(analysis: Analysis, requirement: Requirements, horizon: ForecastHorizon | None, limits: int) -> Analysis:
    asked = requirement_tuple(requirement) or (None,)
    record, together, found = analysis.record, analysis.pooled, analysis.doubts
    predicted = None if horizon == NOWHERE or virtual_time_clock(record) else forecast(record, together, found, horizon)
    gathered = [(each, gather_evidence(record, each, analysis.summaries, together, found)) for each in asked]
    if not length_was_fixed(gathered[0][1]):
        predicted = open_length_forecast(predicted)
    told = forecast_sentences.forecast_lines(predicted) if predicted and predicted.worth_telling else ()
    sharing = limits or max(len(rated(requirement_tuple(requirement))), 1)
    verdicts = tuple(judge_requirement(each, replace(one, forecast=told), sharing) for each, one in gathered)
    return replace(analysis, verdict=deciding_verdict(verdicts), verdicts=verdicts, forecast=predicted)


def with_more_doubts(
    analysis: Analysis,
    more: Sequence[Doubt],
    requirement: Requirements,
    horizon: ForecastHorizon | None,
    limits: int,
) -> Analysis:
    """The analysis, judged again with doubts about what the verdict rests on besides the record."""
    found = worst_first(dict.fromkeys((*analysis.doubts, *more)))
    return _judged(replace(analysis, doubts=found), requirement, horizon, limits)


def requirement_tuple(requirement: Requirements) -> tuple[Requirement, ...]:
    """The requirements as a tuple, whether there are none, one or several."""
    if requirement is None:
        return ()
    return (requirement,) if isinstance(requirement, Requirement) else tuple(requirement)
