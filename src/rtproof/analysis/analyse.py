# SPDX-License-Identifier: Apache-2.0
"""From a record to everything that is said about it."""

from collections.abc import Sequence
from dataclasses import replace

from rtproof.analysis.cycles import cycles
from rtproof.analysis.doubts import doubts
from rtproof.analysis.evidence import gather
from rtproof.analysis.fields import by_field, judged, of_field
from rtproof.analysis.forecast import wording
from rtproof.analysis.forecast.model import NOWHERE, Horizon
from rtproof.analysis.forecast.predict import forecast, of_open_length
from rtproof.analysis.model import Analysis, Cycles, Requirement
from rtproof.analysis.pool import pooled
from rtproof.analysis.scan import summarise
from rtproof.analysis.stalls import to_the_end
from rtproof.analysis.switches import switches
from rtproof.analysis.verdict import deciding, judge
from rtproof.analysis.virtual_time import virtual_time
from rtproof.analysis.wording import length_was_fixed
from rtproof.record import Record

Asked = Requirement | Sequence[Requirement] | None


def analyse(
    record: Record,
    requirement: Asked = None,
    workers: int | None = None,
    horizon: Horizon | None = None,
    limits: int = 0,
) -> Analysis:
    """Numbers, doubts and verdict. requirement: one or several, which are judged together.

    workers: processes for reading a large record, by default one per CPU. horizon: how far a forecast looks, by default
    ten times the measured time; NOWHERE: there is none. limits: how many limits share the probability of error, if they
    are not just those given. RecordError if the samples cannot be read or claim what no clock can show.
    """
    asked = several(requirement) or (None,)
    every = to_the_end(record, summarise(record, workers))
    fields = by_field(record)
    summaries = of_field(every, judged(record))
    together = pooled(summaries)
    between = switches(record, fields)
    found = doubts(record, every, several(requirement), between)
    predicted = None if horizon == NOWHERE or virtual_time(record) else forecast(record, together, found, horizon)
    gathered = [(each, gather(record, each, summaries, together, found)) for each in asked]
    if not length_was_fixed(gathered[0][1]):
        predicted = of_open_length(predicted)
    told = wording.lines(predicted)
    verdicts = tuple(judge(each, replace(one, forecast=told), limits or len(asked)) for each, one in gathered)
    return Analysis(
        record,
        summaries,
        together,
        found,
        deciding(verdicts),
        every=every,
        stages=tuple(pooled(of_field(every, field)) for field in fields),
        switches=between,
        cycles=_cycles(record),
        forecast=predicted,
        verdicts=verdicts,
    )


def several(requirement: Asked) -> tuple[Requirement, ...]:
    """None, one or several as several."""
    if requirement is None:
        return ()
    return (requirement,) if isinstance(requirement, Requirement) else tuple(requirement)


def _cycles(record: Record) -> Cycles | None:
    return cycles(record) if any(series.loop for series in judged(record)) else None
