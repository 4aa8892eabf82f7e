# SPDX-License-Identifier: Apache-2.0
"""Make an ``Analysis`` of a record: numbers, doubts about the run, verdict and forecast."""

from collections.abc import Sequence
from dataclasses import replace

from rtproof.core import units
from rtproof.core.errors import RecordError, UserError
from rtproof.judge.analysis_model import Analysis, State, Verdict
from rtproof.judge.doubts.registry import doubts_about_figures, doubts_about_run
from rtproof.judge.doubts.result_row import row_of_run
from rtproof.judge.episodes import with_stalls_to_the_end
from rtproof.judge.evidence import gather_evidence
from rtproof.judge.verdict import deciding_verdict, judge_requirement
from rtproof.judge.verdict_sentences import length_was_fixed
from rtproof.judge.worst_first import OF_GENERATOR, worst_first
from rtproof.record.contents import EndReason, Record
from rtproof.record.requirement import Requirement, rated
from rtproof.record.run_folder import Run
from rtproof.summary.fields import judged_series, series_by_field, stage_switches, summaries_of_field
from rtproof.summary.loops import loop_cycles
from rtproof.summary.recorded_facts import virtual_time_clock
from rtproof.summary.series import pooled, summarise
from rtproof.summary.two_board_edges import GENERATED, PATIENCE_NS, edges_of_boards
from rtproof.tail.forecast import NOWHERE, forecast, forecast_lines, open_length_forecast

Requirements = Requirement | Sequence[Requirement] | None


def analyse(
    record: Record,
    requirement: Requirements = None,
    workers: int | None = None,
    horizon: int | None = None,
    limits: int = 0,
) -> Analysis:
    """Compute numbers, doubts, verdict and forecast. requirement: one, or several that are judged together.

    workers: the number of threads that count a large record, by default one per CPU. horizon: how far the forecast
    looks in ns, by default ten times the run; ``NOWHERE`` makes none. limits: how many limits share the probability
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


def _judged(analysis: Analysis, requirement: Requirements, horizon: int | None, limits: int) -> Analysis:
    asked = requirement_tuple(requirement) or (None,)
    record, together, found = analysis.record, analysis.pooled, analysis.doubts
    predicted = None if horizon == NOWHERE or virtual_time_clock(record) else forecast(record, together, found, horizon)
    gathered = [(each, gather_evidence(record, each, analysis.summaries, together, found)) for each in asked]
    if not length_was_fixed(gathered[0][1]):
        predicted = open_length_forecast(predicted)
    told = forecast_lines(predicted) if predicted and predicted.worth_telling else ()
    sharing = limits or max(len(rated(requirement_tuple(requirement))), 1)
    verdicts = tuple(judge_requirement(each, replace(one, forecast=told), sharing) for each, one in gathered)
    return replace(analysis, verdict=deciding_verdict(verdicts), verdicts=verdicts, forecast=predicted)


def requirement_tuple(requirement: Requirements) -> tuple[Requirement, ...]:
    """The requirements as a tuple, whether there are none, one or several."""
    if requirement is None:
        return ()
    return (requirement,) if isinstance(requirement, Requirement) else tuple(requirement)


# A run on two boards, one of which gave the edges that the other answered.
#
# The claim is about the response, which only the generator's clock can tell. So it is judged by the generator's record,
# and an edge that was never answered is late. The responder's record has no part in it but its doubts: what speaks
# against either record speaks against the verdict. All other figures are of the responder, the system that is measured.


def analyse_two_boards(
    run: Run,
    requirement: Requirements = None,
    workers: int | None = None,
    horizon: int | None = None,
    limits: int = 0,
) -> Analysis:
    """As ``analyse``, by the generator's clock. RecordError for another record, UserError for too long a limit."""
    generator = run.generator
    assert generator
    methods = {series.method for series in generator.series}
    if methods - {GENERATED}:
        told = " and ".join(sorted(methods))
        raise RecordError(f"{generator.path} is not the record of a board that gave the edges: its method is {told}")
    refuse_long_limits(requirement)
    # A responder waits for edges when the generator has ended, and is then asked to finish.
    responder = replace(run.record, events=tuple(event for event in run.record.events if event.kind != "stalled"))
    told_to_finish = responder.end is not None and responder.end.reason is EndReason.INTERRUPTED
    answering = analyse(responder, None, workers, NOWHERE)
    more = [each for each in answering.doubts if each.code != "ended-early" or not told_to_finish]
    giving = analyse(generator, None, workers, NOWHERE)
    found = worst_first(dict.fromkeys((*giving.doubts, *more)))
    giving = _judged(replace(giving, doubts=found), requirement, horizon, limits)
    own = [replace(each, what=f"{OF_GENERATOR}{each.what}") for each in giving.doubts if each not in more]
    return replace(
        answering,
        doubts=worst_first([*own, *more]),
        verdict=giving.verdict,
        verdicts=giving.verdicts,
        forecast=giving.forecast,
        edges=edges_of_boards(generator, giving.pooled.never_ran, answering.pooled),
    )


def refuse_long_limits(requirement: Requirements) -> None:
    """UserError for a limit at which an edge that was never answered would not count."""
    longest_ns = max((each.limit_ns for each in requirement_tuple(requirement)), default=0)
    if longest_ns >= PATIENCE_NS:
        raise UserError(
            f"a limit of {units.format_duration(longest_ns)} cannot be judged with --generator: an answer is waited "
            f"for {units.format_duration(PATIENCE_NS)}, so an edge that was never answered would not be above the limit"
        )
