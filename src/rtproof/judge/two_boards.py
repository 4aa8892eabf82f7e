# SPDX-License-Identifier: Apache-2.0
"""Make an ``Analysis`` of the records of two boards, one of which gave the edges that the other answered.

The claim is about the response, which only the generator's clock can tell. So it is judged by the generator's record,
and an edge that was never answered is late. The responder's record has no part in it but its doubts: what speaks
against either record speaks against the verdict. All other figures are of the responder, the system that is measured.
"""

from dataclasses import replace

from rtproof.core import units
from rtproof.core.errors import RecordError, UserError
from rtproof.judge.analyse import Requirements, analyse, requirement_tuple, with_more_doubts
from rtproof.judge.analysis_model import Analysis
from rtproof.judge.worst_first import OF_GENERATOR, worst_first
from rtproof.record.contents import EndReason, Record
from rtproof.record.run_folder import Run
from rtproof.summary.summary_model import Doubt
from rtproof.summary.two_board_edges import GENERATED, PATIENCE_NS, edges_of_boards
from rtproof.tail.forecast_model import NOWHERE, ForecastHorizon

WAITING = "stalled"
"""The event of a responder that waited for edges when it was told to finish: the generator had ended."""
TOLD_TO_FINISH = "ended-early"


def analyse_two_boards(
    run: Run,
    requirement: Requirements = None,
    workers: int | None = None,
    horizon: ForecastHorizon | None = None,
    limits: int = 0,
) -> Analysis:
    """As ``analyse``, by the generator's clock. RecordError for another record, UserError for too long a limit."""
    generator = run.generator
    assert generator
    _refuse_other_records(generator)
    refuse_long_limits(requirement)
    responder = replace(run.record, events=tuple(event for event in run.record.events if event.kind != WAITING))
    answering = analyse(responder, None, workers, NOWHERE)
    more = [each for each in answering.doubts if not _finished_with_generator(each, responder)]
    giving = with_more_doubts(analyse(generator, None, workers, NOWHERE), more, requirement, horizon, limits)
    own = [each for each in giving.doubts if each not in more]
    doubts = [*(replace(each, what=f"{OF_GENERATOR}{each.what}") for each in own), *more]
    return replace(
        answering,
        doubts=worst_first(doubts),
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


def _refuse_other_records(generator: Record) -> None:
    """The verdict is of the generator's times; those of any other record would be taken for them."""
    if {series.method for series in generator.series} - {GENERATED}:
        methods = " and ".join(sorted({series.method for series in generator.series}))
        raise RecordError(f"{generator.path} is not the record of a board that gave the edges: its method is {methods}")


def _finished_with_generator(doubt: Doubt, responder: Record) -> bool:
    """A responder is always asked to finish, once the generator has ended."""
    end = responder.end
    return doubt.code == TOLD_TO_FINISH and end is not None and end.reason is EndReason.INTERRUPTED
